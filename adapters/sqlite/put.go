package sqlite

import (
	"context"
	"strconv"

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
		cost += int64(len(b.Rows[i].Body) + rowOverhead)
	}
	var done int
	j := &job{cost: cost, run: func() error {
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
				if err := setJSON(w.link, keyFollower(b.Family), b.Position); err != nil {
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
	if err := w.queue.add(ctx, j, false); err != nil {
		return ports.Applied{}, err
	}
	select {
	case <-j.done:
		return ports.Applied{Done: done}, j.err
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
	if err != nil || b.After.StoreID == w.file.storeID && at.Covers(*b.After) && b.After.Covers(at) {
		return nil, err
	}
	return ports.InField(ports.Conflict, ports.FieldPosition,
		"the store %s is at %v, the batch is for %s at %v", w.file.storeID, at.Seqs, b.After.StoreID, b.After.Seqs), nil
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
	if buried(row.Kind) {
		if gone, err = f.Gone(row.Kind, row.Key); err != nil {
			return nil, err
		}
	}
	if row.Gone {
		if buried(row.Kind) && (!gone || r.next != nil) {
			f.graves[g] = &row.Change
		}
		f.set(r, row.Key, nil, false)
		return nil, nil
	}
	record, problem := ports.ParseRecord(l.table, row.Body)
	if problem != nil {
		return problem, nil
	}
	if problem := identify(row, record); problem != nil {
		return problem, nil
	}
	if gone {
		f.graves[g] = nil
	}
	next := &ports.Held{Record: record, First: firstOf(row, record), Change: row.Change}
	if r.next != nil && same(r.next, next) {
		return nil, nil
	}
	f.set(r, row.Key, next, len(row.Body) > bulkyBytes)
	return nil, nil
}

// buried says whether records of a kind leave tombstones: those that are removed by their own key.
func buried(k ports.Kind) bool { return k == ports.KindItem || k == ports.KindManifest }

// identify gives a record the member that tells it from others of its key, where the caller left it to the row. The column of
// that member is how the record is found again, so the two must agree.
func identify(row *ports.Row, record *ports.Record) error {
	var name string
	var want any
	var text []byte
	switch row.Kind {
	case ports.KindEvent:
		name, want, text = "EventGUID", row.GUID, ports.AppendQuoted(nil, row.GUID)
	case ports.KindAttempt:
		name, want, text = "AttemptNumber", row.Number, strconv.AppendInt(nil, row.Number, 10)
	default:
		return nil
	}
	given := record.Get(name)
	if given == nil {
		record.Set(name, text)
		return nil
	}
	if v, _ := record.Table.Members[record.Table.Member(name)].Project(given); v != want {
		return ports.InField(ports.Invalid, name, "is not that of the row that has the record")
	}
	return nil
}

// firstOf is what a row's first write fixed, as far as its kind has it, so that reading gives back what was put.
func firstOf(row *ports.Row, record *ports.Record) ports.First {
	first := row.First
	if row.Kind != ports.KindItem {
		first.EnqueuedKey = ""
	}
	if row.Kind != ports.KindEvent {
		first.EmittedAt = ""
		return first
	}
	if record.Get("EmittedAt") != nil {
		first.EmittedAt = ""
	}
	return first
}

func same(a, b *ports.Held) bool {
	if a.First != b.First || a.Change != b.Change || !a.Record.Same(b.Record) {
		return false
	}
	return a.Record.Table.Kind != ports.KindManifest || string(a.Record.JSON()) == string(b.Record.JSON())
}
