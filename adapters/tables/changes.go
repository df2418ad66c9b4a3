package tables

import (
	"maps"
	"slices"

	"holdfast/ports"
)

// Telling is one page of changes in the making.
type Telling struct {
	Query  *ports.ChangesQuery
	Opener string // the host that opened the store
	Limit  int
	Page   ports.ChangePage
	Bytes  int // of the page so far

	// What the store knows of itself, in the snapshot that the page is of.
	Marks  Marks
	Epochs []ports.Epoch // of the opener, oldest first
}

// NewTelling begins a page. opener is nil when no host has opened the store.
func NewTelling(op string, q *ports.ChangesQuery, opener *string) (Telling, error) {
	if opener == nil {
		return Telling{}, ports.Errorf(ports.Unavailable, op, "no host has opened the store")
	}
	if !slices.Contains(ports.Families, q.Family) {
		return Telling{}, ports.Errorf(ports.Invalid, op, "%q is no family", q.Family)
	}
	t := Telling{Query: q, Opener: *opener, Limit: q.Limit}
	if t.Limit <= 0 {
		t.Limit = ports.MaxBatchEntries
	}
	return t, nil
}

// Check refuses a position that is not one of this store's. highest gives the highest Seq of a host's rows and tombstones.
func (t *Telling) Check(op string, highest func(host string) (uint64, error)) error {
	after := &t.Query.After
	for _, host := range slices.Sorted(maps.Keys(after.Seqs)) {
		seq := after.Seqs[host]
		mark, marked := t.Marks[host]
		if seq == 0 || !marked && host != t.Opener {
			continue
		}
		if host == t.Opener {
			if err := t.checkEpoch(op, after.Epoch, seq); err != nil {
				return err
			}
		}
		if seq <= mark.Seq {
			continue
		}
		// Rows beyond the mark come only by Put. Who was told of them must be able to go on.
		known, err := highest(host)
		if err != nil {
			return err
		}
		if seq > known {
			return ports.Errorf(ports.Conflict, op, "the position is at %d of host %s, the store itself only at %d", seq, host, max(mark.Seq, known))
		}
	}
	return nil
}

// checkEpoch finds an opener's position that the store went another way from.
func (t *Telling) checkEpoch(op, epoch string, seq uint64) error {
	at := slices.IndexFunc(t.Epochs, func(e ports.Epoch) bool { return e.ID == epoch })
	if at < 0 {
		return ports.Errorf(ports.Conflict, op, "the position's epoch %q is none that the store knows of host %s", epoch, t.Opener)
	}
	if at+1 < len(t.Epochs) && seq >= t.Epochs[at+1].From {
		return ports.Errorf(ports.Conflict, op, "the position is at %d in epoch %q, which the store left before %d", seq, epoch, t.Epochs[at+1].From)
	}
	return nil
}

// Walk goes through the hosts that have a mark or rows, in order, and says how far the page goes. one tells what a host changed: seq
// is how far the page goes with it, more says that something was left out.
func (t *Telling) Walk(storeID string, withRows []string, one func(host string) (seq uint64, more bool, err error)) error {
	through := maps.Clone(t.Query.After.Seqs)
	if through == nil {
		through = map[string]uint64{}
	}
	t.Page.Through = ports.Position{StoreID: storeID, Seqs: through}
	if n := len(t.Epochs); n > 0 {
		t.Page.Through.Epoch = t.Epochs[n-1].ID
	}
	hosts := slices.AppendSeq(slices.Clone(withRows), maps.Keys(t.Marks))
	slices.Sort(hosts)
	for _, host := range slices.Compact(hosts) {
		seq, more, err := one(host)
		if err != nil {
			return err
		}
		through[host] = seq
		if more {
			return nil
		}
	}
	end := t.Page.Through
	end.Seqs = maps.Clone(through)
	t.Page.End = &end
	return nil
}
