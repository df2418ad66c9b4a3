package core

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"unicode/utf8"

	"holdfast/ports"
)

// Assignment: which beacon, and which of its connections, shall keep a family behind a backend of the kind meadowproxy. It is a
// person's word and stands until the next one, whoever is connected meanwhile.
//
//	Assign --> state --> followers begin anew --> plugins are told (Assigned) --> followers are probed

// keeperKind is the kind of the backends that an assignment is for.
const keeperKind = "meadowproxy"

// assignments are those of now.
type assignments struct {
	order   sync.Mutex // one change at a time
	mu      sync.Mutex
	now     map[ports.Family]ports.Assignment
	changed chan struct{} // closed when they change
}

func (a *assignments) load(state ports.State) error {
	a.now, a.changed = map[ports.Family]ports.Assignment{}, make(chan struct{})
	for _, f := range ports.Families {
		to, err := state.Assignment(f)
		if err != nil {
			return err
		}
		if to != nil {
			a.now[f] = *to
		}
	}
	return nil
}

// set makes an assignment known; nil for none.
func (a *assignments) set(f ports.Family, to *ports.Assignment) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := maps.Clone(a.now) // others may still look at the one before
	if delete(next, f); to != nil {
		next[f] = *to
	}
	close(a.changed)
	a.now, a.changed = next, make(chan struct{})
}

// Assigned tells what is assigned, and gives a channel that is closed when it is not so any more. Nobody may change the map.
func (h *Host) Assigned() (now map[ports.Family]ports.Assignment, changed <-chan struct{}) {
	h.assignments.mu.Lock()
	defer h.assignments.mu.Unlock()
	return h.assignments.now, h.assignments.changed
}

// maxBeaconName bounds the name of a beacon in an assignment, in bytes.
const maxBeaconName = 512

// Assign has families, or all when none is named, kept by a connection of a beacon, given by its Name or its id. The beacon need not be
// there yet. It is durable when Assign returns. To assign what is assigned changes nothing, but has it tried at once. The error
// is Invalid and names the field.
func (h *Host) Assign(families []ports.Family, beacon string, connection int64) error {
	switch {
	case beacon == "":
		return ports.InField(ports.Invalid, "BeaconID", "is missing; it is the Name of a beacon, or its id")
	case len(beacon) > maxBeaconName:
		return ports.OverLimit("BeaconID", "bytes", maxBeaconName, int64(len(beacon)))
	case !utf8.ValidString(beacon):
		return ports.InField(ports.Invalid, "BeaconID", "is not valid UTF-8")
	case connection <= 0:
		return ports.InField(ports.Invalid, "IDBeaconConnection", "is %d; connections of a databeacon count from 1, its own list shows them", connection)
	}
	known := h.connected()
	// One that is connected is known by its Name, which it keeps when its id changes.
	if b := known.Named(beacon); b != nil {
		beacon = b.Name
	}
	return h.eachFamily(families, func(f ports.Family, was *ports.Assignment) error {
		to := &ports.Assignment{BeaconID: beacon, IDBeaconConnection: connection, AssignedAt: ports.FormatMs(h.clock().UnixMilli())}
		if was != nil && was.IDBeaconConnection == connection {
			if was.BeaconID == beacon {
				return nil
			}
			if before := known.Named(was.BeaconID); before != nil && before.Name == beacon {
				to.AssignedAt = was.AssignedAt // the same one under its better name
				return h.reassign(f, to, false)
			}
		}
		return h.reassign(f, to, true)
	})
}

// Unassign has families, or all when none is named, kept by no beacon, but one that offers itself by its tag.
func (h *Host) Unassign(families []ports.Family) error {
	return h.eachFamily(families, func(f ports.Family, was *ports.Assignment) error {
		if was == nil {
			return nil
		}
		return h.reassign(f, nil, true)
	})
}

func (h *Host) eachFamily(families []ports.Family, do func(f ports.Family, was *ports.Assignment) error) error {
	h.assignments.order.Lock()
	defer h.assignments.order.Unlock()
	if len(families) == 0 {
		families = ports.Families
	}
	for _, f := range families {
		now, _ := h.Assigned()
		var was *ports.Assignment
		if a, ok := now[f]; ok {
			was = &a
		}
		if err := do(f, was); err != nil {
			return err
		}
	}
	for _, w := range h.follows {
		if w.Kind == keeperKind && slices.Contains(families, w.family.name) {
			w.tell(happening{kind: poked})
			w.probeNow()
		}
	}
	return nil
}

// reassign remembers an assignment and makes it known. With anew, those who keep the family begin anew before their plugins hear of it, so
// that nothing is read from a store that nobody has looked at.
func (h *Host) reassign(f ports.Family, to *ports.Assignment, anew bool) error {
	if err := h.state.SetAssignment(f, to); err != nil {
		return err
	}
	why := ""
	if to == nil {
		why = nobodyAssigned
	}
	for _, w := range h.follows {
		if anew && w.Kind == keeperKind && w.family.name == f {
			w.tell(happening{kind: assigned, detail: why})
			w.backend.claimStore(f, "") // another backend may be assigned to it now
		}
	}
	h.assignments.set(f, to)
	return nil
}

const nobodyAssigned = "no beacon is assigned"

// probeNow has a follower probed without waiting for its turn.
func (w *follower) probeNow() { notify(w.now) }

// connected tells which beacons are there now.
func (h *Host) connected() ports.Beacons {
	if h.beacons == nil {
		return ports.Beacons{}
	}
	return h.beacons()
}

// AssignmentStatus is how it stands with the beacon that shall keep a family.
type AssignmentStatus struct {
	Family             ports.Family
	State              string // of the backend that goes to it: unassigned, waiting-for-beacon, bootstrapping, bootstrapped or error
	Backend            string `json:",omitempty"` // its name in the configuration
	BeaconID           string `json:",omitempty"` // the beacon's Name, or what it was assigned by
	IDBeaconConnection int64  `json:",omitempty"`
	AssignedAt         string `json:",omitempty"`
	Tagged             bool   `json:",omitempty"` // not assigned: it offers itself by its tag
	BootstrappedAt     string `json:",omitempty"` // when it first took changes since
	Detail             string `json:",omitempty"` // what is so, or wrong, and
	Remedy             string `json:",omitempty"` // what helps; "" while nothing is to be done
}

// Assignments tell it of every family. They ask nobody and never wait.
func (h *Host) Assignments() (list []AssignmentStatus) {
	known := h.connected()
	known.Assigned, _ = h.Assigned()
	for _, f := range ports.Families {
		list = append(list, h.keepingOf(f, &known))
	}
	return list
}

func (h *Host) keepingOf(f ports.Family, known *ports.Beacons) AssignmentStatus {
	s := AssignmentStatus{Family: f, State: string(modeUnassigned.public())}
	k, some := known.Keeper(f)
	if some {
		s.BeaconID, s.IDBeaconConnection, s.Tagged, s.AssignedAt = k.Named, k.Connection, k.Tagged, known.Assigned[f].AssignedAt
		if k.Beacon != nil {
			s.BeaconID = k.Beacon.Name
		}
	}
	w := h.keeperOf(f)
	switch {
	case w == nil && !some:
		return s
	case w == nil && k.Tagged: // it offers itself, and nobody asked for it
		s.Detail = noKeeper
		return s
	case w == nil:
		s.State, s.Detail, s.Remedy = string(needsOne), noKeeper, addKeeper
		return s
	}
	s.Backend = w.Name
	w.mu.Lock()
	at, opened := w.cond, w.opened
	w.mu.Unlock()
	if !some {
		return s
	}
	s.State, s.Detail, s.Remedy = string(at.mode.public()), at.detail, at.remedy
	if at.mode == modeUnassigned && !at.foreign { // its plugin has not heard of it yet
		s.State, s.Detail = string(waiting), "assigned just now"
	}
	if !opened.IsZero() {
		s.BootstrappedAt = ports.FormatMs(opened.UnixMilli())
	}
	if detail, remedy := obstacle(&k); detail != "" && s.Remedy == "" && s.State != string(ready) {
		s.Detail, s.Remedy = detail, remedy
	}
	return s
}

const (
	noKeeper  = "no backend of the kind meadowproxy is configured"
	addKeeper = "add the block `backend \"meadowproxy\" \"databeacon\" {}` to the configuration and start the host again"
)

// keeperOf is the follower that goes to the assigned beacon: of several, one that is well; nil: there is none.
func (h *Host) keeperOf(f ports.Family) *follower {
	var all []*follower
	for _, w := range h.follows {
		if w.Kind == keeperKind && w.family.name == f {
			all = append(all, w)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return slices.MinFunc(all, func(a, b *follower) int {
		ails := func(w *follower) int {
			if w.mode().ails() {
				return 1
			}
			return 0
		}
		return cmp.Compare(ails(a), ails(b))
	})
}

// obstacle is what is wrong with the beacon itself, and what helps.
func obstacle(k *ports.Keeper) (detail, remedy string) {
	switch {
	case k.Beacon == nil:
		return "no beacon called " + k.Named + " has registered", "start it and connect it to this host, or assign another one with `holdfast assign`"
	case !k.Beacon.Online:
		return "the beacon " + k.Beacon.Name + " is not connected", "start it, or connect it to this host again"
	case !slices.Contains(k.Beacon.Capabilities, ports.MeadowProxy):
		return "the beacon " + k.Beacon.Name + " does not offer the capability " + ports.MeadowProxy, "assign a databeacon with `holdfast assign`, or enable its access to Ultravisor"
	case k.Connection <= 0:
		return "the connection is not one of a databeacon", "assign one with `holdfast assign`; they count from 1"
	}
	return "", ""
}
