package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/hashicorp/hcl/v2"

	"holdfast/internal/config"
	"holdfast/internal/exitcode"
)

// configCommand is `holdfast config`.
type configCommand struct {
	Check   configCheck   `cmd:"" help:"Find mistakes in the configuration, in the options of the plugins too."`
	Show    configShow    `cmd:"" help:"Print every value in effect and where it came from; secrets are stars."`
	Example configExample `cmd:"" help:"Print a commented configuration with every default, to begin from."`
	Hash    configHash    `cmd:"" help:"Read a password from standard input, and print what may stand for it in the configuration."`
}

type configCheck struct{}

func (configCheck) Help() string {
	return "Each plugin is started for a moment to ask which options it takes: their names, types and which must be given are checked. What a value must be beyond that, such as the text of a dsn, its plugin checks when it takes its options, at the start of the host. The exit code is 2 when something in the configuration is wrong, and 3 when only a plugin does not start."
}

func (configCheck) Run(in *invocation) error {
	cfg, err := in.load(nil)
	if err != nil {
		return err
	}
	answers := in.askAll(cfg, cfg.Backends, waitForAll)
	mistakes := checked(cfg, answers)
	var absences hcl.Diagnostics
	table := tabwriter.NewWriter(in.stdout, 0, 0, 2, ' ', 0)
	for _, b := range cfg.Backends {
		if d := answers[b]; d.err != nil {
			absences = append(absences, cfg.Refusal(b, d.err)...)
		} else {
			fmt.Fprintln(table, strings.Join([]string{"backend " + b.Name, strings.TrimSpace(d.Kind + " " + d.Version), b.Plugin}, "\t"))
		}
	}
	all := cfg.Err(append(mistakes, absences...))
	if all != nil && !mistakes.HasErrors() {
		return exitcode.With(exitcode.Environment, all)
	}
	if all != nil {
		return all
	}
	file := cfg.File
	if file == "" {
		file = "the defaults, without a file"
	}
	fmt.Fprintf(in.stdout, "ok: %s\n", file)
	return table.Flush()
}

type configShow struct {
	JSON bool `name:"json" help:"As one JSON object."`
}

// shown is what `config show --json` prints.
type shown struct {
	File     string           `json:"file"` // "" for none
	Settings []config.Setting `json:"settings"`
}

func (c configShow) Run(in *invocation) error {
	cfg, err := in.load(nil)
	if err != nil {
		return err
	}
	s := shown{File: cfg.File, Settings: cfg.Settings()}
	answers := in.askAll(cfg, cfg.Backends, waitForAll)
	for _, b := range cfg.Backends {
		d := answers[b]
		if d.err != nil { // without the table any option may be a secret
			fmt.Fprintf(in.stderr, "holdfast: the options of the backend %q stay hidden: %v\n", b.Name, d.err)
			s.Settings = append(s.Settings, cfg.BackendSettings(b, nil)...)
			continue
		}
		s.Settings = append(s.Settings, cfg.BackendSettings(b, d.Options)...)
	}
	if c.JSON {
		out := json.NewEncoder(in.stdout)
		out.SetIndent("", "  ")
		out.SetEscapeHTML(false)
		return out.Encode(s)
	}
	table := tabwriter.NewWriter(in.stdout, 0, 0, 2, ' ', 0)
	for _, v := range s.Settings {
		fmt.Fprintf(table, "%s\t%s\t%s\n", v.Name, v.Value, v.Source)
	}
	return table.Flush()
}

type configExample struct{}

func (configExample) Run(in *invocation) error {
	_, err := fmt.Fprint(in.stdout, config.Example)
	return err
}
