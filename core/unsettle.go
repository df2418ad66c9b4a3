package core

import (
	"strings"
	"time"

	"holdfast/ports"
)

// What a person can do about a follower's keys and about the follower as a whole.

// ofBackend gives a backend's follower of a family, or says which backends there are.
func (h *Host) ofBackend(name string, f ports.Family) (*follower, error) {
	if w := h.follower(name, f); w != nil {
		return w, nil
	}
	if h.isLocal(name) {
		return nil, ports.InField(ports.Invalid, "Backend", "%s is the local store, which follows nobody; what it does not take is set aside", name)
	}
	return nil, ports.InField(ports.NotFound, "Backend", "%s is no backend; the backends are %s", name, strings.Join(h.backendNames(), ", "))
}

// UnsettledKeys lists the unsettled keys of a backend and family in order, after a key.
func (h *Host) UnsettledKeys(backend string, f ports.Family, after string, limit int) ([]UnsettledStatus, error) {
	w, err := h.ofBackend(backend, f)
	if err != nil {
		return nil, err
	}
	list := []UnsettledStatus{}
	for _, k := range w.keys.list(after, limit) {
		list = append(list, UnsettledStatus{
			Backend: w.Name, Family: f, Key: k.Key, Kind: k.Kind, Code: k.Code, Reason: k.Reason, First: k.First, Last: k.Last,
			At: time.UnixMilli(k.AtMs).UTC(),
		})
	}
	return list, nil
}

// RetryUnsettled has a key copied again, or all that a backend refused of a family with an empty key, and says how many. What
// is in doubt settles by itself.
func (h *Host) RetryUnsettled(backend string, f ports.Family, key string) (int, error) {
	w, err := h.ofBackend(backend, f)
	if err != nil {
		return 0, err
	}
	n := w.keys.retry(key)
	if n == 0 && key != "" {
		return 0, ports.InField(ports.NotFound, "Key", "is not unsettled in %s; `holdfast unsettled list` shows what is", backend)
	}
	w.tell(happening{kind: poked})
	notify(w.poke)
	return n, nil
}

// DiscardUnsettled gives a key up: the backend does not have it, and reads of it go elsewhere.
func (h *Host) DiscardUnsettled(backend string, f ports.Family, key string) error {
	w, err := h.ofBackend(backend, f)
	if err != nil {
		return err
	}
	if err := w.keys.discard(key, h.clock()); err != nil {
		return err
	}
	h.log.Warn("a key was given up for a backend", "name", backend, "family", f)
	return nil
}

// Resync copies everything to a backend again, from zero. Nothing is removed from it.
func (h *Host) Resync(backend string) error {
	for _, name := range ports.Families {
		w, err := h.ofBackend(backend, name)
		if err != nil {
			return err
		}
		w.startOver("a person asked for it")
	}
	return nil
}

// startOver ends the session; the next one begins at zero.
func (w *follower) startOver(why string) {
	w.mu.Lock()
	w.zero = why
	w.mark.Position, w.fresh, w.dirty = ports.Position{StoreID: w.mark.Position.StoreID}, ports.Position{}, true
	if w.ends != nil {
		w.ends()
	}
	w.mu.Unlock()
	if err := w.remember(true); err != nil {
		w.host.log.Error("remember how far a follower is", "name", w.Name, "family", w.family.name, "error", err)
	}
	w.tell(happening{kind: poked})
}
