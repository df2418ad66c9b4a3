package config

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// maxSecretFile bounds what file() reads; a secret is short.
const maxSecretFile = 64 << 10

// evaluation gives the file its functions: env("NAME") and file("PATH"), which keep secrets out of it.
func (c *Config) evaluation() *hcl.EvalContext {
	return &hcl.EvalContext{Functions: map[string]function.Function{
		"env":  textFunction("name", c.env),
		"file": textFunction("path", readSecret),
	}}
}

func textFunction(parameter string, call func(string) (string, error)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: parameter, Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			text, err := call(args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			return cty.StringVal(text), nil
		},
	})
}

func (c *Config) env(name string) (string, error) {
	if text, ok := c.lookup(name); ok {
		return text, nil
	}
	return "", fmt.Errorf("the environment variable %s is not set", name)
}

// readSecret reads a file without the line end that editors add.
func readSecret(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	if err != nil {
		return "", err
	}
	if len(text) > maxSecretFile {
		return "", fmt.Errorf("%s has more than %s", path, FormatSize(maxSecretFile))
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), nil
}
