package beacon

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"holdfast/ports"
)

// Whether a beacon that has connected anew still is the store that it was. It has no id and no position, so the keys that were
// put last are read: one that is missing or different means that it came back empty or older.

// comparing is how many keys are read at a time.
const comparing = 8

// compare finds out about a session, and makes it the present one.
func (h *half) compare(ctx context.Context, at seat) error {
	h.mu.Lock()
	known := h.page.clone()
	h.mu.Unlock()
	other := known.StoreID == "" || known.Beacon != at.name
	if !other && len(known.Recent) == 0 {
		other = !isZero(known.Position) // it says that it has something, and nobody knows what
	} else if !other {
		same, err := h.same(ctx, at, known.Recent)
		if err != nil {
			return err
		}
		other = !same
	}
	if err := h.confirm(ctx, at); err != nil {
		return err
	}
	return h.take(at, other)
}

// same says whether a beacon has what was put last.
func (h *half) same(ctx context.Context, at seat, keys []recent) (bool, error) {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(min(comparing, at.slots))
	for i := range keys {
		all.Go(func() error {
			has, err := at.has(ctx, &keys[i])
			if err == nil && !has {
				err = errOther
			}
			return err
		})
	}
	err := all.Wait()
	if err == nil || errors.Is(err, errOther) {
		return err == nil, nil
	}
	return false, ports.Errorf(ports.Unavailable, "beacon", "whether the beacon %q has what it had is not known yet: %v", at.name, err)
}

var errOther = ports.Errorf(ports.Conflict, "beacon", "it is another store")

// has says whether a beacon has what was put of a key.
func (s *seat) has(ctx context.Context, r *recent) (bool, error) {
	if len(r.States) > 0 || r.Gone {
		is, err := s.hasState(ctx, r)
		if !is || err != nil {
			return false, err
		}
	}
	if len(r.Events) == 0 {
		return true, nil
	}
	entries, err := s.events(ctx, ports.ClassRead, r.Key)
	if err != nil {
		return false, err
	}
	for _, e := range r.Events {
		at := shownBy(entries, entry{guid: e.GUID, content: e.Content})
		if at < 0 {
			return false, nil
		}
		entries[at].claimed = e.GUID
	}
	return true, nil
}

func (s *seat) hasState(ctx context.Context, r *recent) (bool, error) {
	given, _, err := s.record(ctx, ports.ClassRead, r.Key)
	switch {
	case err != nil:
		return false, err
	case given == nil:
		return r.Gone || !r.Kept, nil
	case slices.ContainsFunc(r.States, func(d digest) bool { return d.shows(given) }):
		return true, nil
	}
	i, ok := readImprint(given)
	return ok && i.ChangeHost == r.Change.Host && i.ChangeSeq > r.Change.Seq && r.Kept, nil
}

func isZero(p ports.Position) bool {
	for _, seq := range p.Seqs {
		if seq > 0 {
			return false
		}
	}
	return true
}
