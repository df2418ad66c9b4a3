package postgres

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

const opChanges = "postgres: changes"

// Changes tells what changed after a position; see ports.LocalStore.
//
// A host's mark moves in the transaction of its rows, and one host commits one after the other. So a snapshot that has a host's mark
// at n has all its rows up to n, whatever transactions of other hosts are under way: those have marks of their own.
//
// Rows whose ChangeSeq is 0 are no host's changes and are not told; Open gives each of them a place among those of host "".
func (b *Backend) Changes(ctx context.Context, q ports.ChangesQuery) (ports.ChangePage, error) {
	d, err := b.open(ctx)
	if err != nil {
		return ports.ChangePage{}, err
	}
	began, err := tables.NewTelling(opChanges, &q, d.opener.Load())
	if err != nil {
		return ports.ChangePage{}, err
	}
	return view(ctx, d, opChanges, func(ctx context.Context, r *reading) (ports.ChangePage, error) {
		t := telling{Telling: began, reading: r, ctx: ctx}
		err := t.tell(d.storeID)
		return t.Page, err
	})
}

// telling is one page of changes in the making.
type telling struct {
	tables.Telling
	*reading

	ctx     context.Context
	highest map[string]uint64 // Seq of each host's rows and tombstones
}

func (t *telling) tell(storeID string) error {
	if err := t.look(); err != nil {
		return err
	}
	if err := t.Check(opChanges, func(host string) (uint64, error) { return t.highest[host], nil }); err != nil {
		return err
	}
	return t.Walk(storeID, slices.Collect(maps.Keys(t.highest)), t.host)
}

// look reads what the store knows of itself, in one round trip.
func (t *telling) look() error {
	f := t.Query.Family
	t.Marks, t.highest = tables.Marks{}, map[string]uint64{}
	b := &pgx.Batch{}
	prefix := tables.KeyMarks(f)
	rowsOf(b.Queue(readKeys, prefix, tables.After(prefix)), func(row []any) error {
		key, _ := row[0].(string)
		text, _ := row[1].(string)
		return t.Marks.Take("postgres", f, key, text)
	})
	told := func(key string, into any) {
		rowsOf(b.Queue(readKey, key), func(row []any) error {
			text, _ := row[0].(string)
			return tables.Readable("postgres", key, text, into)
		})
	}
	told(tables.KeyEpochs(f, t.Opener), &t.Epochs)
	told(tables.KeyDropped(f), &t.Page.Dropped)
	rowsOf(b.Queue(textsOf[f].hosts), func(row []any) error {
		host, _ := row[0].(string)
		seq, _ := row[1].(int64)
		t.highest[host] = uint64(seq)
		return nil
	})
	return t.conn.SendBatch(t.ctx, b).Close()
}

// host tells what a host changed. seq is how far the page goes with it; more says that something was left out.
func (t *telling) host(host string) (seq uint64, more bool, err error) {
	seq = t.Query.After.Seqs[host]
	for t.highest[host] > seq && holdable(t.Query.Key) {
		room := max(0, t.Limit-len(t.Page.Rows))
		found, others, err := t.trailOf(t.ctx, t.Query.Family, host, t.Query.Key, seq, room+1)
		if err != nil {
			return seq, true, err
		}
		left, err := t.take(host, found, &seq)
		if err != nil || left {
			return seq, true, err
		}
		if !others {
			break
		}
	}
	return max(seq, t.Marks[host].Seq), false, nil
}

// take adds changes to the page, Seq by Seq, and moves seq. left says that the page is full and some are left.
func (t *telling) take(host string, found []step, seq *uint64) (left bool, err error) {
	for len(found) > 0 {
		n := t.fetchable(found)
		rows, err := t.rowsOf(t.ctx, host, found[:n])
		if err != nil {
			return true, err
		}
		for len(rows) > 0 {
			if len(t.Page.Rows) >= t.Limit {
				return true, nil
			}
			same := 1
			for same < len(rows) && found[same].seq == found[0].seq {
				same++
			}
			bytes := t.Bytes
			for i := range rows[:same] {
				bytes += tables.SizeOf(&rows[i])
			}
			if len(t.Page.Rows) > 0 && bytes > ports.MaxPageBytes {
				return true, nil
			}
			t.Page.Rows = append(t.Page.Rows, rows[:same]...)
			t.Bytes, *seq = bytes, found[0].seq
			rows, found = rows[same:], found[same:]
		}
	}
	return false, nil
}

// fetchable counts the changes from the front that are worth reading for this page: whole Seqs, until it is full.
func (t *telling) fetchable(found []step) (n int) {
	total, rows := int64(t.Bytes), len(t.Page.Rows)
	for n < len(found) && (n == 0 || total <= ports.MaxPageBytes && rows < t.Limit) {
		for first := n; n < len(found) && found[n].seq == found[first].seq; n++ {
			total += found[n].size
			rows++
		}
	}
	return n
}
