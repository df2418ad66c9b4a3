package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"

	bolt "go.etcd.io/bbolt"

	"holdfast/ports"
)

// persistence-assignment.json shows which beacon keeps each family's history:
//
//	{"Queue": {"BeaconID": "...", "IDBeaconConnection": 3, "AssignedAt": "2026-01-01T00:00:00Z"}, "Manifest": null}
//
// What a person writes into it while the host is down counts at the next start. A family that is not in it is left as it is.

type assignmentsMirror struct {
	mirror
	known   byFamily[*ports.Assignment] // what was last written, as state.db says
	written bool                        // something was
}

// writeAssignments writes the file from state.db. What it then has is what was there last: each who changes an assignment
// comes here afterwards.
func (s *State) writeAssignments() {
	m := &s.assignments
	m.writing.Lock()
	defer m.writing.Unlock()
	if m.closed {
		return
	}
	content, err := s.allAssignments()
	if err == nil {
		err = m.write(content)
	}
	if err == nil {
		err = s.rememberMirror(assignmentsName, content)
	}
	if m.say(err); err == nil {
		m.known, m.written = content, true
	}
}

func (s *State) allAssignments() (all byFamily[*ports.Assignment], err error) {
	for _, f := range ports.Families {
		if *all.of(f), err = s.Assignment(f); err != nil {
			return all, err
		}
	}
	return all, nil
}

// meetAssignments reads the file at the start. Where it differs from state.db a person changed it, unless it has what was
// last written: then the host died before it could write what it had been told since.
func (s *State) meetAssignments() error {
	m := &s.assignments
	var err error
	err = s.view("read mirror", func(tx *bolt.Tx) error {
		m.written, err = getKeyed(tx.Bucket(bucketMirrors), []byte(assignmentsName), &m.known)
		return err
	})
	if err != nil {
		return err
	}
	var file byFamily[json.RawMessage]
	text, found, damage := m.read(&file)
	words := map[ports.Family]*ports.Assignment{}
	for _, f := range ports.Families {
		if damage != nil || len(*file.of(f)) == 0 {
			continue
		}
		words[f], damage = assignmentIn(*file.of(f))
	}
	if damage != nil {
		clear(words)
		m.setAsideDamaged(damage, s.now())
	}
	for _, f := range ports.Families {
		if word, said := words[f]; said {
			if err := s.meetAssignment(f, word); err != nil {
				return err
			}
		}
	}
	all, err := s.allAssignments()
	if err != nil || !found && !m.written && all.Queue == nil && all.Manifest == nil {
		return err
	}
	if now, err := render(all); err != nil || !bytes.Equal(now, text) || !m.written {
		s.writeAssignments()
	}
	return nil
}

func (s *State) meetAssignment(f ports.Family, word *ports.Assignment) error {
	m := &s.assignments
	now, err := s.Assignment(f)
	if err != nil || same(word, now) || m.written && same(word, *m.known.of(f)) {
		return err
	}
	if word != nil && word.AssignedAt == "" {
		word.AssignedAt = s.now().UTC().Format(time.RFC3339)
	}
	if word == nil {
		s.log.Info(assignmentsName+" was changed: no beacon keeps this history any more", "family", f)
	} else {
		s.log.Info(assignmentsName+" was changed: another beacon keeps this history", "family", f,
			"beacon", word.BeaconID, "connection", word.IDBeaconConnection)
	}
	return s.storeAssignment(f, word)
}

func same(a, b *ports.Assignment) bool { return a == b || a != nil && b != nil && *a == *b }

// assignmentIn reads one family's word.
func assignmentIn(text json.RawMessage) (*ports.Assignment, error) {
	if string(text) == "null" {
		return nil, nil
	}
	var a ports.Assignment
	if err := strictly(text, &a); err != nil {
		return nil, err
	}
	if a.BeaconID == "" || a.IDBeaconConnection < 0 {
		return nil, errors.New("an assignment needs a BeaconID and an IDBeaconConnection that is not negative")
	}
	return &a, nil
}
