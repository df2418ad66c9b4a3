package sqlite

import (
	"context"

	"holdfast/adapters/line"
	"holdfast/adapters/tables"
	"holdfast/ports"
)

// Put replaces records whole; see ports.Backend. One Put is one transaction, but for the row that is refused: what stands
// before it is kept, and it is named.
func (s *Store) Put(ctx context.Context, b ports.Batch) (ports.Applied, error) {
	const op = "sqlite: put"
	w, err := s.writer(ctx)
	if err != nil {
		return ports.Applied{}, err
	}
	cost := int64(0)
	for i := range b.Rows {
		cost += int64(len(b.Rows[i].Body) + tables.RowOverhead)
	}
	var done int
	j := &line.Job{Cost: cost, Run: func() error {
		var refused, elsewhere error
		if err := w.roomFor(op, cost); err != nil {
			return err
		}
		n := 0
		err := w.transact(op, func() (err error) {
			w.fold.begin(clock())
			if elsewhere, err = w.isAt(&b); elsewhere != nil || err != nil {
				return err
			}
			for n = 0; n < len(b.Rows) && refused == nil; n++ {
				if refused, err = w.fold.replace(&b.Rows[n]); err != nil {
					return err
				}
			}
			if refused != nil {
				n--
			} else if b.Position != nil && w.rules.HostID == "" { // else the store is the truth, and its own marks say how far it is
				if err := setJSON(w.link, tables.KeyFollower(b.Family), b.Position); err != nil {
					return err
				}
			}
			return w.fold.flush()
		}, w.fold.remember)
		if err != nil {
			return err
		}
		if elsewhere != nil {
			return elsewhere
		}
		done = n
		return refused
	}}
	if err := w.queue.Add(ctx, j, false); err != nil {
		return ports.Applied{}, err
	}
	select {
	case <-j.Done():
		return ports.Applied{Done: done}, j.Err
	case <-ctx.Done():
		return ports.Applied{}, ctx.Err() // the transaction may still come
	}
}

// isAt refuses a batch that is not the next one for this store: it was taken back to an older copy, or is another one.
func (w *writer) isAt(b *ports.Batch) (elsewhere, err error) {
	if b.After == nil || w.rules.HostID != "" {
		return nil, nil
	}
	at, _, err := positionIn(w.link, b.Family)
	if err != nil {
		return nil, err
	}
	return tables.Elsewhere(w.file.storeID, at, b), nil
}

// replace makes a row the state of its record. An equal one stays as it is.
func (f *fold) replace(row *ports.Row) (refused, err error) {
	l := layoutOf(row.Kind)
	if l == nil || row.Key == "" || row.Kind == ports.KindEvent && row.GUID == "" {
		return ports.InField(ports.Invalid, "Key", "a row of kind %q without its key", row.Kind), nil
	}
	r, err := f.find(placeOf(row.Kind, row.Key, row.GUID, row.Number))
	if err != nil {
		return nil, err
	}
	g := grave{row.Kind, row.Key}
	gone := false
	if tables.Buried(row.Kind) {
		if gone, err = f.Gone(row.Kind, row.Key); err != nil {
			return nil, err
		}
	}
	if row.Gone {
		if tables.Buried(row.Kind) && (!gone || r.next != nil) {
			f.graves[g] = &row.Change
		}
		f.set(r, row.Key, nil, false)
		return nil, nil
	}
	next, problem := tables.StateOf(l.Table, row)
	if problem != nil {
		return problem, nil
	}
	if gone {
		f.graves[g] = nil
	}
	if r.next != nil && tables.Same(r.next, next) {
		return nil, nil
	}
	f.set(r, row.Key, next, len(row.Body) > bulkyBytes)
	return nil, nil
}
