package postgres

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// Changes tells what changed after a position; see ports.LocalStore.
//
// A host's mark moves in the transaction of its rows, and one host commits one after the other. So a snapshot that has a host's mark
// at n has all its rows up to n, whatever transactions of other hosts are under way: those have marks of their own.
//
// Rows whose ChangeSeq is 0 are no host's changes and are not told; Open gives each of them a place among those of host "".
func (b *Backend) Changes(ctx context.Context, q ports.ChangesQuery) (ports.ChangePage, error) {
	const op = "postgres: changes"
	d, err := b.open(ctx)
	if err != nil {
		return ports.ChangePage{}, err
	}
	opener := d.opener.Load()
	if opener == nil {
		return ports.ChangePage{}, ports.Errorf(ports.Unavailable, op, "no host has opened the store")
	}
	if !slices.Contains(ports.Families, q.Family) {
		return ports.ChangePage{}, ports.Errorf(ports.Invalid, op, "%q is no family", q.Family)
	}
	return view(ctx, d, op, func(ctx context.Context, r *reading) (ports.ChangePage, error) {
		t := telling{ctx: ctx, reading: r, query: &q, opener: *opener, limit: q.Limit}
		if t.limit <= 0 {
			t.limit = ports.MaxBatchEntries
		}
		err := t.tell(d.storeID)
		return t.page, err
	})
}

// telling is one page of changes in the making.
type telling struct {
	*reading

	ctx    context.Context
	query  *ports.ChangesQuery
	opener string // the host that opened the store
	limit  int

	marks   tables.Marks
	epochs  []ports.Epoch     // of the opener, oldest first
	highest map[string]uint64 // Seq of each host's rows and tombstones
	page    ports.ChangePage
	bytes   int
}

func (t *telling) tell(storeID string) error {
	if err := t.look(); err != nil {
		return err
	}
	if err := t.check(); err != nil {
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
	hosts := slices.AppendSeq(slices.Collect(maps.Keys(t.marks)), maps.Keys(t.highest))
	slices.Sort(hosts)
	for _, host := range slices.Compact(hosts) {
		seq, more, err := t.host(host)
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

// look reads what the store knows of itself, in one round trip.
func (t *telling) look() error {
	f := t.query.Family
	t.marks, t.highest = tables.Marks{}, map[string]uint64{}
	b := &pgx.Batch{}
	prefix := tables.KeyMarks(f)
	rowsOf(b.Queue(readKeys, prefix, tables.After(prefix)), func(row []any) error {
		key, _ := row[0].(string)
		text, _ := row[1].(string)
		return t.marks.Take("postgres", f, key, text)
	})
	told := func(key string, into any) {
		rowsOf(b.Queue(readKey, key), func(row []any) error {
			text, _ := row[0].(string)
			return tables.Readable("postgres", key, text, into)
		})
	}
	told(tables.KeyEpochs(f, t.opener), &t.epochs)
	told(tables.KeyDropped(f), &t.page.Dropped)
	rowsOf(b.Queue(textsOf[f].hosts), func(row []any) error {
		host, _ := row[0].(string)
		seq, _ := row[1].(int64)
		t.highest[host] = uint64(seq)
		return nil
	})
	return t.conn.SendBatch(t.ctx, b).Close()
}

// check refuses a position that is not one of this store's.
func (t *telling) check() error {
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
		// Rows beyond the mark come only by Put. Who was told of them must be able to go on.
		if known := max(mark.Seq, t.highest[host]); seq > known {
			return ports.Errorf(ports.Conflict, "postgres: changes", "the position is at %d of host %s, the store itself only at %d", seq, host, known)
		}
	}
	return nil
}

// checkEpoch finds an opener's position that the store went another way from.
func (t *telling) checkEpoch(epoch string, seq uint64) error {
	const op = "postgres: changes"
	at := slices.IndexFunc(t.epochs, func(e ports.Epoch) bool { return e.ID == epoch })
	if at < 0 {
		return ports.Errorf(ports.Conflict, op, "the position's epoch %q is none that the store knows of host %s", epoch, t.opener)
	}
	if at+1 < len(t.epochs) && seq >= t.epochs[at+1].From {
		return ports.Errorf(ports.Conflict, op, "the position is at %d in epoch %q, which the store left before %d", seq, epoch, t.epochs[at+1].From)
	}
	return nil
}

// host tells what a host changed. seq is how far the page goes with it; more says that something was left out.
func (t *telling) host(host string) (seq uint64, more bool, err error) {
	seq = t.query.After.Seqs[host]
	for t.highest[host] > seq && holdable(t.query.Key) {
		room := max(0, t.limit-len(t.page.Rows))
		found, others, err := t.trailOf(t.ctx, t.query.Family, host, t.query.Key, seq, room+1)
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
	return max(seq, t.marks[host].Seq), false, nil
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
			if len(t.page.Rows) >= t.limit {
				return true, nil
			}
			same := 1
			for same < len(rows) && found[same].seq == found[0].seq {
				same++
			}
			bytes := t.bytes
			for i := range rows[:same] {
				bytes += tables.SizeOf(&rows[i])
			}
			if len(t.page.Rows) > 0 && bytes > ports.MaxPageBytes {
				return true, nil
			}
			t.page.Rows = append(t.page.Rows, rows[:same]...)
			t.bytes, *seq = bytes, found[0].seq
			rows, found = rows[same:], found[same:]
		}
	}
	return false, nil
}

// fetchable counts the changes from the front that are worth reading for this page: whole Seqs, until it is full.
func (t *telling) fetchable(found []step) (n int) {
	total, rows := int64(t.bytes), len(t.page.Rows)
	for n < len(found) && (n == 0 || total <= ports.MaxPageBytes && rows < t.limit) {
		for first := n; n < len(found) && found[n].seq == found[first].seq; n++ {
			total += found[n].size
			rows++
		}
	}
	return n
}
