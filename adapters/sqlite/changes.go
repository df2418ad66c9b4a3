package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"maps"
	"slices"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// Changes tells what changed after a position; see ports.LocalStore.
//
// Rows whose ChangeSeq is 0 are no host's changes and are not told; Open gives each of them a place among those of host "".
func (s *Store) Changes(ctx context.Context, q ports.ChangesQuery) (ports.ChangePage, error) {
	const op = "sqlite: changes"
	f, err := s.open(ctx)
	if err != nil {
		return ports.ChangePage{}, err
	}
	opener := f.opener.Load()
	if opener == nil {
		return ports.ChangePage{}, ports.Errorf(ports.Unavailable, op, "no host has opened the store")
	}
	if !slices.Contains(ports.Families, q.Family) {
		return ports.ChangePage{}, ports.Errorf(ports.Invalid, op, "%q is no family", q.Family)
	}
	t := telling{ctx: ctx, query: &q, opener: *opener, limit: q.Limit}
	if t.limit <= 0 {
		t.limit = ports.MaxBatchEntries
	}
	err = f.snapshots.view(ctx, func(r *reading) error { return t.tell(r, f.storeID) })
	if err != nil {
		return ports.ChangePage{}, s.readFault(ctx, op, err)
	}
	return t.page, nil
}

// telling is one page of changes in the making.
type telling struct {
	ctx    context.Context
	query  *ports.ChangesQuery
	opener string // the host that opened the store
	limit  int

	marks  tables.Marks
	epochs []ports.Epoch // of the opener, oldest first
	page   ports.ChangePage
	bytes  int
}

func (t *telling) tell(r *reading, storeID string) error {
	if err := t.look(r); err != nil {
		return err
	}
	if err := t.check(r.link); err != nil {
		return err
	}
	hosts, err := t.hosts(r.link)
	if err != nil {
		return err
	}
	through := maps.Clone(t.query.After.Seqs)
	if through == nil {
		through = map[string]uint64{}
	}
	t.page.Through = ports.Position{StoreID: storeID, Seqs: through}
	if n := len(t.epochs); n > 0 {
		t.page.Through.Epoch = t.epochs[n-1].ID
	}
	for _, host := range hosts {
		seq, more, err := t.host(r.link, host)
		if err != nil {
			return err
		}
		through[host] = seq
		if more {
			return nil
		}
	}
	end := t.page.Through
	end.Seqs = maps.Clone(through)
	t.page.End = &end
	return nil
}

// look reads what the store knows of itself.
func (t *telling) look(r *reading) (err error) {
	if t.marks, err = marksIn(r.link, t.query.Family); err != nil {
		return err
	}
	if t.epochs, err = r.epochsOf(t.query.Family, t.opener); err != nil {
		return err
	}
	return getJSON(r.link, tables.KeyDropped(t.query.Family), &t.page.Dropped)
}

// check refuses a position that is not one of this store's.
func (t *telling) check(l *link) error {
	after := &t.query.After
	for _, host := range slices.Sorted(maps.Keys(after.Seqs)) {
		seq := after.Seqs[host]
		mark, marked := t.marks[host]
		if seq == 0 || !marked && host != t.opener {
			continue
		}
		if host == t.opener {
			if err := t.checkEpoch(after.Epoch, seq); err != nil {
				return err
			}
		}
		if seq <= mark.Seq {
			continue
		}
		// Rows beyond the mark come only by Put. Who was told of them must be able to go on.
		highest, _, err := l.number(textsOf[t.query.Family].highest, host)
		if err != nil {
			return err
		}
		if seq > uint64(highest) {
			return ports.Errorf(ports.Conflict, "sqlite: changes", "the position is at %d of host %s, the store itself only at %d", seq, host, max(mark.Seq, uint64(highest)))
		}
	}
	return nil
}

// checkEpoch finds an opener's position that the store went another way from.
func (t *telling) checkEpoch(epoch string, seq uint64) error {
	const op = "sqlite: changes"
	at := slices.IndexFunc(t.epochs, func(e ports.Epoch) bool { return e.ID == epoch })
	if at < 0 {
		return ports.Errorf(ports.Conflict, op, "the position's epoch %q is none that the store knows of host %s", epoch, t.opener)
	}
	if at+1 < len(t.epochs) && seq >= t.epochs[at+1].From {
		return ports.Errorf(ports.Conflict, op, "the position is at %d in epoch %q, which the store left before %d", seq, epoch, t.epochs[at+1].From)
	}
	return nil
}

// hosts lists those that have a mark or rows, in order.
func (t *telling) hosts(l *link) ([]string, error) {
	all := slices.Collect(maps.Keys(t.marks))
	err := l.query(textsOf[t.query.Family].hosts, func(row []driver.Value) error {
		host, _ := row[0].(string)
		all = append(all, host)
		return nil
	})
	slices.Sort(all)
	return slices.Compact(all), err
}

// host tells what a host changed. seq is how far the page goes with it; more says that something was left out.
func (t *telling) host(l *link, host string) (seq uint64, more bool, err error) {
	seq = t.query.After.Seqs[host]
	trails, err := openTrails(l, t.query.Family, host, t.query.Key, seq)
	defer func() { err = errors.Join(err, closeTrails(trails)) }()
	for err == nil {
		next, found := least(trails)
		if !found {
			return max(seq, t.marks[host].Seq), false, nil
		}
		if len(t.page.Rows) >= t.limit {
			return seq, true, nil
		}
		if err := t.ctx.Err(); err != nil {
			return seq, true, err
		}
		var took bool
		if took, err = t.take(l, trails, host, next); err == nil && !took {
			return seq, true, nil
		}
		seq = next
	}
	return seq, true, err
}

// least is the lowest Seq of which any trail has a row.
func least(trails []*trail) (seq uint64, found bool) {
	for _, t := range trails {
		if !t.over && (!found || t.seq < seq) {
			seq, found = t.seq, true
		}
	}
	return seq, found
}

// take adds all rows of a Seq, unless the page has some already and would become too large.
func (t *telling) take(l *link, trails []*trail, host string, seq uint64) (took bool, err error) {
	before := len(t.page.Rows)
	for _, trail := range trails {
		for !trail.over && trail.seq == seq {
			row, err := trail.row(l, host)
			if err != nil {
				return false, err
			}
			t.bytes += tables.SizeOf(&row)
			if before > 0 && t.bytes > ports.MaxPageBytes {
				t.page.Rows = t.page.Rows[:before]
				return false, nil
			}
			t.page.Rows = append(t.page.Rows, row)
			if err := trail.step(); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}
