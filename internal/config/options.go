package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"holdfast/ports"
)

// CheckOptions holds a backend block against its plugin's option table and gives ports.Configuration.Options: one object
// with every option that has a value, defaults included; durations as text, sizes as a number of bytes.
func (c *Config) CheckOptions(b *Backend, table []ports.Option) (json.RawMessage, hcl.Diagnostics) {
	chosen, diags := c.options(b, table)
	if diags.HasErrors() {
		return nil, ordered(diags)
	}
	values := map[string]any{}
	for _, o := range chosen {
		values[o.Name] = o.value
	}
	text, err := json.Marshal(values)
	if err != nil {
		return nil, problem(&b.where, "options of "+b.Name, "%s", sentence(err))
	}
	return text, ordered(diags)
}

// CheckDescription holds a backend block against what its plugin says of itself.
func (c *Config) CheckDescription(b *Backend, d ports.Description) hcl.Diagnostics {
	switch {
	case d.Kind != b.Kind:
		where := b.where
		if own, given := b.ranges[attrPlugin]; given {
			where = own
		}
		return problem(&where, "another kind of backend", "The plugin %s is of the kind %q, not %q.", b.Plugin, d.Kind, b.Kind)
	case b.Local && !slices.Contains(d.Powers, "LocalStore"):
		return problem(&b.where, "no local store", "A %q backend cannot be the local store; take local = true away and add a backend that can, such as \"sqlite\".", b.Kind)
	}
	if own, given := b.ranges[attrRetention]; given && b.Retention > 0 && !slices.Contains(d.Powers, "Pruner") {
		return problem(&own, "retention that cannot be kept", "A %q backend cannot remove what is old, so it keeps everything; take retention away.", b.Kind)
	}
	if err := CheckTable(d.Options); err != nil {
		return problem(&b.where, "options that cannot be given", "The plugin of the kind %q %s.", b.Kind, err)
	}
	return nil
}

// CheckTable says why nobody could give one of the options that a plugin declares, if that is so. The plugin is the subject
// of the sentence.
func CheckTable(table []ports.Option) error {
	seen := map[string]bool{}
	for _, o := range table {
		switch {
		case slices.Contains(hostAttributes, o.Name):
			return ports.Errorf(ports.Invalid, "", "declares an option %q, which is an attribute of the host's own in every backend block (%s); its author has to call it something else", o.Name, list(hostAttributes))
		case !hclsyntax.ValidIdentifier(o.Name):
			return ports.Errorf(ports.Invalid, "", "declares an option %q, which is no name in a configuration; names begin with a letter, and letters, digits, \"_\" and \"-\" follow", o.Name)
		case seen[o.Name]:
			return ports.Errorf(ports.Invalid, "", "declares the option %q twice", o.Name)
		}
		seen[o.Name] = true
	}
	return nil
}

// Refusal places an error of a plugin's start in the file: at the attribute or the option that it names, else at the block.
func (c *Config) Refusal(b *Backend, err error) hcl.Diagnostics {
	summary, where := fmt.Sprintf("backend %q does not start", b.Name), b.where
	if refused, ok := errors.AsType[*ports.Error](err); ok && refused.Field != "" {
		attributes, _ := b.body.JustAttributes()
		if attribute := attributes[refused.Field]; attribute != nil {
			where = attribute.Range
		}
		if own, given := b.ranges[b.attributeOf(refused)]; given {
			where = own
		}
	}
	return problem(&where, summary, "%s", err)
}

// attributeOf is the attribute that an error names. A file that is not right may stand among the arguments.
func (b *Backend) attributeOf(e *ports.Error) string {
	if e.Field != attrPlugin {
		return e.Field
	}
	for _, arg := range b.Args {
		if full, err := filepath.Abs(arg); err == nil && strings.HasPrefix(e.Message, full+" ") {
			return attrArgs
		}
	}
	return attrPlugin
}

// option is one option of a block with its value, as the plugin takes it and as people read it.
type option struct {
	ports.Option
	value  any
	text   string
	source string
}

// options checks the block. It gives the options that have a value, in the table's order.
func (c *Config) options(b *Backend, table []ports.Option) (chosen []option, diags hcl.Diagnostics) {
	known := slices.Clone(hostAttributes)
	for _, o := range table {
		known = append(known, o.Name)
		if shown, named := c.shown[o.Name]; !named || shown {
			c.shown[o.Name] = !o.Secret // one plugin's secret hides the name everywhere
		}
	}
	attributes, diags := b.body.JustAttributes()
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		if !slices.Contains(known, name) {
			diags = append(diags, problem(&attributes[name].NameRange, "unknown option", "A %q backend has no option %q. %s", b.Kind, name, hint(name, known))...)
		}
	}
	for _, o := range table {
		chose, given, optionDiags := c.option(b, o, attributes[o.Name])
		diags = append(diags, optionDiags...)
		if given {
			chosen = append(chosen, chose)
		}
	}
	return chosen, diags
}

// option gives one option its value; given is false when it has none.
func (c *Config) option(b *Backend, o ports.Option, attribute *hcl.Attribute) (chose option, given bool, diags hcl.Diagnostics) {
	value := cty.NullVal(cty.String)
	if attribute != nil {
		if value, diags = c.evaluate(attribute); diags.HasErrors() {
			return option{}, false, diags
		}
	}
	chose = option{Option: o, source: fromDefault}
	switch {
	case !value.IsNull():
		chose.source = placeIn(attribute.Expr.Range()).source
		if !b.own {
			chose.source = fromDefault
		}
	case o.Default != "":
		value = cty.StringVal(o.Default)
	case o.Required:
		detail := fmt.Sprintf("A %q backend needs %s", b.Kind, o.Name)
		if o.Help != "" {
			detail += ": " + o.Help
		}
		if o.Example != "" {
			detail += fmt.Sprintf("\nFor example: %s = %s", o.Name, exampleOf(o))
		}
		return option{}, false, append(diags, problem(&b.where, "missing option", "%s", detail)...)
	default:
		return option{}, false, diags
	}
	var err error
	if chose.value, chose.text, err = convert(o, value); err != nil {
		where := &b.where
		if attribute != nil {
			where = attribute.Expr.Range().Ptr()
		}
		return option{}, false, append(diags, problem(where, "wrong value of "+o.Name, "%s", sentence(err))...)
	}
	return chose, true, diags
}

// convert gives the value in the option's type. Text is converted too, since env() and file() only give text. The error
// does not repeat a secret.
func convert(o ports.Option, value cty.Value) (converted any, text string, err error) {
	isText := value.Type() == cty.String
	if isText {
		text = value.AsString()
	}
	var want string
	switch o.Type {
	case ports.OptionString:
		if isText {
			return text, text, nil
		}
		want = "text in quotes"
	case ports.OptionBool:
		if value.Type() == cty.Bool {
			return value.True(), strconv.FormatBool(value.True()), nil
		}
		if text == "true" || text == "false" {
			return text == "true", text, nil
		}
		want = "true or false"
	case ports.OptionInt:
		n, ok := int64(0), false
		if value.Type() == cty.Number {
			n, ok = integer(value)
		} else if isText {
			n, err = strconv.ParseInt(text, 10, 64)
			ok = err == nil
		}
		if ok {
			return n, strconv.FormatInt(n, 10), nil
		}
		want = "a whole number"
	case ports.OptionDuration:
		if d, err := ParseDuration(text); isText && err == nil {
			return text, FormatDuration(d), nil
		}
		want = `a duration in quotes, such as "250ms", "10s" or "720h"`
	case ports.OptionSize:
		n, ok := int64(0), false
		if value.Type() == cty.Number {
			n, ok = integer(value)
		} else if isText {
			n, err = ParseSize(text)
			ok = err == nil
		}
		if ok && n >= 0 {
			return n, FormatSize(n), nil
		}
		want = `a size such as "64MiB" or a number of bytes`
	default:
		return nil, "", fmt.Errorf("the plugin declares %s with the unknown type %q", o.Name, o.Type)
	}
	have := typeName(value)
	if isText && !o.Secret && o.Type != ports.OptionString {
		have = strconv.Quote(text)
	}
	return nil, "", fmt.Errorf("it must be %s; here stands %s", want, have)
}
