package stock

// Which beacon of a hub gets a work: the one that its affinity key names or is bound to, else the first with a free slot.

import "slices"

// assign fixes the beacon of a work by its affinity key: the beacon of that name, or the one the key is bound to. Nobody asks
// whether that beacon can do it.
func (h *Hub) assign(item *WorkItem) {
	if item.AffinityKey == "" {
		return
	}
	b := h.named(item.AffinityKey)
	if b == nil && !item.RequireAffinityMatch {
		if binding := h.bindings[item.AffinityKey]; binding != nil {
			b = h.beacon(binding.BeaconID)
			if b != nil && binding.ExpiresAt <= h.stamp() {
				delete(h.bindings, item.AffinityKey)
				b = nil
			}
		}
	}
	if b == nil {
		return
	}
	now := h.stamp()
	item.AssignedBeaconID, item.Status, item.ClaimedAt = &b.BeaconID, "Assigned", &now
	b.CurrentWorkItems = append(b.CurrentWorkItems, item.WorkItemHash)
}

// bind ties the key of a work to the beacon that took it, unless it is tied already.
func (h *Hub) bind(item *WorkItem, b *record) {
	if item.AffinityKey == "" || h.bindings[item.AffinityKey] != nil {
		return
	}
	h.bindings[item.AffinityKey] = &Binding{
		AffinityKey: item.AffinityKey, BeaconID: b.BeaconID, RunHash: item.RunHash, CreatedAt: h.stamp(),
		ExpiresAt: iso(h.now().Add(h.config.AffinityTTL)),
	}
}

// pushFree gives a work of the free pool to the first beacon with a socket that can take it.
func (h *Hub) pushFree(item *WorkItem) {
	for _, b := range slices.Clone(h.beacons) {
		if b.Status != "Online" && b.Status != "Busy" || b.full() || !b.can(item.Capability) {
			continue
		}
		if item.RequireAffinityMatch && item.AffinityKey != "" && b.Name != item.AffinityKey {
			continue
		}
		now := h.stamp()
		item.Status, item.AssignedBeaconID = "Running", &b.BeaconID
		item.ClaimedAt, item.DispatchedAt, item.LastEventAt = &now, &now, now
		b.CurrentWorkItems = append(b.CurrentWorkItems, item.WorkItemHash)
		h.bind(item, b)
		if h.push(b, item) {
			return
		}
		item.Status, item.AssignedBeaconID, item.ClaimedAt = "Pending", nil, nil
		b.drop(item.WorkItemHash)
	}
}

// pushAssigned gives a work to the beacon that it is assigned to, when fewer works run there than it takes.
func (h *Hub) pushAssigned(item *WorkItem) {
	b := h.beacon(*item.AssignedBeaconID)
	if b == nil || b.Status != "Online" && b.Status != "Busy" || h.running(b) >= b.MaxConcurrent {
		return
	}
	item.Status = "Running"
	if !h.push(b, item) {
		item.Status = "Assigned"
	}
}

func (h *Hub) running(b *record) int {
	n := 0
	for _, hash := range b.CurrentWorkItems {
		if item := h.item(hash); item != nil && item.Status == "Running" && item.AssignedBeaconID != nil && *item.AssignedBeaconID == b.BeaconID {
			n++
		}
	}
	return n
}

// pushWaiting goes through the works that wait, in the order of their arrival.
func (h *Hub) pushWaiting() {
	for item := range h.items() {
		switch {
		case item.Status == "Assigned" && item.AssignedBeaconID != nil:
			h.pushAssigned(item)
		case item.Status == "Pending" && item.AssignedBeaconID == nil:
			h.pushFree(item)
		}
	}
}

// release frees the slot of a work.
func (h *Hub) release(beacon *string, hash string) {
	if beacon == nil {
		return
	}
	b := h.beacon(*beacon)
	if b == nil {
		return
	}
	b.drop(hash)
	if !b.full() {
		b.Status = "Online"
	}
	h.pushWaiting()
}

func (b *record) drop(hash string) {
	b.CurrentWorkItems = slices.DeleteFunc(b.CurrentWorkItems, func(other string) bool { return other == hash })
}
