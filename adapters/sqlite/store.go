package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// Store is a backend of kind sqlite. Use New, then Configure. The file is opened when it is first needed; while that
// fails every call says why and tries again, so that an operator's remedy needs no restart.
type Store struct {
	gate chan struct{} // a lock that a context can give up on; it guards what follows

	conf       settings
	configured bool
	closed     bool
	drained    bool
	file       *file
	work       *writer

	pruning     chan struct{} // one prune at a time; it guards sweep
	sweep       tables.Sweep
	searchLimit time.Duration // of a list that must look at rows which it does not give
}

var (
	_ ports.LocalStore = (*Store)(nil)
	_ ports.Configurer = (*Store)(nil)
	_ ports.Pruner     = (*Store)(nil)
	_ ports.Exporter   = (*Store)(nil)
	_ ports.Drainer    = (*Store)(nil)
	_ ports.Surveyor   = (*Store)(nil)
)

// New makes a store that waits for Configure.
func New() *Store {
	return &Store{gate: make(chan struct{}, 1), pruning: make(chan struct{}, 1), searchLimit: 500 * time.Millisecond}
}

// version is that of the plugin.
const version = "1.0.0"

// Describe says what the store is.
func (s *Store) Describe(context.Context) (ports.Description, error) {
	return ports.Description{
		Kind: "sqlite", Version: version,
		Summary:  "one SQLite file, written by one goroutine, safe against power loss",
		Families: ports.Families,
		Powers:   ports.PowersOf(s),
		Options:  options,
		Slots:    0, // readers wait for nobody, and writers have one line

		Contained: true,
	}, nil
}

// Configure takes the options; see ports.Configurer.
func (s *Store) Configure(_ context.Context, c ports.Configuration) error {
	conf, err := parseOptions(c)
	if err != nil {
		return err
	}
	s.gate <- struct{}{}
	defer s.unlock()
	s.conf, s.configured = conf, true
	return nil
}

func (s *Store) lock(ctx context.Context) error {
	select {
	case s.gate <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Store) unlock() { <-s.gate }

// open gives the open file. One that was moved or replaced is let go of, and what the path leads to now is opened.
func (s *Store) open(ctx context.Context) (*file, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.unlock()
	err := s.opened()
	return s.file, err
}

// writer gives the writer, unless the store takes no more work.
func (s *Store) writer(ctx context.Context) (*writer, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.unlock()
	if s.drained {
		return nil, errDrained
	}
	err := s.opened()
	return s.work, err
}

func (s *Store) opened() error {
	switch {
	case s.closed:
		return errClosed
	case !s.configured:
		return ports.Errorf(ports.Unavailable, "sqlite", "the store was not configured")
	case s.file != nil:
		err := s.file.here()
		if err == nil {
			return nil
		}
		// What could not be given back belonged to a file that is gone.
		_ = s.letGo(err)
	}
	f, l, err := openFile(s.conf)
	if err == nil {
		s.file, s.work = f, startWriter(f, l, s.conf)
	}
	return err
}

var (
	errClosed  = ports.Errorf(ports.Unavailable, "sqlite", "the store is closed")
	errDrained = ports.Errorf(ports.Unavailable, "sqlite", "the store was drained and takes no more work")
)

// letGo stops the writer and closes the file; what was in line fails with the reason.
func (s *Store) letGo(reason error) error {
	err := errors.Join(s.file.readers.Close(), s.file.snapshots.close(), s.work.stop(reason))
	s.file, s.work = nil, nil
	return err
}

// probeBytes is the size of the write for which a probe wants room.
const probeBytes = 64 << 10

// Probe asks for a write transaction and gives it back; see ports.Backend.
func (s *Store) Probe(ctx context.Context, _ ports.Family) error {
	const op = "sqlite: probe"
	w, err := s.writer(ctx)
	if err != nil {
		return err
	}
	return w.do(ctx, true, func() error {
		if err := w.roomFor(op, probeBytes); err != nil {
			return err
		}
		return w.try(op)
	})
}

// Drain finishes what is in line, empties the write-ahead log and takes no more work.
func (s *Store) Drain(ctx context.Context) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	s.drained = true
	w := s.work
	s.unlock()
	if w == nil {
		return nil
	}
	err := w.do(ctx, false, func() error {
		return fault("sqlite: drain", w.file.path, w.checkpoint("TRUNCATE", time.Second))
	})
	w.queue.Close(errDrained, false)
	return err
}

// Close stops the writer and releases the file. Batches in line fail as Unavailable; those that were not answered may have
// been committed.
func (s *Store) Close() error {
	s.gate <- struct{}{}
	defer s.unlock()
	s.closed = true
	if s.file == nil {
		return nil
	}
	return s.letGo(errClosed)
}

func (s *Store) readFault(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	return fault(op, s.conf.path, timedOut(ctx, err))
}

// key gives a row of UVHoldfast, "" where there is none.
func (f *file) key(ctx context.Context, key string) (value string, err error) {
	err = f.readers.QueryRowContext(ctx, readKey, key).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return value, err
}

func (f *file) keyJSON(ctx context.Context, key string, into any) (found bool, err error) {
	text, err := f.key(ctx, key)
	if err != nil || text == "" {
		return false, err
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return false, ports.Errorf(ports.Internal, "sqlite", "UVHoldfast has an unreadable %s: %v", key, err)
	}
	return true, nil
}

func (f *file) exists(ctx context.Context, query string, args ...any) (bool, error) {
	var one int
	err := f.readers.QueryRowContext(ctx, query, args...).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}
