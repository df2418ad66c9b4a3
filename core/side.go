package core

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"holdfast/ports"
)

// A repair works between two sides: backends that it reads, and one that it may write to.

// side is a backend as a repair uses it. What it cannot do is nil.
type side struct {
	name     string
	local    bool // the local store
	store    ports.Backend
	families []ports.Family
	budget   *budget
	lanes    int // calls that may be under way at a time
	piece    int // records in a piece of a walk

	exporter  ports.Exporter
	items     ports.ItemReader
	events    ports.EventReader
	attempts  ports.AttemptReader
	manifests ports.ManifestReader
	surveyor  ports.Surveyor
}

// Limits of what a repair asks of a backend.
const (
	callLimit  = 10 * time.Second // of one call
	awayLimit  = 30 * time.Second // how long a side that was there may be away
	reachLimit = 5 * time.Second  // to find out that it is there
	maxLanes   = 8                // of a backend that says how many it takes; SQLite, which does not, is slower with two than with one
)

// side finds a backend by its name and makes sure that it answers. "local" is the local store, whatever its name.
func (h *Host) side(ctx context.Context, op, name string) (*side, error) {
	s := &side{name: name, lanes: 1, piece: cmp.Or(h.repairs.piece, walkLimit)}
	if h.isLocal(name) {
		s.name, s.local, s.store = h.link.name, true, h.link.Store
		if err := h.localReady(op); err != nil {
			return nil, err
		}
	} else if s.store = h.repairs.store(name); s.store == nil {
		return nil, ports.InField(ports.NotFound, name, "is no backend; the backends are %s", strings.Join(h.backendNames(), ", "))
	}
	ctx, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	d, err := s.store.Describe(ctx)
	if err == nil && !s.local && len(d.Families) > 0 {
		_, err = s.store.Position(ctx, d.Families[0])
	}
	if err != nil {
		return nil, ports.Wrap(ports.Unavailable, op+": "+s.name, err)
	}
	s.learn(d)
	if !s.local {
		s.budget = h.budgetOf(name)
	}
	return s, nil
}

// routeLocal is what the local store is called wherever a backend is named.
const routeLocal = "local"

func (h *Host) isLocal(name string) bool { return name == routeLocal || name == h.link.name }

// localReady says whether the local store can be asked, as a repair needs it.
func (h *Host) localReady(op string) error {
	if p, detail := h.link.now(); p != ready {
		return ports.Errorf(ports.Unavailable, op, "the local store is %s: %s; see `holdfast status`", p, detail)
	}
	return nil
}

func (h *Host) backendNames() []string {
	names := []string{h.link.name}
	for _, f := range h.repairs.others {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	return names
}

// learn takes in what the backend declares.
func (s *side) learn(d ports.Description) {
	s.families = d.Families
	if d.Slots > 1 {
		s.lanes = min(maxLanes, d.Slots-1)
	}
	s.surveyor, _ = ports.As[ports.Surveyor](s.store, d)
	s.exporter, _ = ports.As[ports.Exporter](s.store, d)
	s.items, _ = ports.As[ports.ItemReader](s.store, d)
	s.events, _ = ports.As[ports.EventReader](s.store, d)
	s.attempts, _ = ports.As[ports.AttemptReader](s.store, d)
	s.manifests, _ = ports.As[ports.ManifestReader](s.store, d)
	if local, ok := ports.As[ports.LocalStore](s.store, d); ok {
		s.items, s.events, s.attempts, s.manifests = local, local, local, local
	}
}

// looksUp says whether all records of a key can be read.
func (s *side) looksUp(f ports.Family) bool {
	if f == ports.Manifest {
		return s.manifests != nil
	}
	return s.items != nil && s.events != nil && s.attempts != nil
}

// common lists the families that both keep.
func common(op string, a, b *side) (list []ports.Family, err error) {
	for _, f := range ports.Families {
		if slices.Contains(a.families, f) && slices.Contains(b.families, f) {
			list = append(list, f)
		}
	}
	if len(list) == 0 {
		err = ports.Errorf(ports.Unimplemented, op, "%s and %s keep nothing of the same family", a.name, b.name)
	}
	return list, err
}

// ask calls the side, each time with a deadline, again after a failure that may pass, for as long as a side may be away. It
// ends with ctx, and then gives ctx's error.
func (s *side) ask(ctx context.Context, call func(ctx context.Context) error) error {
	var since time.Time
	for wait := firstPause; ; wait = min(wait*2, lastPause) {
		began := time.Now()
		err := s.once(ctx, call)
		switch {
		case err == nil || ports.CodeOf(err).Permanent():
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case since.IsZero():
			since = began
		case time.Since(since) > awayLimit:
			return ports.Wrap(ports.Unavailable, s.name, err)
		}
		if pause(ctx, wait); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func (s *side) once(ctx context.Context, call func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	if err := s.budget.take(ctx, ofCatchUp); err != nil {
		return err
	}
	defer s.budget.give()
	return call(ctx)
}
