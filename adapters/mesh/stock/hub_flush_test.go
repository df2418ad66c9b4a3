package stock

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// A store is flushed again with each new BeaconID, in full, and events are doubled by a beacon that only appends.
func TestEveryReconnectFlushesEverythingAgain(t *testing.T) {
	t.Parallel()
	const items = 60
	hub, url := open(t, HubConfig{})
	keep(hub, items)
	store := NewPersistence()
	join(t, store.Beacon(BeaconConfig{ServerURL: url, Clock: Hurry(10_000)}))
	for n := 1; n <= 3; n++ {
		awaitHub(t, hub, "the sweeps", func(s HubState) bool { return len(s.Sweeps) == 2*n })
		held := store.Holds()
		if len(held.Items) != items || len(held.Manifests) != 1 || len(held.Events["w-00007"]) != 2*n {
			t.Errorf("after %d flushes: %d items, %d manifests, %d events", n, len(held.Items), len(held.Manifests), len(held.Events["w-00007"]))
		}
		if n < 3 {
			hub.DropSocket("persist")
		}
	}
	for _, s := range hub.State().Sweeps {
		if s.Stopped != "" || s.Family == QueueFamily && s.Pushed != items {
			t.Errorf("a sweep ended with %+v", s)
		}
	}
}

// keep gives a hub items with two events each, and a run.
func keep(hub *Hub, items int) {
	for n := range items {
		hash := "w-" + string([]byte{'0', byte('0' + n/1000%10), byte('0' + n/100%10), byte('0' + n/10%10), byte('0' + n%10)})
		at := iso(time.UnixMilli(int64(n)))
		hub.Keep(
			encode(map[string]any{"WorkItemHash": hash, "Status": "Complete", "EnqueuedAt": at, "LastEventAt": at}),
			encode(map[string]any{"WorkItemHash": hash, "EventType": "enqueued"}), encode(map[string]any{"WorkItemHash": hash, "EventType": "completed"}),
		)
	}
	hub.KeepRun(encode(map[string]any{"Hash": "run-1", "Status": "Complete", "StopTime": "2026-01-01T00:00:00.000Z", "Output": map[string]any{"a": 1}}))
}

func TestAFlushEndsAtTheFirstRefusal(t *testing.T) {
	t.Parallel()
	hub, url := open(t, HubConfig{})
	keep(hub, 10)
	store := NewPersistence()
	store.RefuseKey("w-00004", "no")
	join(t, store.Beacon(BeaconConfig{ServerURL: url}, QueueFamily))
	awaitHub(t, hub, "the sweep", func(s HubState) bool { return len(s.Sweeps) == 1 })
	if s := hub.State().Sweeps[0]; s.Pushed != 4 || !strings.Contains(s.Stopped, "no") {
		t.Errorf("the sweep ended with %+v", s)
	}
}

func TestAHeldWayLetsWritesGoInAnotherOrderAndTwice(t *testing.T) {
	t.Parallel()
	hub, url := open(t, HubConfig{})
	store := NewPersistence()
	b := join(t, store.Beacon(BeaconConfig{ServerURL: url, MaxConcurrent: 64}))
	hub.Hold("persist")
	for n := range 20 {
		hub.Enqueue(Spec{Capability: "Nobody", Priority: &n})
	}
	if hub.Held("persist") != 40 || store.Writes() != 0 {
		t.Fatalf("%d held, %d written", hub.Held("persist"), store.Writes())
	}
	r := rand.New(rand.NewPCG(1, 2))
	hub.Release("persist", r.Shuffle)
	awaitHub(t, hub, "the answers", idle)
	hub.Redeliver("persist", 10)
	awaitBeacon(t, b, "the second reports", func(s BeaconState) bool { return s.Reported == 50 })
	if held := store.Holds(); len(held.Items) != 20 || store.Writes() != 50 {
		t.Errorf("%d items after %d writes", len(held.Items), store.Writes())
	}
}

// The end of a run is told to the beacon alone: a new process finds the run under way on its disk, and flushes it as failed.
func TestARestartedHubTakesTheRunsForFailedWhoseEndItsBeaconWasTold(t *testing.T) {
	t.Parallel()
	hub, url := open(t, HubConfig{})
	hub.UpsertManifest(encode(map[string]any{"Hash": "run-1", "Status": "Complete", "StopTime": "2026-01-01T00:00:00.000Z"}))
	store := NewPersistence()
	join(t, store.Beacon(BeaconConfig{ServerURL: url, Clock: Hurry(10_000)}))
	hub.UpsertManifest(encode(map[string]any{"Hash": "run-2", "Status": "Complete", "StopTime": "2026-01-01T00:00:00.000Z", "ElapsedMs": 5}))
	awaitHub(t, hub, "the sweeps", func(s HubState) bool { return len(s.Sweeps) == 2 })
	hub.Restart()
	awaitHub(t, hub, "the next sweeps", func(s HubState) bool { return len(s.Sweeps) == 4 })
	held := store.Holds().Manifests
	if text(inside(held["run-1"])["Status"]) != "Complete" || text(inside(held["run-2"])["Status"]) != "Error" || string(inside(held["run-2"])["ElapsedMs"]) == "5" {
		t.Errorf("the store was told %s", encode(held))
	}
}
