package core

import (
	"context"
	"time"

	"holdfast/ports"
)

// Keys that are copied again, outside the order of changes: what a person wants tried, and what was in doubt for long enough.

// chores copies keys again that are due: what a person wants tried, and what was in doubt for long enough.
func (s *session) chores(ctx context.Context) error {
	w := s.w
	select {
	case <-w.poke:
		s.next = time.Time{}
	default:
	}
	for {
		now := w.host.clock()
		if now.Before(s.next) {
			return nil
		}
		keys, next := w.keys.due(now, choresAtOnce)
		s.next = now.Add(next)
		for _, key := range keys {
			if err := s.copyKey(ctx, key, ofCatchUp); err != nil {
				return err
			}
		}
		if len(keys) == 0 {
			return nil
		}
	}
}

// copyKey brings one key to its present state, and settles it. The local store's trouble leaves it for later.
func (s *session) copyKey(ctx context.Context, key string, u urgency) error {
	w := s.w
	sent := w.host.clock()
	w.keys.tried(key)
	q, put := ports.ChangesQuery{Family: w.family.name, Key: key}, false
	for done := false; !done; {
		page, err := s.changes(ctx, q)
		if err != nil {
			s.later(key)
			return ctx.Err()
		}
		done = page.End != nil
		var at *ports.Position
		if done && !isZero(s.at) {
			at = &s.at
		}
		groups := groupRows(page.Rows)
		for i := range groups {
			groups[i].more = !done
		}
		if err := s.putAll(ctx, groups, u, at); err != nil {
			if !w.keys.failed(key) {
				w.keys.retry(key)
			}
			return err
		}
		if w.keys.failed(key) {
			return nil // refused again, or for another reason
		}
		put = put || len(page.Rows) > 0
		q.After = page.Through
	}
	if put {
		s.overtaken = true
		w.repaired(s.at)
	}
	return w.keys.settle(sent, key)
}

// later has a key copied in a moment.
func (s *session) later(key string) {
	s.w.keys.retry(key)
	s.next = s.w.host.clock().Add(othersEvery)
}

// repaired notes that a key was put outside the order of changes.
func (w *follower) repaired(at ports.Position) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mark.Repaired, w.dirty = at.Seqs, true
}
