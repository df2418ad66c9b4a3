package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"holdfast/ports"
)

// keptExchanges is how many calls of a case are kept, the last ones, and keptText how much of each side of one.
const (
	keptExchanges = 50
	keptText      = 8 << 10
)

// recorder is a backend that notes what is asked of another one, and what it answers. It has the methods of every power;
// which of them may be called the description says.
type recorder struct {
	backend ports.Backend

	mu   sync.Mutex
	list []Exchange
}

var (
	_ ports.LocalStore = (*recorder)(nil)
	_ ports.Pruner     = (*recorder)(nil)
	_ ports.Exporter   = (*recorder)(nil)
	_ ports.Surveyor   = (*recorder)(nil)
	_ ports.Drainer    = (*recorder)(nil)
)

func (r *recorder) exchanges() []Exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Exchange(nil), r.list...)
}

func (r *recorder) note(call string, request, answer any, err error) {
	e := Exchange{Call: call, Request: text(request)}
	if answer != nil {
		e.Answer = text(answer)
	}
	if err != nil {
		e.Err = err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) == keptExchanges {
		r.list = r.list[1:]
	}
	r.list = append(r.list, e)
}

func text(value any) string {
	raw, err := json.Marshal(readable(value))
	if err != nil {
		return fmt.Sprintf("%+v", value)
	}
	if len(raw) > keptText {
		return strings.ToValidUTF8(string(raw[:keptText]), "") + fmt.Sprintf("... (%d more bytes)", len(raw)-keptText)
	}
	return string(raw)
}

// asked makes a call of one power and notes it.
func asked[P, T any](r *recorder, call string, request any, do func(P) (T, error)) (answer T, err error) {
	p, has := r.backend.(P)
	if !has {
		return answer, ports.Errorf(ports.Unimplemented, call, "it declares the power and has no such method")
	}
	answer, err = do(p)
	r.note(call, request, answer, err)
	return answer, err
}

func (r *recorder) Describe(ctx context.Context) (ports.Description, error) {
	return asked(r, "Describe", nil, func(b ports.Backend) (ports.Description, error) { return b.Describe(ctx) })
}

func (r *recorder) Probe(ctx context.Context, f ports.Family) error {
	_, err := asked(r, "Probe", f, func(b ports.Backend) (struct{}, error) { return struct{}{}, b.Probe(ctx, f) })
	return err
}

func (r *recorder) Position(ctx context.Context, f ports.Family) (ports.Position, error) {
	return asked(r, "Position", f, func(b ports.Backend) (ports.Position, error) { return b.Position(ctx, f) })
}

func (r *recorder) Put(ctx context.Context, batch ports.Batch) (ports.Applied, error) {
	return asked(r, "Put", batch, func(b ports.Backend) (ports.Applied, error) { return b.Put(ctx, batch) })
}

// Close is the case's business.
func (r *recorder) Close() error { return nil }

func (r *recorder) Item(ctx context.Context, key string) (ports.Row, error) {
	return asked(r, "Item", key, func(b ports.ItemReader) (ports.Row, error) { return b.Item(ctx, key) })
}

func (r *recorder) Items(ctx context.Context, q ports.ItemQuery) (ports.Page, error) {
	return asked(r, "Items", q, func(b ports.ItemReader) (ports.Page, error) { return b.Items(ctx, q) })
}

func (r *recorder) Events(ctx context.Context, q ports.EventQuery) (ports.Page, error) {
	return asked(r, "Events", q, func(b ports.EventReader) (ports.Page, error) { return b.Events(ctx, q) })
}

func (r *recorder) Attempts(ctx context.Context, q ports.AttemptQuery) (ports.Page, error) {
	return asked(r, "Attempts", q, func(b ports.AttemptReader) (ports.Page, error) { return b.Attempts(ctx, q) })
}

func (r *recorder) Manifest(ctx context.Context, key string) (ports.Row, error) {
	return asked(r, "Manifest", key, func(b ports.ManifestReader) (ports.Row, error) { return b.Manifest(ctx, key) })
}

func (r *recorder) Manifests(ctx context.Context, q ports.ManifestQuery) (ports.Page, error) {
	return asked(r, "Manifests", q, func(b ports.ManifestReader) (ports.Page, error) { return b.Manifests(ctx, q) })
}

func (r *recorder) Stand(ctx context.Context, hostID string) (ports.Standing, error) {
	return asked(r, "Stand", hostID, func(b ports.LocalStore) (ports.Standing, error) { return b.Stand(ctx, hostID) })
}

func (r *recorder) Open(ctx context.Context, o ports.Opening) error {
	_, err := asked(r, "Open", o, func(b ports.LocalStore) (struct{}, error) { return struct{}{}, b.Open(ctx, o) })
	return err
}

func (r *recorder) Commit(ctx context.Context, batch ports.CommitBatch) (ports.Pending, error) {
	pending, err := asked(r, "Commit", batch, func(b ports.LocalStore) (ports.Pending, error) { return b.Commit(ctx, batch) })
	if err != nil {
		return nil, err
	}
	return &waited{Pending: pending, recorder: r, batch: batch}, nil
}

// waited notes what a batch was answered.
type waited struct {
	ports.Pending
	recorder *recorder
	batch    ports.CommitBatch
}

func (w *waited) Wait(ctx context.Context) ([]ports.Decision, error) {
	decisions, err := w.Pending.Wait(ctx)
	w.recorder.note("Commit (answer)", map[string]uint64{"Through": w.batch.Through}, decisions, err)
	return decisions, err
}

func (r *recorder) Changes(ctx context.Context, q ports.ChangesQuery) (ports.ChangePage, error) {
	return asked(r, "Changes", q, func(b ports.LocalStore) (ports.ChangePage, error) { return b.Changes(ctx, q) })
}

func (r *recorder) Export(ctx context.Context, q ports.ExportQuery) (ports.Page, error) {
	return asked(r, "Export", q, func(b ports.Exporter) (ports.Page, error) { return b.Export(ctx, q) })
}

func (r *recorder) Prune(ctx context.Context, q ports.PruneQuery) (ports.Pruned, error) {
	return asked(r, "Prune", q, func(b ports.Pruner) (ports.Pruned, error) { return b.Prune(ctx, q) })
}

func (r *recorder) Survey(ctx context.Context) (ports.Survey, error) {
	return asked(r, "Survey", nil, func(b ports.Surveyor) (ports.Survey, error) { return b.Survey(ctx) })
}

func (r *recorder) Drain(ctx context.Context) error {
	_, err := asked(r, "Drain", nil, func(b ports.Drainer) (struct{}, error) { return struct{}{}, b.Drain(ctx) })
	return err
}
