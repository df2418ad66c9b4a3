package core

import (
	"context"
	"time"

	"holdfast/ports"
)

// How a session begins: where the store is, whether what it holds is of this history, and from where it is copied.

// open finds the store and decides where to resume.
func (s *session) open(ctx context.Context) error {
	w := s.w
	if !w.host.link.upToDate(ctx, w.family) {
		return ctx.Err()
	}
	s.lives = w.health().Starts
	asked, cancel := context.WithTimeout(ctx, openDeadline)
	defer cancel()
	silent := time.AfterFunc(silentOpen, func() {
		w.tell(happening{kind: awaits, detail: "has not said for " + silentOpen.String() + " where its store is"})
	})
	position, err := s.settled(asked)
	silent.Stop()
	if err != nil {
		return err
	}
	w.answers(w.host.clock())
	if err := w.host.claim(w, position.StoreID); err != nil {
		return err
	}
	w.mu.Lock()
	known := w.mark
	known.Putting = w.doubtful // by a host before this one: what this one does it knows itself
	s.begin = startOf(known, w.met, position)
	if w.contained() { // what a host before this one sent has ended, or finds that the position moved
		s.begin.doubtful = false
	}
	if w.zero != "" {
		s.begin.from, s.begin.why = ports.Position{StoreID: position.StoreID}, w.zero
	}
	w.mu.Unlock()
	if err := s.checkHistory(ctx, position); err != nil {
		return err
	}
	if err := s.contended(position); err != nil {
		return err
	}
	if err := s.outwait(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	w.zero = ""
	if s.at = s.begin.from; isZero(s.at) {
		w.mark.Repaired, w.mark.PrunedMs = nil, 0
		if !s.begin.blank {
			w.mark.Spared = nil
		}
	}
	w.doubtful = s.begin.doubtful
	if id := known.Position.StoreID; id != "" && id != position.StoreID { // what was found out is about the store before
		w.mark.Doubtful, w.only = false, nil
	}
	w.mark.Position, w.mark.Putting, w.met, w.dirty = s.at, true, true, true
	w.stored, w.fresh = position, ports.Position{}
	w.mu.Unlock()
	if w.contained() && w.unanswered.Load() == 0 {
		w.keys.allOver()
	}
	if s.begin.why != "" {
		w.keys.retry("") // also what the store before refused
		if w.mayTell("again: "+s.begin.why, w.host.clock()) {
			w.host.log.Info("everything is copied again", "name", w.Name, "family", w.family.name, "reason", s.begin.why)
		}
	}
	return w.remember(true)
}

// checkHistory begins at zero where the store is at a position that the local store does not know: what it holds beyond the
// host's mark is of another history.
func (s *session) checkHistory(ctx context.Context, store ports.Position) error {
	for !isZero(store) && !isZero(s.begin.from) {
		_, err := s.changes(ctx, ports.ChangesQuery{Family: s.w.family.name, After: store, Limit: 1})
		switch {
		case err == nil || ctx.Err() != nil:
			return ctx.Err()
		case ports.CodeOf(err) == ports.Conflict:
			s.begin.from, s.begin.why = ports.Position{StoreID: store.StoreID}, err.Error()
		case ports.CodeOf(err).Permanent():
			return err
		}
	}
	return ctx.Err()
}

// outwait lets a beginning at zero wait until no Put of an earlier host can take effect any more: any key may be of it.
func (s *session) outwait(ctx context.Context) error {
	if !s.begin.doubtful || !isZero(s.begin.from) {
		return nil
	}
	if wait := s.w.host.started.Add(doubtFor).Sub(s.w.host.clock()); wait > 0 {
		s.w.tell(happening{kind: awaits, detail: "waits until no Put of the host before can take effect any more"})
		pause(ctx, wait)
	}
	s.begin.doubtful = false
	return ctx.Err()
}

// fromZero begins again when the local store does not know the position: it belongs to another history.
func (s *session) fromZero(ctx context.Context, why error) error {
	if isZero(s.at) {
		return why // zero is a position of every store
	}
	w := s.w
	if w.mayTell("from zero", w.host.clock()) {
		w.host.log.Info("everything is copied again", "name", w.Name, "family", w.family.name, "reason", why)
	}
	s.at = ports.Position{StoreID: s.at.StoreID}
	s.begin.from = s.at
	if err := s.outwait(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	w.mark.Position, w.mark.PrunedMs, w.fresh, w.dirty = s.at, 0, ports.Position{}, true
	w.mu.Unlock()
	w.keys.retry("")
	return w.remember(true)
}
