package core

import "holdfast/ports"

// claim says that a follower's backend is the store with this id; no other one may be.
func (h *Host) claim(w *follower, storeID string) error {
	if storeID == "" {
		return nil
	}
	h.claims.Lock()
	defer h.claims.Unlock()
	twin := ""
	if h.link.store() == storeID {
		twin = h.link.name
	}
	for name, b := range h.backends {
		if name != w.Name && b.claimed() == storeID {
			twin = name
		}
	}
	if twin != "" {
		w.backend.claimStore("")
		return &needError{
			ports.Errorf(ports.Conflict, w.Name, "is the same store as the backend %s (%s)", twin, storeID),
			"give each backend a store of its own; a copied store needs a new, empty place",
		}
	}
	w.backend.claimStore(storeID)
	return nil
}

func (b *backend) claimed() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.storeID
}

func (b *backend) claimStore(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.storeID = id
}
