package core

import (
	"context"
	"fmt"
	"time"

	"holdfast/ports"
)

// A local store that went back to before the journal begins is mended from the followers: what they hold beyond it is put back
// exactly as it was, and the journal goes on from there. Nobody is asked while the journal has everything.

// mendAsk is how long a follower may take to say how far it is.
const mendAsk = 2 * time.Second

// source is a follower that holds more than the local store.
type source struct {
	w   *follower
	has uint64 // Seq of this host up to which it holds changes
}

// mend takes back what is lost of each family. It changes the plan: what was taken back is lost no more.
func (k *link) mend(ctx context.Context, standing ports.Standing, plan *course) error {
	for f, span := range plan.lost {
		best, away := k.sources(ctx, f, standing.Marks[f].Seq)
		if away != nil && (best == nil || away.has > best.has) && !k.accepted() {
			return k.awaitSource(away, span)
		}
		if best == nil {
			continue
		}
		if err := k.adoptIdentity(standing); err != nil {
			return err
		}
		rows, err := k.takeBack(ctx, best.w, f, standing)
		if err != nil {
			return ports.Wrap(ports.Unavailable, "take back from "+best.w.Name, err)
		}
		plan.note += fmt.Sprintf("; %d records of family %s were taken back from %s", rows, f, best.w.Name)
		if from := max(span.From, best.complete()+1); from > span.To {
			delete(plan.lost, f)
		} else {
			plan.lost[f] = ports.Span{From: from, To: span.To}
		}
	}
	return nil
}

// sources finds the follower that holds most beyond a Seq, among those that answer and among those that do not.
func (k *link) sources(ctx context.Context, f ports.Family, mark uint64) (best, away *source) {
	for _, w := range k.follows {
		if w.family.name != f {
			continue
		}
		asked, cancel := context.WithTimeout(ctx, mendAsk)
		at, err := w.Store.Position(asked, f)
		cancel()
		s := &source{w, at.Seqs[k.hostID]}
		into := &best
		if err != nil {
			w.mu.Lock()
			s.has = w.mark.Position.Seqs[k.hostID]
			w.mu.Unlock()
			into = &away
		}
		if s.has > mark && (*into == nil || s.has > (*into).has) {
			*into = s
		}
	}
	return best, away
}

// complete is the Seq up to which nothing is missing in a source.
func (s *source) complete() uint64 {
	through := s.has
	for _, u := range s.w.keys.list("", ports.MaxUnsettled) {
		if u.Kind != ports.InDoubt && u.First > 0 {
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
	k.enter(needsOne, detail, fmt.Sprintf("bring %s back, or run `holdfast local accept` to go on without them", away.w.Name))
	return ports.Errorf(ports.Unavailable, "local store", "%s", detail)
}

// adoptIdentity makes an empty, new store the known one before anything is put into it, so that a mending that is interrupted
// goes on at the next start.
func (k *link) adoptIdentity(standing ports.Standing) error {
	known, _, err := k.state.Local()
	if err != nil || known.StoreID == standing.StoreID {
		return err
	}
	known.Name, known.StoreID = k.name, standing.StoreID
	return k.state.SetLocal(known)
}

// takeBack puts what a follower holds beyond the local store into it, row by row as it was.
func (k *link) takeBack(ctx context.Context, w *follower, f ports.Family, standing ports.Standing) (taken int64, err error) {
	from, err := k.side(ctx, "take back", w.Name)
	if err != nil {
		return 0, err
	}
	mark := standing.Marks[f].Seq
	err = from.walk(ctx, f, nil, func(rows []ports.Row, _ *ports.Cursor) error {
		var missing []ports.Row
		for _, row := range rows {
			if mark == 0 || row.Change.Host == k.hostID && row.Change.Seq > mark {
				missing = append(missing, row)
			}
		}
		for _, c := range chunksOf(groupRows(missing), func(string) bool { return false }) {
			put, cancel := context.WithTimeout(ctx, openLimit)
			_, err := k.Store.Put(put, ports.Batch{Family: f, Rows: c.rows})
			cancel()
			if err != nil {
				return err
			}
			taken += int64(len(c.rows))
		}
		k.enter(opening, fmt.Sprintf("takes back what %s holds: %d records so far", w.Name, taken), "")
		return nil
	})
	return taken, err
}
