package core

import (
	"maps"
	"slices"

	"holdfast/ports"
)

// What a memoryState remembers of followers.

type followed struct {
	name   string
	family ports.Family
}

// memoryFollowing is the part of a memoryState that is about followers.
type memoryFollowing struct {
	marks     map[followed]ports.FollowerMark
	unsettled map[followed]map[string]ports.Unsettled
	copies    map[[3]string]ports.CopyMark
	assigned  map[ports.Family]*ports.Assignment
	room      int // for the unsettled keys of one follower and family; 0: as many as there are
}

func (m *memoryFollowing) copied() memoryFollowing {
	c := memoryFollowing{room: m.room, marks: maps.Clone(m.marks), copies: maps.Clone(m.copies), assigned: maps.Clone(m.assigned), unsettled: map[followed]map[string]ports.Unsettled{}}
	for at, keys := range m.unsettled {
		c.unsettled[at] = maps.Clone(keys)
	}
	return c
}

func (s *memoryState) Follower(name string, f ports.Family) (ports.FollowerMark, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	mark, ok := s.following.marks[followed{name, f}]
	mark.Position.Seqs, mark.Repaired = maps.Clone(mark.Position.Seqs), maps.Clone(mark.Repaired)
	return mark, ok, nil
}

func (s *memoryState) SetFollower(name string, f ports.Family, mark ports.FollowerMark) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.following.marks == nil {
		s.following.marks = map[followed]ports.FollowerMark{}
	}
	mark.Position.Seqs, mark.Repaired = maps.Clone(mark.Position.Seqs), maps.Clone(mark.Repaired)
	s.following.marks[followed{name, f}] = mark
	return nil
}

func (s *memoryState) Unsettled(name string, f ports.Family, after string, limit int) (page []ports.Unsettled, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := s.following.unsettled[followed{name, f}]
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if key > after && len(page) < limit {
			page = append(page, keys[key])
		}
	}
	return page, nil
}

func (s *memoryState) SetUnsettled(name string, f ports.Family, keys []ports.Unsettled) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := followed{name, f}
	if s.following.unsettled == nil {
		s.following.unsettled = map[followed]map[string]ports.Unsettled{}
	}
	if s.following.unsettled[at] == nil {
		s.following.unsettled[at] = map[string]ports.Unsettled{}
	}
	more := 0
	for _, u := range keys {
		if _, known := s.following.unsettled[at][u.Key]; !known {
			more++
		}
	}
	if n := len(s.following.unsettled[at]) + more; s.following.room > 0 && more > 0 && n > s.following.room {
		return &ports.Error{Code: ports.Full, Op: "memory", Limit: int64(s.following.room), Size: int64(n), Message: name + " would have too many unsettled keys"}
	}
	all := maps.Clone(s.following.unsettled[at])
	for _, u := range keys {
		all[u.Key] = u
	}
	if len(all) > s.keyRoom {
		return &ports.Error{Code: ports.Full, Limit: int64(s.keyRoom), Size: int64(len(all)), Message: "too many keys are unsettled"}
	}
	s.following.unsettled[at] = all
	return nil
}

func (s *memoryState) DropUnsettled(name string, f ports.Family, keys ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		delete(s.following.unsettled[followed{name, f}], key)
	}
	return nil
}

func (s *memoryState) CopyMark(from, to string, f ports.Family) (*ports.CopyMark, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if mark, ok := s.following.copies[[3]string{from, to, string(f)}]; ok {
		return &mark, nil
	}
	return nil, nil
}

func (s *memoryState) SetCopyMark(from, to string, f ports.Family, mark *ports.CopyMark) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := [3]string{from, to, string(f)}
	if s.following.copies == nil {
		s.following.copies = map[[3]string]ports.CopyMark{}
	}
	if mark == nil {
		delete(s.following.copies, at)
		return nil
	}
	s.following.copies[at] = *mark
	return nil
}

func (s *memoryState) Assignment(f ports.Family) (*ports.Assignment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.following.assigned[f], nil
}

func (s *memoryState) SetAssignment(f ports.Family, a *ports.Assignment) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.following.assigned == nil {
		s.following.assigned = map[ports.Family]*ports.Assignment{}
	}
	s.following.assigned[f] = a
	return nil
}
