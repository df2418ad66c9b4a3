package main

import (
	"context"

	"holdfast/adapters/process"
	"holdfast/ports"
)

// A follower has the calls of its process, all of them, so that the powers which its plugin declares can be used. Each fails
// while there is no process.

var (
	_ ports.LocalStore = (*follower)(nil)
	_ ports.Backend    = (*follower)(nil)
)

// through makes a call of the process.
func through[T any](f *follower, call func(p *process.Process) (T, error)) (T, error) {
	p, err := f.running()
	if err != nil {
		var none T
		return none, err
	}
	return call(p)
}

// told is through for calls without a result.
func told(f *follower, call func(p *process.Process) error) error {
	p, err := f.running()
	if err != nil {
		return err
	}
	return call(p)
}

func (f *follower) Describe(ctx context.Context) (ports.Description, error) {
	return through(f, func(p *process.Process) (ports.Description, error) { return p.Describe(ctx) })
}

func (f *follower) Probe(ctx context.Context, family ports.Family) error {
	return told(f, func(p *process.Process) error { return p.Probe(ctx, family) })
}

func (f *follower) Position(ctx context.Context, family ports.Family) (ports.Position, error) {
	return through(f, func(p *process.Process) (ports.Position, error) { return p.Position(ctx, family) })
}

func (f *follower) Put(ctx context.Context, b ports.Batch) (ports.Applied, error) {
	return through(f, func(p *process.Process) (ports.Applied, error) { return p.Put(ctx, b) })
}

func (f *follower) Item(ctx context.Context, key string) (ports.Row, error) {
	return through(f, func(p *process.Process) (ports.Row, error) { return p.Item(ctx, key) })
}

func (f *follower) Items(ctx context.Context, q ports.ItemQuery) (ports.Page, error) {
	return through(f, func(p *process.Process) (ports.Page, error) { return p.Items(ctx, q) })
}

func (f *follower) Events(ctx context.Context, q ports.EventQuery) (ports.Page, error) {
	return through(f, func(p *process.Process) (ports.Page, error) { return p.Events(ctx, q) })
}

func (f *follower) Attempts(ctx context.Context, q ports.AttemptQuery) (ports.Page, error) {
	return through(f, func(p *process.Process) (ports.Page, error) { return p.Attempts(ctx, q) })
}

func (f *follower) Manifest(ctx context.Context, key string) (ports.Row, error) {
	return through(f, func(p *process.Process) (ports.Row, error) { return p.Manifest(ctx, key) })
}

func (f *follower) Manifests(ctx context.Context, q ports.ManifestQuery) (ports.Page, error) {
	return through(f, func(p *process.Process) (ports.Page, error) { return p.Manifests(ctx, q) })
}

func (f *follower) Export(ctx context.Context, q ports.ExportQuery) (ports.Page, error) {
	return through(f, func(p *process.Process) (ports.Page, error) { return p.Export(ctx, q) })
}

func (f *follower) Prune(ctx context.Context, q ports.PruneQuery) (ports.Pruned, error) {
	return through(f, func(p *process.Process) (ports.Pruned, error) { return p.Prune(ctx, q) })
}

func (f *follower) Survey(ctx context.Context) (ports.Survey, error) {
	return through(f, func(p *process.Process) (ports.Survey, error) { return p.Survey(ctx) })
}

func (f *follower) Drain(ctx context.Context) error {
	return told(f, func(p *process.Process) error { return p.Drain(ctx) })
}

func (f *follower) Stand(ctx context.Context, hostID string) (ports.Standing, error) {
	return through(f, func(p *process.Process) (ports.Standing, error) { return p.Stand(ctx, hostID) })
}

func (f *follower) Open(ctx context.Context, o ports.Opening) error {
	return told(f, func(p *process.Process) error { return p.Open(ctx, o) })
}

func (f *follower) Commit(ctx context.Context, b ports.CommitBatch) (ports.Pending, error) {
	return through(f, func(p *process.Process) (ports.Pending, error) { return p.Commit(ctx, b) })
}

func (f *follower) Changes(ctx context.Context, q ports.ChangesQuery) (ports.ChangePage, error) {
	return through(f, func(p *process.Process) (ports.ChangePage, error) { return p.Changes(ctx, q) })
}

// Close is for the core, which does not own the process; stop ends it.
func (f *follower) Close() error { return nil }
