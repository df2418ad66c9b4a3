package core

import (
	"slices"
	"testing/synctest"
	"time"

	"holdfast/ports"
)

// What befalls the stores and the host in the feed's test, and how it ends.

// swap does something to the disk of a mirror while its process is down.
func (f *feed) swap(m *mirror, s *feedStep) {
	if m.noPosition && s.What != "backup" {
		return // nobody could tell
	}
	back := pauses[3+s.M%6]
	switch s.What {
	case "backup":
		f.old[m.name] = m.look()
		return
	case "older":
		if f.old[m.name] == nil {
			return
		}
	}
	m.change(func(m *mirror) { m.back = back })
	m.kill(func(d *mirrorDisk) *mirrorDisk {
		switch {
		case s.What == "older":
			return f.old[m.name].copied()
		case s.M%2 == 0:
			return newMirrorDisk(d.id) // emptied
		}
		return newMirrorDisk(d.id + "'") // made anew
	})
	if s.What == "wipe" {
		delete(f.old, m.name)
	}
}

func (f *feed) localStep(s *feedStep) {
	switch s.What {
	case "local dies":
		f.store.mu.Lock()
		f.store.back = pauses[3+s.M%6]
		f.store.mu.Unlock()
		f.store.kill(nil)
	case "local suffers":
		left := 1 + s.M%2
		what := []fate{{kind: loses}, {after: pauses[s.M]}, {kind: dies}, {after: 300 * time.Millisecond}}[s.N%4]
		f.store.suffers(func(*ports.CommitBatch) fate {
			if left == 0 {
				return fate{}
			}
			left--
			return what
		})
	case "local backup":
		f.local = &backup{disk: f.store.look(), at: time.Now()}
	case "local older":
		// The journal must still have what the copy lacks.
		if f.plan.Shared || f.local == nil || time.Since(f.local.at) > 5*time.Minute {
			return
		}
		f.store.mu.Lock()
		f.store.back = pauses[3+s.M%6]
		f.store.mu.Unlock()
		f.store.kill(func(*disk) *disk {
			return f.caughtUp(f.local.disk)
		})
	}
}

// caughtUp is a copy of a disk to which the other host has brought again what the copy lacks: it has a journal too.
func (f *feed) caughtUp(d *disk) *disk {
	d = d.copied()
	done := map[ports.Family]uint64{}
	for _, w := range f.foreign {
		if done[w.family]++; done[w.family] > d.others[w.family][otherHost].Seq {
			d.writesAs(otherHost, w.entries)
		}
	}
	return d
}

// dataStep makes a backup of the whole host, its local store included, or goes back to it: what came since never was, but for
// the followers.
func (f *feed) dataStep(s *feedStep) {
	if s.What == "data backup" {
		f.in(0)
		f.data = &backup{f.store.look(), f.state.copied(), f.copiedJournals(), time.Now()}
		return
	}
	forgetful := slices.ContainsFunc(f.plan.Followers, func(one feedFollower) bool { return one.NoPosition })
	if f.plan.Shared || forgetful || f.data == nil {
		return // nobody could tell
	}
	f.end()
	f.in(doubtFor + time.Second) // a restore takes longer than a Put is on its way
	if torn := f.torn(); !torn {
		f.restore()
	} else {
		for _, j := range f.journals {
			j.reopen(0)
		}
	}
	f.begin()
	synctest.Wait()
}

// torn says whether a follower has records of this host that its position does not tell of: a host that is restored cannot
// know of them.
func (f *feed) torn() bool {
	for _, m := range f.mirrors {
		d := m.look()
		for at, change := range d.shown {
			if change.Host == f.state.who.ID && change.Seq > d.positions[at.kind.Family()].Seqs[change.Host] {
				return true
			}
		}
	}
	return false
}

func (f *feed) restore() {
	f.state, f.journals = f.data.state.copied(), map[ports.Family]*memoryJournal{}
	for name, j := range f.data.journals {
		f.journals[name] = j.copied()
		f.journals[name].reopen(0)
	}
	f.store.kill(func(d *disk) *disk {
		for name, j := range f.journals {
			head := j.Bounds().Head
			d.annals.undo(name, f.state.who.ID, head)
			for _, key := range append(slices.Clone(feedKeys), otherKeys...) {
				if f.last[string(name)+key] > head {
					delete(f.last, string(name)+key)
				}
			}
		}
		return f.caughtUp(f.data.disk)
	})
	clear(f.seen)
	f.local = nil
}

func (f *feed) copiedJournals() map[ports.Family]*memoryJournal {
	journals := map[ports.Family]*memoryJournal{}
	for name, j := range f.journals {
		journals[name] = j.copied()
	}
	return journals
}

// breaksDown lets the host end in the middle of whatever it does: what it still does is not remembered.
func (f *feed) breaksDown() {
	synctest.Wait()
	state, journals := f.state.copied(), f.copiedJournals()
	f.end()
	f.state, f.journals = state, journals
	for _, j := range f.journals {
		j.reopen(0)
	}
	f.begin()
	synctest.Wait()
}

func (f *feed) cure(m *mirror) {
	m.change(func(m *mirror) {
		m.fate, m.mute, m.probe, m.stale, m.delays, m.back = nil, false, nil, false, 0, 20*time.Millisecond
	})
}

// heal makes everybody well, waits until all is settled, and compares.
func (f *feed) heal() {
	f.store.suffers(nil)
	for _, m := range f.mirrors {
		f.cure(m)
	}
	f.in(time.Minute)
	if !f.until(20*time.Minute, f.settled) {
		for _, m := range f.mirrors {
			f.t.Errorf("%s: not settled: %+v", f.moment, f.backend(m.name).Followers)
		}
		return
	}
	for _, m := range f.mirrors {
		f.equal(m.name)
		for _, hole := range f.holes(m.name) {
			f.t.Errorf("%s: %s", f.moment, hole)
		}
	}
	for n := range 20 {
		f.read(n, n)
	}
	for _, key := range feedKeys {
		if a := f.host.Item(f.t.Context(), key); a.Situation == Done && a.Backend != f.plan.Route[0] {
			f.t.Errorf("item %s is answered by %s, not %s", key, a.Backend, f.plan.Route[0])
		}
	}
}
