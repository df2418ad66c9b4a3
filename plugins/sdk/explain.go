package sdk

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"holdfast/adapters/wire"
	"holdfast/ports"
)

// explain tells somebody who started the plugin by hand what it is and how it is used.
func explain(out io.Writer, backend ports.Backend, path string) {
	d, err := backend.Describe(context.Background())
	name := filepath.Base(path)
	if err != nil {
		d = ports.Description{Kind: "KIND", Summary: "It cannot describe itself: " + err.Error()}
	} else if d.Version != "" {
		name += " " + d.Version
	}
	options := slices.Clone(d.Options)
	slices.SortStableFunc(options, func(a, b ports.Option) int { return turn(a) - turn(b) })
	fmt.Fprintf(out, "%s: a backend plugin of holdfast (protocol %d). It is started by holdfast, not by hand.\n", name, wire.ProtocolVersion)
	if d.Summary != "" {
		fmt.Fprintln(out, d.Summary)
	}
	fmt.Fprintf(out, "\nName it in the configuration:\n\n  backend %q \"NAME\" {\n    plugin = %q\n", d.Kind, path)
	for _, o := range options {
		if o.Required {
			fmt.Fprintf(out, "    %s = %s\n", o.Name, sample(o))
		}
	}
	fmt.Fprint(out, "  }\n\n")
	if len(options) > 0 {
		fmt.Fprint(out, "Its options:\n\n")
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		for _, o := range options {
			fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", o.Name, o.Type, demand(o), o.Help)
		}
		_ = table.Flush()
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "holdfast plugin check %s   tries whether it keeps the contract\n", path)
	fmt.Fprint(out, "holdfast config check   starts it for a moment and checks its options\n")
}

// turn puts what must be given first.
func turn(o ports.Option) int {
	if o.Required {
		return 0
	}
	return 1
}

// demand is what an option asks of the operator.
func demand(o ports.Option) string {
	var words []string
	if o.Required {
		words = append(words, "required")
	}
	if o.Secret {
		words = append(words, "secret")
	}
	if o.Default != "" && !o.Secret {
		words = append(words, "default "+o.Default)
	}
	return strings.Join(words, ", ")
}

// sample is how an option could be written.
func sample(o ports.Option) string {
	switch {
	case o.Secret:
		return `env("HOLDFAST_` + strings.ToUpper(o.Name) + `")`
	case o.Type == ports.OptionInt && o.Example != "":
		return o.Example
	case o.Type == ports.OptionBool:
		return "true"
	}
	return strconv.Quote(o.Example)
}
