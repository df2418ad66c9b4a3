package meadowproxy

import (
	"context"
	"slices"
	"sync"
	"time"

	"holdfast/ports"
)

// Which database keeps a family now. It follows from what the mesh says at this moment, and from nothing else:
//
//	Mesh.Watch --> Keeper(family) --> seat --> dock: bootstrap, until it is done --> binding --> hold, one for each family
//
// A seat is left as soon as the assignment, the session or the connection is another one. Then its holds are over, and nothing that
// was begun with one of them is sent any more.

// seat is one connection of one beacon in one of its sessions.
type seat struct {
	beacon     string // its Name
	session    uint64
	connection int64
}

// binding is a seat whose tables and endpoints are made.
type binding struct {
	seat
	way *way
	own ledger // of the database behind it, as it was when the bootstrap had ended
}

// hold is a binding as one family has it. What goes its way is refused once the hold is over.
type hold struct {
	*way
	bound *binding
	over  chan struct{}
}

// dock is a seat that some family shall have, and how far its bootstrap is.
type dock struct {
	seat
	slots int
	leave context.CancelFunc
	again chan struct{} // the bootstrap shall run once more

	bound *binding // nil until it is done, and while it is done again
	err   error    // why the last try failed; nil when none did
}

// binder keeps every family bound.
type binder struct {
	mesh   ports.Mesh
	fit    func(ctx context.Context, s seat, slots int) (*binding, error) // the bootstrap
	first  time.Duration                                                  // the first pause after one that failed
	life   context.Context
	work   *sync.WaitGroup
	inTurn turns

	mu       sync.Mutex
	heard    bool // the mesh has said anything yet
	known    ports.Beacons
	blind    error // why nobody knows who is there; nil when known is what is so
	assigned map[ports.Family]ports.Assignment
	docks    map[seat]*dock
	holds    map[ports.Family]*hold
	changed  chan struct{} // closed, and replaced, at every change
}

// Pauses of the binder.
const (
	firstPause = 250 * time.Millisecond // after a bootstrap that failed, doubled up to
	lastPause  = 15 * time.Second
	lasting    = 10 * time.Second // a binding that was lost before is made again after a pause as well
)

func newBinder(life context.Context, work *sync.WaitGroup, mesh ports.Mesh, fit func(context.Context, seat, int) (*binding, error)) *binder {
	return &binder{
		mesh: mesh, fit: fit, first: firstPause, life: life, work: work, inTurn: turns{of: map[string]chan struct{}{}},
		blind: errBlind, assigned: map[ports.Family]ports.Assignment{}, docks: map[seat]*dock{}, holds: map[ports.Family]*hold{}, changed: make(chan struct{}),
	}
}

// saw takes what the mesh said.
func (b *binder) saw(known ports.Beacons, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heard = true
	if b.blind = err; err == nil {
		b.known = known
		b.follow()
	}
	b.tell()
}

// tell wakes everybody who waits for a change.
func (b *binder) tell() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// follow leaves the seats that no family shall have any more, and takes those that one shall.
func (b *binder) follow() {
	wanted := map[seat]int{}
	for _, f := range ports.Families {
		s, slots, err := b.seatOf(f)
		if err == nil {
			wanted[s] = slots
		}
		a, was := b.known.Assigned[f], b.assigned[f]
		b.assigned[f] = a
		again := a.BeaconID == was.BeaconID && a.IDBeaconConnection == was.IDBeaconConnection && a.AssignedAt != was.AssignedAt
		if d := b.docks[s]; again && err == nil && d != nil {
			d.repeat() // somebody may have mended something before
		}
	}
	for s, d := range b.docks {
		if _, still := wanted[s]; !still {
			d.leave()
			delete(b.docks, s)
		}
	}
	for s, slots := range wanted {
		if b.docks[s] == nil && b.life.Err() == nil {
			ctx, leave := context.WithCancel(b.life)
			d := &dock{seat: s, slots: slots, leave: leave, again: make(chan struct{}, 1)}
			b.docks[s] = d
			b.work.Go(func() { b.keep(ctx, d) })
		}
	}
	b.handOut()
}

// handOut gives every family the binding of its seat, and ends the hold that it had of another one.
func (b *binder) handOut() {
	for _, f := range ports.Families {
		var is *binding
		if s, _, err := b.seatOf(f); err == nil && b.docks[s] != nil {
			is = b.docks[s].bound
		}
		switch was := b.holds[f]; {
		case was != nil && was.bound == is:
			continue
		case was != nil:
			close(was.over)
			delete(b.holds, f)
		}
		if is != nil {
			b.holds[f] = newHold(is)
		}
	}
}

func newHold(is *binding) *hold {
	w, over := is.way, make(chan struct{})
	return &hold{bound: is, over: over, way: &way{
		mesh: fence{Mesh: w.mesh, session: is.session, over: over}, beacon: w.beacon, connection: w.connection, engine: w.engine, bases: w.bases, columns: w.columns,
		slots: w.slots, timeout: w.timeout, known: w.known,
	}}
}

// fence sends everything to one session, and nothing once a hold is over.
type fence struct {
	ports.Mesh
	session uint64
	over    <-chan struct{} // nil for a bootstrap
}

func (f fence) Dispatch(ctx context.Context, w ports.Work) (ports.WorkAnswer, error) {
	select {
	case <-f.over:
		return ports.WorkAnswer{}, errOver
	default:
		w.Session = f.session
		return f.Mesh.Dispatch(ctx, w)
	}
}

// seatOf says which seat a family shall have, and how many works it takes at a time; else why there is none.
func (b *binder) seatOf(f ports.Family) (s seat, slots int, err error) {
	k, ok := b.known.Keeper(f)
	switch {
	case !ok:
		return s, 0, errUnassigned
	case k.Connection <= 0:
		e := ports.InField(ports.Invalid, "IDBeaconConnection", "%d is no connection; see `GET /beacon/connections` of the databeacon, and run `holdfast assign BEACON CONNECTION` again", k.Connection)
		return s, 0, e
	case k.Beacon == nil:
		return s, 0, away("the assigned beacon %q is not known to the host; start it, or assign another one", k.Named)
	case !slices.Contains(k.Beacon.Capabilities, ports.MeadowProxy):
		return s, 0, away("the assigned beacon %q does not offer %s; assign a databeacon", k.Beacon.Name, ports.MeadowProxy)
	case !k.Beacon.Online:
		return s, 0, away("the assigned beacon %q is not connected; start it, or assign another one", k.Beacon.Name)
	}
	return seat{k.Beacon.Name, k.Beacon.Session, k.Connection}, max(1, k.Beacon.MaxConcurrent), nil
}

func away(format string, args ...any) error {
	return ports.Errorf(ports.Unavailable, "meadowproxy", format, args...)
}

var (
	errBlind = away("the host has not said yet which beacons there are")
	errOver  = away("the assignment or the connection is another one meanwhile; nothing more was sent")

	errUnassigned = &ports.Error{
		Code: ports.Unavailable, Op: "meadowproxy", Field: ports.FieldAssignment,
		Message: "no databeacon is assigned; run `holdfast assign BEACON CONNECTION`, or give a databeacon the tag " + ports.ConnectionTag,
	}
)
