package config

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"holdfast/ports"
)

// GivenOptions holds options that stand in no file, but were given as texts, against a plugin's table, and gives what
// CheckOptions gives. An error names the option in its Field.
func GivenOptions(table []ports.Option, given map[string]string) (json.RawMessage, error) {
	var known []string
	values := map[string]any{}
	for _, o := range table {
		known = append(known, o.Name)
		text, has := given[o.Name]
		switch {
		case !has && o.Default != "":
			text = o.Default
		case !has && o.Required:
			e := ports.InField(ports.Invalid, o.Name, "is needed")
			if o.Help != "" {
				e.Message += ": " + o.Help
			}
			return nil, e
		case !has:
			continue
		}
		value, _, err := convert(o, cty.StringVal(text))
		if err != nil {
			return nil, ports.InField(ports.Invalid, o.Name, "%v", err)
		}
		values[o.Name] = value
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(known, name) {
			return nil, ports.InField(ports.Invalid, name, "is no option of this plugin. %s", hint(name, known))
		}
	}
	return json.Marshal(values)
}
