package conformance

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/ports"
)

// keptExchanges is how many calls of a case are kept: the last ones up to the one in which the first thing was found wrong.
const keptExchanges = 12

// recorder is a backend that notes what is asked of another one, and what it answers, and sees to it that no call lasts for
// ever. It has the methods of every power; which of them may be called the description says.
type recorder struct {
	backend  ports.Backend
	name     string
	patience time.Duration
	slots    chan struct{} // as many calls at a time as the backend takes; nil sets no limit
	complain func(format string, args ...any)
	enough   func() bool // something was found wrong already
	hangs    func()      // a call had no answer
	lost     atomic.Bool // a call had no answer: nothing more is asked

	mu   sync.Mutex
	list []exchange
}

var (
	_ ports.LocalStore = (*recorder)(nil)
	_ ports.Pruner     = (*recorder)(nil)
	_ ports.Exporter   = (*recorder)(nil)
	_ ports.Surveyor   = (*recorder)(nil)
	_ ports.Drainer    = (*recorder)(nil)
)

func newRecorder(c *C, b ports.Backend) *recorder {
	r := &recorder{backend: b, patience: c.patience, complain: c.Errorf, enough: c.failed, hangs: func() { c.hung.Store(true) }}
	if n := c.declared.Slots; n > 0 {
		r.slots = make(chan struct{}, n)
	}
	return r
}

// exchange is one call as it was made; what people read is made of it when the case failed.
type exchange struct {
	call            string
	request, answer any
	err             error
}

func (e *exchange) shown() Exchange {
	shown := Exchange{Call: e.call, Request: text(e.request), Err: faultText(e.err)}
	if e.err == nil {
		shown.Answer = text(e.answer)
	} else if applied, put := e.answer.(ports.Applied); put {
		shown.Answer = text(applied) // a refusal in the middle
	}
	return shown
}

func (r *recorder) exchanges() []exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]exchange(nil), r.list...)
}

func (r *recorder) note(call string, request, answer any, err error) {
	if r.enough() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) == keptExchanges {
		r.list = r.list[1:]
	}
	r.list = append(r.list, exchange{r.name + call, request, answer, err})
}

// asked makes a call of one power and notes it.
func asked[P, T any](ctx context.Context, r *recorder, call string, request any, do func(P, context.Context) (T, error)) (answer T, err error) {
	p, has := r.backend.(P)
	if !has {
		return answer, ports.Errorf(ports.Unimplemented, call, "there is no such method")
	}
	return timed(ctx, r, call, request, func(ctx context.Context) (T, error) { return do(p, ctx) })
}

// timed makes a call that ends, and notes it.
func timed[T any](ctx context.Context, r *recorder, call string, request any, do func(context.Context) (T, error)) (answer T, err error) {
	if r.slots != nil {
		r.slots <- struct{}{}
		defer func() { <-r.slots }()
	}
	if r.lost.Load() {
		return answer, &misbehaved{what: "it is not asked any more: an earlier call had no answer"}
	}
	answer, err = within(ctx, r.patience, r.patience/5, do)
	r.note(call, request, answer, err)
	if bad, ok := errors.AsType[*misbehaved](err); ok {
		if bad.silent {
			r.lost.Store(true)
			r.hangs()
		}
		r.complain("%s%s: %v", r.name, call, err)
	}
	return answer, err
}

func (r *recorder) Describe(ctx context.Context) (ports.Description, error) {
	return asked(ctx, r, "Describe", nil, func(b ports.Backend, ctx context.Context) (ports.Description, error) { return b.Describe(ctx) })
}

func (r *recorder) Probe(ctx context.Context, f ports.Family) error {
	_, err := asked(ctx, r, "Probe", f, func(b ports.Backend, ctx context.Context) (struct{}, error) { return struct{}{}, b.Probe(ctx, f) })
	return err
}

func (r *recorder) Position(ctx context.Context, f ports.Family) (ports.Position, error) {
	return asked(ctx, r, "Position", f, func(b ports.Backend, ctx context.Context) (ports.Position, error) { return b.Position(ctx, f) })
}

func (r *recorder) Put(ctx context.Context, batch ports.Batch) (ports.Applied, error) {
	return asked(ctx, r, "Put", batch, func(b ports.Backend, ctx context.Context) (ports.Applied, error) { return b.Put(ctx, batch) })
}

// Close is the case's business.
func (r *recorder) Close() error { return nil }

func (r *recorder) Item(ctx context.Context, key string) (ports.Row, error) {
	return asked(ctx, r, "Item", key, func(b ports.ItemReader, ctx context.Context) (ports.Row, error) { return b.Item(ctx, key) })
}

func (r *recorder) Items(ctx context.Context, q ports.ItemQuery) (ports.Page, error) {
	return asked(ctx, r, "Items", q, func(b ports.ItemReader, ctx context.Context) (ports.Page, error) { return b.Items(ctx, q) })
}

func (r *recorder) Events(ctx context.Context, q ports.EventQuery) (ports.Page, error) {
	return asked(ctx, r, "Events", q, func(b ports.EventReader, ctx context.Context) (ports.Page, error) { return b.Events(ctx, q) })
}

func (r *recorder) Attempts(ctx context.Context, q ports.AttemptQuery) (ports.Page, error) {
	return asked(ctx, r, "Attempts", q, func(b ports.AttemptReader, ctx context.Context) (ports.Page, error) { return b.Attempts(ctx, q) })
}

func (r *recorder) Manifest(ctx context.Context, key string) (ports.Row, error) {
	return asked(ctx, r, "Manifest", key, func(b ports.ManifestReader, ctx context.Context) (ports.Row, error) { return b.Manifest(ctx, key) })
}

func (r *recorder) Manifests(ctx context.Context, q ports.ManifestQuery) (ports.Page, error) {
	return asked(ctx, r, "Manifests", q, func(b ports.ManifestReader, ctx context.Context) (ports.Page, error) { return b.Manifests(ctx, q) })
}

func (r *recorder) Stand(ctx context.Context, hostID string) (ports.Standing, error) {
	return asked(ctx, r, "Stand", hostID, func(b ports.LocalStore, ctx context.Context) (ports.Standing, error) { return b.Stand(ctx, hostID) })
}

func (r *recorder) Open(ctx context.Context, o ports.Opening) error {
	_, err := asked(ctx, r, "Open", o, func(b ports.LocalStore, ctx context.Context) (struct{}, error) { return struct{}{}, b.Open(ctx, o) })
	return err
}

func (r *recorder) Commit(ctx context.Context, batch ports.CommitBatch) (ports.Pending, error) {
	pending, err := asked(ctx, r, "Commit", batch, func(b ports.LocalStore, ctx context.Context) (ports.Pending, error) { return b.Commit(ctx, batch) })
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
	return timed(ctx, w.recorder, "Commit (answer)", map[string]uint64{"Through": w.batch.Through}, w.Pending.Wait)
}

func (r *recorder) Changes(ctx context.Context, q ports.ChangesQuery) (ports.ChangePage, error) {
	return asked(ctx, r, "Changes", q, func(b ports.LocalStore, ctx context.Context) (ports.ChangePage, error) { return b.Changes(ctx, q) })
}

func (r *recorder) Export(ctx context.Context, q ports.ExportQuery) (ports.Page, error) {
	return asked(ctx, r, "Export", q, func(b ports.Exporter, ctx context.Context) (ports.Page, error) { return b.Export(ctx, q) })
}

func (r *recorder) Prune(ctx context.Context, q ports.PruneQuery) (ports.Pruned, error) {
	return asked(ctx, r, "Prune", q, func(b ports.Pruner, ctx context.Context) (ports.Pruned, error) { return b.Prune(ctx, q) })
}

func (r *recorder) Survey(ctx context.Context) (ports.Survey, error) {
	return asked(ctx, r, "Survey", nil, func(b ports.Surveyor, ctx context.Context) (ports.Survey, error) { return b.Survey(ctx) })
}

func (r *recorder) Drain(ctx context.Context) error {
	_, err := asked(ctx, r, "Drain", nil, func(b ports.Drainer, ctx context.Context) (struct{}, error) { return struct{}{}, b.Drain(ctx) })
	return err
}
