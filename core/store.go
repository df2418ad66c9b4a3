package core

import (
	"context"

	"holdfast/ports"
)

// Which store stands behind a follower. It can become another one while a read is under way: another database is assigned, or one is put
// in its place. What such a read says is not taken for an answer. A backend whose store became another one answers no read until it
// was asked for its position, so that it is enough to know of every such question when it began.

// storeCount counts the stores that the follower has had, as far as is known.
func (w *follower) storeCount() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stores
}

// same says whether no other store can have answered since one was counted. A look that is under way is waited for.
func (w *follower) same(ctx context.Context, store uint64) bool {
	w.mu.Lock()
	look := w.look
	w.mu.Unlock()
	if look != nil {
		select {
		case <-look:
		case <-ctx.Done():
			return false
		}
	}
	return w.storeCount() == store
}

// isKnown says whether the store is the one that the follower's position is of, also before a session has found that.
func (w *follower) isKnown(ctx context.Context) bool {
	w.mu.Lock()
	takes, met, known := w.cond.mode.takes(), w.met, w.mark.Position.StoreID
	w.mu.Unlock()
	if takes || !met {
		return takes
	}
	ctx, cancel := context.WithTimeout(ctx, followRead)
	defer cancel()
	slots := w.slots()
	if slots.take(ctx, ofRead) != nil {
		return false
	}
	defer slots.give()
	at, err := w.Store.Position(ctx, w.family.name)
	return err == nil && at.StoreID == known
}

// asksTwice is how often a store is asked in pairs whether it stays the same.
const asksTwice = 3

// settled asks where the store is. One that is not the store of before is asked again: a store that calls itself otherwise each
// time would be copied to for ever.
func (s *session) settled(ctx context.Context) (at ports.Position, err error) {
	s.w.mu.Lock()
	known := s.w.mark.Position.StoreID
	s.w.mu.Unlock()
	for range asksTwice {
		if at, err = s.w.Store.Position(ctx, s.w.family.name); err != nil || at.StoreID == known {
			return at, err
		}
		again, err := s.w.Store.Position(ctx, s.w.family.name)
		if err != nil || again.StoreID == at.StoreID {
			return again, err
		}
	}
	return at, &needError{
		ports.Errorf(ports.Conflict, s.w.Name, "calls itself another store each time it is asked"),
		"give the backend one store that keeps its id; see what docs/plugin-author.md says of positions",
	}
}
