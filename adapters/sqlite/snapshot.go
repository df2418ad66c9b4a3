package sqlite

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/semaphore"

	"holdfast/ports"
)

// snapshots lends connections on which several statements see one state of the file. The statements are kept from one call to
// the next, because the same few are asked all the time; for that database/sql costs more than they do.
type snapshots struct {
	file *file
	conf settings
	room *semaphore.Weighted

	mu     sync.Mutex
	idle   []*reading
	closed bool
}

// reading is a connection that only reads, and what it remembers of the last call.
type reading struct {
	*link
	epochs map[ports.Family]epochList
}

// epochList is a host's list as it stands in the file, and what it says. It is long and seldom changes.
type epochList struct {
	text string
	list []ports.Epoch
}

// maxSnapshots is how many may be in use at once: more would only wait for the same cores.
const maxSnapshots = 4

func newSnapshots(f *file, conf settings) *snapshots {
	return &snapshots{file: f, conf: conf, room: semaphore.NewWeighted(maxSnapshots)}
}

// view runs a function that sees one state of the file.
func (s *snapshots) view(ctx context.Context, look func(*reading) error) (err error) {
	if err := s.room.Acquire(ctx, 1); err != nil {
		return err
	}
	defer s.room.Release(1)
	r, err := s.take()
	if err != nil {
		return err
	}
	clean := false // also after a panic: a snapshot that nobody ends would let the write-ahead log grow for ever
	defer func() { err = errors.Join(err, s.give(r, !clean)) }()
	tx, err := r.begin()
	if err != nil {
		return err
	}
	err = look(r)
	ended := tx.Rollback()
	clean = ended == nil && !broken(err)
	return errors.Join(err, ended)
}

func (s *snapshots) take() (*reading, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	if n := len(s.idle); n > 0 {
		r := s.idle[n-1]
		s.idle = s.idle[:n-1]
		return r, nil
	}
	l, err := dial(dsn(s.conf.path, s.conf.busy, reads))
	if err != nil {
		return nil, err
	}
	if err := s.file.here(); err != nil { // it may be another file's connection
		return nil, errors.Join(err, l.close())
	}
	return &reading{link: l, epochs: map[ports.Family]epochList{}}, nil
}

// give takes a connection back. One that gave a fault is not used again.
func (s *snapshots) give(r *reading, faulty bool) error {
	s.mu.Lock()
	if !faulty && !s.closed {
		s.idle = append(s.idle, r)
		s.mu.Unlock()
		return nil
	}
	s.mu.Unlock()
	err := r.close()
	if faulty {
		return nil // what it says at its end is nothing new
	}
	return err
}

// close gives back what is idle; what is in use follows when it is done.
func (s *snapshots) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	var all []error
	for _, r := range s.idle {
		all = append(all, r.close())
	}
	s.idle = nil
	return errors.Join(all...)
}
