package reference

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"holdfast/ports"
)

// Store is a backend of kind reference. Disks make it; Configure gives it its disk.
type Store struct {
	disks *Disks

	mu     sync.Mutex
	disk   *disk
	ended  error // of every call from now on but Describe; nil while it works
	killed bool
	opener opener
}

// opener is the host that opened the store in this life of it.
type opener struct {
	host      string // "" before Open
	retention time.Duration
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
func (all *Disks) New() *Store { return &Store{disks: all} }

// Describe says what the store is.
func (s *Store) Describe(context.Context) (ports.Description, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.killed {
		return ports.Description{}, s.ended
	}
	return ports.Description{
		Kind: "reference", Version: "1.0.0", Summary: "history in memory, for tests",
		Families: ports.Families, Powers: ports.PowersOf(s), Contained: true,
	}, nil
}

// Configure finds the disk of the data directory. There are no options.
func (s *Store) Configure(_ context.Context, c ports.Configuration) error {
	var given map[string]json.RawMessage
	if len(c.Options) > 0 {
		if err := json.Unmarshal(c.Options, &given); err != nil {
			return ports.Errorf(ports.Invalid, "reference: configure", "options are not one object: %v", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		return ports.InField(ports.Invalid, name, "is unknown; there are no options")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disk = s.disks.at(c.DataDir)
	return nil
}

// use hands the disk to one call, as a transaction or a snapshot.
func (s *Store) use(ctx context.Context, op string, do func(d *disk, by opener) error) error {
	op = "reference: " + op
	if err := ctx.Err(); err != nil {
		return ports.Wrap(ports.CodeOf(err), op, err)
	}
	s.mu.Lock()
	d, by, err := s.disk, s.opener, s.ended
	s.mu.Unlock()
	switch {
	case err != nil:
		return err
	case d == nil:
		return ports.Errorf(ports.Unavailable, op, "the store was not configured")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return do(d, by)
}

// look is use of one family.
func (s *Store) look(ctx context.Context, op string, f ports.Family, do func(h *half, d *disk, by opener) error) error {
	return s.use(ctx, op, func(d *disk, by opener) error {
		h := d.halves[f]
		if h == nil {
			return ports.Errorf(ports.Invalid, "reference: "+op, "%q is no family", f)
		}
		return do(h, d, by)
	})
}

// Probe checks that the store works.
func (s *Store) Probe(ctx context.Context, f ports.Family) error {
	return s.look(ctx, "probe", f, func(*half, *disk, opener) error { return nil })
}

// Drain takes no more work. Nothing is ever under way between two calls.
func (s *Store) Drain(ctx context.Context) error {
	err := s.use(ctx, "drain", func(*disk, opener) error { return nil })
	s.end(ports.Errorf(ports.Unavailable, "reference", "the store was drained and takes no more work"), false)
	return err
}

// Close ends the store. Its disk stays.
func (s *Store) Close() error {
	s.end(ports.Errorf(ports.Unavailable, "reference", "the store is closed"), false)
	return nil
}

// Kill ends the store as SIGKILL ends a process: it answers nothing any more. Its disk stays.
func (s *Store) Kill() {
	s.end(ports.Errorf(ports.BackendGone, "reference", "the store was killed"), true)
}

func (s *Store) end(why error, killed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.killed {
		s.ended, s.killed = why, killed
	}
}

// Survey counts what the store holds. It counts at once, or after its deadline not at all.
func (s *Store) Survey(ctx context.Context) (ports.Survey, error) {
	survey := ports.Survey{Counts: map[ports.Kind]int64{}}
	if ctx.Err() == context.DeadlineExceeded {
		survey.Partial = true
		return survey, nil
	}
	return survey, s.use(ctx, "survey", func(d *disk, _ opener) error {
		for _, h := range d.halves {
			for at, record := range h.held {
				survey.Counts[at.kind]++
				survey.Bytes += int64(len(record.Record.JSON()))
			}
		}
		return nil
	})
}
