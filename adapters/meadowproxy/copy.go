package meadowproxy

import (
	"context"
	"time"

	"holdfast/ports"
)

// A batch on its way: fenced by the position that the database itself has, before the rows and again before the position moves, and
// by the hold, outside of which nothing is sent. So a batch that comes too late, or to another database, changes nothing there; and
// rows that went to a database which was replaced meanwhile are not told as done.

// put puts a batch. It ends before the host stops waiting for it: large batches are given more time, as the host does.
func (h *half) put(ctx context.Context, at *hold, b *ports.Batch) (done int, err error) {
	size := 0
	for i := range b.Rows {
		size += len(b.Rows[i].Body)
	}
	ctx, cancel := below(ctx, h.timeout+time.Duration(size/bytesASecond)*time.Second)
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
	l, err := h.fenced(ctx, at, class, b)
	if err != nil {
		return 0, err
	}
	if len(b.Rows) > 0 {
		h.loosen()
		if done, err = h.inStrides(ctx, at, b.Rows, class); err != nil {
			return done, err
		}
		if err := h.binder.now(ctx, h.family, at); err != nil {
			return 0, err
		}
		if b.Position == nil {
			return done, nil
		}
		if l, err = h.fenced(ctx, at, class, b); err != nil {
			return done, err
		}
	}
	if b.Position == nil {
		return done, nil
	}
	return done, h.move(ctx, at, class, &l, *b.Position)
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
func (h *half) fenced(ctx context.Context, at *hold, class ports.WorkClass, b *ports.Batch) (ledger, error) {
	l, err := h.ledger(ctx, at, class)
	if err != nil {
		return l, err
	}
	if err := h.binder.now(ctx, h.family, at); err != nil { // else it is another session that has answered
		return l, err
	}
	if is := l.position(h.family); b.After != nil && !same(is, *b.After) {
		at.forget() // an older copy may have other rows under the same identities
		return l, elsewhere("the store %s is at %v, the batch is for %s at %v", is.StoreID, is.Seqs, b.After.StoreID, b.After.Seqs)
	}
	return l, nil
}

// move stores the position.
func (h *half) move(ctx context.Context, at *hold, class ports.WorkClass, l *ledger, p ports.Position) error {
	h.loosen() // until it is known what became of it
	err := at.move(ctx, class, l, h.family, p)
	if err == nil {
		err = h.binder.now(ctx, h.family, at)
	}
	switch {
	case ports.CodeOf(err) == ports.Conflict: // there was none, and now there is
		return elsewhere("another host has moved the position meanwhile")
	case err != nil:
		return err
	}
	h.settle(at.bound, p)
	return nil
}
