package core

import (
	"context"
	"time"

	"holdfast/ports"
)

// rest is the follower at the head: it has everything, and waits for more.
func (s *session) rest(ctx context.Context, end *ports.Position) error {
	w := s.w
	w.mu.Lock()
	if w.fresh = *end; end.Seqs == nil {
		w.fresh.Seqs = map[string]uint64{}
	}
	w.mark.FreshMs, w.dirty = w.host.clock().UnixMilli(), true
	w.mu.Unlock()
	w.tell(happening{kind: caughtUp})
	mine, look := w.host.hostID, w.host.clock().Add(strangerEvery)
	if len(end.Seqs) > 1 {
		look = w.host.clock().Add(othersEvery)
	}
	if s.untold() {
		look = w.host.clock().Add(tellAfter)
	}
	for {
		moved := w.family.moved.wait()
		now := w.host.clock()
		if w.family.committed.Load() > end.Seqs[mine] {
			return nil
		}
		if !now.Before(look) {
			return s.tellStore(ctx)
		}
		timer := time.NewTimer(max(min(s.next.Sub(now), look.Sub(now)), 0))
		select {
		case <-moved:
		case <-w.poke:
			s.next = time.Time{}
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := w.remember(false); err != nil {
			return err
		}
		if err := s.chores(ctx); err != nil {
			return err
		}
	}
}

// tellStore tells the store a position that was moved without a Put, so that its next session need not go back.
func (s *session) tellStore(ctx context.Context) error {
	if !s.untold() {
		return nil
	}
	at := s.at
	return s.putChunk(ctx, chunk{}, ofHead, &at)
}

func (s *session) untold() bool {
	return s.at.StoreID != "" && !isZero(s.at) && !s.w.storedAt().Covers(s.at)
}
