package core

import (
	"maps"
	"slices"
	"strings"

	"holdfast/ports"
)

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
		if name != w.Name && b.claims(storeID) {
			twin = name
		}
	}
	if twin != "" {
		w.backend.claimStore(w.family.name, "")
		return &needError{
			ports.Errorf(ports.Conflict, w.Name, "is the same store as the backend %s (%s)", twin, storeID),
			"give each backend a store of its own; a copied store needs a new, empty place",
		}
	}
	w.backend.claimStore(w.family.name, storeID)
	return nil
}

// claims says whether one of a backend's families is kept in a store.
func (b *backend) claims(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Contains(slices.Collect(maps.Values(b.storeIDs)), id)
}

// claimed gives the ids of a backend's stores as one text: usually it has one for all families.
func (b *backend) claimed() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var ids []string
	for _, f := range ports.Families {
		if id := b.storeIDs[f]; id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return strings.Join(ids, ", ")
}

func (b *backend) claimStore(f ports.Family, id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.storeIDs == nil {
		b.storeIDs = map[ports.Family]string{}
	}
	b.storeIDs[f] = id
}
