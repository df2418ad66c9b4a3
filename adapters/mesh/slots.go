package mesh

import (
	"slices"
	"time"

	"holdfast/ports"
)

// How slots come back. A stock beacon reports exactly once what it does, and drops without a word what it is pushed while it has
// no slot free. So as long as it lives, and is still on the connection over which a work went out, a missing report says that
// it is still at that work, however long ago its caller gave up; only when the connection is lost, or another one takes its
// place, a report may never come.
//
//	the beacon reported                                          at once
//	it polls, though all its slots are taken                     at once: a stock beacon polls only with a slot free
//	its connection is lost, it was silent, or registered anew    Grace after that
//	none of it, but its caller gave up                           Linger after that, so that no slot is lost for good
//
// A slot that came back without a word is a guess: the beacon may be the same process, reconnected and busy. What it is pushed
// beyond such guesses is doubtful. If it drops that, no report will come either, so a doubtful work lingers for Grace only.

// due lets a work's slot be given back at a moment, if it is not before already.
func (w *work) due(at time.Time) {
	if w.until.IsZero() || at.Before(w.until) {
		w.until = at
	}
}

// atIt notes that a beacon is still busy with a work: what it was given for a report begins again.
func (m *works) atIt(w *work, now time.Time) {
	if at := now.Add(m.timing.Grace); !w.until.IsZero() && w.until.Before(at) {
		w.until = at
	}
}

// linger keeps the slot of a work whose caller gave up.
func (m *works) linger(w *work, now time.Time) {
	w.state = lingering
	if w.doubtful {
		w.due(now.Add(m.timing.Grace))
	} else {
		w.due(now.Add(m.timing.Linger))
	}
}

// release gives a work's slot back, and the slot to whoever is next.
func (m *works) release(w *work) {
	b := w.berth
	delete(b.held, w.Hash)
	m.end(w)
	m.fill(b)
}

// vacate takes the slot of a work that nobody reported. If its caller still waits, it goes on waiting for the report.
func (m *works) vacate(w *work) {
	if w.state == lingering {
		m.release(w)
		return
	}
	b := w.berth
	delete(b.held, w.Hash)
	w.until = time.Time{}
	m.fill(b)
}

// pass gives back the slots whose time has come.
func (m *works) pass(now time.Time) {
	for _, b := range m.berths {
		for _, w := range ordered(b.held, false) {
			if w.until.IsZero() || now.Before(w.until) {
				continue
			}
			b.astray = append(b.astray, w.Hash)
			m.astray[w.Hash] = b
			m.trust(b, b.slots) // it can be at no more
			m.vacate(w)
		}
	}
	m.passHope(now)
}

// passHope ends works whose callers would wait for nothing until their deadline: the beacon is away for long, or is known to be
// at them no more.
func (m *works) passHope(now time.Time) {
	for _, w := range m.live {
		if w.state != sent {
			continue
		}
		b := w.berth
		var why string
		switch {
		case !w.hopeless.IsZero() && !now.Before(w.hopeless):
			why = "has room for other work, and never reported this one"
		case !b.online && !now.Before(b.awayAt.Add(m.timing.Silence)):
			why = "went away, and did not come back with a report within " + m.timing.Silence.String()
		default:
			continue
		}
		m.answer(w, outcome{err: ports.Errorf(ports.BackendGone, "mesh", "the beacon %q %s; the outcome is unknown", b.name, why), at: now})
		if b.held[w.Hash] != nil {
			m.release(w)
		} else {
			m.end(w)
		}
	}
}

// hasRoom takes a poll for what it says: the beacon has a slot free. If all are taken, the report of the one that went out first
// was lost, one that nobody waits for before one that somebody does. What went out within the grace does not count: its poll
// may still be under way.
func (m *works) hasRoom(b *berth, now time.Time) {
	m.hadRoom(b, now)
	if len(b.held) < b.said {
		return
	}
	var lost *work
	for _, w := range ordered(b.held, false) {
		if w.state != handed && !now.Before(w.sentAt.Add(m.timing.Grace)) && (lost == nil || w.state == lingering && lost.state != lingering) {
			lost = w
		}
	}
	if lost == nil {
		return
	}
	if b.said == 1 { // it cannot be another one; its report may have been overtaken
		lost.hopeless = now.Add(m.timing.Grace)
	}
	m.vacate(lost)
}

// hadRoom says that a beacon had a slot free, and so was at fewer works than it takes. One that takes one at a time was at none,
// and who still waits for one of before waits in vain.
func (m *works) hadRoom(b *berth, now time.Time) {
	for _, hash := range b.astray {
		if w := m.live[hash]; w != nil && b.said == 1 {
			w.hopeless = now.Add(m.timing.Grace)
		}
	}
	m.trust(b, b.said-1)
}

// trust says that a beacon is at no more than so many of the works whose slots came back without a word: the newest of them.
func (m *works) trust(b *berth, most int) {
	for len(b.astray) > most {
		delete(m.astray, b.astray[0])
		b.astray = b.astray[1:]
	}
}

// found says that a beacon reported a work, and is at it no more.
func (m *works) found(hash, from string) {
	if b := m.astray[hash]; b != nil && (from == "" || from == b.name) {
		delete(m.astray, hash)
		b.astray = slices.DeleteFunc(b.astray, func(other string) bool { return other == hash })
	}
}

// lingering is how many slots of a beacon are held by works that nobody waits for.
func (b *berth) lingering() (n int) {
	if b == nil {
		return 0
	}
	for _, w := range b.held {
		if w.state == lingering {
			n++
		}
	}
	return n
}
