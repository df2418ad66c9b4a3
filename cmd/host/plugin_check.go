package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"

	"holdfast/adapters/process"
	"holdfast/internal/config"
	"holdfast/internal/exitcode"
	"holdfast/plugins/conformance"
	"holdfast/ports"
)

// pluginCheck is `holdfast plugin check`.
type pluginCheck struct {
	chosen

	Cases   string            `name:"run" placeholder:"PATTERN" help:"Only these cases: a topic, topic/case, or a pattern with *."`
	Option  map[string]string `placeholder:"NAME=VALUE" mapsep:"none" help:"An option of the plugin. {case} in the value becomes a word of each case's own, for a store that is not a file."`
	Verbose bool              `short:"v" help:"Show every case, and every call of one that fails."`
	JSON    bool              `name:"json" help:"As one JSON object."`
}

func (pluginCheck) Help() string {
	return "Starts the plugin anew for every case, on a folder of its own, and tries what the contract asks of it: plugins/conformance is the suite, and the topic process is about its start and its end. What it does not offer, or declares as left out, is not tried. The last line is for its README. Exit code 0 when nothing fails, 1 when a case does, 2 for a mistake on the command line, 3 when the plugin does not start."
}

func (c pluginCheck) Run(in *invocation) error {
	cfg, err := in.load(nil)
	if err != nil {
		return err
	}
	spec, d, err := c.ask(in, cfg)
	if err != nil {
		return err
	}
	options, err := config.GivenOptions(d.Options, c.Option)
	if err == nil {
		err = config.CheckTable(d.Options)
	}
	if err != nil {
		return exitcode.With(exitcode.Usage, fmt.Errorf("--option %w; see holdfast plugin explain %s", err, commandLine(&spec)))
	}
	secretive := slices.ContainsFunc(d.Options, func(o ports.Option) bool { return o.Secret })
	return c.judge(in, cfg, &spec, options, secretive)
}

// judge runs the cases and shows what they found.
func (c pluginCheck) judge(in *invocation, cfg *config.Config, spec *process.Spec, options json.RawMessage, secretive bool) error {
	said := &spoken{}
	extra := life(spec, options)
	m := newMatrix(in, c, spec, append(conformance.Cases(), extra...))
	report, err := conformance.Check(in.ctx, subject(*spec, options, secretive, said.logger(hclog.LevelFromString(cfg.LogLevel))), c.Cases, func(r conformance.Result) {
		m.tell(r, said.take())
	}, extra...)
	m.close()
	switch {
	case in.ctx.Err() != nil:
		if !c.JSON {
			m.failures()
		}
		return exitcode.With(exitcode.Failed, errors.New("interrupted"))
	case err != nil && ports.AsError(err).Field == "run":
		return exitcode.With(exitcode.Usage, fmt.Errorf("--%w", err))
	case err != nil:
		return exitcode.With(exitcode.Environment, err)
	}
	if err := m.end(report); err != nil {
		return err
	}
	if !report.OK() {
		return exitcode.With(exitcode.Failed, fmt.Errorf("%s failed", counted(int64(report.Count(conformance.Failed)), "case")))
	}
	return nil
}

// badge is the line to paste: what was judged, and what came of it.
func badge(r *conformance.Report) string {
	return strings.TrimSpace(cmp.Or(r.Description.Kind, "a plugin")+" "+r.Description.Version) + ": " + r.Badge()
}
