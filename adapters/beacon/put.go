package beacon

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/ports"
)

// Put: keys side by side within what the beacon takes at a time, the rows of one key one after the other.

// Numbers of a Put.
const (
	mostAtATime = 16
	bytesASec   = 8 << 20 // large batches are given more time, as the host does
)

// putting is one Put.
type putting struct {
	*half
	at    seat
	gen   string
	turn  uint64
	class ports.WorkClass
	rows  []ports.Row
	errs  []error         // by row; errLater for one that was not begun
	late  error           // what is said when the time is over
	begun context.Context // ends when no more rows are begun
	quit  context.CancelFunc
}

// Put makes the rows so at the beacon; see ports.Backend. A row counts as done when the beacon said so. What had no answer makes
// the whole Put one without an answer.
func (b *Backend) Put(ctx context.Context, batch ports.Batch) (ports.Applied, error) {
	h, err := b.enter(batch.Family)
	if err != nil {
		return ports.Applied{}, err
	}
	defer b.puts.Done()
	turn := h.turns.begin()
	defer h.turns.end(turn)
	at, err := h.ready(ctx)
	if err != nil {
		return ports.Applied{}, err
	}
	gen := h.generation()
	if err := h.fence(&batch); err != nil {
		return ports.Applied{}, err
	}
	h.copied()
	p := &putting{half: h, at: at, gen: gen, turn: turn, class: ports.ClassLive, rows: batch.Rows, errs: make([]error, len(batch.Rows))}
	if batch.CatchUp { // and goes behind what is live
		p.class = ports.ClassCatchUp
	}
	done, err := p.run(ctx)
	if err == nil && (batch.Position != nil || len(batch.Rows) > 0) {
		err = h.confirm(ctx, at)
	}
	if err == nil && batch.Position != nil {
		err = p.move(batch.Position)
	}
	return ports.Applied{Done: done}, err
}

var (
	errLater   = ports.Errorf(ports.Unavailable, "beacon: put", "the beacon takes longer than it may; what is not in yet is put again")
	errHurried = ports.Errorf(ports.Deadline, "beacon: put", "the caller's time is over before all is in")
)

// run puts the rows and says how many of the first ones are in.
func (p *putting) run(ctx context.Context) (int, error) {
	keys, order := map[string][]int{}, []string{}
	size := 0
	for i := range p.rows {
		key := p.rows[i].Key
		if keys[key] == nil {
			order = append(order, key)
		}
		keys[key] = append(keys[key], i)
		size += len(p.rows[i].Body)
		p.errs[i] = errLater
	}
	p.late = errLater
	limit := p.timeout + time.Duration(size/bytesASec)*time.Second
	if until, bound := ctx.Deadline(); bound && time.Until(until) < limit {
		p.late = errHurried
	}
	ctx, cancel := below(ctx, limit)
	defer cancel()
	deadline, _ := ctx.Deadline()
	p.begun, p.quit = context.WithTimeout(ctx, time.Until(deadline)*4/5)
	defer p.quit()
	lanes := p.at.slots
	if p.class == ports.ClassCatchUp {
		lanes-- // the last one is for others
	}
	all := errgroup.Group{}
	all.SetLimit(min(max(1, lanes), mostAtATime))
	for _, key := range order {
		if p.begun.Err() != nil {
			break
		}
		all.Go(func() error {
			p.key(ctx, key, keys[key])
			return nil
		})
	}
	_ = all.Wait() // what went wrong is in errs
	return p.outcome(ctx)
}

// key puts the rows of one key.
func (p *putting) key(ctx context.Context, key string, rows []int) {
	if !p.locks.take(key, p.begun.Done()) {
		return
	}
	defer p.locks.give(key)
	for _, i := range rows {
		if p.begun.Err() != nil {
			return
		}
		p.errs[i] = p.inTurn(&p.rows[i], func() error { return p.row(ctx, &p.rows[i]) })
		if p.errs[i] != nil {
			if unknown(p.errs[i]) || !ports.CodeOf(p.errs[i]).Permanent() {
				p.quit()
			}
			return
		}
	}
}

// outcome says how far the Put came. What nobody knows goes before what is known: else the host would take it for not sent.
func (p *putting) outcome(ctx context.Context) (int, error) {
	done := slices.IndexFunc(p.errs, func(err error) bool { return err != nil })
	if done < 0 {
		return len(p.errs), nil
	}
	for _, err := range p.errs {
		if unknown(err) {
			return done, err
		}
	}
	if !errors.Is(p.errs[done], errLater) {
		return done, p.errs[done]
	}
	// A row that was not begun stands before one that failed in another lane, or the time is over.
	for _, err := range p.errs {
		if err != nil && !errors.Is(err, errLater) && !ports.CodeOf(err).Permanent() {
			return done, err
		}
	}
	if err := ctx.Err(); err != nil {
		return done, ports.Wrap(ports.CodeOf(err), "beacon: put", err)
	}
	return done, p.late
}

// row puts one row.
func (p *putting) row(ctx context.Context, row *ports.Row) error {
	t, err := tableOf(row)
	if err != nil {
		return err
	}
	if row.Gone {
		return p.remove(ctx, row)
	}
	r, err := ports.ParseRecord(t, row.Body)
	if err != nil {
		return err
	}
	if r.Get(ownMember) != nil {
		return ports.InField(ports.Invalid, ownMember, "is holdfast's own member at a beacon; a record that has it cannot be kept there")
	}
	if named := r.Text(t.Key); named != "" && named != row.Key {
		return ports.InField(ports.Invalid, t.Key, "is not the key of the record")
	}
	switch row.Kind {
	case ports.KindEvent:
		return p.event(ctx, row, r)
	case ports.KindAttempt:
		return p.attempt(ctx, row, r)
	}
	return p.whole(ctx, row, r)
}

// tableOf gives the table of a row that says which record it is.
func tableOf(row *ports.Row) (*ports.Table, error) {
	if !slices.Contains(ports.Kinds, row.Kind) || row.Key == "" || row.Kind == ports.KindEvent && row.GUID == "" {
		return nil, ports.InField(ports.Invalid, "Key", "a row of kind %q without its key", row.Kind)
	}
	return ports.TableOf(row.Kind), nil
}

// enter lets a Put in, unless the backend is being stopped or does not keep the family.
func (b *Backend) enter(f ports.Family) (*half, error) {
	h, err := b.half(f)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.drained {
		return nil, errDrained
	}
	b.puts.Add(1)
	return h, nil
}

var errDrained = ports.Errorf(ports.Unavailable, "beacon", "the backend is being stopped and takes no more work")

// Drain finishes what was begun; see ports.Drainer.
func (b *Backend) Drain(ctx context.Context) error {
	b.mu.Lock()
	b.drained = true
	b.mu.Unlock()
	ended := make(chan struct{})
	b.work.Go(func() {
		b.puts.Wait()
		close(ended)
	})
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ports.Wrap(ports.CodeOf(ctx.Err()), "beacon: drain", ctx.Err())
	}
}
