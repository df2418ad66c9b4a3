package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"holdfast/adapters/line"
	"holdfast/adapters/tables"
	"holdfast/ports"
)

const opPut = "postgres: put"

// Put replaces records whole; see ports.Backend. One Put is one transaction, but for the row that is refused: what stands
// before it is kept, and it is named.
func (b *Backend) Put(ctx context.Context, batch ports.Batch) (ports.Applied, error) {
	w, err := b.writer(ctx)
	if err != nil {
		return ports.Applied{}, err
	}
	cost := int64(0)
	for i := range batch.Rows {
		cost += int64(len(batch.Rows[i].Body) + tables.RowOverhead)
	}
	p := &putting{w: w, batch: &batch}
	j := &line.Job{Cost: cost, Run: func() error { return p.run(cost) }}
	if err := w.queue.Add(ctx, j, false); err != nil {
		return ports.Applied{}, err
	}
	select {
	case <-j.Done():
		return ports.Applied{Done: p.done}, j.Err
	case <-ctx.Done():
		return ports.Applied{}, ctx.Err() // the transaction may still come
	}
}

// putting is a Put in the making.
type putting struct {
	w     *writer
	batch *ports.Batch
	done  int
}

// run puts all rows at once. Where the server refuses something of them for good they are put one by one, so that the right one is
// told.
func (p *putting) run(cost int64) error {
	err := p.some(len(p.batch.Rows), cost)
	if err == nil || p.done > 0 || len(p.batch.Rows) < 2 || !ports.CodeOf(err).Permanent() || ports.AsError(err).Field == ports.FieldPosition {
		return err
	}
	for p.done < len(p.batch.Rows) {
		if err := p.some(p.done+1, cost); err != nil {
			return err
		}
	}
	return nil
}

// some puts the rows that are left, up to one, as one transaction.
func (p *putting) some(to int, cost int64) error {
	var refused error
	n := p.done
	err := p.w.transact(opPut, cost, func(t *turn) (err error) {
		n, refused, err = p.once(t, p.done, to)
		return err
	})
	if err != nil {
		return err
	}
	p.done = n
	return refused
}

// once is one try of the transaction. n rows are in then.
func (p *putting) once(t *turn, from, to int) (n int, refused, err error) {
	w, b := p.w, p.batch
	f := w.fold
	f.begin(t)
	f.queue = b.Family == ports.Queue
	for i := from; i < to; i++ {
		f.wantOf(&b.Rows[i])
	}
	first := &pgx.Batch{}
	w.queueBegin(first)
	follows := w.rules.HostID == "" // else the store is the truth, and its own marks say how far it is
	storeID := ""
	rowsOf(first.Queue(readKey, tables.KeyStoreID), func(row []any) error {
		storeID, _ = row[0].(string)
		return nil
	})
	if follows && (b.After != nil || b.Position != nil) {
		first.Queue(`SELECT FROM "UVHoldfast" WHERE "Key" = $1 FOR UPDATE`, tables.KeyFollower(b.Family))
	}
	f.queueLoads(first)
	if err := t.send(first); err != nil {
		return from, nil, err
	}
	if storeID != t.base.storeID {
		go w.base.gone(w.base)
		return from, nil, ports.Errorf(ports.Unavailable, opPut, "the tables are those of another store now; they are opened again")
	}
	if follows && b.After != nil && from == 0 {
		if refused, err = isAt(t, b); refused != nil || err != nil {
			if err == nil {
				_, err = t.conn.Exec(t.ctx, "ROLLBACK")
			}
			return from, refused, err
		}
	}
	for n = from; n < to; n++ {
		if refused, err = f.replace(&b.Rows[n]); err != nil {
			return from, nil, err
		}
		if refused != nil {
			break
		}
	}
	last := &pgx.Batch{}
	if err := f.flush(last); err != nil {
		return from, nil, err
	}
	if follows && refused == nil && b.Position != nil && n == len(b.Rows) {
		text, err := jsonText(b.Position)
		if err != nil {
			return from, nil, err
		}
		last.Queue(setKeys, []string{tables.KeyFollower(b.Family)}, []string{text})
	}
	if err := f.finish(t, last); err != nil {
		return from, nil, err
	}
	return n, refused, nil
}

// finish sends what was written and ends the transaction.
func (f *fold) finish(t *turn, b *pgx.Batch) error {
	if f.buries() {
		if err := t.send(b); err != nil {
			return err
		}
		if err := f.w.tidyGraves(t, f.graves); err != nil {
			return err
		}
		b = &pgx.Batch{}
	}
	b.Queue(forGood.end)
	return t.send(b)
}

// wantOf asks for what a row's Put looks at.
func (f *fold) wantOf(row *ports.Row) {
	l := layoutOf(row.Kind)
	if l == nil || row.Key == "" {
		return
	}
	f.wantRow(placeOf(row.Kind, row.Key, row.GUID, row.Number))
	if tables.Buried(row.Kind) {
		f.wantGrave(grave{row.Kind, row.Key})
	}
}

// isAt refuses a batch that is not the next one for this store: it was taken back to an older copy, or is another one.
func isAt(t *turn, b *ports.Batch) (elsewhere, err error) {
	at, _, err := t.position(t.ctx, b.Family)
	if err != nil {
		return nil, err
	}
	return tables.Elsewhere(t.base.storeID, at, b), nil
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
		f.set(r, row.Key, nil)
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
	f.set(r, row.Key, next)
	return nil, nil
}
