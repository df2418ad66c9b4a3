package mesh

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/hashicorp/go-hclog"

	"holdfast/ports"
)

// Hub is one hub of a mesh: an http.Handler for beacons and a ports.Mesh for the host.
type Hub struct {
	name   string
	core   Core
	limits Limits
	timing Timing
	clock  func() time.Time
	log    hclog.Logger
	access *access
	lanes  *lanes
	record *recorder
	counts counts

	mu       sync.Mutex
	registry *registry
	works    *works
	orphans  map[string]*work // of an earlier start, by hash; nil: none are known yet, or no more
	sockets  map[uint64]*socket
	nextConn uint64
	changed  chan struct{} // closed when the registry's version moves
	version  uint64        // the one that was told
	closed   bool
	warns    warnings

	closing chan struct{}
	ended   sync.WaitGroup // of sockets
	callers atomic.Int64   // of the dispatch route
}

// counts are what happened since the start, for Status.
type counts struct {
	completed, failed, timedOut, broken, late, unknown, refusedFrames atomic.Int64
}

// New makes a Hub. It refuses to be open to other machines. A hub does what others ask of it from now on; what happens by the
// clock needs Run.
func New(c Config) (*Hub, error) {
	access, err := newAccess(c)
	if err != nil {
		return nil, err
	}
	h := &Hub{
		name: c.Name, core: c.Core, limits: c.Limits.withUsual(), timing: c.Timing.withUsual(), clock: c.Clock, log: c.Logger, access: access,
		lanes: newLanes(), sockets: map[uint64]*socket{}, changed: make(chan struct{}), version: 1, closing: make(chan struct{}),
	}
	if h.clock == nil {
		h.clock = time.Now
	}
	if h.log == nil {
		h.log = hclog.NewNullLogger()
	}
	h.registry, h.works = newRegistry(h.limits), newWorks(h.limits, h.timing)
	h.record = newRecorder(c.Core, h.log)
	return h, nil
}

// tickEvery is how often the clock is looked at.
const tickEvery = time.Second

// Run lets silent beacons go Offline, gives slots back, and records what outside callers have done, also what an earlier start
// left open, until ctx ends. Then it
// closes every socket, answers every caller, and records what is left to record. It returns nil.
func (h *Hub) Run(ctx context.Context) error {
	recorded := make(chan struct{})
	go func() {
		h.record.run()
		close(recorded)
	}()
	adopted := make(chan struct{})
	orphanage, leave := context.WithCancel(ctx)
	go func() {
		h.endOrphans(orphanage)
		close(adopted)
	}()
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			h.tick()
			continue
		case <-ctx.Done():
		case <-h.closing:
		}
		break
	}
	leave()
	<-adopted
	h.Close()
	h.record.close()
	<-recorded
	return nil
}

// step does something to the hub's state, and then what follows from it.
func (h *Hub) step(do func(now time.Time)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	do(h.clock())
	h.carryOut()
}

// carryOut does what the state machine asks for. Nothing in it waits.
func (h *Hub) carryOut() {
	e := h.works.take()
	for _, w := range e.sent {
		h.record.started(w, h.registry.byName[w.berth.name])
	}
	for _, w := range e.answered {
		h.count(w)
		h.record.finished(w)
		close(w.answered)
	}
	for _, w := range e.push {
		if s := h.sockets[w.conn]; s != nil && w.state == handed {
			s.put(outgoing{work: w})
		}
	}
	if v := h.registry.version; v != h.version {
		h.version = v
		close(h.changed)
		h.changed = make(chan struct{})
	}
}

func (h *Hub) count(w *work) {
	switch ports.CodeOf(w.answer.err) {
	case "":
		if w.answer.Failure != "" {
			h.counts.failed.Add(1)
		} else {
			h.counts.completed.Add(1)
		}
	case ports.Deadline:
		h.counts.timedOut.Add(1)
	default:
		h.counts.broken.Add(1)
	}
}

// tick is what happens by the clock.
func (h *Hub) tick() {
	var mute, strange []*socket
	h.step(func(now time.Time) {
		for _, b := range h.registry.silent(now.Add(-h.timing.Silence)) {
			for _, conn := range b.conns {
				if !h.works.busy(b.name, conn) {
					mute = append(mute, h.sockets[conn])
				}
			}
			if b.current == 0 {
				h.registry.offline(b)
				h.works.silent(b.name, now)
				h.log.Info("a beacon is silent", "beacon", b.name, "seen", b.seenAt)
			}
		}
		for _, b := range h.registry.away(now.Add(-h.timing.Forget)) {
			h.forget(b, now)
		}
		h.works.pass(now)
		for _, s := range h.sockets {
			if h.registry.byConn[s.id] == nil && now.Sub(s.opened) > h.timing.Register {
				strange = append(strange, s)
			}
		}
	})
	for _, s := range mute {
		s.end() // its reader says the rest
	}
	for _, s := range strange {
		s.letGo(websocket.StatusPolicyViolation)
	}
	h.access.sweep(h.clock())
}

// join makes a registration known to both halves of the state. welcome is called before the beacon gets work. It is called
// in a step.
func (h *Hub) join(r registration, conn uint64, session string, now time.Time, welcome func(*beacon)) error {
	if old := h.registry.byConn[conn]; old != nil && old.name != r.name {
		h.lost(conn, now)
	}
	if h.registry.byName[r.name] == nil && len(h.registry.byName) >= h.limits.Beacons {
		if oldest := h.registry.longestAway(); oldest != nil {
			h.forget(oldest, now)
		}
	}
	before := uint64(0)
	if known := h.registry.byName[r.name]; known != nil {
		before = known.session
		if conn != 0 && known.hostID != r.hostID && known.current != 0 && known.current != conn {
			h.warnNow(now, r.name, "two hosts use one beacon name; the newer one gets the work", "beacon", r.name, "older", printable(known.hostID), "newer", printable(r.hostID))
		}
	}
	b, dropped, err := h.registry.register(r, conn, session, now)
	if err != nil {
		return err
	}
	if conn != 0 && b.session != before && len(b.conns) == 2 {
		b.twinAt = now
	}
	if b.session != before && b.told.pass(now) {
		h.log.Info("a beacon is connected", "beacon", b.name, "id", b.id, "session", b.session, "socket", conn != 0)
	}
	welcome(b)
	h.resume(b, now)
	if dropped != 0 {
		h.sockets[dropped].end()
	}
	return nil
}

// resume lets a beacon take work in its present session.
func (h *Hub) resume(b *beacon, now time.Time) {
	h.works.replaced(b.name, b.session, now)
	h.works.join(b.name, b.session, b.current, b.capabilities, b.maxConcurrent, now)
}

// lost says that a socket is gone, or nobody's any more. It is called in a step.
func (h *Hub) lost(conn uint64, now time.Time) {
	b, moved := h.registry.lost(conn)
	if b == nil {
		return
	}
	h.works.broke(b.name, conn, now)
	switch {
	case moved:
		h.resume(b, now)
	case !b.online:
		h.works.silent(b.name, now)
		h.log.Info("a beacon is gone", "beacon", b.name)
	}
}

// forget removes a beacon: it said goodbye, or was away for too long. It is called in a step.
func (h *Hub) forget(b *beacon, now time.Time) {
	h.works.leave(b.name, now)
	h.registry.forget(b)
}

// alive notes a sign of life of a beacon. A poll takes the work from a socket only if that does not answer: a stock client may
// poll for ever beside a good one. It is called in a step.
func (h *Hub) alive(b *beacon, conn uint64, polls bool, now time.Time) {
	if conn != 0 && conn != b.current && !b.twinAt.IsZero() && now.Sub(b.twinAt) >= h.timing.Silence {
		b.twinAt = time.Time{}
		h.log.Warn("two programs use one beacon name, and both stay; the newer one gets the work", "beacon", b.name, "host", printable(b.hostID), "sockets", len(b.conns))
	}
	h.works.heard(b.name, conn)
	if h.registry.alive(b, conn, polls && (b.current == 0 || h.works.mutes(b.name)), now) {
		h.log.Info("a beacon is back", "beacon", b.name, "session", b.session)
		h.resume(b, now)
	}
}

// warn logs what a peer could cause without end, now and then for each subject.
func (h *Hub) warn(subject, message string, details ...any) {
	h.look(func() { h.warnNow(h.clock(), subject, message, details...) })
}

// warnNow is warn in a step.
func (h *Hub) warnNow(now time.Time, subject, message string, details ...any) {
	if left, pass := h.warns.pass(message, subject, now); pass {
		if left > 0 {
			details = append(details, "left out before", left)
		}
		h.log.Warn(message, details...)
	}
}

// Close closes every socket and answers every caller; then nothing more is taken in. It may be called twice.
func (h *Hub) Close() {
	var open []*socket
	h.step(func(now time.Time) {
		if h.closed {
			return
		}
		h.closed = true
		close(h.closing)
		for _, b := range h.registry.all {
			h.works.leave(b.name, now)
		}
		for _, w := range h.works.live {
			h.works.giveUp(w, errStopping, now)
		}
		for _, s := range h.sockets {
			open = append(open, s)
		}
	})
	for _, s := range open {
		s.letGo(websocket.StatusGoingAway)
	}
	h.ended.Wait()
}

var errStopping = ports.Errorf(ports.Unavailable, "mesh", "the hub is stopping; send it again in a moment")
