package stock

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// alone is a hub with a clock moved by hand and one imagined worker; its writes go to its own store.
func alone(t *testing.T, pushes bool) (*Hub, *HandClock) {
	t.Helper()
	clock := NewHandClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	hub := NewHub(HubConfig{Clock: clock})
	t.Cleanup(hub.Close)
	hub.Imagine(Registration{Name: "worker", Capabilities: []string{"C"}}, pushes)
	return hub, clock
}

// written is what was written since the last call, in short: the action, and the status of a patch or the type of an event.
func written(h *Hub) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []string
	for _, f := range h.bridge.fired {
		settings := inside(f.Settings)
		short := map[string]string{
			"QP_UpsertWorkItem": "U " + text(inside(settings["WorkItem"])["Status"]), "QP_AppendEvent": "E " + text(inside(settings["Event"])["EventType"]),
			"QP_InsertAttempt": "A " + string(inside(settings["Attempt"])["AttemptNumber"]), "MS_UpsertManifest": "M " + text(inside(settings["Manifest"])["Status"]),
			"QP_UpdateAttemptOutcome": "O " + text(inside(settings["Patch"])["Outcome"]),
		}[f.Action]
		if f.Action == "QP_UpdateWorkItem" {
			patch := inside(settings["Patch"])
			short = "P " + text(patch["Status"])
			if patch["Status"] == nil {
				short = "P " + strings.Join(slices.Sorted(maps.Keys(patch)), "+")
			}
		}
		all = append(all, short)
	}
	h.bridge.fired = nil
	return strings.Join(all, ", ")
}

const health = "P Health+HealthComputedAt+HealthLabel+HealthReason"

func TestTheHubWritesWhatTheStockHubWrites(t *testing.T) {
	t.Parallel()
	spec := Spec{Capability: "C", Action: "A"}
	for _, c := range []struct {
		name   string
		pushes bool
		play   func(h *Hub, clock *HandClock)
		wanted string
	}{
		{"pushed and done", true, func(h *Hub, _ *HandClock) {
			_ = h.Complete(h.Enqueue(spec), Result{})
		}, "U Pending, E enqueued, P Complete, E completed, O Complete"},
		{"pushed and failed", true, func(h *Hub, _ *HandClock) {
			_ = h.Fail(h.Enqueue(spec), "boom", nil)
		}, "U Pending, E enqueued, P Error, E failed, O Error"},
		{"assigned by name and pushed", true, func(h *Hub, _ *HandClock) {
			_ = h.Complete(h.Enqueue(Spec{Capability: "C", AffinityKey: "worker"}), Result{})
		}, "U Assigned, E enqueued, P Complete, E completed, O Complete"},
		{"polled", false, func(h *Hub, _ *HandClock) {
			h.Enqueue(spec)
			_ = h.Complete(h.Poll("worker"), Result{})
		}, "U Pending, E enqueued, P Running, E dispatched, A 1, P Complete, E completed, O Complete"},
		{"assigned and polled", false, func(h *Hub, _ *HandClock) {
			h.Enqueue(Spec{Capability: "C", AffinityKey: "worker"})
			h.Poll("worker")
			if h.Poll("worker") != "" {
				panic("a beacon with one slot got two works")
			}
		}, "U Assigned, E enqueued"},
		{"dispatched by the scheduler", true, func(h *Hub, _ *HandClock) {
			first, second := h.Enqueue(spec), h.Enqueue(spec)
			h.mu.Lock() // the slot comes free without the push that goes with it
			h.named("worker").drop(first)
			h.mu.Unlock()
			h.Tick()
			_ = h.Complete(second, Result{})
		}, "U Pending, E enqueued, U Pending, E enqueued, P Dispatched, E dispatched, A 1, P Complete, E completed, O Complete"},
		{"progress", true, func(h *Hub, _ *HandClock) {
			h.Report(h.Enqueue(spec), Progress{})
		}, "U Pending, E enqueued, P LastEventAt+StartedAt"},
		{"failed with an attempt left", true, func(h *Hub, _ *HandClock) {
			_ = h.Fail(h.Enqueue(Spec{Capability: "C", Settings: map[string]any{"maxRetries": 3}}), "boom", nil)
			h.Tick()
			if s := h.State(); s.Waiting != 1 || len(s.Beacons[0].CurrentWorkItems) != 1 {
				panic("a retry is run, or gave its slot back")
			}
		}, "U Pending, E enqueued"},
		{"canceled before it began", false, func(h *Hub, _ *HandClock) {
			h.Cancel(h.Enqueue(spec), "why")
		}, "U Pending, E enqueued, P Canceled, E canceled"},
		{"canceled while it ran, and done all the same", true, func(h *Hub, _ *HandClock) {
			hash := h.Enqueue(spec)
			h.Cancel(hash, "why")
			_ = h.Complete(hash, Result{})
		}, "U Pending, E enqueued, P CancelReason+CancelRequested, E cancel_requested, P Complete, E completed, O Complete"},
		{"canceled, and done later", false, func(h *Hub, _ *HandClock) {
			hash := h.Enqueue(spec)
			h.Cancel(hash, "why")
			_ = h.Complete(hash, Result{})
		}, "U Pending, E enqueued, P Canceled, E canceled, P Complete, E completed, O Complete"},
		{"stalled", true, func(h *Hub, clock *HandClock) {
			h.Enqueue(spec)
			clock.Advance(121 * time.Second)
			h.HealthTick()
			h.HealthTick()
		}, "U Pending, E enqueued, " + health + ", P Stalled, E stalled, P Stalled"},
		{"recovered from a stall", true, func(h *Hub, clock *HandClock) {
			hash := h.Enqueue(Spec{Capability: "C", RunHash: "run-1"})
			clock.Advance(121 * time.Second)
			h.HealthTick()
			h.mu.Lock()
			h.item(hash).LastEventAt = h.stamp()
			h.mu.Unlock()
			h.HealthTick()
		}, "U Pending, E enqueued, " + health + ", P Stalled, E stalled, P Stalled, P Running, E unstalled"},
		{"reordered", false, func(h *Hub, _ *HandClock) {
			h.Reorder(h.Enqueue(spec), 5)
		}, "U Pending, E enqueued, P Priority, E reordered"},
		{"healthy", false, func(h *Hub, _ *HandClock) {
			h.Enqueue(spec)
			h.HealthTick()
			h.HealthTick()
		}, "U Pending, E enqueued, " + health + ", " + health},
		{"beacon lost", true, func(h *Hub, _ *HandClock) {
			h.Enqueue(spec)
			h.Forget("worker")
		}, "U Pending, E enqueued"},
		{"a run", true, func(h *Hub, _ *HandClock) {
			h.UpsertManifest(encode(map[string]any{"Hash": "run-1", "Status": "Waiting"}))
			h.UpsertManifest(encode(map[string]any{"Hash": "run-1", "Status": "Complete"}))
		}, "M Waiting, M Complete"},
		{"an exempt capability", false, func(h *Hub, _ *HandClock) {
			_ = h.Complete(h.Enqueue(Spec{Capability: "QueuePersistence"}), Result{})
			h.Enqueue(Spec{Capability: "MeadowProxy"})
			h.HealthTick() // the scheduler's list is shorter
		}, health},
		{"a login", false, func(h *Hub, _ *HandClock) {
			h.Enqueue(Spec{Capability: "Authentication"})
		}, "U Pending, E enqueued"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			hub, clock := alone(t, c.pushes)
			c.play(hub, clock)
			if got := written(hub); got != c.wanted {
				t.Errorf("written: %s\nwanted:  %s", got, c.wanted)
			}
		})
	}
}

func TestAWorkIsWrittenAboutAsThoughNobodyHadBegunIt(t *testing.T) {
	t.Parallel()
	hub, _ := alone(t, true)
	hash := hub.Enqueue(Spec{Capability: "C"})
	_ = hub.Complete(hash, Result{Outputs: encode(map[string]any{"X": 1})})
	held := hub.Local()
	item := inside(held.Items[hash])
	if text(item["Status"]) != "Complete" || string(item["DispatchedAt"]) != "null" || string(item["AttemptNumber"]) != "0" {
		t.Errorf("the item is %s", held.Items[hash])
	}
	if len(held.Events[hash]) != 2 || len(held.Attempts[hash]) != 0 {
		t.Errorf("%d events, %d attempts", len(held.Events[hash]), len(held.Attempts[hash]))
	}
}

// What is handed over late is handed over as it is then, not as it was when it was written.
func TestAWriteThatHadToWaitCarriesWhatCameAfterIt(t *testing.T) {
	t.Parallel()
	hub, url := open(t, HubConfig{})
	store := NewPersistence()
	b := join(t, store.Beacon(BeaconConfig{ServerURL: url, MaxConcurrent: 1}))
	hub.Imagine(Registration{Name: "worker", Capabilities: []string{"C"}}, true)
	b.Freeze()
	hub.Enqueue(Spec{Capability: "Nobody"}) // its upsert takes the only slot
	hash := hub.Enqueue(Spec{Capability: "C"})
	_ = hub.Complete(hash, Result{})
	first := make(chan string, 8)
	store.Watch(func(w Write) {
		if w.Key == hash && w.Action == "QP_UpsertWorkItem" {
			first <- text(inside(w.Record)["Status"])
		}
	})
	b.Thaw()
	awaitHub(t, hub, "the answers", idle)
	if got := <-first; got != "Complete" {
		t.Errorf("the upsert says %s", got)
	}
}

// A write whose answer was lost with the socket comes again over the next one, with the hash that it had.
func TestAWriteThatWasLostWithTheSocketIsDeliveredAgain(t *testing.T) {
	t.Parallel()
	hub, url := open(t, HubConfig{Ticking: true, BridgeTimeout: time.Minute})
	store := NewPersistence()
	b := store.Beacon(BeaconConfig{ServerURL: url, Clock: Hurry(1000)})
	var hashes []string
	b.Misbehave(func(w *Work) Fault {
		hashes = append(hashes, w.WorkItemHash)
		return Fault{Mute: len(hashes) == 1}
	})
	join(t, b)
	hub.mu.Lock()
	hub.write("QP_UpsertWorkItem", map[string]any{"WorkItem": map[string]any{"WorkItemHash": "w"}})
	hub.mu.Unlock()
	awaitBeacon(t, b, "the write", func(s BeaconState) bool { return s.Taken == 1 && s.Active == 0 })
	hub.DropSocket("persist")
	awaitHub(t, hub, "the answer", idle)
	if store.Writes() != 2 || len(hashes) != 2 || hashes[0] != hashes[1] {
		t.Errorf("%d writes of %v", store.Writes(), hashes)
	}
}

// What the real one was seen to do: a beacon of 25 ms a write and 4 slots loses what waits longer than 5 s for its turn.
func TestASlowBeaconLosesWhatTheStockHubWrites(t *testing.T) {
	t.Parallel()
	const items = 300
	hub, url := open(t, HubConfig{Clock: Hurry(50)})
	store := NewPersistence()
	b := join(t, store.Beacon(BeaconConfig{ServerURL: url, MaxConcurrent: 4, Clock: Hurry(50)}))
	b.Misbehave(Slow(25 * time.Millisecond))
	hub.Imagine(Registration{Name: "worker", Capabilities: []string{"C"}, MaxConcurrent: items}, true)
	for range items {
		_ = hub.Complete(hub.Enqueue(Spec{Capability: "C"}), Result{})
	}
	awaitHub(t, hub, "the answers", idle)
	done := 0
	for _, item := range store.Holds().Items {
		if text(inside(item)["Status"]) == "Complete" {
			done++
		}
	}
	if done == items || hub.State().Failures == 0 {
		t.Errorf("of %d works %d are there as done, after %d failures", items, done, hub.State().Failures)
	}
	if len(hub.Local().Items) != 0 {
		t.Error("what was lost was kept")
	}
}
