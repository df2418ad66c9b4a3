package core

import (
	"fmt"
	"time"

	"holdfast/ports"
)

// A follower's store belongs to one host. Where another one follows into it as well, each finds the other's position in it, takes it
// for that of another history, and copies everything again, for ever. It looks like the work of a person who put another copy in its
// place; only that it happens again and again.

// rivalry is what a follower has seen of others that put to its store.
type rivalry struct {
	last string      // the position that was found last
	at   []time.Time // when such a one was found; not for the same one again
	said bool        // it is at this position that a person is waited for
}

const (
	rivalWindow = 10 * time.Minute
	rivalTimes  = 3
)

// found takes in a position that the store has from somebody else, and says whether there is no use in copying again.
func (r *rivalry) found(p ports.Position, now time.Time) bool {
	if text := fmt.Sprint(p.Epoch, p.Seqs); text != r.last {
		r.last = text
		r.at = append(r.at, now)
	}
	for !r.said && len(r.at) > 0 && now.Sub(r.at[0]) > rivalWindow {
		r.at = r.at[1:]
	}
	r.at = r.at[max(0, len(r.at)-rivalTimes):]
	r.said = r.said || len(r.at) == rivalTimes
	return r.said
}

// contended is an error when the store is put to by another host, again and again. Whoever asks that everything is copied again has
// mended it.
func (s *session) contended(store ports.Position) error {
	w := s.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.zero != "" {
		w.rivals = rivalry{}
	}
	same := w.met && store.StoreID != "" && store.StoreID == w.mark.Position.StoreID
	if !same || w.zero != "" || isZero(store) || store.Seqs[w.host.hostID] > 0 || !isZero(s.begin.from) {
		if w.rivals.said { // its own position is there again
			w.rivals = rivalry{}
		}
		return nil
	}
	if !w.rivals.found(store, w.host.clock()) {
		return nil
	}
	return &needError{
		ports.Errorf(ports.Conflict, w.Name, "another host follows into the same store; what each copies is taken for another store's by the other"),
		"give each host a database or schema of its own, then run `holdfast resync " + w.Name + "`",
	}
}
