package stock

// Databeacons of this process behind ports.Mesh, without a hub and without a wire.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"holdfast/ports"
)

// slots is how many works a databeacon has in hand at a time.
const slots = 3

// Mesh is a ports.Mesh of databeacons in this process. Close it when nobody uses it any more.
type Mesh struct {
	mu       sync.Mutex
	version  uint64
	sessions uint64
	changed  chan struct{}
	berths   []*berth // in the order in which they first registered
	assigned map[ports.Family]ports.Assignment
	all      sync.WaitGroup
	works    uint64
}

type berth struct {
	d      *Databeacon
	beacon ports.Beacon
	left   chan struct{} // closed when the session ends
	slots  chan struct{}
	extra  chan struct{} // what catching up may hold of the slots: all but the last
}

// NewMesh makes a mesh in which nobody is.
func NewMesh() *Mesh {
	return &Mesh{version: 1, changed: make(chan struct{}), assigned: map[ports.Family]ports.Assignment{}}
}

// change does f and wakes who watches.
func (m *Mesh) change(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
	m.version++
	close(m.changed)
	m.changed = make(chan struct{})
}

func (m *Mesh) berth(name string) *berth {
	for _, b := range m.berths {
		if b.beacon.Name == name {
			return b
		}
	}
	return nil
}

// Connect registers a databeacon; again, it has a new session and a new id.
func (m *Mesh) Connect(d *Databeacon) {
	m.change(func() {
		b := m.berth(d.Name())
		if b == nil {
			b = &berth{}
			m.berths = append(m.berths, b)
		}
		b.leave()
		m.sessions++
		now := time.Now()
		b.d, b.left, b.slots, b.extra = d, make(chan struct{}), make(chan struct{}, slots), make(chan struct{}, slots-1)
		b.beacon = ports.Beacon{
			Name: d.Name(), ID: fmt.Sprintf("bcn-%s-%d", d.Name(), now.UnixMilli()+int64(m.sessions)), Session: m.sessions, Online: true,
			Capabilities: d.Capabilities(), MaxConcurrent: slots, RegisteredAt: now, SeenAt: now,
		}
	})
}

func (b *berth) leave() {
	if b.beacon.Online {
		close(b.left)
		b.beacon.Online = false
	}
}

// Disconnect breaks a databeacon's connection: works that it has in hand go on, and nobody hears of their end.
func (m *Mesh) Disconnect(name string) {
	m.change(func() {
		if b := m.berth(name); b != nil {
			b.leave()
		}
	})
}

// Assign says which beacon, and which connection of it, shall keep a family.
func (m *Mesh) Assign(f ports.Family, beacon string, connection int64) {
	m.change(func() {
		m.assigned[f] = ports.Assignment{
			BeaconID: beacon, IDBeaconConnection: connection, AssignedAt: time.Now().UTC().Format(isoMillis),
		}
	})
}

// Unassign ends an assignment.
func (m *Mesh) Unassign(f ports.Family) { m.change(func() { delete(m.assigned, f) }) }

// Close waits for the works that nobody waits for any more.
func (m *Mesh) Close() { m.all.Wait() }

// Watch is ports.Mesh's.
func (m *Mesh) Watch(ctx context.Context, since uint64) (ports.Beacons, error) {
	for {
		m.mu.Lock()
		now := ports.Beacons{Version: m.version, Assigned: maps.Clone(m.assigned)}
		for _, b := range m.berths {
			now.List = append(now.List, b.beacon)
		}
		changed := m.changed
		m.mu.Unlock()
		if now.Version != since {
			return now, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ports.Beacons{}, ctx.Err()
		}
	}
}

// Dispatch is ports.Mesh's.
func (m *Mesh) Dispatch(ctx context.Context, w ports.Work) (ports.WorkAnswer, error) {
	if _, limited := ctx.Deadline(); !limited {
		return ports.WorkAnswer{}, ports.Errorf(ports.Invalid, "mesh: dispatch", "a work needs a deadline")
	}
	m.mu.Lock()
	var b *berth
	for _, one := range m.berths {
		if one.beacon.Online && (w.Beacon == one.beacon.Name || w.Beacon == "" && slices.Contains(one.beacon.Capabilities, w.Capability)) {
			b = one
			break
		}
	}
	if b == nil {
		m.mu.Unlock()
		return ports.WorkAnswer{}, ports.Errorf(ports.Unavailable, "mesh: dispatch", "the beacon %q is not there", w.Beacon)
	}
	if w.Session != 0 && w.Session != b.beacon.Session {
		m.mu.Unlock()
		return ports.WorkAnswer{}, ports.Errorf(ports.Unavailable, "mesh: dispatch", "the beacon %q has another session", b.beacon.Name)
	}
	m.works++
	hash := fmt.Sprintf("wi-unknown-unknown-%d-%d", time.Now().UnixMilli(), m.works)
	d, name, left, needed := b.d, b.beacon.Name, b.left, []chan struct{}{b.slots}
	if w.Class == ports.ClassCatchUp {
		needed = []chan struct{}{b.extra, b.slots}
	}
	m.mu.Unlock()
	for i, hold := range needed {
		if err := take(ctx, hold, left, name); err != nil {
			release(needed[:i])
			return ports.WorkAnswer{}, err
		}
	}
	answered := make(chan ports.WorkAnswer, 1)
	m.all.Go(func() {
		defer release(needed)
		outputs, failure := d.Do(context.WithoutCancel(ctx), w.Capability, w.Action, w.Settings)
		answered <- ports.WorkAnswer{WorkItemHash: hash, Beacon: name, Outputs: outputs, Failure: failure}
	})
	select {
	case a := <-answered:
		return a, nil
	case <-left:
		return ports.WorkAnswer{}, ports.Errorf(ports.BackendGone, "mesh: dispatch", "the connection of the beacon %q broke while it worked", name)
	case <-ctx.Done():
		return ports.WorkAnswer{}, ports.Errorf(ports.Deadline, "mesh: dispatch", "the beacon %q gave no answer in time", name)
	}
}

// take waits for a slot.
func take(ctx context.Context, hold chan struct{}, left chan struct{}, name string) error {
	select {
	case hold <- struct{}{}:
		return nil
	case <-left:
		return ports.Errorf(ports.Unavailable, "mesh: dispatch", "the beacon %q left before it was sent the work", name)
	case <-ctx.Done():
		return ports.Errorf(ports.Deadline, "mesh: dispatch", "the work was not sent to the beacon %q in time", name)
	}
}

func release(held []chan struct{}) {
	for _, hold := range held {
		<-hold
	}
}

var _ ports.Mesh = (*Mesh)(nil)
