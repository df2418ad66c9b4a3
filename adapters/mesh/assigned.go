package mesh

import (
	"context"
	"maps"
	"sync"
	"time"

	"holdfast/ports"
)

// Assignments tell which beacon shall keep which family, and give a channel that is closed when that is another one; a core.Host is one.
type Assignments interface {
	Assigned() (now map[ports.Family]ports.Assignment, changed <-chan struct{})
}

// Assigned is the mesh as plugins see it: the beacons of another one, and what is assigned. Its versions are its own.
//
//	beacons of the hub, of a joined hub, or of both --+
//	                                                  +--> what is so now --> every Watch that waits
//	assignments --------------------------------------+
type Assigned struct {
	mesh   ports.Mesh // nil: no beacon can come
	source Assignments
	done   chan struct{}

	mu      sync.Mutex
	known   ports.Beacons
	changed chan struct{} // closed when known is another one
}

var _ ports.Mesh = (*Assigned)(nil)

// WithAssigned puts what is assigned before a mesh, which may be nil. It learns of changes while Run does its work.
func WithAssigned(mesh ports.Mesh, source Assignments) *Assigned {
	now, _ := source.Assigned()
	return &Assigned{mesh: mesh, source: source, done: make(chan struct{}), known: ports.Beacons{Version: 1, Assigned: now}, changed: make(chan struct{})}
}

// Run follows both sides until ctx ends; from then on a Watch fails.
func (a *Assigned) Run(ctx context.Context) {
	defer close(a.done)
	var both sync.WaitGroup
	both.Go(func() { a.followAssignments(ctx) })
	if a.mesh != nil {
		both.Go(func() { a.followBeacons(ctx) })
	}
	both.Wait()
}

func (a *Assigned) followAssignments(ctx context.Context) {
	for {
		now, changed := a.source.Assigned()
		a.learn(func(known *ports.Beacons) bool {
			same := maps.Equal(known.Assigned, now)
			known.Assigned = now
			return !same
		})
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// watchAgain is the pause after a mesh could not say who is there.
const watchAgain = time.Second

func (a *Assigned) followBeacons(ctx context.Context) {
	for since := uint64(0); ctx.Err() == nil; {
		beacons, err := a.mesh.Watch(ctx, since)
		if err != nil {
			select {
			case <-time.After(watchAgain):
			case <-ctx.Done():
			}
			continue
		}
		since = beacons.Version
		a.learn(func(known *ports.Beacons) bool {
			known.List = beacons.List
			return true
		})
	}
}

// learn changes what is known, and tells everybody when it is another thing.
func (a *Assigned) learn(change func(known *ports.Beacons) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if change(&a.known) {
		a.known.Version++
		close(a.changed)
		a.changed = make(chan struct{})
	}
}

// Now is what is so now. It waits for nobody.
func (a *Assigned) Now() ports.Beacons {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known
}

// Watch is ports.Mesh's.
func (a *Assigned) Watch(ctx context.Context, since uint64) (ports.Beacons, error) {
	for {
		a.mu.Lock()
		known, changed := a.known, a.changed
		a.mu.Unlock()
		if known.Version != since {
			return known, nil
		}
		select {
		case <-changed:
		case <-a.done:
			return ports.Beacons{}, errStopping
		case <-ctx.Done():
			return ports.Beacons{}, ports.Wrap(ports.CodeOf(ctx.Err()), "mesh", ctx.Err())
		}
	}
}

// Dispatch is ports.Mesh's.
func (a *Assigned) Dispatch(ctx context.Context, w ports.Work) (ports.WorkAnswer, error) {
	if a.mesh == nil {
		return ports.WorkAnswer{}, ports.Errorf(ports.Unavailable, "mesh", "no beacon is let in, and no hub is joined; a mesh block with a join_secret, a user or join says who may come")
	}
	return a.mesh.Dispatch(ctx, w)
}
