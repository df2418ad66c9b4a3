package config

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"os"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
)

// DefaultFile is read when no file is named and it is there, in the working directory.
const DefaultFile = "holdfast.hcl"

// Input is where a configuration comes from.
type Input struct {
	File      string                      // "" means DefaultFile if it exists, else no file
	Flags     map[string]string           // by the name of the setting, such as "log_level"; "" is not given
	LookupEnv func(string) (string, bool) // nil means os.LookupEnv
	Binary    string                      // the path of the running executable; "" asks the system
}

// defaults stands for a file without backends.
const (
	defaultsName = "defaults"
	defaults     = `
backend "sqlite" "local" {
  local = true
  path  = "history.db"
}
`
)

// place is where a value in effect came from; rng only for one in a file.
type place struct {
	source string
	rng    *hcl.Range
}

const fromDefault = "default"

// Load reads the configuration. It never returns nil: when the diagnostics have errors, the Config serves only to print
// them (Err). Plugins are not asked anything; their options are checked by CheckOptions.
func Load(in Input) (*Config, hcl.Diagnostics) {
	c := &Config{
		places:  map[string]place{},
		sources: map[string][]byte{},
		shown:   map[string]bool{},
		binary:  in.Binary,
		lookup:  in.LookupEnv,
	}
	if c.lookup == nil {
		c.lookup = os.LookupEnv
	}
	body, diags := c.read(in.File)
	if diags.HasErrors() {
		return c, ordered(diags)
	}
	given, diags := c.content(body)
	for _, s := range settings {
		diags = append(diags, c.settle(s, given.attributes[s.name], in.Flags[s.name])...)
	}
	diags = append(diags, c.takeBackends(given.backends)...)
	diags = append(diags, c.takeTokens(given.tokens)...)
	diags = append(diags, c.takeMesh(given.mesh)...)
	if len(c.Backends) > 0 {
		c.defaultRoute()
		diags = append(diags, c.checkRoute()...)
	}
	diags = append(diags, c.checkListen()...)
	diags = append(diags, c.checkTLS()...)
	return c, ordered(diags)
}

// read parses the file; a nil body means that there is none.
func (c *Config) read(path string) (hcl.Body, hcl.Diagnostics) {
	name := cmp.Or(path, DefaultFile)
	src, err := os.ReadFile(name)
	switch {
	case path == "" && errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, problem(nil, "configuration not readable", "%s.", err)
	}
	c.File = name
	return c.parse(name, src)
}

func (c *Config) parse(name string, src []byte) (hcl.Body, hcl.Diagnostics) {
	c.sources[name] = src
	parser := hclparse.NewParser()
	parse := parser.ParseHCL
	if strings.HasSuffix(name, ".json") {
		parse = parser.ParseJSON
	}
	file, diags := parse(src, name)
	for _, d := range diags {
		if d.Summary == "Invalid JSON keyword" { // it repeats the word, which may be a secret
			d.Detail = "Text stands in quotes; without them there are only numbers, true, false and null."
		}
	}
	if file == nil {
		return nil, diags
	}
	return file.Body, diags
}

// given is the content of the file, still as expressions.
type given struct {
	attributes map[string]*hcl.Attribute // by the name of the setting
	backends   hcl.Blocks
	tokens     hcl.Blocks
	mesh       hcl.Body // what its settings leave of the block
}

// content takes the file apart by the schema that the settings make.
func (c *Config) content(body hcl.Body) (given, hcl.Diagnostics) {
	g := given{attributes: map[string]*hcl.Attribute{}}
	if body == nil {
		return g, nil
	}
	content, diags := body.Content(schemaOf("",
		hcl.BlockHeaderSchema{Type: "journal"},
		hcl.BlockHeaderSchema{Type: "tls"},
		hcl.BlockHeaderSchema{Type: "mesh"},
		hcl.BlockHeaderSchema{Type: "backend", LabelNames: []string{"kind", "name"}},
		hcl.BlockHeaderSchema{Type: "token", LabelNames: []string{"name"}},
	))
	maps.Copy(g.attributes, content.Attributes)
	seen := map[string]bool{}
	for _, block := range content.Blocks {
		switch block.Type {
		case "backend":
			g.backends = append(g.backends, block)
		case "token":
			g.tokens = append(g.tokens, block)
		default: // the blocks of settings
			if seen[block.Type] {
				diags = append(diags, problem(&block.DefRange, "second "+block.Type+" block", "The file has one already; put all of it there.")...)
				continue
			}
			seen[block.Type] = true
			inner, rest, innerDiags := block.Body.PartialContent(schemaOf(block.Type + "."))
			if block.Type == "mesh" {
				g.mesh = rest
			} else {
				_, innerDiags = block.Body.Content(schemaOf(block.Type + "."))
			}
			diags = append(diags, innerDiags...)
			for name, attribute := range inner.Attributes {
				g.attributes[block.Type+"."+name] = attribute
			}
		}
	}
	return g, diags
}

// schemaOf gives the attributes of a block, "" being the file itself.
func schemaOf(prefix string, blocks ...hcl.BlockHeaderSchema) *hcl.BodySchema {
	schema := &hcl.BodySchema{Blocks: blocks}
	for _, s := range settings {
		name, ok := strings.CutPrefix(s.name, prefix)
		if ok && !strings.Contains(name, ".") {
			schema.Attributes = append(schema.Attributes, hcl.AttributeSchema{Name: name})
		}
	}
	return schema
}

// settle gives a setting its value: default, file, environment, flag, the later over the earlier. All that are given are
// checked, also those that are overridden.
func (c *Config) settle(s setting, attribute *hcl.Attribute, flag string) (diags hcl.Diagnostics) {
	take := func(text string, from place) {
		if err := s.set(c, text); err != nil {
			diags = append(diags, problem(from.rng, from.from("wrong value of "+s.name), "%s", sentence(err))...)
			return
		}
		c.places[s.name] = from
	}
	take(s.fallback, place{source: fromDefault})
	if attribute != nil {
		text, found, fileDiags := c.text(s.form, attribute)
		diags = append(diags, fileDiags...)
		if found {
			take(text, placeIn(attribute.Expr.Range()))
		}
	}
	if text, ok := c.lookup(s.env()); ok && text != "" {
		take(text, place{source: "env " + s.env()})
	}
	if flag != "" {
		take(flag, place{source: "flag " + s.flag()})
	}
	return diags
}
