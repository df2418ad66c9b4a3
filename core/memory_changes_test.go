package core

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"holdfast/ports"
)

// How the store in memory tells what changed, and how another host writes to it.

// flaws make the store in memory wrong on purpose, so that what relies on it can be seen to notice; page alone is no flaw.
type flaws struct {
	breakSeq    bool // a page may end inside a Seq
	blindEpochs bool // a position of another history is taken as one of its own
	page        int  // the most rows that it gives at a time; 0: as many as are asked for
}

func (m *memory) flawed(edit func(f *flaws)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	edit(&m.flaws)
}

// Changes tells what changed; see ports.LocalStore.
func (m *memory) Changes(ctx context.Context, q ports.ChangesQuery) (ports.ChangePage, error) {
	r, err := m.alive(ctx)
	if err != nil {
		return ports.ChangePage{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	switch {
	case m.run != r:
		return ports.ChangePage{}, errGone
	case r.host == "":
		return ports.ChangePage{}, ports.Errorf(ports.Unavailable, "memory", "no host has opened the store")
	}
	return m.disk.changes(r.host, &q, m.flaws)
}

// position is how far the store is. A host that it has rows of but no mark is as far as its last row.
func (d *disk) position(host string, f ports.Family) ports.Position {
	p := ports.Position{StoreID: d.id, Epoch: d.marks[f].Epoch, Seqs: map[string]uint64{}}
	if n := len(d.epochs[f]); n > 0 {
		p.Epoch = d.epochs[f][n-1].ID
	}
	if host != "" {
		p.Seqs[host] = d.marks[f].Seq
	}
	for other, mark := range d.others[f] {
		p.Seqs[other] = mark.Seq
	}
	for at, c := range d.stamps() {
		_, marked := d.others[f][c.Host]
		if at.kind.Family() == f && c.Host != host && !marked {
			p.Seqs[c.Host] = max(p.Seqs[c.Host], c.Seq)
		}
	}
	return p
}

// stamps say who changed each record last, removed ones included.
func (d *disk) stamps() map[place]ports.Change {
	all := maps.Clone(d.gone)
	for at, held := range d.held {
		all[at] = held.Change
	}
	return all
}

// knows fails with Conflict for a position that is not one of this store's.
func (d *disk) knows(host string, f ports.Family, p ports.Position) error {
	const op = "memory: changes"
	if p.Epoch == "" && len(p.Seqs) == 0 {
		return nil
	}
	i := slices.IndexFunc(d.epochs[f], func(e ports.Epoch) bool { return e.ID == p.Epoch })
	switch {
	case i < 0:
		return ports.Errorf(ports.Conflict, op, "epoch %q is not known here", p.Epoch)
	case i+1 < len(d.epochs[f]) && p.Seqs[host] >= d.epochs[f][i+1].From:
		return ports.Errorf(ports.Conflict, op, "epoch %q ended before %d", p.Epoch, p.Seqs[host])
	}
	return nil
}

// reaches fails with Conflict for a position that is further than the store itself.
func (d *disk) reaches(host string, f ports.Family, p ports.Position) error {
	for other, seq := range p.Seqs {
		mark, marked := d.others[f][other]
		if other == host {
			mark, marked = d.marks[f], true
		}
		if marked && seq > mark.Seq {
			return ports.Errorf(ports.Conflict, "memory: changes", "the store is at %d of host %s, the position at %d", mark.Seq, other, seq)
		}
	}
	return nil
}

func (d *disk) changes(host string, q *ports.ChangesQuery, flaws flaws) (ports.ChangePage, error) {
	if err := d.knows(host, q.Family, q.After); err != nil && !flaws.blindEpochs {
		return ports.ChangePage{}, err
	}
	if err := d.reaches(host, q.Family, q.After); err != nil {
		return ports.ChangePage{}, err
	}
	end := d.position(host, q.Family)
	rows := d.changed(q, end)
	limit := q.Limit
	if limit <= 0 {
		limit = ports.MaxBatchEntries
	}
	if flaws.page > 0 {
		limit = min(limit, flaws.page)
	}
	n := min(limit, len(rows))
	for n > 0 && n < len(rows) && rows[n].Change == rows[n-1].Change && !flaws.breakSeq {
		n++
	}
	page := ports.ChangePage{Rows: rows[:n], Through: end, Dropped: maps.Clone(d.dropped[q.Family])}
	if n == len(rows) {
		page.End = &end
		return page, nil
	}
	page.Through.Seqs = maps.Clone(q.After.Seqs)
	if page.Through.Seqs == nil {
		page.Through.Seqs = map[string]uint64{}
	}
	for _, row := range page.Rows {
		page.Through.Seqs[row.Change.Host] = max(page.Through.Seqs[row.Change.Host], row.Change.Seq)
	}
	return page, nil
}

// changed are the rows between a position and the store's own, in order.
func (d *disk) changed(q *ports.ChangesQuery, end ports.Position) []ports.Row {
	rows := d.rows(kindsOf(q.Family)...)
	for at, change := range d.gone {
		if at.kind.Family() == q.Family {
			rows = append(rows, ports.Row{Kind: at.kind, Key: at.key, Gone: true, Change: change})
		}
	}
	rows = slices.DeleteFunc(rows, func(r ports.Row) bool {
		seq := r.Change.Seq
		return q.Key != "" && r.Key != q.Key || seq <= q.After.Seqs[r.Change.Host] || seq > end.Seqs[r.Change.Host]
	})
	slices.SortFunc(rows, func(a, b ports.Row) int {
		return cmp.Or(cmp.Compare(a.Change.Seq, b.Change.Seq), cmp.Compare(a.Change.Host, b.Change.Host), compareRows(&a, &b))
	})
	return rows
}

// writesAs has another host write to the same disk: the entries take effect under one Seq of it.
func (m *memory) writesAs(host string, entries ...ports.Entry) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.disk.writesAs(host, entries)
}

func (d *disk) writesAs(host string, entries []ports.Entry) uint64 {
	f := entries[0].Action.Family()
	mark := d.others[f][host]
	mark.Seq++
	for i := range entries {
		e := entries[i]
		e.Seq, e.Host = mark.Seq, host
		effect, err := ports.Decide(&e, d, ports.Rules{HostID: host})
		if err != nil {
			panic(err) // a map does not fail
		}
		d.take(host, &effect)
	}
	d.others[f][host] = mark
	return mark.Seq
}
