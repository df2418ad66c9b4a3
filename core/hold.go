package core

import (
	"context"

	"holdfast/ports"
)

// What repairs ask of a follower: to stand still, to go back, to take a finding.

// holdFollower stops a backend's following of a family; what is under way has ended when it returns.
func (h *Host) holdFollower(ctx context.Context, name string, f ports.Family) (release func(), err error) {
	w := h.follower(name, f)
	if w == nil {
		return func() {}, nil
	}
	w.mu.Lock()
	w.held++
	ended := w.ended
	if w.ends != nil {
		w.ends()
	}
	w.mu.Unlock()
	release = func() {
		w.mu.Lock()
		w.held--
		w.mu.Unlock()
		w.tell(happening{kind: poked})
		notify(w.begin)
	}
	if ended == nil {
		return release, nil
	}
	select {
	case <-ended:
		return release, nil
	case <-ctx.Done():
		release()
		return nil, ctx.Err()
	}
}

// lowerFollower has a held follower go on at the lower of its position and another.
func (h *Host) lowerFollower(name string, f ports.Family, p ports.Position) error {
	w := h.follower(name, f)
	if w == nil {
		return nil
	}
	w.mu.Lock()
	low := lower(w.mark.Position, p)
	low.StoreID = w.mark.Position.StoreID
	w.mark.Position, w.dirty, w.fresh = low, true, ports.Position{}
	w.mu.Unlock()
	return w.remember(true)
}

// followerReady says whether a follower has everything that the local store had a moment ago.
func (h *Host) followerReady(op, name string, f ports.Family) error {
	w := h.follower(name, f)
	if w == nil {
		return nil
	}
	if m := w.mode(); m != modeReady {
		return ports.Errorf(ports.Conflict, op, "%s is %s; wait until it has caught up, see `holdfast backends`", name, m)
	}
	return nil
}

// budgetOf gives what a follower's calls share; nil for no limit.
func (h *Host) budgetOf(name string) *budget {
	if b := h.backends[name]; b != nil {
		return b.slots()
	}
	return nil
}

// verified tells a follower what was found out about it.
func (h *Host) verified(name string, f ports.Family, equal bool, onlyThere int64) error {
	w := h.follower(name, f)
	if w == nil {
		return nil
	}
	w.mu.Lock()
	w.only = &onlyThere
	if equal && w.mark.Doubtful {
		w.mark.Doubtful, w.dirty = false, true
	}
	w.mu.Unlock()
	return w.remember(true)
}
