package mesh

import (
	"encoding/json"
	"slices"
	"time"

	"holdfast/ports"
)

// How works end, and how beacons come and go: the other half of the state machine of works.go.

// verdict is what became of a report.
type verdict int

const (
	completed verdict = iota // it ended the work
	late                     // the work had ended without it
	unknown                  // there never was such a work, or not for this beacon
)

// report is a beacon's word about a work. from is the Name of the beacon, "" when the transport does not tell.
func (m *works) report(hash, from string, answer ports.WorkAnswer, now time.Time) verdict {
	w := m.live[hash]
	m.found(hash, from)
	switch {
	case w == nil && m.ended.has(hash):
		return late
	case w == nil, w.state == waiting, w.state == handed, from != "" && w.berth.name != from:
		return unknown
	}
	if w.doubtful {
		m.hadRoom(w.berth, now)
	}
	if w.state == lingering {
		m.release(w)
		return late
	}
	answer.WorkItemHash, answer.Beacon = hash, w.berth.name
	m.answer(w, outcome{WorkAnswer: answer, at: now})
	m.release(w)
	return completed
}

// giveUp ends a work for its caller, who waits no longer; one that has ended in the same moment stays as it is.
func (m *works) giveUp(w *work, why error, now time.Time) {
	switch w.state {
	case waiting:
		m.answer(w, outcome{err: why, at: now})
		m.leaveLine(w)
		m.end(w)
	case handed:
		m.answer(w, outcome{err: why, at: now})
		m.release(w)
	case sent:
		m.answer(w, outcome{err: why, at: now})
		if w.berth.held[w.Hash] == nil { // its slot was given back already
			m.end(w)
			break
		}
		m.linger(w, now)
	case lingering, done:
	}
}

// progress notes how far a beacon says it is. false: it has no such work, or nobody waits for it any more.
func (m *works) progress(hash, from string, said json.RawMessage, now time.Time) (*work, bool) {
	w := m.live[hash]
	if w == nil || w.state != sent && w.state != lingering || from != "" && w.berth.name != from {
		return nil, false
	}
	m.atIt(w, now)
	if w.state == lingering {
		return nil, false
	}
	w.progress = said
	return w, true
}

func (m *works) answer(w *work, o outcome) {
	w.answer = o
	m.effects.answered = append(m.effects.answered, w)
}

// end forgets a work but for its hash.
func (m *works) end(w *work) {
	w.state = done
	delete(m.live, w.Hash)
	m.bytes -= int64(len(w.Settings))
	m.ended.add(w.Hash)
}

// join says that a beacon is there with a session: over a socket, or as a poller with conn 0. What it holds over an older
// session goes on, as that one's.
func (m *works) join(name string, session, conn uint64, capabilities []string, slots int, now time.Time) {
	b := m.berths[name]
	if b == nil {
		b = &berth{name: name, held: map[string]*work{}, lines: newLines()}
		m.berths[name] = b
	}
	m.offer(b, capabilities)
	b.said = max(1, slots)
	b.muted = false
	b.session, b.conn, b.online, b.slots = session, conn, true, min(b.said, m.limits.Slots)
	m.trust(b, b.slots)
	m.refuseFormer(b, now)
	m.fill(b)
}

// refuseFormer ends the works that wait for a former session of their beacon. They were never sent.
func (m *works) refuseFormer(b *berth, now time.Time) {
	for class := range b.lines {
		for e := b.lines[class].Front(); e != nil; {
			w := e.Value.(*work)
			e = e.Next()
			if w.Session != 0 && w.Session != b.session {
				m.giveUp(w, anotherSession(b.name), now)
			}
		}
	}
}

func anotherSession(beacon string) error {
	return ports.Errorf(ports.Unavailable, "mesh", "the beacon %q has connected anew meanwhile; it was not sent the work", beacon)
}

// offer changes what a beacon offers.
func (m *works) offer(b *berth, capabilities []string) {
	if slices.Equal(b.capabilities, capabilities) {
		return
	}
	m.withdraw(b)
	b.capabilities = capabilities
	for _, c := range capabilities {
		m.offers[c] = append(m.offers[c], b)
	}
}

func (m *works) withdraw(b *berth) {
	for _, c := range b.capabilities {
		m.offers[c] = slices.DeleteFunc(m.offers[c], func(other *berth) bool { return other == b })
		if len(m.offers[c]) == 0 {
			delete(m.offers, c)
		}
	}
}

// replaced says that a beacon has another session now: what had not gone out over an older one waits again, and what had has
// until the end of the grace to be reported before its slots are given back.
func (m *works) replaced(name string, session uint64, now time.Time) {
	b := m.berths[name]
	if b == nil || b.session == session {
		return
	}
	b.conn = 0
	for _, w := range ordered(b.held, true) {
		switch {
		case w.session == session:
		case w.state == handed:
			m.lose(w, now, nil)
		default:
			w.due(now.Add(m.timing.Grace))
		}
	}
}

// broke says that a socket is gone. What had not gone out over it happened nowhere: it goes back to the pool or to its
// beacon's line when its caller can wait, and is refused otherwise. What had gone out is of unknown outcome: its caller is
// told so, unless it is patient; the slot stays for the grace.
func (m *works) broke(name string, conn uint64, now time.Time) {
	b := m.berths[name]
	if b == nil {
		return
	}
	if b.conn == conn {
		b.conn = 0
	}
	for _, w := range ordered(b.held, true) {
		if w.conn == conn && conn != 0 {
			m.lose(w, now, ports.Errorf(ports.BackendGone, "mesh", "the connection to the beacon %q broke before it reported; the outcome is unknown", name))
		}
	}
	m.fill(b) // over another socket
}

// silent says that a beacon gave no sign of life for too long, or has no connection any more.
func (m *works) silent(name string, now time.Time) {
	b := m.berths[name]
	if b == nil {
		return
	}
	if b.online {
		b.awayAt = now
	}
	b.online, b.conn = false, 0
	for _, w := range ordered(b.held, true) {
		m.lose(w, now, ports.Errorf(ports.BackendGone, "mesh", "the beacon %q went silent before it reported; the outcome is unknown", name))
	}
	m.refuseWaiting(b, now, false)
}

// lose takes a work from the connection that had it.
func (m *works) lose(w *work, now time.Time, why error) {
	b := w.berth
	switch {
	case w.state == handed:
		delete(b.held, w.Hash)
		if w.Beacon == "" {
			w.berth = nil
		}
		w.session, w.conn = 0, 0
		m.wait(w, true)
		if w.Beacon == "" {
			m.place(w)
		}
		return
	case w.state == sent && !w.patient:
		m.answer(w, outcome{err: why, at: now})
		w.state = lingering
	}
	w.due(now.Add(m.timing.Grace))
}

// refuseWaiting ends what waits for a beacon that is not there: nothing of it happened. all takes in the patient ones.
func (m *works) refuseWaiting(b *berth, now time.Time, all bool) {
	for _, l := range b.lines {
		for e := l.Front(); e != nil; {
			w := e.Value.(*work)
			e = e.Next()
			if all || !w.patient {
				m.giveUp(w, ports.Errorf(ports.Unavailable, "mesh", "the beacon %q left before it was sent the work", b.name), now)
			}
		}
	}
}

// leave forgets a beacon that said goodbye, or that has been away for too long.
func (m *works) leave(name string, now time.Time) {
	b := m.berths[name]
	if b == nil {
		return
	}
	b.online, b.conn = false, 0
	m.withdraw(b)
	b.capabilities = nil
	m.trust(b, 0)
	for _, w := range ordered(b.held, true) {
		if w.state == handed {
			m.lose(w, now, nil)
			continue
		}
		if w.state == sent {
			m.answer(w, outcome{err: ports.Errorf(ports.BackendGone, "mesh", "the beacon %q left before it reported; the outcome is unknown", name), at: now})
		}
		delete(b.held, w.Hash)
		m.end(w)
	}
	m.refuseWaiting(b, now, true)
	delete(m.berths, name)
}

// mute says that the socket of a beacon does not answer; what waits goes on waiting, or to another beacon.
func (m *works) mute(name string, conn uint64) {
	if b := m.berths[name]; b != nil && b.conn == conn {
		b.muted = true
	}
}

// heard says that the socket of a beacon has spoken.
func (m *works) heard(name string, conn uint64) {
	if b := m.berths[name]; b != nil && b.muted && b.conn == conn {
		b.muted = false
		m.fill(b)
	}
}

// busy says whether a beacon has works that went out over a socket.
func (m *works) busy(name string, conn uint64) bool {
	if b := m.berths[name]; b != nil {
		for _, w := range b.held {
			if w.conn == conn && w.state != handed {
				return true
			}
		}
	}
	return false
}

// mutes says whether a beacon has a socket that does not answer.
func (m *works) mutes(name string) bool {
	b := m.berths[name]
	return b != nil && b.muted
}

// ordered are works in the order in which they came, or the other way round: what goes back to the front of a line goes
// there last first.
func ordered(held map[string]*work, newestFirst bool) []*work {
	list := make([]*work, 0, len(held))
	for _, w := range held {
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b *work) int {
		if (a.number < b.number) != newestFirst {
			return -1
		}
		return 1
	})
	return list
}

// holds are the hashes of the works that have a beacon's slots.
func (m *works) holds(name string) []string {
	b := m.berths[name]
	if b == nil {
		return nil
	}
	hashes := make([]string, 0, len(b.held))
	for _, w := range ordered(b.held, false) {
		hashes = append(hashes, w.Hash)
	}
	return hashes
}
