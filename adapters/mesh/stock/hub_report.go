package stock

// What becomes of a work once somebody has it: progress, success, failure, and what each writes.

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Result is what a beacon reports of a success.
type Result struct {
	Outputs json.RawMessage
	Log     json.RawMessage
}

// poll gives a beacon its next work: what is assigned to it, else the first of the free pool that it can do.
func (h *Hub) poll(id string) *WorkItem {
	b := h.beacon(id)
	if b == nil {
		return nil
	}
	b.LastHeartbeat = h.stamp()
	h.note()
	if b.full() {
		return nil
	}
	for item := range h.items() {
		if item.Status == "Assigned" && *item.AssignedBeaconID == id {
			h.pick(item, b, false)
			return item
		}
	}
	for item := range h.items() {
		if item.Status != "Pending" || item.AssignedBeaconID != nil || !b.can(item.Capability) {
			continue
		}
		if item.RequireAffinityMatch && item.AffinityKey != "" && b.Name != item.AffinityKey {
			continue
		}
		h.pick(item, b, true)
		return item
	}
	return nil
}

func (h *Hub) pick(item *WorkItem, b *record, free bool) {
	now, from := h.stamp(), item.Status
	item.Status, item.LastEventAt = "Running", now
	if free {
		item.AssignedBeaconID, item.ClaimedAt = &b.BeaconID, &now
		first(&item.AssignedAt, now)
		b.CurrentWorkItems = append(b.CurrentWorkItems, item.WorkItemHash)
	}
	first(&item.StartedAt, now)
	first(&item.DispatchedAt, now)
	orDefault(&item.QueueWaitMs, since(item.EnqueuedAt, h.now()))
	item.AttemptNumber++
	patch := map[string]any{
		"Status": "Running", "StartedAt": item.StartedAt, "DispatchedAt": item.DispatchedAt, "LastEventAt": now,
		"QueueWaitMs": item.QueueWaitMs, "AttemptNumber": item.AttemptNumber,
	}
	if free {
		patch["AssignedBeaconID"], patch["AssignedAt"] = b.BeaconID, item.AssignedAt
	}
	h.patch(item, patch)
	h.persistEvent(item, "dispatched", from, "Running", true, map[string]any{"QueueWaitMs": item.QueueWaitMs, "Path": "poll"})
	h.persistAttempt(item)
	if free {
		h.bind(item, b)
	}
}

// first sets what is not set yet.
func first(stamp **string, now string) {
	if *stamp == nil {
		*stamp = &now
	}
}

// open finds a work that may still be reported on. Canceled and Stalled ones may.
func (h *Hub) open(hash string) (*WorkItem, error) {
	item := h.item(hash)
	if item == nil {
		return nil, fmt.Errorf("BeaconCoordinator: work item [%s] not found.", hash) //nolint:revive,staticcheck // the text is the stock hub's
	}
	switch item.Status {
	case "Complete", "Error", "Timeout":
		return nil, fmt.Errorf("BeaconCoordinator: work item [%s] already finalized (%s).", hash, item.Status) //nolint:revive,staticcheck // likewise
	}
	return item, nil
}

// Complete reports a success.
func (h *Hub) Complete(hash string, r Result) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	item, err := h.open(hash)
	if err != nil {
		return err
	}
	orJSON(&r.Outputs, "{}")
	orJSON(&r.Log, "[]")
	now, from := h.stamp(), item.Status
	item.Status, item.CompletedAt, item.LastEventAt = "Complete", &now, now
	took := h.took(item)
	result := map[string]any{"Outputs": r.Outputs, "Log": r.Log}
	h.patch(item, map[string]any{"Status": "Complete", "CompletedAt": now, "LastEventAt": now, "Result": result})
	h.persistEvent(item, "completed", from, "Complete", true, map[string]any{"DurationMs": took})
	h.persistOutcome(item, map[string]any{"CompletedAt": now, "Outcome": "Complete", "DurationMs": took})
	item.Result = result
	h.release(item.AssignedBeaconID, hash)
	h.remove(item)
	h.settle(hash, Outcome{Outputs: r.Outputs, Log: r.Log})
	return nil
}

// Fail reports a failure. With attempts left the work is scheduled again, for ever, and keeps its slot.
func (h *Hub) Fail(hash, message string, log json.RawMessage) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	item, err := h.open(hash)
	if err != nil {
		return err
	}
	orDefault(&message, "Unknown error")
	orJSON(&log, "[]")
	item.LastError = &message
	if item.AttemptNumber < item.MaxAttempts-1 {
		item.AttemptNumber++
		after := h.now().UnixMilli() + item.RetryBackoffMs*int64(item.AttemptNumber)
		item.Status, item.RetryAfter, item.ClaimedAt, item.AssignedBeaconID = "RetryScheduled", &after, nil, nil
		h.note()
		return nil
	}
	now, from := h.stamp(), item.Status
	item.Status, item.CompletedAt, item.LastEventAt = "Error", &now, now
	item.Result = map[string]any{"Error": message, "Log": log}
	took := h.took(item)
	h.patch(item, map[string]any{
		"Status": "Error", "CompletedAt": now, "LastEventAt": now, "LastError": message, "Result": item.Result,
	})
	h.persistEvent(item, "failed", from, "Error", true, map[string]any{"Error": message, "DurationMs": took})
	h.persistOutcome(item, map[string]any{"CompletedAt": now, "Outcome": "Error", "ErrorMessage": message, "DurationMs": took})
	h.release(item.AssignedBeaconID, hash)
	h.remove(item)
	h.settle(hash, Outcome{Err: errors.New(message)})
	return nil
}

func orJSON(doc *json.RawMessage, fallback string) {
	if len(*doc) == 0 || string(*doc) == "null" {
		*doc = json.RawMessage(fallback)
	}
}

func (h *Hub) took(item *WorkItem) int64 {
	if item.DispatchedAt == nil {
		return 0
	}
	return since(*item.DispatchedAt, h.now())
}

// Report is the progress that a beacon tells.
func (h *Hub) Report(hash string, p Progress) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	item := h.item(hash)
	if item == nil || item.Status != "Running" && item.Status != "Assigned" {
		return false
	}
	now := h.stamp()
	item.LastEventAt = now
	first(&item.StartedAt, now)
	item.Progress = map[string]any{"Percent": p.Percent, "Message": p.Message, "Step": p.Step, "TotalSteps": p.TotalSteps, "UpdatedAt": now}
	item.AccumulatedLog = append(item.AccumulatedLog, p.Log...)
	h.patch(item, map[string]any{"LastEventAt": now, "StartedAt": item.StartedAt})
	h.note()
	return true
}

// Poll asks for work as the beacon of that name; "" is none.
func (h *Hub) Poll(name string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	b := h.named(name)
	if b == nil {
		return ""
	}
	if item := h.poll(b.BeaconID); item != nil {
		return item.WorkItemHash
	}
	return ""
}
