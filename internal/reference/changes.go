package reference

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"holdfast/ports"
)

// Changes tells what changed after a position; see ports.LocalStore.
func (s *Store) Changes(ctx context.Context, q ports.ChangesQuery) (page ports.ChangePage, _ error) {
	return page, s.look(ctx, "changes", q.Family, func(h *half, d *disk, by opener) error {
		if by.host == "" {
			return ports.Errorf(ports.Unavailable, "reference: changes", "no host has opened the store")
		}
		if err := h.check(&q.After, by.host); err != nil {
			return err
		}
		page = h.changes(&q)
		page.Through.StoreID, page.Through.Epoch = d.storeID, h.newest(by.host)
		if page.End != nil {
			*page.End = page.Through
			page.End.Seqs = maps.Clone(page.Through.Seqs)
		}
		return nil
	})
}

// check refuses a position that is not one of this store's.
func (h *half) check(p *ports.Position, opener string) error {
	const op = "reference: changes"
	reaches := h.reaches()
	for id, seq := range p.Seqs {
		known := h.hosts[id]
		if seq == 0 || id != opener && (known == nil || !known.marked) {
			continue
		}
		if id == opener {
			at := slices.IndexFunc(known.epochs, func(e ports.Epoch) bool { return e.ID == p.Epoch })
			if at < 0 {
				return ports.Errorf(ports.Conflict, op, "the position's epoch %q is none that the store knows of host %s", p.Epoch, id)
			}
			if at+1 < len(known.epochs) && seq >= known.epochs[at+1].From {
				return ports.Errorf(ports.Conflict, op, "the position is at %d in epoch %q, which the store left before %d", seq, p.Epoch, known.epochs[at+1].From)
			}
		}
		if reach := reaches[id]; seq > reach {
			return ports.Errorf(ports.Conflict, op, "the position is at %d of host %s, the store itself only at %d", seq, id, reach)
		}
	}
	return nil
}

// changes are the rows behind a position that the page takes, and how far it comes.
func (h *half) changes(q *ports.ChangesQuery) ports.ChangePage {
	page := ports.ChangePage{Dropped: maps.Clone(h.dropped)}
	page.Through.Seqs = maps.Clone(q.After.Seqs)
	if page.Through.Seqs == nil {
		page.Through.Seqs = map[string]uint64{}
	}
	limit := q.Limit
	if limit <= 0 {
		limit = ports.MaxBatchEntries
	}
	size := 0
	reaches := h.reaches()
	for rest := h.told(q); len(rest) > 0; {
		seq := rest[:upTo(rest)]
		rest = rest[len(seq):]
		for i := range seq {
			size += sizeOf(&seq[i])
		}
		if n := len(page.Rows); n >= limit || n > 0 && size > ports.MaxPageBytes {
			return page
		}
		change := seq[0].Change
		for id, reach := range reaches { // a page that comes to a host has told all of those before it
			if id < change.Host {
				page.Through.Seqs[id] = max(page.Through.Seqs[id], reach)
			}
		}
		page.Rows = append(page.Rows, seq...)
		page.Through.Seqs[change.Host] = change.Seq
	}
	for id, reach := range reaches {
		page.Through.Seqs[id] = max(page.Through.Seqs[id], reach)
	}
	page.End = &ports.Position{}
	return page
}

// upTo is how many rows the first Seq has.
func upTo(rows []ports.Row) int {
	n := 1
	for n < len(rows) && rows[n].Change == rows[0].Change {
		n++
	}
	return n
}

// told are all rows behind a position, in order.
func (h *half) told(q *ports.ChangesQuery) []ports.Row {
	rows := h.rows(func(place, *held) bool { return true })
	for at, change := range h.gone {
		rows = append(rows, ports.Row{Kind: at.kind, Key: at.key, Gone: true, Change: change})
	}
	rows = slices.DeleteFunc(rows, func(r ports.Row) bool {
		return q.Key != "" && r.Key != q.Key || r.Change.Seq <= q.After.Seqs[r.Change.Host]
	})
	slices.SortFunc(rows, func(a, b ports.Row) int {
		return cmp.Or(cmp.Compare(a.Change.Host, b.Change.Host), cmp.Compare(a.Change.Seq, b.Change.Seq), cmp.Compare(rank(&a), rank(&b)))
	})
	return rows
}

// rank orders the rows of one Seq.
func rank(r *ports.Row) int {
	if r.Gone {
		return -1
	}
	return slices.Index(ports.Kinds, r.Kind)
}
