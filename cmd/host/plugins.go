package main

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"

	"holdfast/internal/config"
	"holdfast/internal/exitcode"
	"holdfast/ports"
)

// Which options a backend takes, only its plugin knows; so each is started for a moment and asked, all at the same time.

// How long one plugin's start and answer may take. Some languages take half a second only to start; the host waits less for
// a plugin that it can also serve without.
const (
	describeTimeout = 10 * time.Second
	followerTimeout = 3 * time.Second
)

// said is what a plugin said of itself, or why it said nothing.
type said struct {
	ports.Description
	err error
}

// ask starts a backend's plugin to learn its option table.
func (in *invocation) ask(ctx context.Context, cfg *config.Config, b *config.Backend) (ports.Description, error) {
	spec, err := specOf(cfg, b)
	if err != nil {
		return ports.Description{}, err
	}
	spec.Kind, spec.Logger = "", in.quiet(cfg) // of another kind it is a mistake in the file, see CheckDescription
	return in.describe(ctx, spec)
}

// askAll asks the plugins of some backends; patience is how long one may take.
func (in *invocation) askAll(cfg *config.Config, backends []*config.Backend, patience func(*config.Backend) time.Duration) map[*config.Backend]said {
	answers := make([]said, len(backends))
	var wg sync.WaitGroup
	for i, b := range backends {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(in.ctx, patience(b))
			defer cancel()
			answers[i].Description, answers[i].err = in.ask(ctx, cfg, b)
		})
	}
	wg.Wait()
	all := map[*config.Backend]said{}
	for i, b := range backends {
		all[b] = answers[i]
	}
	return all
}

// waitForAll is the patience of a command that wants every answer.
func waitForAll(*config.Backend) time.Duration { return describeTimeout }

// checked holds the blocks against what their plugins said, and gives what is wrong with the file. A plugin that said nothing
// is left out.
func checked(cfg *config.Config, answers map[*config.Backend]said) (mistakes hcl.Diagnostics) {
	tables := map[*config.Backend][]ports.Option{}
	for _, b := range cfg.Backends {
		a := answers[b]
		if a.err != nil {
			continue
		}
		_, found := checkedOne(cfg, b, a.Description)
		mistakes = append(mistakes, found...)
		if !found.HasErrors() {
			tables[b] = a.Options
		}
	}
	return append(append(mistakes, cfg.CheckPlaces(tables)...), cfg.CheckFiles()...)
}

// checkedOne holds one block against what its plugin said.
func checkedOne(cfg *config.Config, b *config.Backend, d ports.Description) (json.RawMessage, hcl.Diagnostics) {
	if found := cfg.CheckDescription(b, d); found.HasErrors() {
		return nil, found
	}
	return cfg.CheckOptions(b, d.Options)
}

// checkToServe finds what is wrong with the blocks before anything starts. Without an answer of the local store's plugin
// nothing can be served; a follower's that gives none is asked again when it starts.
func (in *invocation) checkToServe(cfg *config.Config) error {
	answers := in.askAll(cfg, cfg.Backends, func(b *config.Backend) time.Duration {
		if b.Local {
			return describeTimeout
		}
		return followerTimeout
	})
	if mistakes := checked(cfg, answers); mistakes.HasErrors() {
		return cfg.Err(mistakes)
	}
	if local := cfg.LocalBackend(); answers[local].err != nil {
		return exitcode.With(exitcode.Environment, cfg.Err(cfg.Refusal(local, answers[local].err)))
	}
	return nil
}

// checkAlone is the same for one backend.
func (in *invocation) checkAlone(ctx context.Context, cfg *config.Config, b *config.Backend) error {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	d, err := in.ask(ctx, cfg, b)
	if err != nil {
		return exitcode.With(exitcode.Environment, cfg.Err(cfg.Refusal(b, err)))
	}
	_, mistakes := checkedOne(cfg, b, d)
	return cfg.Err(mistakes)
}
