package core

import (
	"context"
	"slices"
	"time"

	"holdfast/ports"
)

// A follower may have a retention of its own: what ended longer ago leaves it, while the local store keeps it. Such a follower is thin.
// It answers for a record that it has, and never says that there is none; lists, also of events, are answered by others. A copy from
// the beginning brings everything once more, and the next round removes it again.

// thinned lists the backends that have a retention of their own.
func (h *Host) thinned() (list []Follower) {
	for _, w := range h.follows {
		if w.Retention > 0 && !slices.ContainsFunc(list, func(c Follower) bool { return c.Name == w.Name }) {
			list = append(list, w.Follower)
		}
	}
	return list
}

// thinOut prunes a backend by its own retention, now and then, until ctx ends. Nobody waits for it.
func (h *Host) thinOut(ctx context.Context, c Follower) {
	tick := time.NewTicker(houseTick)
	defer tick.Stop()
	next := h.clock().Add(time.Minute)
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if h.clock().Before(next) || !h.mayThin(c.Name) {
			continue
		}
		removed, err := h.thinRound(ctx, c)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			h.log.Warn("prune a backend by its own retention", "name", c.Name, "error", err)
		case removed.Items+removed.Manifests > 0:
			h.log.Info("a backend was pruned by its own retention", "name", c.Name, "items", removed.Items, "events", removed.Events,
				"attempts", removed.Attempts, "manifests", removed.Manifests)
		}
		if err != nil || !removed.More {
			next = h.clock().Add(pruneEvery)
		}
	}
}

// mayThin says whether a backend has everything, of each family that it keeps, and nobody repairs it.
func (h *Host) mayThin(name string) bool {
	may := false
	for _, f := range ports.Families {
		w := h.follower(name, f)
		if w == nil {
			continue
		}
		w.mu.Lock()
		is, foreign := w.cond.mode == modeReady && w.held == 0, w.cond.foreign
		w.mu.Unlock()
		if !is && !foreign {
			return false
		}
		may = may || is
	}
	return may
}

// thinRound prunes for a while; More says that more is left.
func (h *Host) thinRound(ctx context.Context, c Follower) (sum ports.Pruned, err error) {
	ctx, cancel := context.WithTimeout(ctx, pruneLimit)
	defer cancel()
	before := h.clock().Add(-c.Retention)
	for {
		step, err := h.thinStep(ctx, c, before)
		sum.Items, sum.Events, sum.Attempts, sum.Manifests = sum.Items+step.Items, sum.Events+step.Events, sum.Attempts+step.Attempts, sum.Manifests+step.Manifests
		sum.More = step.More
		if err != nil && ctx.Err() != nil && sum.Items+sum.Manifests > 0 { // its time is over
			sum.More, err = true, nil
		}
		if err != nil || !step.More || ctx.Err() != nil || !h.mayThin(c.Name) {
			return sum, err
		}
	}
}

// thinStep is one call. That what ended before a time may be missing is noted for good before it, since readers must know; and again
// behind it, since a copy from the beginning may have begun meanwhile. A call that removed nothing leaves all as it was.
func (h *Host) thinStep(ctx context.Context, c Follower, before time.Time) (step ports.Pruned, err error) {
	pruner, ok := h.prunerOf(c)
	if !ok {
		return step, ports.Errorf(ports.Unimplemented, c.Name, "the backend cannot prune; take its retention away")
	}
	slots := h.budgetOf(c.Name)
	if err := slots.take(ctx, ofCatchUp); err != nil {
		return step, err
	}
	defer slots.give()
	was := map[*follower]int64{}
	for _, w := range h.follows {
		if w.Name == c.Name {
			was[w] = w.prunedMs()
			if err := w.notePruned(max(was[w], before.UnixMilli())); err != nil {
				return step, err
			}
		}
	}
	step, err = pruner.Prune(ctx, ports.PruneQuery{Before: before})
	for w, ms := range was {
		removed := step.Items + step.Events + step.Attempts
		if w.family.name == ports.Manifest {
			removed = step.Manifests
		}
		if removed > 0 || err != nil {
			ms = max(ms, before.UnixMilli())
		}
		w.mu.Lock()
		w.pruned += removed
		w.mu.Unlock()
		err = firstOf(err, w.notePruned(ms))
	}
	return step, err
}

func (h *Host) prunerOf(c Follower) (ports.Pruner, bool) {
	d, _ := h.backends[c.Name].description()
	return ports.As[ports.Pruner](c.Store, d)
}

// notePruned notes until when what ended may be missing.
func (w *follower) notePruned(ms int64) error {
	w.mu.Lock()
	if w.mark.PrunedMs != ms {
		w.mark.PrunedMs, w.dirty = ms, true
		w.stores++ // a read that is under way may have missed what is removed now
	}
	w.mu.Unlock()
	return w.remember(true)
}

func (w *follower) prunedMs() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mark.PrunedMs
}

// isThin says whether the follower may lack what the local store has, because its own retention removed it. What the local store need
// not have either does not count; a record of another host has that one's retention.
func (w *follower) isThin() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	until, keeps := w.mark.PrunedMs, w.host.retention
	if until == 0 {
		return false
	}
	return keeps == 0 || len(w.fresh.Seqs) > 1 || until > w.host.clock().Add(-keeps).UnixMilli()
}

// prunedUntil is the key of the time before which what ended may be missing; "" for none.
func (w *follower) prunedUntil() string {
	if ms := w.prunedMs(); ms != 0 {
		return ports.KeyOfTime(time.UnixMilli(ms))
	}
	return ""
}

// revive has work items copied whole that changed and may have been pruned: what is older of them did not change, and is not in the page.
func (s *session) revive(put []group) {
	until := s.w.prunedUntil()
	if until == "" {
		return
	}
	var back []group
	for _, g := range put {
		if row := &g.rows[0]; row.Kind == ports.KindItem && !row.Gone && row.First.EnqueuedKey < until {
			back = append(back, g)
		}
	}
	if len(back) == 0 {
		return
	}
	now := s.w.host.clock()
	s.w.keys.doubt(back, "it changed after it may have been pruned, and is copied whole", now)
	s.w.keys.over(back, now)
	s.next = time.Time{}
}
