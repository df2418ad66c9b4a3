package meadowproxy

import (
	"context"
	"fmt"
	"sync"
	"time"

	"holdfast/ports"
)

// How a seat comes to its binding, and how the binder is asked for one.

// watch follows the mesh until the backend ends.
func (b *binder) watch() {
	wait, since := watchAgain, uint64(0)
	for b.life.Err() == nil {
		known, err := b.mesh.Watch(b.life, since)
		if b.life.Err() != nil {
			return
		}
		if err == nil {
			b.saw(known, nil)
			wait, since = watchAgain, known.Version
			continue
		}
		b.saw(known, away("the host does not say which beacons are there: %v", err))
		pause(b.life, wait)
		wait, since = min(2*wait, watchRarely), 0
	}
}

const (
	watchAgain  = 100 * time.Millisecond // after a watch that failed, doubled up to
	watchRarely = 2 * time.Second
)

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// keep bootstraps a seat until it is done, and again whenever the databeacon forgot something, as long as some family wants it.
func (b *binder) keep(ctx context.Context, d *dock) {
	for wait, tries := b.first, 0; ; {
		bound, err := b.fitInTurn(ctx, d)
		if ctx.Err() != nil {
			return
		}
		if tries++; err == nil {
			tries = 0
		} else if tries >= obstructed {
			err = obstacle(err)
		}
		began := time.Now()
		b.mu.Lock()
		d.bound, d.err = bound, err
		b.handOut()
		b.tell()
		b.mu.Unlock()
		if err != nil {
			if d.rest(ctx, wait) {
				wait = b.first
			} else {
				wait = min(2*wait, lastPause)
			}
			continue
		}
		select {
		case <-d.again:
		case <-ctx.Done():
			return
		}
		if time.Since(began) >= lasting {
			wait = b.first
			continue
		}
		pause(ctx, wait)
		wait = min(2*wait, lastPause)
	}
}

// obstructed is how many bootstraps fail in a row until somebody is asked to look: one that fails once was too early, perhaps.
const obstructed = 3

// obstacle is the error of a bootstrap that fails again and again, and not for want of an answer.
func obstacle(err error) error {
	e := *ports.AsError(err)
	if code := ports.CodeOf(e.Cause); e.Field == ports.FieldBootstrap && code != ports.Deadline && code != ports.BackendGone && code != ports.Canceled {
		e.Field = ports.FieldObstacle
	}
	return &e
}

// rest waits, and says whether somebody wants the next try at once.
func (d *dock) rest(ctx context.Context, wait time.Duration) (wanted bool) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-d.again:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// fitInTurn bootstraps a seat when no other bootstrap is under way at its beacon.
func (b *binder) fitInTurn(ctx context.Context, d *dock) (*binding, error) {
	if !b.inTurn.take(ctx, d.beacon) {
		return nil, ctx.Err()
	}
	defer b.inTurn.give(d.beacon)
	return b.fit(ctx, d.seat, d.slots)
}

// turns let one at a time have each name.
type turns struct {
	mu sync.Mutex
	of map[string]chan struct{}
}

func (t *turns) named(name string) chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of[name] == nil {
		t.of[name] = make(chan struct{}, 1)
	}
	return t.of[name]
}

func (t *turns) take(ctx context.Context, name string) bool {
	select {
	case t.named(name) <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (t *turns) give(name string) { <-t.named(name) }

// repeat has the bootstrap run once more. The binding is nobody's until then.
func (d *dock) repeat() {
	d.bound = nil
	select {
	case d.again <- struct{}{}:
	default:
	}
}

// forgot is told that the databeacon does not know any more what a hold was made of.
func (b *binder) forgot(h *hold) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d := b.docks[h.bound.seat]; d != nil && d.bound == h.bound {
		d.repeat()
		b.handOut()
		b.tell()
	}
}

// await gives a family's hold. It waits for the first bootstrap of a seat until ctx ends, and for nothing else.
func (b *binder) await(ctx context.Context, f ports.Family) (*hold, error) {
	for {
		b.mu.Lock()
		h, changed := b.holds[f], b.changed
		waits, why := b.why(f)
		b.mu.Unlock()
		switch {
		case why == nil:
			return h, nil
		case !waits:
			return nil, why
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, why
		}
	}
}

// why says why a family has no hold, and whether that may be over soon.
func (b *binder) why(f ports.Family) (waits bool, err error) {
	if b.blind != nil {
		return !b.heard, b.blind
	}
	s, _, err := b.seatOf(f)
	if err != nil {
		return false, err
	}
	switch d := b.docks[s]; {
	case b.holds[f] != nil:
		return false, nil
	case d != nil && d.err != nil:
		return false, d.err
	}
	return true, bootstrapping(s, "tables and endpoints are made")
}

// now says whether a hold still is the one that its family has, as the mesh says at this moment.
func (b *binder) now(ctx context.Context, f ports.Family, h *hold) error {
	known, err := b.mesh.Watch(ctx, 0)
	if err != nil {
		return ports.Wrap(ports.Unavailable, "meadowproxy: watch", err)
	}
	b.mu.Lock()
	if known.Version > b.known.Version && b.blind == nil {
		b.known = known // the watch is told the same, or what came after it
		b.follow()
		b.tell()
	}
	same := b.holds[f] == h
	b.mu.Unlock()
	if !same {
		return errOver
	}
	return nil
}

// bootstrapping is the error of a seat that cannot be used yet.
func bootstrapping(s seat, format string, args ...any) *ports.Error {
	return &ports.Error{
		Code: ports.Unavailable, Op: fmt.Sprintf("meadowproxy: connection %d of %q", s.connection, s.beacon),
		Field: ports.FieldBootstrap, Message: fmt.Sprintf(format, args...),
	}
}
