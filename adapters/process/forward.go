//go:build unix

package process

import (
	"context"

	"holdfast/adapters/wire"
	"holdfast/ports"
)

var (
	_ ports.LocalStore = (*Process)(nil)
	_ ports.Pruner     = (*Process)(nil)
	_ ports.Exporter   = (*Process)(nil)
	_ ports.Surveyor   = (*Process)(nil)
	_ ports.Drainer    = (*Process)(nil)
)

// forward makes one call of the present child. The death of the child ends it at once.
func forward[T any](ctx context.Context, p *Process, call func(context.Context, wire.Remote) (T, error)) (T, error) {
	var none T
	c, gone, err := p.child()
	if err != nil {
		return none, err
	}
	defer c.calls.Done()
	joined, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(gone, cancel)()
	answer, err := call(joined, c.client)
	if ports.CodeOf(err) == ports.Deadline {
		c.doubt()
	}
	if err != nil && gone.Err() != nil && ctx.Err() == nil {
		return answer, ports.Errorf(ports.BackendGone, p.spec.Name, "the plugin died during the call")
	}
	return answer, err
}

// tell is forward for calls without a result.
func tell(ctx context.Context, p *Process, call func(context.Context, wire.Remote) error) error {
	_, err := forward(ctx, p, func(ctx context.Context, c wire.Remote) (struct{}, error) { return struct{}{}, call(ctx, c) })
	return err
}

// Describe gives what the plugin said of itself at its last start; a dead one needs no restart for it.
func (p *Process) Describe(ctx context.Context) (ports.Description, error) {
	p.mu.Lock()
	known := p.description
	p.mu.Unlock()
	if known == nil {
		return forward(ctx, p, func(ctx context.Context, c wire.Remote) (ports.Description, error) { return c.Describe(ctx) })
	}
	return *known, nil
}

func (p *Process) Probe(ctx context.Context, f ports.Family) error {
	return tell(ctx, p, func(ctx context.Context, c wire.Remote) error { return c.Probe(ctx, f) })
}

func (p *Process) Position(ctx context.Context, f ports.Family) (ports.Position, error) {
	return forward(ctx, p, func(ctx context.Context, c wire.Remote) (ports.Position, error) { return c.Position(ctx, f) })
}

func (p *Process) Put(ctx context.Context, b ports.Batch) (ports.Applied, error) {
	return forward(ctx, p, func(ctx context.Context, c wire.Remote) (ports.Applied, error) { return c.Put(ctx, b) })
}

func (p *Process) Stand(ctx context.Context, hostID string) (ports.Standing, error) {
	return forward(ctx, p, func(ctx context.Context, c wire.Remote) (ports.Standing, error) { return c.Stand(ctx, hostID) })
}

func (p *Process) Open(ctx context.Context, o ports.Opening) error {
	return tell(ctx, p, func(ctx context.Context, c wire.Remote) error { return c.Open(ctx, o) })
}

// Commit keeps the order of calls among the batches that one child gets; the batches of a child that died fail.
func (p *Process) Commit(ctx context.Context, b ports.CommitBatch) (ports.Pending, error) {
	c, _, err := p.child()
	if err != nil {
		return nil, err
	}
	pending, err := c.client.Commit(ctx, b)
	if err != nil {
		c.calls.Done()
		return nil, err
	}
	go func() {
		defer c.calls.Done()
		_, _ = pending.Wait(context.Background()) // answered, or failed with its stream
	}()
	return pending, nil
}

func (p *Process) Item(ctx context.Context, key string) (ports.Row, error) {
	return forward(ctx, p, func(ctx context.Context, c wire.Remote) (ports.Row, error) { return c.Item(ctx, key) })
}

func (p *Process) Items(ctx context.Context, q ports.ItemQuery) (ports.Page, error) {
	return forward(ctx, p, func(ctx context.Context, c wire.Remote) (ports.Page, error) { return c.Items(ctx, q) })
}

func (p *Process) Events(ctx context.Context, q ports.EventQuery) (ports.Page, error) {
	return forward(ctx, p, func(ctx context.Context, c wire.Remote) (ports.Page, error) { return c.Events(ctx, q) })
}

func (p *Process) Attempts(ctx context.Context, q ports.AttemptQuery) (ports.Page, error) {
	return forward(ctx, p, func(ctx context.Context, c wire.Remote) (ports.Page, error) { return c.Attempts(ctx, q) })
}

func (p *Process) Manifest(ctx context.Context, key string) (ports.Row, error) {
	return forward(ctx, p, func(ctx context.Context, c wire.Remote) (ports.Row, error) { return c.Manifest(ctx, key) })
}

func (p *Process) Manifests(ctx context.Context, q ports.ManifestQuery) (ports.Page, error) {
	return forward(ctx, p, func(ctx context.Context, c wire.Remote) (ports.Page, error) { return c.Manifests(ctx, q) })
}

func (p *Process) Export(ctx context.Context, q ports.ExportQuery) (ports.Page, error) {
	return forward(ctx, p, func(ctx context.Context, c wire.Remote) (ports.Page, error) { return c.Export(ctx, q) })
}

func (p *Process) Prune(ctx context.Context, q ports.PruneQuery) (ports.Pruned, error) {
	return forward(ctx, p, func(ctx context.Context, c wire.Remote) (ports.Pruned, error) { return c.Prune(ctx, q) })
}

func (p *Process) Survey(ctx context.Context) (ports.Survey, error) {
	return forward(ctx, p, func(ctx context.Context, c wire.Remote) (ports.Survey, error) { return c.Survey(ctx) })
}

func (p *Process) Drain(ctx context.Context) error {
	return tell(ctx, p, func(ctx context.Context, c wire.Remote) error { return c.Drain(ctx) })
}

func (p *Process) Changes(ctx context.Context, q ports.ChangesQuery) (ports.ChangePage, error) {
	return forward(ctx, p, func(ctx context.Context, c wire.Remote) (ports.ChangePage, error) { return c.Changes(ctx, q) })
}
