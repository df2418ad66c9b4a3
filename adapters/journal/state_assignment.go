package journal

import (
	bolt "go.etcd.io/bbolt"

	"holdfast/ports"
)

// Which beacon keeps a family's history: a person's word, so it is the mirror's when a person changed that.

// Assignment gives the beacon that keeps a family's history; nil for none.
func (s *State) Assignment(f ports.Family) (a *ports.Assignment, err error) {
	err = s.view("assignment", func(tx *bolt.Tx) error {
		_, err := getKeyed(tx.Bucket(bucketAssignments), []byte(f), &a)
		return err
	})
	if err != nil {
		return nil, err
	}
	return a, nil
}

// SetAssignment remembers the beacon, or that there is none, and writes the mirror.
func (s *State) SetAssignment(f ports.Family, a *ports.Assignment) error {
	if err := s.storeAssignment(f, a); err != nil {
		return err
	}
	s.writeAssignments()
	return nil
}

func (s *State) storeAssignment(f ports.Family, a *ports.Assignment) error {
	return s.update("set assignment", func(tx *bolt.Tx) error {
		return putKeyed(tx.Bucket(bucketAssignments), []byte(f), a)
	})
}
