package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"holdfast/adapters/process"
	"holdfast/internal/config"
	"holdfast/internal/exitcode"
	"holdfast/ports"
)

// pluginExplain is `holdfast plugin explain`.
type pluginExplain struct {
	chosen

	JSON bool `name:"json" help:"As one JSON object."`
}

func (pluginExplain) Help() string {
	return "The plugin is started for a moment and asked. The block at the end can be pasted into the configuration; what stands behind # in it may be left out."
}

// explained is what `plugin explain --json` prints.
type explained struct {
	Kind      string            `json:"kind"`
	Version   string            `json:"version"`
	Summary   string            `json:"summary"`
	Path      string            `json:"path"`
	Args      []string          `json:"args,omitempty"`
	Families  []ports.Family    `json:"families"`
	Powers    []string          `json:"powers"`
	Slots     int               `json:"slots"` // 0 for no limit
	Contained bool              `json:"contained"`
	OptOuts   []explainedOptOut `json:"optOuts"`
	Options   []explainedOption `json:"options"`
	Block     string            `json:"block"`
}

type explainedOptOut struct {
	Of     string `json:"of"`
	Reason string `json:"reason"`
}

type explainedOption struct {
	Name     string           `json:"name"`
	Type     ports.OptionType `json:"type"`
	Default  string           `json:"default,omitempty"`
	Required bool             `json:"required"`
	Secret   bool             `json:"secret"`
	Help     string           `json:"help,omitempty"`
	Example  string           `json:"example,omitempty"`
}

func (c pluginExplain) Run(in *invocation) error {
	cfg, err := in.load(nil)
	if err != nil {
		return err
	}
	spec, d, err := c.ask(in, cfg)
	if err != nil {
		return err
	}
	wrong := config.CheckTable(d.Options)
	e := explain(cfg, &spec, &d)
	if c.JSON {
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		return printJSON(in.stdout, text)
	}
	if err := e.print(in.stdout); err != nil {
		return err
	}
	if wrong != nil {
		return exitcode.With(exitcode.Failed, fmt.Errorf("the plugin %w", wrong))
	}
	return nil
}

// ask finds the plugin that is meant and asks what it is.
func (c chosen) ask(in *invocation, cfg *config.Config) (spec process.Spec, d ports.Description, err error) {
	if spec, err = c.find(cfg); err != nil {
		return spec, d, err
	}
	spec.Logger = in.quiet(cfg)
	ctx, cancel := context.WithTimeout(in.ctx, describeTimeout)
	defer cancel()
	d, err = in.describe(ctx, spec)
	return spec, d, exitcode.With(exitcode.Environment, err)
}

func explain(cfg *config.Config, spec *process.Spec, d *ports.Description) explained {
	e := explained{
		Kind: d.Kind, Version: d.Version, Summary: d.Summary, Path: spec.Path, Args: spec.Args, Slots: d.Slots, Contained: d.Contained,
		Families: append([]ports.Family{}, d.Families...), Powers: append([]string{}, d.Powers...),
		OptOuts: []explainedOptOut{}, Options: []explainedOption{},
	}
	for _, o := range d.OptOuts {
		e.OptOuts = append(e.OptOuts, explainedOptOut(o))
	}
	for _, o := range d.Options {
		e.Options = append(e.Options, explainedOption(o))
	}
	plugin := ""
	if spec.Path != filepath.Join(cfg.PluginDir, before+d.Kind) { // there it is found without a word
		plugin = whole(spec.Path)
	}
	args := make([]string, len(spec.Args))
	for i, arg := range spec.Args {
		args[i] = whole(arg)
	}
	e.Block = config.Block(d, plugin, args)
	return e
}

// whole gives a file's absolute path: the host may run elsewhere. Another word stays as it is, such as a program in PATH.
func whole(name string) string {
	full, err := filepath.Abs(name)
	if info, statErr := os.Stat(name); err != nil || statErr != nil || !info.Mode().IsRegular() {
		return name
	}
	return full
}

func (e *explained) print(out io.Writer) error {
	fmt.Fprintln(out, clean(strings.TrimSpace(e.Kind+" "+e.Version+": "+cmp.Or(e.Summary, "it says no more about itself"))))
	fmt.Fprintln(out)
	facts := newTable(out)
	facts.row("where", strings.Join(append([]string{e.Path}, e.Args...), " "))
	facts.row("keeps", families(e.Families))
	facts.row("can be local", yesNo(slices.Contains(e.Powers, "LocalStore")))
	facts.row("powers", cmp.Or(strings.Join(e.Powers, ", "), "none"))
	facts.row("slots", slots(e.Slots))
	facts.row("contained", yesNo(e.Contained))
	for _, o := range e.OptOuts {
		facts.row("leaves out", o.Of+": "+o.Reason)
	}
	if err := facts.flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	if err := e.printOptions(out); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%s", cleanLines(e.Block))
	return err
}

func (e *explained) printOptions(out io.Writer) error {
	if len(e.Options) == 0 {
		_, err := fmt.Fprintln(out, "It takes no options.")
		return err
	}
	t := newTable(out, "OPTION", "TYPE", "DEFAULT", "MEANING")
	for _, o := range e.Options {
		fallback := o.Default
		if o.Required {
			fallback = "(required)"
		}
		meaning := o.Help
		if o.Secret {
			meaning = sentence(meaning, "secret")
		}
		if o.Example != "" {
			meaning = sentence(meaning, "such as "+o.Example)
		}
		t.row(o.Name, string(o.Type), fallback, strings.Join(strings.Fields(meaning), " "))
	}
	return t.flush()
}

func families(list []ports.Family) string {
	words := make([]string, len(list))
	for i, f := range list {
		words[i] = strings.ToLower(string(f))
	}
	return cmp.Or(strings.Join(words, ", "), "nothing")
}

func slots(n int) string {
	if n == 0 {
		return "no limit"
	}
	return strconv.Itoa(n) + " calls at a time"
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}
