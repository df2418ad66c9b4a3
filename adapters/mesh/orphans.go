package mesh

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"holdfast/core"
	"holdfast/ports"
)

// A hub that was killed leaves the items of what was underway open in the history. Each item names the start of the hub that
// it belongs to (HubStart): the host's id, and a GUID of that start. So the next start of the same host knows them. For as long
// as a lost connection has, their beacons may still report; then they are ended, with the outcome unknown.

// openStatuses are those of items that a hub has not ended.
var openStatuses = []string{"Pending", "Assigned", "Running"}

// The bounds of the search.
const (
	orphanPage     = 500
	maxOrphanPages = 20 // the newest 10,000 open items
)

var errOrphan = ports.Errorf(ports.BackendGone, "mesh", "the hub stopped before it was reported; the outcome is unknown")

// endOrphans finds what an earlier start left open, and ends it when its time has passed, or when ctx ends.
func (h *Hub) endOrphans(ctx context.Context) {
	if h.core == nil {
		return
	}
	found := h.findOrphans(ctx)
	if len(found) == 0 {
		return
	}
	h.look(func() {
		h.orphans = make(map[string]*work, len(found))
		for _, w := range found {
			h.orphans[w.Hash] = w
		}
	})
	h.log.Info("works of an earlier start are still open in the history; what is not reported soon is ended", "works", len(found), "within", h.timing.Grace)
	select {
	case <-time.After(h.timing.Grace):
	case <-ctx.Done():
	}
	ended := 0
	for batch := range slices.Chunk(found, orphanPage) {
		_ = h.record.room(ctx) // what is full for long takes these few as well
		h.step(func(now time.Time) {
			for _, w := range batch {
				if h.orphaned(w.Hash, "", outcome{err: errOrphan, at: now}) {
					ended++
				}
			}
		})
	}
	h.look(func() { h.orphans = nil })
	h.log.Info("works of an earlier start are ended; their outcome is unknown", "works", ended)
}

// orphaned ends a work of an earlier start. false: there is none, or it was another beacon's. It is called in a step.
func (h *Hub) orphaned(hash, from string, o outcome) bool {
	w := h.orphans[hash]
	if w == nil || from != "" && !strings.HasPrefix(w.record.startedOn, idOf(from)) {
		return false
	}
	delete(h.orphans, hash)
	h.works.ended.add(hash)
	w.answer = o
	if w.record.startedOn != "" {
		h.record.attempted(w) // the kill may have come before that was recorded
	}
	h.record.finished(w)
	return true
}

// findOrphans reads the open items until that succeeds or ctx ends; the oldest come first.
func (h *Hub) findOrphans(ctx context.Context) (found []*work) {
	pause := 50 * time.Millisecond
	for {
		var err error
		if found, err = h.readOrphans(ctx); err == nil {
			slices.Reverse(found)
			return found
		}
		h.log.Debug("the history does not tell yet what an earlier start left open", "reason", err)
		pause = min(2*pause, 10*time.Second)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// readOrphans walks the open items, the newest first. It fails with Unavailable when the history cannot say all that it has.
func (h *Hub) readOrphans(ctx context.Context) (found []*work, err error) {
	var after *ports.Cursor
	for range maxOrphanPages {
		a := h.core.Items(ctx, ports.ItemQuery{Filter: ports.ItemFilter{Status: openStatuses}, Desc: true, After: after, Limit: orphanPage})
		switch {
		case a.Situation == core.NotFound:
			return found, nil
		case !a.Success() || a.Stale:
			return nil, ports.Errorf(ports.Unavailable, "mesh", "the open items cannot be read (%v), or not all of them", a.Err)
		}
		_ = ports.ScanItems(listOf(a), func(item []byte) { // it comes from the core
			if w := h.orphanOf(item); w != nil {
				found = append(found, w)
			}
		})
		if a.Cursor == "" {
			break
		}
		if after, err = ports.ParseCursor(a.Cursor); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// orphanOf makes a work of an item that an earlier start of this host left open; nil: it is none.
func (h *Hub) orphanOf(text []byte) *work {
	var item struct{ WorkItemHash, Capability, Action, AffinityKey, Status, AssignedBeaconID, DispatchedAt, HubStart string }
	if json.Unmarshal(text, &item) != nil || item.HubStart == h.record.start || !strings.HasPrefix(item.HubStart, h.core.HostID()+"/") {
		return nil
	}
	w := &work{Hash: item.WorkItemHash, state: done, affinity: item.AffinityKey, record: &recording{actor: hubActor}}
	w.Capability, w.Action = item.Capability, item.Action
	switch item.Status {
	case "Assigned":
		w.Beacon = item.AffinityKey
	case "Running":
		w.record.startedOn = item.AssignedBeaconID
	}
	var err error
	if w.sentAt, err = time.Parse(time.RFC3339, item.DispatchedAt); err != nil {
		w.sentAt = h.clock()
	}
	return w
}

// hubActor is who ends what nobody reported.
const hubActor = "hub"
