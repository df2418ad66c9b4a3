package beacon

import (
	"context"
	"sync"
	"time"

	"holdfast/ports"
)

// fleet knows who is there: one goroutine watches the mesh, and everybody looks at what it saw last.
type fleet struct {
	mesh ports.Mesh

	mu    sync.Mutex
	known ports.Beacons
	err   error         // why nobody knows; nil while known is what is so
	first chan struct{} // closed when there is an answer of either kind
}

const (
	watchAgain  = 100 * time.Millisecond // after a watch that failed, doubled up to
	watchRarely = 2 * time.Second
)

func newFleet(mesh ports.Mesh) *fleet { return &fleet{mesh: mesh, first: make(chan struct{})} }

// run watches until ctx ends.
func (f *fleet) run(ctx context.Context) {
	wait, since := watchAgain, uint64(0)
	for ctx.Err() == nil {
		known, err := f.mesh.Watch(ctx, since)
		if ctx.Err() != nil {
			return
		}
		f.saw(known, err)
		if err == nil {
			wait, since = watchAgain, known.Version
			continue
		}
		pause(ctx, wait)
		wait, since = min(2*wait, watchRarely), 0
	}
}

func (f *fleet) saw(known ports.Beacons, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err = err; err == nil {
		f.known = known
	}
	select {
	case <-f.first:
	default:
		close(f.first)
	}
}

// look gives who is there, as far as was seen.
func (f *fleet) look(ctx context.Context) ([]ports.Beacon, error) {
	select {
	case <-f.first:
	case <-ctx.Done():
		return nil, ports.Wrap(ports.CodeOf(ctx.Err()), "beacon: watch", ctx.Err())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, ports.Errorf(ports.Unavailable, "beacon", "the host does not say which beacons are there: %v", f.err)
	}
	return f.known.List, nil
}

// ask gives who is there at this moment.
func (f *fleet) ask(ctx context.Context) ([]ports.Beacon, error) {
	known, err := f.mesh.Watch(ctx, 0)
	if err != nil {
		return nil, ports.Wrap(ports.Unavailable, "beacon: watch", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if known.Version >= f.known.Version { // the watch may have seen a later one meanwhile
		f.known = known
	}
	return known.List, nil
}

func find(list []ports.Beacon, name string) *ports.Beacon {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
