package meadowproxy

import (
	"context"
	"time"

	"holdfast/ports"
)

// A batch on its way: fenced by what the database itself says, before the rows and again before the position moves, and
// by the hold, outside of which nothing is sent. So a batch that comes too late, or to another database, changes nothing there; and
// rows that went to a database which was replaced meanwhile are not told as done.

// put puts a batch that came when the host was at a line. It ends before the host stops waiting for it: large batches are given more
// time, as the host does.
func (h *half) put(ctx context.Context, at *hold, b *ports.Batch, line uint64) (done int, err error) {
	size := 0
	for i := range b.Rows {
		size += len(b.Rows[i].Body)
	}
	ctx, cancel := below(ctx, h.timeout+ports.TimeFor(int64(size)))
	defer cancel()
	class := ports.ClassLive
	if b.CatchUp {
		class = ports.ClassCatchUp
	}
	if err := h.takes(b.After); err != nil {
		return 0, err
	}
	h.begin()
	defer h.end()
	p := &passage{half: h, at: at, class: class, batch: b, line: line}
	if len(b.Rows) > 0 || b.Position == nil {
		if err := p.open(ctx); err != nil {
			return 0, err
		}
	}
	if len(b.Rows) > 0 {
		if done, err = h.inStrides(ctx, at, b.Rows, class); err != nil {
			return done, err
		}
		if err := h.binder.now(ctx, h.family, at); err != nil {
			return 0, err
		}
	}
	if b.Position == nil {
		return done, nil
	}
	return done, p.move(ctx)
}

// passage is a batch on its way.
type passage struct {
	*half
	at    *hold
	class ports.WorkClass
	batch *ports.Batch
	line  uint64
}

// open writes the step before the rows, unless one stands there already: the rows of a batch may come in several Puts, at the same
// time.
func (p *passage) open(ctx context.Context) error {
	leave, err := p.sit(ctx)
	if err != nil {
		return err
	}
	defer leave()
	l, err := p.fenced(ctx)
	if err != nil || len(p.batch.Rows) == 0 || p.opened() {
		return err
	}
	return p.take(ctx, &l, l.position(p.family), true)
}

// move writes the step with the position.
func (p *passage) move(ctx context.Context) error {
	leave, err := p.sit(ctx)
	if err != nil {
		return err
	}
	defer leave()
	l, err := p.fenced(ctx)
	if err == nil && l.last[p.family].Step == "" { // the first one of all is at no position
		if err = p.take(ctx, &l, l.position(p.family), true); err == nil {
			l, err = p.fenced(ctx)
		}
	}
	if err != nil {
		return err
	}
	return p.take(ctx, &l, *p.batch.Position, false)
}

// inStrides puts rows as many at a time as the database takes in time.
func (h *half) inStrides(ctx context.Context, at *hold, rows []ports.Row, class ports.WorkClass) (done int, err error) {
	for began := time.Now(); ; {
		n, started := h.stride.of(len(rows)-done), time.Now()
		in, err := at.put(ctx, rows[done:done+n], class)
		done += in
		h.stride.took(n, time.Since(started), err)
		switch {
		case err != nil || done == len(rows):
			return done, err
		case time.Since(began) > h.timeout*3/4:
			return done, errLater
		}
	}
}

// fenced reads the ledger and refuses a batch that is not the next one for this store.
func (p *passage) fenced(ctx context.Context) (ledger, error) {
	l, err := p.ledger(ctx, p.at, p.class)
	if err != nil {
		return l, err
	}
	if err := p.binder.now(ctx, p.family, p.at); err != nil { // else it is another session that has answered
		return l, err
	}
	if is := l.position(p.family); p.batch.After != nil && !same(is, *p.batch.After) {
		p.at.forget() // an older copy may have other rows under the same identities
		return l, elsewhere("the store %s is at %v, the batch is for %s at %v", is.StoreID, is.Seqs, p.batch.After.StoreID, p.batch.After.Seqs)
	}
	return l, p.meets(p.at, &l, p.batch, p.line)
}

// take writes the next step.
func (p *passage) take(ctx context.Context, l *ledger, to ports.Position, begun bool) error {
	s := l.next(p.family, to)
	p.sends(s)
	err := p.at.take(ctx, p.class, l, p.family, s)
	if err == nil {
		err = p.binder.now(ctx, p.family, p.at)
	}
	switch {
	case ports.CodeOf(err) == ports.Conflict: // there was none, and now there is
		return elsewhere("another host has moved the position meanwhile")
	case err != nil:
		return err
	}
	p.sent(p.at.bound, s, begun)
	return nil
}
