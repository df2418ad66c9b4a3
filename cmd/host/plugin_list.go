package main

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"holdfast/adapters/process"
	"holdfast/internal/config"
	"holdfast/internal/pins"
)

// pluginList is `holdfast plugin list`.
type pluginList struct {
	JSON bool `name:"json" help:"As a JSON list."`
}

func (pluginList) Help() string {
	return "Lists what is in plugin_dir and what the configuration names. Each plugin is started for a moment to ask what it is. PINNED says whether its files are those of the lock (see `holdfast plugin lock`)."
}

// listed is one plugin of the list.
type listed struct {
	Kind    string   `json:"kind"`
	Version string   `json:"version"` // "" when it did not say
	Summary string   `json:"summary"`
	Path    string   `json:"path"`
	Args    []string `json:"args,omitempty"`
	UsedBy  []string `json:"usedBy,omitempty"` // names of backends
	Pinned  pinState `json:"pinned"`
	Fault   string   `json:"fault,omitempty"` // why it does not start, or is not what it seems

	spec process.Spec
}

// pinState says how a plugin's files are to the lock.
type pinState string

const (
	pinnedAll    pinState = "yes"
	pinnedNone   pinState = "no"      // a file is not in the lock
	pinnedOthers pinState = "differs" // a file is not the one that was locked
)

func (c pluginList) Run(in *invocation) error {
	cfg, err := in.load(nil)
	if err != nil {
		return err
	}
	all, err := pluginsOf(cfg)
	if err != nil {
		return err
	}
	in.askEach(cfg, all)
	if c.JSON {
		return printList(in, all)
	}
	t := newTable(in.stdout, "KIND", "VERSION", "USED BY", "PINNED", "WHERE", "FAULT")
	for _, p := range all {
		t.row(p.Kind, p.Version, strings.Join(p.UsedBy, ", "), string(p.Pinned), commandLine(&p.spec), brief(strings.ReplaceAll(p.Fault, "\n  ", " "), 300))
	}
	return t.flush()
}

func printList(in *invocation, all []*listed) error {
	if all == nil {
		all = []*listed{}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return printJSON(in.stdout, text)
}

// pluginsOf collects the plugins of plugin_dir and of the configuration, each file once, by kind.
func pluginsOf(cfg *config.Config) (all []*listed, _ error) {
	kinds, err := kindsIn(cfg.PluginDir)
	if err != nil {
		return nil, err
	}
	add := func(spec process.Spec) *listed {
		i := slices.IndexFunc(all, func(p *listed) bool {
			return p.Path == spec.Path && slices.Equal(p.Args, spec.Args) && p.Kind == spec.Kind
		})
		if i < 0 {
			i, all = len(all), append(all, &listed{Kind: spec.Kind, Path: spec.Path, Args: spec.Args, spec: spec})
		}
		return all[i]
	}
	for _, b := range cfg.Backends {
		spec, err := specOf(cfg, b)
		if err != nil {
			return nil, err
		}
		p := add(spec)
		p.UsedBy = append(p.UsedBy, b.Name)
	}
	for _, kind := range kinds {
		path := filepath.Join(cfg.PluginDir, before+kind)
		if slices.ContainsFunc(all, func(p *listed) bool { return p.Path == path }) {
			continue
		}
		spec, err := guarded(cfg, process.Spec{Kind: kind, Path: path})
		if err != nil {
			return nil, err
		}
		add(spec)
	}
	slices.SortStableFunc(all, func(a, b *listed) int { return strings.Compare(a.Kind, b.Kind) })
	return all, nil
}

// askEach starts each plugin for a moment, all at the same time.
func (in *invocation) askEach(cfg *config.Config, all []*listed) {
	locked := locked(cfg)
	var wg sync.WaitGroup
	for _, p := range all {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(in.ctx, describeTimeout)
			defer cancel()
			p.Pinned = pinsOf(&p.spec, locked)
			p.spec.Logger = in.quiet(cfg)
			d, err := in.describe(ctx, p.spec)
			p.Version, p.Summary = d.Version, d.Summary
			if err == nil {
				err = config.CheckTable(d.Options)
			}
			if err != nil {
				p.Fault = err.Error()
			}
		})
	}
	wg.Wait()
}

// locked gives the pins of a configuration, if they can be read; what is wrong with them is told where they count.
func locked(cfg *config.Config) pins.Pins {
	all, err := pins.Read(lockFile(cfg))
	if err != nil {
		return nil
	}
	return all
}

// pinsOf holds a plugin's files against the lock.
func pinsOf(spec *process.Spec, locked pins.Pins) pinState {
	files, err := spec.Files()
	if err != nil {
		return pinnedNone
	}
	state := pinnedAll
	for _, path := range files {
		want, has := locked[path]
		if !has {
			return pinnedNone
		}
		if sum, err := process.Sum(path); err != nil || sum != want {
			state = pinnedOthers
		}
	}
	return state
}
