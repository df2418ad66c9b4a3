package core

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"holdfast/ports"
)

// Followers on a stage.

// follows adds a follower; call it before the Host begins.
func (s *stage) follows(name string, edits ...func(m *mirror)) *mirror {
	m := newMirror(name)
	m.reads = func(f ports.Family, key string) bool {
		w := s.host.follower(name, f)
		return w.mode() == modeReady && w.keys.kind(key) == ""
	}
	m.doubts = func(f ports.Family, key string) bool { return s.host.follower(name, f).keys.kind(key) != "" }
	for _, edit := range edits {
		edit(m)
	}
	s.mirrors = append(s.mirrors, m)
	s.config.Followers = append(s.config.Followers, m.follower())
	return m
}

// backend gives a backend's status.
func (s *stage) backend(name string) BackendStatus {
	s.t.Helper()
	for _, b := range s.host.Status().Backends {
		if b.Name == name {
			return b
		}
	}
	s.t.Fatalf("there is no backend %s in the status", name)
	return BackendStatus{}
}

// follower gives the status of a family of a follower.
func (s *stage) follower(name string, f ports.Family) FollowerStatus {
	s.t.Helper()
	for _, status := range s.backend(name).Followers {
		if status.Family == f {
			return status
		}
	}
	s.t.Fatalf("%s does not follow %s", name, f)
	return FollowerStatus{}
}

// until lets time pass until something holds, at most a while, and says whether it does.
func (s *stage) until(limit time.Duration, holds func() bool) bool {
	for waited := time.Duration(0); ; waited += 50 * time.Millisecond {
		if holds() {
			return true
		}
		if waited >= limit {
			return false
		}
		s.in(50 * time.Millisecond)
	}
}

// catchesUp waits until a follower has everything and says so.
func (s *stage) catchesUp(name string, limit time.Duration) {
	s.t.Helper()
	ok := s.until(limit, func() bool {
		for _, f := range ports.Families {
			status := s.follower(name, f)
			if status.Phase != string(modeReady) || status.Behind != 0 || status.InDoubt+status.Unsettled != 0 {
				return false
			}
		}
		return true
	})
	if !ok {
		s.t.Errorf("%s does not catch up within %s: %+v", name, limit, s.backend(name))
	}
}

// equal compares a follower's disk with that of the local store.
func (s *stage) equal(name string) {
	s.t.Helper()
	for _, d := range s.differences(name) {
		s.t.Error(d)
	}
}

// differences tell where a follower's disk is not like that of the local store.
func (s *stage) differences(name string) (list []string) {
	mine, theirs := map[place]ports.Row{}, s.mirror(name).look().rows
	for _, row := range s.store.look().rows(ports.Kinds...) {
		mine[placeOfRow(&row)] = row
	}
	for at, row := range mine {
		other, ok := theirs[at]
		switch {
		case !ok:
			list = append(list, fmt.Sprintf("%s lacks %s %s %s of %+v", name, row.Kind, row.Key, row.Body, row.Change))
		case !sameRow(&row, &other):
			list = append(list, fmt.Sprintf("%s has %s %s\n%s %+v %+v, not\n%s %+v %+v", name, row.Kind, row.Key, other.Body, other.First, other.Change, row.Body, row.First, row.Change))
		}
	}
	for at, row := range theirs {
		if _, ok := mine[at]; !ok && !s.store.void(at) {
			list = append(list, fmt.Sprintf("only %s has %s %s %s of %+v", name, row.Kind, row.Key, row.Body, row.Change))
		}
	}
	slices.Sort(list)
	return list[:min(len(list), 20)]
}

func (s *stage) mirror(name string) *mirror {
	return s.mirrors[slices.IndexFunc(s.mirrors, func(m *mirror) bool { return m.name == name })]
}

func sameRow(a, b *ports.Row) bool {
	return cmp.Or(compareRows(a, b), cmp.Compare(string(a.Body), string(b.Body))) == 0 && a.First == b.First && a.Change == b.Change
}

// void says whether a place had a state that was taken back for good.
func (m *memory) void(at place) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.disk.annals.void[at]
}

// holes tell which changes a follower's position is beyond, although it has neither them, or something later, nor their keys
// among the unsettled.
func (s *stage) holes(name string) (list []string) {
	theirs, d := s.mirror(name).look(), s.store.look()
	for _, f := range ports.Families {
		p, w := theirs.positions[f], s.host.follower(name, f)
		if d.knows(s.state.who.ID, f, p) != nil || d.reaches(s.state.who.ID, f, p) != nil {
			continue // it is of another history, and leads nowhere
		}
		for _, row := range d.rows(kindsOf(f)...) {
			at := placeOfRow(&row)
			if p.Seqs[row.Change.Host] < row.Change.Seq || w.keys.kind(row.Key) != "" {
				continue
			}
			other, ok := theirs.rows[at]
			if ok && sameRow(&row, &other) {
				continue
			}
			if !s.store.later(at, row.Change, theirs.shown[at]) {
				list = append(list, fmt.Sprintf("%s is at %v and has %+v, not %s %s of %+v", name, p.Seqs, other.Change, row.Kind, row.Key, row.Change))
			}
		}
	}
	return list
}

// ever gives every state that a record ever had.
func (m *memory) ever(at place) []version {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.disk.annals.past[at])
}

// later says whether a change of a record came behind another.
func (m *memory) later(at place, one, other ports.Change) bool {
	past := m.ever(at)
	of := func(c ports.Change) int { return slices.IndexFunc(past, func(v version) bool { return v.change == c }) }
	return of(other) > of(one)
}
