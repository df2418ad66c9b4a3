package core

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"holdfast/ports"
)

// ResyncExact removes what only the backend has, if it is as many records as confirm says; with a negative confirm it only
// counts them. A record counts when the local store, which has everything that was accepted, does not have it. Each is looked
// up once more right before it is removed, while the backend does not follow, so that nothing is lost that is written
// meanwhile.
func (h *Host) ResyncExact(ctx context.Context, backend string, confirm int64, tell func(Progress)) (Exactness, error) {
	const op = "resync --exact"
	if h.isLocal(backend) {
		return Exactness{}, ports.Errorf(ports.Invalid, op, "%s is the local store, which the others are compared with; name another backend", backend)
	}
	if err := h.localReady(op); err != nil {
		return Exactness{}, err
	}
	there, err := h.side(ctx, op, backend)
	if err != nil {
		return Exactness{}, err
	}
	local, err := h.side(ctx, op, routeLocal)
	if err != nil {
		return Exactness{}, err
	}
	families, err := common(op, there, local)
	if err != nil {
		return Exactness{}, err
	}
	end, err := h.repairs.begin(op, there.name)
	if err != nil {
		return Exactness{}, err
	}
	defer end()
	for _, f := range families {
		if err := h.followerReady(op, there.name, f); err != nil {
			return Exactness{}, err
		}
	}
	e := &exactly{Host: h, op: op, there: there, local: local, teller: newTeller(tell), out: Exactness{Backend: there.name}}
	return e.run(ctx, families, confirm)
}

// exactly is one ResyncExact.
type exactly struct {
	*Host
	op           string
	there, local *side
	teller       *teller
	at           *ports.Position // of the backend's store while it is held

	mu   sync.Mutex
	out  Exactness
	most int64 // that may be removed
}

func (e *exactly) run(ctx context.Context, families []ports.Family, confirm int64) (Exactness, error) {
	only := map[ports.Family]int64{}
	for _, f := range families {
		e.teller.enter(f)
		before := e.out.OnlyThere
		if err := e.pass(ctx, f, e.count); err != nil {
			return e.out, interrupted(ctx, e.op, "nothing was removed; run it again", err)
		}
		only[f] = e.out.OnlyThere - before
	}
	if confirm >= 0 && confirm != e.out.OnlyThere {
		return e.out, ports.Errorf(ports.Conflict, e.op, "%d records are only in %s, not %d; nothing was removed: look at what they are and confirm that number",
			e.out.OnlyThere, e.there.name, confirm)
	}
	if confirm > 0 {
		if err := e.removeAll(ctx, families, only); err != nil {
			return e.out, interrupted(ctx, e.op, "what was removed is gone; count again for the rest", err)
		}
	}
	e.teller.end()
	for _, f := range families {
		if err := e.verified(e.there.name, f, confirm >= 0 && only[f] == 0, only[f]); err != nil {
			return e.out, ports.Wrap(ports.Internal, e.op, err)
		}
	}
	return e.out, nil
}

// removeAll is the second pass. The backend stands still meanwhile: what the local store gets now, it gets afterwards.
func (e *exactly) removeAll(ctx context.Context, families []ports.Family, only map[ports.Family]int64) error {
	release, err := e.holdAll(ctx, e.there.name, families)
	if err != nil {
		return err
	}
	defer release()
	e.most = e.out.OnlyThere
	for _, f := range families {
		e.teller.enter(f)
		only[f] = 0
		if e.at, err = e.there.position(ctx, f); err != nil {
			return err
		}
		err := e.pass(ctx, f, func(ctx context.Context, f ports.Family, rows []ports.Row) error {
			left, err := e.remove(ctx, f, rows)
			e.mu.Lock()
			defer e.mu.Unlock()
			only[f] += left
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// pass goes through everything that the backend has of a family, and hands over what of a key only it has: events and
// attempts, then the item.
func (e *exactly) pass(ctx context.Context, f ports.Family, each func(ctx context.Context, f ports.Family, rows []ports.Row) error) error {
	return e.there.keys(ctx, f, min(e.there.lanes, e.local.lanes), func(ctx context.Context, key string, theirs sheet) error {
		e.teller.add(int64(len(theirs)), 0)
		has, err := e.local.sheet(ctx, f, key)
		if err != nil || len(missing(theirs, has)) == 0 {
			return err
		}
		// A store that is behind the journal may only not have it yet.
		if err := e.fresh(ctx, f); err != nil {
			return err
		}
		if has, err = e.local.sheet(ctx, f, key); err != nil {
			return err
		}
		lone := missing(theirs, has)
		if len(lone) == 0 {
			return nil
		}
		slices.SortFunc(lone, func(a, b finding) int { return b.id.compare(a.id) })
		rows := make([]ports.Row, len(lone))
		for i, l := range lone {
			rows[i] = ports.Row{Kind: l.id.kind, Key: key, GUID: l.id.guid, Number: l.id.number, Gone: true, Change: theirs[l.id].change}
		}
		return each(ctx, f, rows)
	})
}

func (e *exactly) count(_ context.Context, _ ports.Family, rows []ports.Row) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.out.OnlyThere += int64(len(rows))
	return nil
}

// remove takes rows off the backend, as far as their number was confirmed, and says how many are left.
func (e *exactly) remove(ctx context.Context, f ports.Family, rows []ports.Row) (left int64, err error) {
	e.mu.Lock()
	n := min(int64(len(rows)), e.most)
	e.most -= n
	e.mu.Unlock()
	left = int64(len(rows)) - n
	for rows = rows[:n]; len(rows) > 0; {
		batch := rows[:min(len(rows), ports.MaxBatchEntries)]
		if last := len(batch) - 1; last > 0 && batch[last].Kind == ports.KindItem {
			batch = batch[:last] // in a batch an item never stands behind its events
		}
		if err := e.put(ctx, f, batch); err != nil {
			return left, err
		}
		rows = rows[len(batch):]
	}
	return left, nil
}

func (e *exactly) put(ctx context.Context, f ports.Family, rows []ports.Row) error {
	return e.there.ask(ctx, func(ctx context.Context) error {
		applied, err := e.there.store.Put(ctx, ports.Batch{Family: f, Rows: rows, After: e.at})
		done, err := taken(e.there.name, applied, len(rows), err)
		rows = rows[done:]
		e.mu.Lock()
		e.out.Removed += int64(done)
		e.mu.Unlock()
		e.teller.add(0, int64(done))
		if len(rows) == 0 {
			return nil // whatever came behind them
		}
		return cmp.Or(e.doubt(e.there.name, f, rows, err), err)
	})
}

// fresh waits until the local store has everything that was accepted so far.
func (e *exactly) fresh(ctx context.Context, f ports.Family) error {
	family := e.families[f]
	head, began := family.head(), time.Now()
	for !e.awaitPosition(ctx, family, head) {
		if ctx.Err() == nil && time.Since(began) > awayLimit {
			return ports.Errorf(ports.Unavailable, e.op, "the local store is behind the journal; see `holdfast status`")
		}
		select {
		case <-time.After(firstPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
