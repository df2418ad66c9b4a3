package core

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"holdfast/ports"
)

// A local store that went back to before the journal begins is mended from the followers: what they hold beyond it is put back
// exactly as it was, and the journal goes on from there. Nobody is asked while the journal has everything.

// mendAsk is how long a follower may take to say how far it is.
const mendAsk = 2 * time.Second

// source is a follower that holds more than the local store.
type source struct {
	w         *follower
	has       uint64 // Seq of this host up to which it holds changes
	away      bool   // it does not answer
	unsettled map[string]ports.Unsettled
}

// mend takes back what is lost of each family. It changes the plan: what was taken back is lost no more.
func (k *link) mend(ctx context.Context, standing ports.Standing, plan *course) error {
	for f, span := range plan.lost {
		sources := k.sources(ctx, f, standing.Marks[f].Seq)
		if n := len(sources); n > 0 && sources[n-1].away && !k.accepted() {
			return k.awaitSource(sources[n-1], span)
		}
		sources = slices.DeleteFunc(sources, func(s *source) bool { return s.away })
		if len(sources) == 0 {
			continue
		}
		if err := k.adoptIdentity(standing); err != nil {
			return err
		}
		rows, err := k.takeBack(ctx, sources, f, standing.Marks[f].Seq, span.To)
		if err != nil {
			return ports.Errorf(ports.Unavailable, "local store", "take back what followers hold: %v", err)
		}
		plan.note += fmt.Sprintf("; %d records of family %s were taken back from other backends", rows, f)
		for _, s := range sources {
			if until := s.w.prunedMs(); until != 0 {
				plan.note += fmt.Sprintf("; %s had nothing that ended before %s", s.w.Name, ports.FormatMs(until))
			}
		}
		if standing.Marks[f].Seq > 0 {
			k.copyAgain(f)
			plan.note += ", removals since the older copy are undone"
		}
		if from := max(span.From, complete(sources)+1); from > span.To {
			delete(plan.lost, f)
		} else {
			plan.lost[f] = ports.Span{From: from, To: span.To}
		}
	}
	return nil
}

// copyAgain has every follower copied from zero: a record that was removed since an older copy was made is back in it, and
// nothing but its absence in the followers tells of the removal.
func (k *link) copyAgain(f ports.Family) {
	for _, w := range k.follows {
		if w.family.name == f {
			w.startOver("the local store was mended")
		}
	}
}

// sources lists the followers that hold more than a Seq, the one that has most last.
func (k *link) sources(ctx context.Context, f ports.Family, mark uint64) (list []*source) {
	for _, w := range k.follows {
		if w.family.name != f {
			continue
		}
		asked, cancel := context.WithTimeout(ctx, mendAsk)
		at, err := w.Store.Position(asked, f)
		cancel()
		w.mu.Lock()
		known := w.mark.Position.Seqs[k.hostID]
		w.mu.Unlock()
		s := &source{w: w, has: at.Seqs[k.hostID], away: err != nil, unsettled: map[string]ports.Unsettled{}}
		if s.away || at.StoreID == "" { // it cannot say
			s.has = known
		}
		if s.has <= mark {
			continue
		}
		for _, u := range w.keys.list("", ports.MaxUnsettled) {
			s.unsettled[u.Key] = u
		}
		list = append(list, s)
	}
	slices.SortStableFunc(list, func(a, b *source) int { return cmp.Compare(a.has, b.has) })
	return list
}

// complete is the Seq up to which the sources together have everything.
func complete(sources []*source) uint64 {
	best := sources[len(sources)-1]
	through := best.has
	for key, u := range best.unsettled {
		elsewhere := slices.ContainsFunc(sources, func(s *source) bool {
			_, lacks := s.unsettled[key]
			return !lacks && s.has >= u.Last
		})
		if !elsewhere && u.Kind != ports.InDoubt && u.First > 0 {
			through = min(through, u.First-1)
		}
	}
	return through
}

func (k *link) accepted() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.accept != notAccepted
}

// awaitSource waits for a backend that has what nobody else has.
func (k *link) awaitSource(away *source, span ports.Span) error {
	k.mu.Lock()
	k.choice = true
	k.mu.Unlock()
	detail := fmt.Sprintf("the local store and the journal lack writes %d to %d; %s has them and does not answer", span.From, span.To, away.w.Name)
	remedy := fmt.Sprintf("bring %s back, or run `holdfast local accept` to go on without them", away.w.Name)
	return &needError{ports.Errorf(ports.Unavailable, "", "%s", detail), remedy}
}

// adoptIdentity makes an empty, new store the known one before anything is put into it, so that a mending that is interrupted
// goes on at the next start.
func (k *link) adoptIdentity(standing ports.Standing) error {
	k.mu.Lock()
	k.storeID = "" // nobody remembers the one before any more
	k.mu.Unlock()
	known, _, err := k.state.Local()
	if err != nil || known.StoreID == standing.StoreID {
		return err
	}
	known.Name, known.StoreID = k.name, standing.StoreID
	return k.state.SetLocal(known)
}

// takeBack puts what followers hold beyond the local store into it, row by row as it was. States that may be older than they
// should be, of keys that are unsettled in a follower, come first; whoever has more comes later and overwrites.
func (k *link) takeBack(ctx context.Context, sources []*source, f ports.Family, mark, lost uint64) (taken int64, err error) {
	for _, unsettled := range []bool{true, false} {
		for _, s := range sources {
			if unsettled && len(s.unsettled) == 0 {
				continue
			}
			from, err := k.side(ctx, "take back", s.w.Name)
			if err != nil {
				return taken, err
			}
			err = from.walk(ctx, f, nil, func(rows []ports.Row, _ *ports.Cursor) error {
				missing := slices.DeleteFunc(slices.Clone(rows), func(row ports.Row) bool {
					_, is := s.unsettled[row.Key]
					return is != unsettled || !k.lacks(&row, mark, lost)
				})
				n, err := k.putBack(ctx, f, missing)
				taken += n
				k.enter(opening, fmt.Sprintf("takes back what other backends hold: %d records so far", taken), "")
				return err
			})
			if err != nil {
				return taken, err
			}
		}
	}
	return taken, nil
}

// lacks says whether a local store at a mark lacks a record, and the journal, which begins behind lost, does not bring it anew.
func (k *link) lacks(row *ports.Row, mark, lost uint64) bool {
	if seq, host, ok := ports.OrderSeq(row.First.OrderKey); ok && host == k.shortID() && seq > lost {
		return false
	}
	return mark == 0 || row.Change.Host == k.hostID && row.Change.Seq > mark
}

func (k *link) putBack(ctx context.Context, f ports.Family, rows []ports.Row) (taken int64, err error) {
	for _, c := range chunksOf(groupRows(rows), func(string) bool { return false }) {
		put, cancel := context.WithTimeout(ctx, openLimit)
		_, err := k.Store.Put(put, ports.Batch{Family: f, Rows: c.rows})
		cancel()
		if err != nil {
			return taken, err
		}
		taken += int64(len(c.rows))
	}
	return taken, nil
}
