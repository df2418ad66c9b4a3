package mesh

import (
	"container/list"
	"encoding/json"
	"strconv"
	"time"

	"holdfast/ports"
)

// works is the state machine of works and slots. It knows no sockets, starts nothing and reads no clock; the Hub calls it
// under its lock and carries out its effects.
//
//	           enqueue          a slot            it goes out           report
//	(new) ----------> waiting ----------> handed ----------> sent ----------------> done
//	                     |                  |                  |                      ^
//	                     |                  |  connection gone |  caller gave up, or  |
//	                     |                  |  -> waiting      |  connection gone     | report (late), or its
//	                     |                  |     or done      +------> lingering ----+ time has passed (slots.go)
//	                     +-- gave up, gone -+-----------------------------------------+
//
// The caller's answer is set on the way out of waiting, handed or sent, and so exactly once. A lingering work has been
// answered, but its beacon may still be busy with it: it keeps its slot, for a beacon that is given more than it said it can
// take drops work without a word.
type works struct {
	limits  Limits
	timing  Timing
	berths  map[string]*berth   // by Name
	offers  map[string][]*berth // who offers a capability, the first first
	pool    map[pool]*lines     // what waits for anybody with a capability, or for one who is not there yet
	live    map[string]*work    // all that are not done
	ended   memory              // hashes of works that are done
	astray  map[string]*berth   // hashes of works whose slots were given back without a word of their beacon
	counter uint64              // of hashes
	waiting int                 // works without a slot
	bytes   int64               // of the settings of all live works
	effects effects
}

// pool is a line in which works wait that no beacon has been chosen for.
type pool struct {
	capability string
	only       string // the beacon that may have them; "" for any
}

// state is where a work is.
type state int

const (
	waiting   state = iota // nobody has it
	handed                 // it has a slot, and is about to go out
	sent                   // the beacon has it
	lingering              // the caller was answered, the beacon may still have it
	done
)

// work is one piece of work.
type work struct {
	ports.Work
	Hash       string
	number     uint64
	state      state
	patient    bool   // it outlives a broken connection, until its deadline: its caller cannot send it again
	affinity   string // as an outside caller gave it
	only       string // the beacon that must have it, and was not there when it was asked for
	enqueuedAt time.Time
	sentAt     time.Time
	timeout    time.Duration
	berth      *berth    // where it waits or has a slot; nil in the pool
	session    uint64    // over which it was handed out
	conn       uint64    // the socket of it; 0 for a poller
	until      time.Time // when its slot is given back without a report; zero: not
	hopeless   time.Time // when its caller is told that no report will come; zero: not
	doubtful   bool      // its beacon may have had no room for it, and may have dropped it
	progress   json.RawMessage
	heardAt    time.Time     // of the last word about progress
	place      *list.Element // in a line
	record     *recording    // nil: it is nobody's history
	answer     outcome
	answered   chan struct{} // closed by the Hub when answer is set
}

// outcome is how a work ended for its caller.
type outcome struct {
	ports.WorkAnswer
	err error
	at  time.Time
}

// effects is what the Hub has to do after a step.
type effects struct {
	push     []*work // hand to the socket conn
	answered []*work // wake the caller
	sent     []*work // record the start
}

func newWorks(limits Limits, timing Timing) *works {
	return &works{
		limits: limits, timing: timing, berths: map[string]*berth{}, offers: map[string][]*berth{}, pool: map[pool]*lines{},
		live: map[string]*work{}, ended: newMemory(maxEnded), astray: map[string]*berth{},
	}
}

// take gives the effects of the steps since the last time.
func (m *works) take() effects {
	e := m.effects
	m.effects = effects{}
	return e
}

// admit names a work, or says why it is not taken in. It fails with Unavailable when the beacon that it names is not there,
// Invalid when that one does not offer the capability, and Full when too much waits.
func (m *works) admit(w *work, now time.Time) error {
	b := m.berths[w.Beacon]
	switch {
	case w.Beacon != "" && (b == nil || !b.online && !w.patient):
		return ports.Errorf(ports.Unavailable, "mesh", "the beacon %q is not connected", w.Beacon)
	case w.Beacon != "" && w.Session != 0 && w.Session != b.session:
		return anotherSession(w.Beacon)
	case w.Beacon != "" && !b.offersCapability(w.Capability):
		return ports.Errorf(ports.Invalid, "mesh", "the beacon %q does not offer the capability %q", w.Beacon, w.Capability)
	case w.Beacon == "" && !w.patient && !m.anybody(w.Capability):
		return ports.Errorf(ports.Unavailable, "mesh", "no beacon that offers the capability %q is connected", w.Capability)
	case m.waiting >= m.limits.Waiting:
		return ports.Errorf(ports.Full, "mesh", "%d works wait already; send it again in a moment", m.waiting)
	case b != nil && b.waiting >= m.limits.WaitingPerBeacon:
		return ports.Errorf(ports.Full, "mesh", "%d works wait for the beacon %q already; send it again in a moment", b.waiting, w.Beacon)
	case m.bytes+int64(len(w.Settings)) > m.limits.WorkBytes && len(m.live) > 0:
		return ports.Errorf(ports.Full, "mesh", "works of %d bytes are underway already; send it again in a moment", m.bytes)
	}
	m.counter++
	w.number = m.counter
	w.Hash = "wi-unknown-unknown-" + strconv.FormatInt(now.UnixMilli(), 10) + "-" + strconv.FormatUint(m.counter, 10)
	w.enqueuedAt, w.berth = now, b
	return nil
}

// enter lets an admitted work wait, or gives it a slot at once.
func (m *works) enter(w *work) {
	m.live[w.Hash] = w
	m.bytes += int64(len(w.Settings))
	m.wait(w, false)
	if w.berth != nil {
		m.fill(w.berth)
	} else {
		m.place(w)
	}
}

// anybody says whether a connected beacon offers a capability.
func (m *works) anybody(capability string) bool {
	for _, b := range m.offers[capability] {
		if b.online {
			return true
		}
	}
	return false
}

// wait puts a work into its line; what comes back goes to the front.
func (m *works) wait(w *work, back bool) {
	l := &m.lineOf(w)[w.Class]
	if back {
		w.place = (*l).PushFront(w)
	} else {
		w.place = (*l).PushBack(w)
	}
	w.state = waiting
	m.waiting++
	if w.berth != nil {
		w.berth.waiting++
	}
}

// lineOf is where a work waits.
func (m *works) lineOf(w *work) *lines {
	if w.berth != nil {
		return &w.berth.lines
	}
	of := pool{w.Capability, w.only}
	l := m.pool[of]
	if l == nil {
		made := newLines()
		l = &made
		m.pool[of] = l
	}
	return l
}

// leaveLine takes a waiting work out of its line.
func (m *works) leaveLine(w *work) {
	l := m.lineOf(w)
	l[w.Class].Remove(w.place)
	w.place = nil
	m.waiting--
	if w.berth != nil {
		w.berth.waiting--
		return
	}
	for _, line := range l {
		if line.Len() > 0 {
			return
		}
	}
	delete(m.pool, pool{w.Capability, w.only})
}

// place finds a slot for a work of the pool: the next beacon in turn that has one and takes pushes.
func (m *works) place(w *work) {
	list := m.offers[w.Capability]
	for i := range list {
		b := list[(i+int(w.number%uint64(len(list))))%len(list)]
		if b.conn != 0 && b.room(w.Class) && (w.only == "" || w.only == b.name) {
			m.fill(b)
			return
		}
	}
}

// fill hands out what a beacon that takes pushes has room for.
func (m *works) fill(b *berth) {
	for b.conn != 0 {
		w := m.next(b)
		if w == nil {
			return
		}
		m.hand(w, b)
		m.effects.push = append(m.effects.push, w)
	}
}

// next is the work that goes first of those that a beacon may have now; nil: none.
func (m *works) next(b *berth) *work {
	for class := range ports.WorkClass(classes) {
		if !b.room(class) {
			return nil // nor for those behind
		}
		first := head(b.lines, class)
		for _, capability := range b.capabilities {
			for _, only := range [...]string{"", b.name} {
				if l := m.pool[pool{capability, only}]; l != nil {
					if w := head(*l, class); w != nil && (first == nil || w.number < first.number) {
						first = w
					}
				}
			}
		}
		if first != nil {
			return first
		}
	}
	return nil
}

// hand gives a waiting work a slot.
func (m *works) hand(w *work, b *berth) {
	m.leaveLine(w)
	w.state, w.berth, w.session, w.conn = handed, b, b.session, b.conn
	b.held[w.Hash] = w
}

// poll gives a polling beacon its next work, which counts as sent.
func (m *works) poll(name string, now time.Time) *work {
	b := m.berths[name]
	if b == nil {
		return nil
	}
	if b.conn == 0 { // with a socket it may be another program of the same name
		m.hasRoom(b, now)
	}
	w := m.next(b)
	if w == nil {
		return nil
	}
	m.hand(w, b)
	w.conn = 0
	m.send(w, now)
	return w
}

// send says that a handed work goes out now. false: it is not wanted any more.
func (m *works) send(w *work, now time.Time) bool {
	if w.state != handed {
		return false
	}
	w.state, w.sentAt, w.doubtful = sent, now, w.conn != 0 && len(w.berth.held)+len(w.berth.astray) > w.berth.slots
	m.effects.sent = append(m.effects.sent, w)
	return true
}
