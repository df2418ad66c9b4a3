package stock

// What a hub does by the clock or for an operator. Its two ticks come by the clock only when it is configured so.

import (
	"cmp"
	"slices"
	"time"
)

// The ticks of the scheduler and of the health of works.
const (
	scheduleEvery = 500 * time.Millisecond
	healthEvery   = 5 * time.Second
)

// stallAfter is twice the heartbeat that the stock hub expects of a work, whatever its beacon says.
const stallAfter = 120 * time.Second

// Tick is the scheduler: works that wait are dispatched to the beacon with the fewest works, the most urgent first. To a
// beacon without a socket the push fails, and nobody takes the work back.
func (h *Hub) Tick() {
	h.mu.Lock()
	defer h.mu.Unlock()
	var waiting []*WorkItem
	for item := range h.items() {
		if item.Status == "Pending" || item.Status == "Queued" {
			waiting = append(waiting, item)
		}
	}
	slices.SortStableFunc(waiting, func(a, b *WorkItem) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.EnqueuedAt, b.EnqueuedAt))
	})
	for _, item := range waiting {
		if item.CancelRequested {
			h.markCanceled(item, "Canceled before dispatch")
			continue
		}
		if b := h.choose(item); b != nil {
			h.dispatchTo(item, b)
		}
	}
	h.note()
}

func (h *Hub) choose(item *WorkItem) *record {
	if item.AssignedBeaconID != nil {
		return h.ready(h.beacon(*item.AssignedBeaconID), item)
	}
	if b := h.named(item.AffinityKey); b != nil && item.AffinityKey != "" {
		return h.ready(b, item)
	}
	var best *record
	for _, b := range h.beacons {
		if h.ready(b, item) != nil && (best == nil || len(b.CurrentWorkItems) < len(best.CurrentWorkItems)) {
			best = b
		}
	}
	return best
}

// ready gives the beacon back when it can take the work; a Busy one cannot.
func (h *Hub) ready(b *record, item *WorkItem) *record {
	if b == nil || b.Status != "Online" || b.full() || !b.can(item.Capability) {
		return nil
	}
	return b
}

func (h *Hub) dispatchTo(item *WorkItem, b *record) {
	now, from := h.stamp(), item.Status
	item.Status, item.AssignedBeaconID, item.DispatchedAt, item.LastEventAt = "Dispatched", &b.BeaconID, &now, now
	first(&item.AssignedAt, now)
	item.QueueWaitMs = since(item.EnqueuedAt, h.now())
	item.AttemptNumber++
	h.describe(item, item.AttemptNumber)
	if !slices.Contains(b.CurrentWorkItems, item.WorkItemHash) {
		b.CurrentWorkItems = append(b.CurrentWorkItems, item.WorkItemHash)
	}
	if !scheduled(item) {
		h.write("QP_UpdateWorkItem", map[string]any{"WorkItemHash": item.WorkItemHash, "Patch": map[string]any{
			"Status": "Dispatched", "AssignedBeaconID": b.BeaconID, "AssignedAt": item.AssignedAt, "DispatchedAt": now,
			"QueueWaitMs": item.QueueWaitMs, "AttemptNumber": item.AttemptNumber, "LastEventAt": now, "Settings": item.Settings,
		}})
		h.writeEvent(item, "dispatched", from, "Dispatched", true, map[string]any{"QueueWaitMs": item.QueueWaitMs})
		h.writeAttempt(item)
	}
	h.push(b, item)
}

// scheduled says whether the scheduler writes nothing about a work. Its list is shorter than the coordinator's: works for a
// databeacon are written about here.
func scheduled(item *WorkItem) bool {
	return item.Capability == QueueFamily || item.Capability == ManifestFamily
}

// HealthTick judges every work that has not ended, writes what it finds also when nothing changed, and stalls what has been
// silent for 120 s.
func (h *Hub) HealthTick() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for item := range h.items() {
		switch item.Status {
		case "Completed", "Complete", "Failed", "Error", "Timeout", "Canceled":
			continue
		case "Stalled":
			h.recover(item)
			continue
		}
		now := h.stamp()
		item.Health, item.HealthLabel, item.HealthReason, item.HealthComputedAt = nil, "Unknown", "insufficient_signal", &now
		if item.DispatchedAt != nil {
			well := 1.0
			item.Health, item.HealthLabel, item.HealthReason = &well, "Healthy", "nominal"
		}
		if !scheduled(item) {
			h.write("QP_UpdateWorkItem", map[string]any{"WorkItemHash": item.WorkItemHash, "Patch": map[string]any{
				"Health": item.Health, "HealthLabel": item.HealthLabel, "HealthReason": item.HealthReason, "HealthComputedAt": now,
			}})
		}
		if item.DispatchedAt != nil && since(item.LastEventAt, h.now()) > stallAfter.Milliseconds() {
			h.stall(item)
		}
	}
	h.note()
}

// Stall does to a work what 120 s of silence do, final or not: only a work of a run stays, and only while nobody ends it.
func (h *Hub) Stall(hash string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	item := h.item(hash)
	if item == nil {
		return false
	}
	h.stall(item)
	return true
}

func (h *Hub) stall(item *WorkItem) {
	from, now := item.Status, h.stamp()
	item.PriorStatus, item.Status, item.StalledAt, item.StalledSinceMs = from, "Stalled", now, since(item.LastEventAt, h.now())
	if !scheduled(item) {
		h.write("QP_UpdateWorkItem", patchOf(item, map[string]any{"Status": "Stalled", "StalledAt": now}))
		h.writeEvent(item, "stalled", from, "Stalled", true, map[string]any{"LastEventAt": item.LastEventAt, "StalledSinceMs": item.StalledSinceMs})
	}
	if item.stalled {
		return
	}
	item.stalled = true
	h.patch(item, map[string]any{"Status": "Stalled", "CompletedAt": now, "LastEventAt": now})
	h.release(item.AssignedBeaconID, item.WorkItemHash)
	if item.RunHash == "" {
		h.remove(item)
	}
}

// recover takes a stall back when the work has been heard of since.
func (h *Hub) recover(item *WorkItem) {
	if since(item.LastEventAt, h.now()) > stallAfter.Milliseconds() {
		return
	}
	item.Status, item.PriorStatus, item.StalledAt, item.StalledSinceMs = item.PriorStatus, "", "", 0
	orDefault(&item.Status, "Running")
	if !scheduled(item) {
		h.write("QP_UpdateWorkItem", patchOf(item, map[string]any{"Status": item.Status}))
		h.writeEvent(item, "unstalled", "Stalled", item.Status, true, nil)
	}
}

// Cancel asks for the end of a work: at once when nobody has begun it, else as a mark that no beacon is told of.
func (h *Hub) Cancel(hash, reason string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	item := h.item(hash)
	if item == nil {
		return false
	}
	item.CancelReason = reason
	switch item.Status {
	case "Running", "Dispatched":
		item.CancelRequested = true
		h.write("QP_UpdateWorkItem", patchOf(item, map[string]any{"CancelRequested": true, "CancelReason": reason}))
		h.writeEvent(item, "cancel_requested", item.Status, item.Status, false, map[string]any{"Reason": reason})
	case "Pending", "Queued", "Assigned", "RetryScheduled":
		item.CancelRequested = true
		h.markCanceled(item, reason)
	default:
		return false
	}
	h.note()
	return true
}

func (h *Hub) markCanceled(item *WorkItem, reason string) {
	now, from := h.stamp(), item.Status
	item.Status, item.LastEventAt = "Canceled", now
	first(&item.CanceledAt, now)
	orDefault(&item.CancelReason, reason)
	if !scheduled(item) {
		h.write("QP_UpdateWorkItem", patchOf(item, map[string]any{
			"Status": "Canceled", "CanceledAt": item.CanceledAt, "CancelReason": item.CancelReason, "LastEventAt": now,
		}))
		h.writeEvent(item, "canceled", from, "Canceled", false, map[string]any{"Reason": item.CancelReason})
	}
}

// Reorder gives a work that waits another priority.
func (h *Hub) Reorder(hash string, priority int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	item := h.item(hash)
	if item == nil || item.Status != "Pending" && item.Status != "Assigned" && item.Status != "Queued" {
		return false
	}
	old, direction := item.Priority, "up"
	if priority < old {
		direction = "down"
	}
	item.Priority = priority
	h.write("QP_UpdateWorkItem", patchOf(item, map[string]any{"Priority": priority}))
	h.writeEvent(item, "reordered", item.Status, item.Status, false, map[string]any{
		"Direction": direction, "OldPriority": old, "NewPriority": priority,
	})
	return true
}

func patchOf(item *WorkItem, patch map[string]any) map[string]any {
	return map[string]any{"WorkItemHash": item.WorkItemHash, "Patch": patch}
}
