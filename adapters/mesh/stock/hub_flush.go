package stock

// What a hub sends to a beacon that offers to keep history when it registers: all that its own store holds and it has not
// sent under that BeaconID, one call at a time, until one fails. Manifests come hollow: of a run only its summary is kept.

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// flushItems and flushRuns bound a sweep: what is beyond them is never sent.
const (
	flushItems  = 5000
	flushEvents = 1000
	flushRuns   = 1000
)

// Sweep is a flush that ended.
type Sweep struct {
	BeaconID string
	Family   string
	Pushed   int    // items or runs
	Stopped  string // the answer that ended it early; "" when it went through
}

// Keep puts an item and its events into the hub's own store, as if they had been written while no beacon kept history.
func (h *Hub) Keep(item json.RawMessage, events ...json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bridge.local.do("QP_UpsertWorkItem", encode(map[string]any{"WorkItem": item}))
	for _, event := range events {
		h.bridge.local.do("QP_AppendEvent", encode(map[string]any{"Event": event}))
	}
}

// KeepRun puts a run into the hub's memory.
func (h *Hub) KeepRun(manifest json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remember(manifest)
}

func (h *Hub) remember(manifest json.RawMessage) {
	run := inside(manifest)
	h.bridge.runs = slices.DeleteFunc(h.bridge.runs, func(other members) bool { return text(other["Hash"]) == text(run["Hash"]) })
	h.bridge.runs = append(h.bridge.runs, run)
}

// flush begins a sweep of each family for which the beacon is the first, unless one goes on.
func (h *Hub) flush(id string) {
	for family, sweep := range map[string]func(id, mark string, sent func(mark string)) string{
		QueueFamily: h.sweepItems, ManifestFamily: h.sweepRuns,
	} {
		key := family + " " + id
		if b := h.first(family); b == nil || b.BeaconID != id || h.bridge.flushing[key] {
			continue
		}
		h.bridge.flushing[key] = true
		h.spawn(func() {
			done := Sweep{BeaconID: id, Family: family}
			h.mu.Lock()
			mark := h.bridge.marks[key]
			h.mu.Unlock()
			done.Stopped = sweep(id, mark, func(mark string) {
				done.Pushed++
				h.mu.Lock()
				h.bridge.marks[key] = cmp.Or(mark, h.bridge.marks[key])
				h.mu.Unlock()
			})
			h.mu.Lock()
			delete(h.bridge.flushing, key)
			h.bridge.sweeps = append(h.bridge.sweeps, done)
			h.note()
			h.mu.Unlock()
		})
	}
}

// send makes one call of a sweep; what it gives is the answer that ends the sweep, "" when it may go on.
func (h *Hub) send(action string, settings map[string]any) string {
	h.mu.Lock()
	answer := h.call(action, settings, true)
	h.mu.Unlock()
	select {
	case doc := <-answer:
		if string(inside(doc)["Success"]) == "true" {
			return ""
		}
		return string(doc)
	case <-h.life.Done():
		return "the hub was closed"
	}
}

func (h *Hub) sweepItems(_, mark string, sent func(mark string)) string {
	for _, kept := range h.keptItems() {
		at := cmp.Or(text(kept.item["EnqueuedAt"]), text(kept.item["CreatedAt"]))
		if mark != "" && at != "" && at <= mark {
			continue
		}
		if stop := h.send("QP_UpsertWorkItem", map[string]any{"WorkItem": kept.item}); stop != "" {
			return stop
		}
		for _, event := range kept.events {
			if stop := h.send("QP_AppendEvent", map[string]any{"Event": event}); stop != "" {
				return stop
			}
		}
		sent(at)
	}
	return ""
}

// keptItem is an item of the local store as its rows are read: with row ids, without what has no column.
type keptItem struct {
	item   members
	events []members
}

func (h *Hub) keptItems() []keptItem {
	h.mu.Lock()
	defer h.mu.Unlock()
	local := h.bridge.local
	var kept []keptItem
	for n, key := range local.items.keys {
		k := keptItem{item: members{"IDBeaconWorkItem": integer(n + 1), "GUIDBeaconWorkItem": json.RawMessage(`""`)}}
		for name, value := range local.items.rows[key] {
			switch name {
			case "CreatedAt", "ClaimedAt", "RetryAfter", "RequireAffinityMatch":
			default:
				k.item[name] = value
			}
		}
		if string(k.item["LastError"]) == "null" {
			k.item["LastError"] = json.RawMessage(`""`)
		}
		for i, event := range local.events[key][:min(flushEvents, len(local.events[key]))] {
			e := members{
				"BeaconID": json.RawMessage(`""`), "CreateDate": json.RawMessage("null"),
				"IDBeaconWorkItemEvent": integer(h.bridge.eventIDs[key][i]),
			}
			maps.Copy(e, inside(event))
			k.events = append(k.events, e)
		}
		kept = append(kept, k)
	}
	slices.SortStableFunc(kept, func(a, b keptItem) int { return cmp.Compare(text(a.item["EnqueuedAt"]), text(b.item["EnqueuedAt"])) })
	return kept[:min(flushItems, len(kept))]
}

func integer(n int) json.RawMessage { return json.RawMessage(strconv.Itoa(n)) }

func (h *Hub) sweepRuns(_, mark string, sent func(mark string)) string {
	h.mu.Lock()
	runs := slices.Clone(h.bridge.runs)
	h.mu.Unlock()
	anchor := func(run members) string { return cmp.Or(text(run["StopTime"]), text(run["StartTime"])) }
	slices.SortStableFunc(runs, func(a, b members) int { return cmp.Compare(anchor(a), anchor(b)) })
	for _, run := range runs[:min(flushRuns, len(runs))] {
		at := anchor(run)
		if mark != "" && at != "" && at <= mark {
			continue
		}
		if stop := h.send("MS_UpsertManifest", map[string]any{"Manifest": hollow(run)}); stop != "" {
			return stop
		}
		sent(at)
	}
	return ""
}

// hollow is what a flush tells of a run.
func hollow(run members) members {
	h := members{"Live": json.RawMessage("false"), "TimingSummary": json.RawMessage("null"), "StagingPath": json.RawMessage(`""`)}
	for _, name := range []string{"Output", "GlobalState", "OperationState", "TaskOutputs", "TaskManifests", "WaitingTasks"} {
		h[name] = json.RawMessage("{}")
	}
	for _, name := range []string{"EventLog", "Errors", "Log"} {
		h[name] = json.RawMessage("[]")
	}
	kept := []string{
		"Hash", "OperationHash", "OperationName", "Status", "RunMode", "Live", "StartTime", "StopTime", "ElapsedMs", "StagingPath",
	}
	if text(run["Status"]) == "Waiting" {
		kept = append(kept, "WaitingTasks")
	}
	for _, name := range kept {
		if value, ok := run[name]; ok {
			h[name] = value
		}
	}
	return h
}
