package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"holdfast/ports"
)

// Block writes a backend block for a plugin, for people to paste: what has to be given stands there with its example, all
// else behind a #. plugin is "" for one that is found by its kind.
func Block(d *ports.Description, plugin string, args []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "backend %s %s {\n", quoted(d.Kind), quoted(d.Kind))
	if plugin != "" {
		fmt.Fprintf(&b, "  plugin = %s\n", quoted(plugin))
	}
	if len(args) > 0 {
		list := make([]string, len(args))
		for i, arg := range args {
			list[i] = quoted(arg)
		}
		fmt.Fprintf(&b, "  args   = [%s]\n", strings.Join(list, ", "))
	}
	local := slices.Contains(d.Powers, "LocalStore")
	if local {
		fmt.Fprintf(&b, "  #local = true # for the one that is the host's own store\n")
	}
	for i, o := range d.Options {
		if i > 0 || plugin != "" || len(args) > 0 || local {
			b.WriteByte('\n')
		}
		for line := range strings.Lines(strings.TrimSpace(o.Help)) {
			fmt.Fprintf(&b, "  # %s\n", strings.TrimSpace(line))
		}
		mark := "#"
		if o.Required {
			mark = ""
		}
		fmt.Fprintf(&b, "  %s%s = %s\n", mark, o.Name, exampleOf(o))
	}
	b.WriteString("}\n")
	return b.String()
}

// exampleOf gives an option's value as it stands in a configuration: its default, or else its example, or else one of its type.
func exampleOf(o ports.Option) string {
	text := cmp.Or(o.Default, o.Example)
	isText := o.Type != ports.OptionInt && o.Type != ports.OptionBool
	switch {
	case text == "" && o.Secret:
		return `env("NAME")`
	case text == "":
		return map[ports.OptionType]string{
			ports.OptionInt: "0", ports.OptionBool: "false", ports.OptionDuration: `"10s"`, ports.OptionSize: `"64MiB"`,
		}[o.Type] + map[bool]string{true: `""`}[o.Type == ports.OptionString || o.Type == ""]
	case o.Default == "" && isExpression(text), !isText:
		return text
	}
	return quoted(text)
}

// isExpression says whether an example is written as in a configuration already. Others are the plain value.
func isExpression(text string) bool {
	return strings.HasPrefix(text, `"`) || strings.HasPrefix(text, "env(") || strings.HasPrefix(text, "file(")
}

func quoted(text string) string {
	return string(hclwrite.TokensForValue(cty.StringVal(text)).Bytes())
}
