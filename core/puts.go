package core

import (
	"context"
	"hash/maphash"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/ports"
)

// How changes are put: by key, in batches, in lanes; and what a Put that fails says of its keys.

var laneSeed = maphash.MakeSeed()

// putAll puts groups, keys of different lanes at the same time, and then the position, if there is one. What may not be put is
// recorded before the position is.
func (s *session) putAll(ctx context.Context, groups []group, u urgency, position *ports.Position) error {
	lanes := s.w.slots().lanes()
	if lanes == 1 {
		chunks := chunksOf(groups, s.w.trial.suspects)
		for i, c := range chunks {
			var at *ports.Position
			if i == len(chunks)-1 {
				at = position
			}
			if err := s.putChunk(ctx, c, u, at); err != nil {
				return err
			}
		}
		return nil
	}
	split := make([][]group, lanes)
	for _, g := range groups {
		lane := maphash.String(laneSeed, g.key) % uint64(lanes)
		split[lane] = append(split[lane], g)
	}
	all, laneCtx := errgroup.WithContext(ctx)
	for _, lane := range split {
		all.Go(func() error {
			for _, c := range chunksOf(lane, s.w.trial.suspects) {
				if err := s.putChunk(laneCtx, c, u, nil); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil || position == nil || len(groups) == 0 {
		return err
	}
	return s.putChunk(ctx, chunk{}, u, position)
}

// putChunk puts one chunk. A row that the store refuses for good makes its key unsettled, and the rest goes on.
func (s *session) putChunk(ctx context.Context, c chunk, u urgency, position *ports.Position) error {
	alone, leave, err := s.w.company.enter(ctx, c.alone)
	if err != nil {
		return err
	}
	defer leave()
	for len(c.rows) > 0 || position != nil {
		if position != nil {
			if err := s.w.keys.keep(); err != nil {
				return needing(err)
			}
		}
		applied, err := s.call(ctx, c, u, position)
		done, err := taken(s.w.Name, applied, len(c.rows), err)
		s.w.count(done)
		switch {
		case err == nil:
			s.w.trial.passed(c.groups)
			if position != nil {
				s.w.told(*position)
			}
			return nil
		case anotherStore(err):
			return ports.Errorf(ports.Unavailable, s.w.Name, "another store stands in its place, or an older copy: %v", err)
		case done == len(c.rows), !ports.CodeOf(err).Permanent():
			left := c.without(done, "")
			left.alone = len(left.groups) == 1 && alone()
			return s.judge(ctx, left, c.alone, err)
		}
		row := c.rows[done]
		if err := s.refuse(groupOf(c.groups, row.Key), ports.RefusedKey, err); err != nil {
			return err
		}
		c = c.without(done, row.Key)
	}
	return nil
}

// taken is how many rows are surely in. A count that cannot be is not believed: to put rows again changes nothing.
func taken(name string, a ports.Applied, rows int, err error) (int, error) {
	if n := a.Done; n < 0 || n > rows || err == nil && n < rows {
		return 0, ports.Errorf(ports.Internal, name, "a Put of %d rows was answered as done for %d; its plugin is at fault", rows, n)
	}
	return a.Done, err
}

// refuse makes a key unsettled.
func (s *session) refuse(g group, kind ports.UnsettledKind, err error) error {
	why := ports.AsError(err)
	if err := s.w.keys.refuse(g.key, kind, why, g.first, g.last, s.w.host.clock()); err != nil {
		return needing(err)
	}
	s.w.host.log.Warn("a backend does not take a key; the others have it, see `holdfast unsettled list`",
		"name", s.w.Name, "family", s.w.family.name, "code", why.Code, "reason", why.Message)
	return nil
}

// anotherStore says whether a Put was refused because the store is not where the session left it.
func anotherStore(err error) bool {
	return ports.CodeOf(err) == ports.Conflict && ports.AsError(err).Field == ports.FieldPosition
}

// putDeadline is how long a Put is waited for; large ones get longer.
const putDeadline = 5 * time.Second

// call makes one Put. One that is not answered in time goes on by itself: its keys are in doubt until it is answered or can no
// longer take effect.
func (s *session) call(ctx context.Context, c chunk, u urgency, position *ports.Position) (ports.Applied, error) {
	w, slots := s.w, s.w.slots()
	if err := slots.take(ctx, u); err != nil {
		return ports.Applied{}, err
	}
	if health := w.health(); !health.Running || health.Starts != s.lives {
		slots.give()
		return ports.Applied{}, ports.Errorf(ports.Unavailable, w.Name, "its process is another one than at the beginning, or is gone; nothing was sent")
	}
	batch := ports.Batch{Family: w.family.name, Rows: c.rows, Position: position, CatchUp: u == ofCatchUp}
	if stored := w.storedAt(); stored.StoreID != "" {
		batch.After = &stored // also without a position: one that comes too late must find that it moved
	}
	size := int64(0)
	for i := range c.rows {
		size += int64(len(c.rows[i].Body))
	}
	patience := putDeadline + ports.TimeFor(size)
	type answer struct {
		applied ports.Applied
		err     error
	}
	sent, got := w.host.clock(), make(chan answer, 1)
	long, cancel := context.WithTimeout(s.life, doubtFor)
	w.late.Go(func() {
		defer slots.give()
		applied, err := w.Store.Put(long, batch)
		cancel()
		if !unknownOutcome(err) {
			w.answers(w.host.clock())
		}
		got <- answer{applied, err}
	})
	timer := time.NewTimer(patience)
	defer timer.Stop()
	why := "a Put had no answer in time"
	select {
	case a := <-got:
		if w.mayTakeEffect(a.err) {
			w.keys.doubt(c.without(max(a.applied.Done, 0), "").groups, "a Put ended without an answer: "+a.err.Error(), sent)
		}
		return a.applied, a.err
	case <-timer.C:
	case <-ctx.Done():
		why = "the host stopped waiting for a Put"
	}
	w.keys.doubt(c.groups, why, sent)
	w.unanswered.Add(1)
	w.late.Go(func() {
		defer w.unanswered.Add(-1)
		if a := <-got; !w.mayTakeEffect(a.err) {
			w.keys.over(c.groups, sent)
			notify(w.poke)
		}
	})
	if ctx.Err() != nil {
		return ports.Applied{}, ctx.Err()
	}
	return ports.Applied{}, ports.Errorf(ports.Deadline, w.Name, "a Put of %d rows had no answer for %s", len(c.rows), patience)
}

// mayTakeEffect says whether a Put that ended so may do so later.
func (w *follower) mayTakeEffect(err error) bool {
	return unknownOutcome(err) && (ports.CodeOf(err) != ports.BackendGone || !w.contained())
}

// unknownOutcome says whether nobody knows what became of a Put that ended so.
func unknownOutcome(err error) bool {
	switch ports.CodeOf(err) {
	case ports.BackendGone, ports.Deadline, ports.Canceled, ports.Internal:
		return err != nil
	}
	return false
}

// count adds to what was put.
func (w *follower) count(rows int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.copied += uint64(rows)
}

// storedAt is the position that the store was told last, or that it said it had.
func (w *follower) storedAt() ports.Position {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stored
}

// told notes the position that the store has now.
func (w *follower) told(p ports.Position) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stored = p
}
