package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

const opChanges = "sqlite: changes"

// Changes tells what changed after a position; see ports.LocalStore.
//
// Rows whose ChangeSeq is 0 are no host's changes and are not told; Open gives each of them a place among those of host "".
func (s *Store) Changes(ctx context.Context, q ports.ChangesQuery) (ports.ChangePage, error) {
	f, err := s.open(ctx)
	if err != nil {
		return ports.ChangePage{}, err
	}
	began, err := tables.NewTelling(opChanges, &q, f.opener.Load())
	if err != nil {
		return ports.ChangePage{}, err
	}
	t := telling{Telling: began, ctx: ctx}
	err = f.snapshots.view(ctx, func(r *reading) error { return t.tell(r, f.storeID) })
	if err != nil {
		return ports.ChangePage{}, s.readFault(ctx, opChanges, err)
	}
	return t.Page, nil
}

// telling is one page of changes in the making.
type telling struct {
	tables.Telling

	ctx context.Context
}

func (t *telling) tell(r *reading, storeID string) error {
	if err := t.look(r); err != nil {
		return err
	}
	highest := func(host string) (uint64, error) {
		n, _, err := r.number(textsOf[t.Query.Family].highest, host)
		return uint64(n), err
	}
	if err := t.Check(opChanges, highest); err != nil {
		return err
	}
	hosts, err := t.hosts(r.link)
	if err != nil {
		return err
	}
	return t.Walk(storeID, hosts, func(host string) (uint64, bool, error) { return t.host(r.link, host) })
}

// look reads what the store knows of itself.
func (t *telling) look(r *reading) (err error) {
	if t.Marks, err = marksIn(r.link, t.Query.Family); err != nil {
		return err
	}
	if t.Epochs, err = r.epochsOf(t.Query.Family, t.Opener); err != nil {
		return err
	}
	return getJSON(r.link, tables.KeyDropped(t.Query.Family), &t.Page.Dropped)
}

// hosts lists those that have rows.
func (t *telling) hosts(l *link) (all []string, err error) {
	err = l.query(textsOf[t.Query.Family].hosts, func(row []driver.Value) error {
		host, _ := row[0].(string)
		all = append(all, host)
		return nil
	})
	return all, err
}

// host tells what a host changed. seq is how far the page goes with it; more says that something was left out.
func (t *telling) host(l *link, host string) (seq uint64, more bool, err error) {
	seq = t.Query.After.Seqs[host]
	trails, err := openTrails(l, t.Query.Family, host, t.Query.Key, seq)
	defer func() { err = errors.Join(err, closeTrails(trails)) }()
	for err == nil {
		next, found := least(trails)
		if !found {
			return max(seq, t.Marks[host].Seq), false, nil
		}
		if len(t.Page.Rows) >= t.Limit {
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
	before := len(t.Page.Rows)
	for _, trail := range trails {
		for !trail.over && trail.seq == seq {
			row, err := trail.row(l, host)
			if err != nil {
				return false, err
			}
			t.Bytes += tables.SizeOf(&row)
			if before > 0 && t.Bytes > ports.MaxPageBytes {
				t.Page.Rows = t.Page.Rows[:before]
				return false, nil
			}
			t.Page.Rows = append(t.Page.Rows, row)
			if err := trail.step(); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}
