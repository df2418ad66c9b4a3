package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/adapters/journal"
	"holdfast/internal/config"
	"holdfast/internal/exitcode"
	"holdfast/ports"
)

// pruneCommand is `holdfast prune`: it removes finished history, through the host when one runs, and else by itself.
type pruneCommand struct {
	OlderThan string `required:"" placeholder:"DURATION" help:"Only what was finished longer ago than this, such as 720h."`
}

func (pruneCommand) Help() string {
	return "Without a running host the plugin of the local store is started for it; so a store that has become too large to start with can be made smaller."
}

func (c pruneCommand) Run(in *invocation) error {
	age, err := config.ParseDuration(c.OlderThan)
	if err != nil || age <= 0 {
		return exitcode.With(exitcode.Usage, fmt.Errorf("--older-than: %q is no duration above zero; units are h, m and s, so thirty days are 720h", c.OlderThan))
	}
	host, err := in.client()
	if err != nil {
		return err
	}
	sum, err := host.prune(in.ctx, age)
	if errors.Is(err, errUnreachable) && in.Server == "" {
		sum, err = in.pruneAlone(age, err)
	}
	if err == nil || sum != (ports.Pruned{}) {
		fmt.Fprintf(in.stdout, "pruned %s with %s and %s, and %s\n", counted(sum.Items, "work item"), counted(sum.Events, "event"),
			counted(sum.Attempts, "attempt"), counted(sum.Manifests, "manifest"))
	}
	return err
}

// prune gives the order as often as there is more to remove.
func (c *client) prune(ctx context.Context, age time.Duration) (sum ports.Pruned, err error) {
	for {
		var step struct{ Pruned ports.Pruned }
		if err := c.post(ctx, "/v1/prune", map[string]string{"OlderThan": age.String()}, &step); err != nil {
			return sum, err
		}
		addPruned(&sum, step.Pruned)
		if !step.Pruned.More {
			return sum, nil
		}
	}
}

func addPruned(sum *ports.Pruned, step ports.Pruned) {
	sum.Items += step.Items
	sum.Events += step.Events
	sum.Attempts += step.Attempts
	sum.Manifests += step.Manifests
}

// launchFunc starts a backend's plugin and configures it; closing the backend ends the plugin. See process.
type launchFunc func(ctx context.Context, in *invocation, cfg *config.Config, b *config.Backend) (ports.Backend, error)

// pruneStep bounds one step; the plugin removes some records in each.
const pruneStep = time.Minute

// pruneAlone starts the local store's plugin for itself. absent is why no host does it; the lock makes sure of that.
func (in *invocation) pruneAlone(age time.Duration, absent error) (sum ports.Pruned, err error) {
	cfg, err := in.load(nil)
	if err != nil {
		return sum, err
	}
	release, err := journal.Lock(cfg.Data)
	if ports.CodeOf(err) == ports.Conflict {
		return sum, exitcode.With(exitcode.Environment, fmt.Errorf("%w; and %w", err, absent))
	}
	if err != nil {
		return sum, exitcode.With(exitcode.Environment, err)
	}
	defer release()
	local := cfg.LocalBackend()
	backend, err := in.launch(in.ctx, in, cfg, local)
	if err != nil {
		return sum, exitcode.With(exitcode.Environment, err)
	}
	defer backend.Close() // what was pruned is durable already
	described, err := backend.Describe(in.ctx)
	if err != nil {
		return sum, err
	}
	pruner, ok := ports.As[ports.Pruner](backend, described)
	if !ok {
		return sum, exitcode.With(exitcode.Failed, fmt.Errorf("a %q backend cannot prune", local.Kind))
	}
	for before := time.Now().Add(-age); ; {
		step, err := pruneOnce(in.ctx, pruner, before)
		addPruned(&sum, step)
		if err != nil || !step.More {
			return sum, err
		}
	}
}

func pruneOnce(ctx context.Context, pruner ports.Pruner, before time.Time) (ports.Pruned, error) {
	ctx, cancel := context.WithTimeout(ctx, pruneStep)
	defer cancel()
	return pruner.Prune(ctx, ports.PruneQuery{Before: before})
}
