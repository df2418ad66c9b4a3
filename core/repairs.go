package core

import (
	"context"
	"sync"
	"time"

	"holdfast/ports"
)

// What the repairs share: who runs into which backend, how they stop a follower meanwhile, and how they tell how far they are.

// repairs knows the other backends, and what is under way.
type repairs struct {
	others   []Follower
	piece    int // records in a piece of a walk; 0 means walkLimit
	suspects int // keys that a comparison remembers as different; 0 means maxSuspects
	listed   int // differences that an outcome lists; 0 means maxDifferences

	mu   sync.Mutex
	busy map[string]string // by the backend that is written to: what does
}

func (r *repairs) store(name string) ports.Backend {
	for _, f := range r.others {
		if f.Name == name {
			return f.Store
		}
	}
	return nil
}

// begin reserves a backend for one operation that writes to it, until end.
func (r *repairs) begin(op, name string) (end func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if other, is := r.busy[name]; is {
		return nil, ports.Errorf(ports.Conflict, op, "%s into %s is under way; begin again when it has ended", other, name)
	}
	if r.busy == nil {
		r.busy = map[string]string{}
	}
	r.busy[name] = op
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.busy, name)
	}, nil
}

// holdAll stops a backend's following of some families.
func (h *Host) holdAll(ctx context.Context, name string, families []ports.Family) (release func(), err error) {
	var held []func()
	release = func() {
		for _, r := range held {
			r()
		}
	}
	for _, f := range families {
		r, err := h.holdFollower(ctx, name, f)
		if err != nil {
			release()
			return nil, err
		}
		held = append(held, r)
	}
	return release, nil
}

// doubt notes that a Put of a repair ended without an answer: it may still take effect, over what the follower puts next, so
// the follower puts these keys again once it cannot any more.
func (h *Host) doubt(name string, f ports.Family, rows []ports.Row, err error) error {
	w := h.follower(name, f)
	if w == nil || len(rows) == 0 || !unknownOutcome(err) {
		return nil
	}
	w.keys.doubt(groupRows(rows), "a Put of a repair ended without an answer: "+err.Error(), h.clock())
	return w.keys.keep()
}

// tellEvery is how often a long operation tells how far it is.
const tellEvery = 200 * time.Millisecond

// teller tells how far a long operation is, now and then and at its end. It is used from many goroutines; tell is called
// from one at a time.
type teller struct {
	tell func(Progress)
	mu   sync.Mutex
	far  Progress
	last time.Time
}

func newTeller(tell func(Progress)) *teller { return &teller{tell: tell, last: time.Now()} }

func (t *teller) enter(f ports.Family) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.far.Family = f
}

func (t *teller) add(looked, changed int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.far.Looked += looked
	t.far.Changed += changed
	if now := time.Now(); now.Sub(t.last) >= tellEvery {
		t.last = now
		t.say()
	}
}

func (t *teller) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.say()
}

func (t *teller) say() {
	if t.tell != nil {
		t.tell(t.far)
	}
}

// interrupted is the error of a long operation whose context ended; next says what to do then. Other errors stay.
func interrupted(ctx context.Context, op, next string, err error) error {
	if err == nil || ctx.Err() == nil {
		return ports.Wrap(ports.Internal, op, err)
	}
	return ports.Errorf(ports.CodeOf(ctx.Err()), op, "was interrupted; %s", next)
}

// inLanes hands work out to a few goroutines, until all is done or one of them fails.
func inLanes[T any](ctx context.Context, lanes int, give func(hand func(T) error) error, do func(ctx context.Context, work T) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	line := make(chan T)
	var wg sync.WaitGroup
	for range lanes {
		wg.Go(func() {
			for work := range line {
				if ctx.Err() != nil {
					continue
				}
				if err := do(ctx, work); err != nil {
					cancel(err)
				}
			}
		})
	}
	err := give(func(work T) error {
		select {
		case line <- work:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	close(line)
	wg.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
