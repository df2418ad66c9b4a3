package mesh

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/ports"
)

// registry knows the beacons by Name: who is there, over which connection, and since when nobody heard of it. Like works it is
// pure: no sockets, no clock.
//
// A beacon has at most one session at a time. Registering over another connection begins the next one; older sockets of the
// Name stay open behind it, and the newest of them takes over when the current one closes, so that of two programs with one
// Name neither is left idle for ever.
type registry struct {
	limits  Limits
	byName  map[string]*beacon
	all     []*beacon // in the order of their first registration
	byID    map[string]*beacon
	byConn  map[uint64]*beacon
	bytes   int64
	session uint64 // the last one
	version uint64 // moves with everything that a Watch tells
}

// beacon is one Name.
type beacon struct {
	registration
	id           string
	sessionID    string // as its record shows it; "" is null
	session      uint64
	conns        []uint64 // its open sockets, the newest last
	current      uint64   // the one that is pushed to; 0: a poller, or nobody
	online       bool
	told         seldom // in the log, that it came
	registeredAt time.Time
	seenAt       time.Time
	leftAt       time.Time // one of several sockets said goodbye
	twinAt       time.Time // since when it has another socket than the one before, which stays open; zero: it has one, or that was told
}

func newRegistry(limits Limits) *registry {
	return &registry{limits: limits, byName: map[string]*beacon{}, byID: map[string]*beacon{}, byConn: map[uint64]*beacon{}, version: 1}
}

// register takes a registration in, over the socket conn or, with 0, over HTTP. dropped is a socket that the beacon has too
// many of; 0: none. It fails with Full.
func (g *registry) register(r registration, conn uint64, sessionID string, now time.Time) (b *beacon, dropped uint64, err error) {
	b = g.byName[r.name]
	switch {
	case b == nil:
		if b, err = g.admit(r, now); err != nil {
			return nil, 0, err
		}
	case g.bytes-b.size+r.size > g.limits.BeaconBytes:
		return nil, 0, ports.Errorf(ports.Full, "register", "the registrations of all beacons have %d bytes, the limit is %d", g.bytes, g.limits.BeaconBytes)
	default:
		g.reclaim(b, r)
	}
	switch {
	case conn != 0 && b.current != conn:
		b.conns = append(slices.DeleteFunc(b.conns, func(c uint64) bool { return c == conn }), conn)
		g.byConn[conn] = b
		if len(b.conns) > g.limits.SocketsPerBeacon {
			dropped = b.conns[0]
		}
		g.begin(b, conn)
	case conn == 0 && b.current == 0:
		g.begin(b, 0)
	}
	b.sessionID, b.seenAt, b.online = sessionID, now, true
	g.version++
	return b, dropped, nil
}

// admit makes a new beacon.
func (g *registry) admit(r registration, now time.Time) (*beacon, error) {
	if len(g.byName) >= g.limits.Beacons || g.bytes+r.size > g.limits.BeaconBytes {
		return nil, ports.Errorf(ports.Full, "register", "%d beacons are known, in %d bytes; the limits are %d and %d", len(g.byName), g.bytes, g.limits.Beacons, g.limits.BeaconBytes)
	}
	b := &beacon{registration: r, id: g.newID(r.name, now), registeredAt: now}
	b.joinSecret = ""
	g.byName[r.name], g.byID[b.id] = b, b
	g.all = append(g.all, b)
	g.bytes += r.size
	return b, nil
}

// reclaim takes over what a known beacon says anew.
func (g *registry) reclaim(b *beacon, r registration) {
	for name, value := range b.opaque {
		if _, said := r.opaque[name]; !said {
			r.opaque[name] = value
			r.size += int64(len(value))
		}
	}
	if r.tags == nil {
		r.tags = b.tags
	}
	g.bytes += r.size - b.size
	r.joinSecret = ""
	b.registration = r
}

// newID makes a BeaconID. Two names that look the same in it do not get the same one.
func (g *registry) newID(name string, now time.Time) string {
	for ms := now.UnixMilli(); ; ms++ {
		id := idOf(name) + strconv.FormatInt(ms, 10)
		if g.byID[id] == nil {
			return id
		}
	}
}

// idOf is how the BeaconIDs of a name begin, of whatever hub.
func idOf(name string) string {
	return "bcn-" + strings.Map(func(c rune) rune {
		switch {
		case c >= 'A' && c <= 'Z':
			return c + 'a' - 'A'
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			return c
		}
		return '-'
	}, name) + "-"
}

// begin starts a session.
func (g *registry) begin(b *beacon, conn uint64) {
	g.session++
	b.session, b.current = g.session, conn
	g.version++
}

// lost says that a socket is gone. moved: another one of the beacon took over; otherwise, when it was the current one, the
// beacon is Offline now. nil: nobody had registered over it.
func (g *registry) lost(conn uint64) (b *beacon, moved bool) {
	b = g.byConn[conn]
	if b == nil {
		return nil, false
	}
	delete(g.byConn, conn)
	b.conns = slices.DeleteFunc(b.conns, func(c uint64) bool { return c == conn })
	if b.current != conn {
		return b, false
	}
	if n := len(b.conns); n > 0 {
		g.begin(b, b.conns[n-1])
		return b, true
	}
	b.current = 0
	g.offline(b)
	return b, false
}

func (g *registry) offline(b *beacon) {
	b.online = false
	g.version++
}

// alive notes a sign of life, over the socket conn or, with 0, over HTTP. began: the beacon has a new session, since it had been
// Offline, or polls in place of its socket, or its socket speaks again.
func (g *registry) alive(b *beacon, conn uint64, polls bool, now time.Time) (began bool) {
	b.seenAt = now
	switch {
	case polls:
		began = !b.online || b.current != 0
		conn = 0
	case !b.online:
		began = true
	default:
		began = conn != 0 && b.current == 0
	}
	if began {
		g.begin(b, conn)
		b.online = true
	}
	return began
}

// silent are the connected beacons that gave no sign of life since a moment.
func (g *registry) silent(since time.Time) (list []*beacon) {
	for _, b := range g.byName {
		if b.online && b.seenAt.Before(since) {
			list = append(list, b)
		}
	}
	return list
}

// away are the Offline beacons that were last seen before a moment.
func (g *registry) away(since time.Time) (list []*beacon) {
	for _, b := range g.byName {
		if !b.online && b.seenAt.Before(since) {
			list = append(list, b)
		}
	}
	return list
}

// longestAway is the Offline beacon that was last seen first; nil: all are connected.
func (g *registry) longestAway() (oldest *beacon) {
	for _, b := range g.byName {
		if !b.online && (oldest == nil || b.seenAt.Before(oldest.seenAt)) {
			oldest = b
		}
	}
	return oldest
}

// forget removes a beacon; its sockets are nobody's from now on.
func (g *registry) forget(b *beacon) {
	for _, conn := range b.conns {
		delete(g.byConn, conn)
	}
	b.conns, b.current, b.online = nil, 0, false
	delete(g.byName, b.name)
	delete(g.byID, b.id)
	g.all = slices.DeleteFunc(g.all, func(other *beacon) bool { return other == b })
	g.bytes -= b.size
	g.version++
}
