package stock

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
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
				short = "P " + strings.Join(slices.Sorted(keys(patch)), "+")
			}
		}
		all = append(all, short)
	}
	h.bridge.fired = nil
	return strings.Join(all, ", ")
}

func keys(m members) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
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
			h.UpsertManifest(doc(map[string]any{"Hash": "run-1", "Status": "Waiting"}))
			h.UpsertManifest(doc(map[string]any{"Hash": "run-1", "Status": "Complete"}))
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
	_ = hub.Complete(hash, Result{Outputs: doc(map[string]any{"X": 1})})
	held := hub.Local()
	item := inside(held.Items[hash])
	if text(item["Status"]) != "Complete" || string(item["DispatchedAt"]) != "null" || string(item["AttemptNumber"]) != "0" {
		t.Errorf("the item is %s", held.Items[hash])
	}
	if len(held.Events[hash]) != 2 || len(held.Attempts[hash]) != 0 {
		t.Errorf("%d events, %d attempts", len(held.Events[hash]), len(held.Attempts[hash]))
	}
}

func TestAKeyBindsToABeaconWhateverItCanDo(t *testing.T) {
	t.Parallel()
	hub, url := open(t, HubConfig{BridgeTimeout: time.Second})
	join(t, NewBeacon(BeaconConfig{ServerURL: url, Name: "databeacon", Actions: []Action{echo("MeadowProxy", "Request")}, MaxConcurrent: 10}))
	if o := hub.Dispatch(Spec{Capability: "MeadowProxy", Action: "Request", AffinityKey: "queue-persistence"}); o.Err != nil {
		t.Fatal(o.Err)
	}
	store := NewPersistence()
	join(t, store.Beacon(BeaconConfig{ServerURL: url}))
	answer := inside(hub.Call("QP_UpsertWorkItem", map[string]any{"WorkItem": map[string]any{"WorkItemHash": "w1"}}))
	if string(answer["ExitCode"]) != "-1" || store.Writes() != 0 {
		t.Errorf("the call was answered with %s and %d writes", document(answer), store.Writes())
	}
}

func TestABootstrappedDatabeaconKeepsTheWritesAlsoWhenItIsGone(t *testing.T) {
	t.Parallel()
	hub, url := open(t, HubConfig{BridgeTimeout: 50 * time.Millisecond})
	hub.Bootstrap()
	store := NewPersistence()
	join(t, store.Beacon(BeaconConfig{ServerURL: url}))
	answer := inside(hub.Call("QP_UpsertWorkItem", map[string]any{"WorkItem": map[string]any{"WorkItemHash": "w1"}}))
	if string(answer["Success"]) != "false" || store.Writes() != 0 || len(hub.Local().Items) != 0 {
		t.Errorf("the call was answered with %s and %d writes", document(answer), store.Writes())
	}
}

// The scheduler takes work of the free pool from those who poll for it.
func TestPollersGetNoWorkThatTheSchedulerHasSeen(t *testing.T) {
	t.Parallel()
	hub, _ := alone(t, false)
	hub.Enqueue(Spec{Capability: "C"})
	hub.Tick()
	if got := hub.Poll("worker"); got != "" {
		t.Errorf("the poller got %s", got)
	}
	if b := hub.State().Beacons[0]; len(b.CurrentWorkItems) != 1 {
		t.Errorf("its slots: %v", b.CurrentWorkItems)
	}
}

func TestALostBeaconsWorkIsGivenToAnother(t *testing.T) {
	t.Parallel()
	hub, url := open(t, HubConfig{})
	let := make(chan struct{})
	one := join(t, NewBeacon(BeaconConfig{ServerURL: url, Name: "one", Actions: []Action{behind(let)}, Clock: NewHandClock(time.Now())}))
	hub.Enqueue(Spec{Capability: "C", Action: "A"})
	awaitBeacon(t, one, "the work", func(s BeaconState) bool { return s.Active == 1 })
	two := join(t, NewBeacon(BeaconConfig{ServerURL: url, Name: "two", Actions: []Action{behind(let)}}))
	one.Kill()
	awaitHub(t, hub, "the loss", func(s HubState) bool { return s.Beacon("one") == nil && s.Waiting == 1 })
	hub.Tick()
	awaitBeacon(t, two, "the work", func(s BeaconState) bool { return s.Active == 1 })
	close(let)
	awaitHub(t, hub, "the report", func(s HubState) bool { return s.Running+s.Waiting == 0 })
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

func TestARestartedHubKnowsNobody(t *testing.T) {
	t.Parallel()
	hub, url := open(t, HubConfig{})
	b := join(t, NewBeacon(BeaconConfig{ServerURL: url, Name: "w", Actions: []Action{echo("C", "A")}, Clock: Hurry(1000)}))
	join(t, NewBeacon(BeaconConfig{ServerURL: url, Name: "poller", ForceHTTP: true, Clock: Hurry(100)}))
	hub.Restart()
	awaitBeacon(t, b, "the return", func(s BeaconState) bool { return s.Registered == 2 && s.Connected })
	if s := hub.State(); s.Beacon("poller") != nil || s.Beacon("w") == nil {
		t.Errorf("the hub knows %+v", s.Beacons)
	}
	if o := hub.Dispatch(Spec{Capability: "C", Action: "A"}); o.Err != nil {
		t.Error(o.Err)
	}
}

func TestTheHubIsReadThroughWhoKeepsItsHistory(t *testing.T) {
	t.Parallel()
	hub, url := open(t, HubConfig{})
	store := NewPersistence()
	join(t, store.Beacon(BeaconConfig{ServerURL: url}))
	hub.Imagine(Registration{Name: "worker", Capabilities: []string{"C"}}, true)
	hash := hub.Enqueue(Spec{Capability: "C"})
	_ = hub.Complete(hash, Result{})
	hub.UpsertManifest(doc(map[string]any{"Hash": "run-1", "Status": "Complete"}))
	awaitHub(t, hub, "the answers", idle)
	for path, wanted := range map[string]string{
		"/Beacon/Queue?include=history": hash, "/Beacon/Work/" + hash + "/Events": "completed", "/Manifest": "run-1",
		"/Manifest/run-1": "Complete", "/Beacon": "persist", "/Beacon/Affinity": "queue-persistence",
		"/Beacon/Capabilities": "QP_GetEvents", "/Ultravisor/Persistence/Status": "unassigned", "/status": "promiscuous",
		"/Manifest/none": "not found", "/Nowhere": "ResourceNotFound", "/Beacon/Register": "Beacon not found",
		"/1.0/Authenticate": "MethodNotAllowed",
	} {
		if got := get(t, url+path); !strings.Contains(got, wanted) {
			t.Errorf("%s: %s", path, got)
		}
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url) //nolint:gosec // a test's own server
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

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
			doc(map[string]any{"WorkItemHash": hash, "Status": "Complete", "EnqueuedAt": at, "LastEventAt": at}),
			doc(map[string]any{"WorkItemHash": hash, "EventType": "enqueued"}), doc(map[string]any{"WorkItemHash": hash, "EventType": "completed"}),
		)
	}
	hub.KeepRun(doc(map[string]any{"Hash": "run-1", "Status": "Complete", "StopTime": "2026-01-01T00:00:00.000Z", "Output": map[string]any{"a": 1}}))
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

func TestAnAuthenticationBeaconDecidesAndItsSecretsAreWrittenDown(t *testing.T) {
	t.Parallel()
	hub, url := open(t, HubConfig{Secured: true, BootstrapSecret: "boot"})
	decides := []Action{echo("Authentication", "AUTH_Login"), echo("Authentication", "AUTH_ValidateBeaconJoin")} // against everybody
	join(t, NewBeacon(BeaconConfig{ServerURL: url, Name: "auth", JoinSecret: "boot", Actions: decides, MaxConcurrent: 10}))
	bad := NewBeacon(BeaconConfig{ServerURL: url, Name: "w", JoinSecret: "hush", UserName: "u", Password: "word"})
	t.Cleanup(bad.Kill)
	done := make(chan error, 1)
	ctx := within(t)
	go func() { done <- bad.Start(ctx) }()
	awaitBeacon(t, bad, "the refusal", func(s BeaconState) bool { return s.Sockets == 1 && !s.Connected })
	var all []byte
	for _, f := range hub.Fired() {
		all = append(all, f.Settings...)
	}
	for _, secret := range []string{"hush", "word"} {
		if !strings.Contains(string(all), secret) {
			t.Errorf("%q was not written down", secret)
		}
	}
}

func TestPersistenceAnswersAsTheContractSays(t *testing.T) {
	t.Parallel()
	type step struct{ action, settings, wanted string }
	for _, c := range []struct {
		name   string
		strict bool
		steps  []step
	}{
		{"an upsert lays members over", false, []step{
			{"QP_UpsertWorkItem", `{"WorkItem":{"WorkItemHash":"a","Status":"Pending","N":1}}`, `{"Success":true}`},
			{"QP_UpsertWorkItem", `{"WorkItem":{"WorkItemHash":"a","Status":"Complete","M":null}}`, `{"Success":true}`},
			{"QP_GetWorkItemByHash", `{"WorkItemHash":"a"}`, `{"Success":true,"WorkItem":{"M":null,"N":1,"Status":"Complete","WorkItemHash":"a"}}`},
		}},
		{"a patch of nothing is swallowed", false, []step{
			{"QP_UpdateWorkItem", `{"WorkItemHash":"a","Patch":{"Status":"Complete"}}`, `{"Success":true}`},
			{"QP_UpdateAttemptOutcome", `{"WorkItemHash":"a","AttemptNumber":1,"Patch":{"Outcome":"Complete"}}`, `{"Success":true}`},
			{"QP_GetWorkItemByHash", `{"WorkItemHash":"a"}`, `{"Success":false,"WorkItem":null}`},
		}},
		{"or refused, as was recorded", true, []step{
			{"QP_UpdateWorkItem", `{"WorkItemHash":"a","Patch":{}}`, `{"Reason":"Unknown work item a","Success":false}`},
			{"QP_UpdateAttemptOutcome", `{"WorkItemHash":"a","AttemptNumber":1,"Patch":{}}`, `{"Reason":"Unknown attempt","Success":false}`},
		}},
		{"events are appended, also those that are there", false, []step{
			{"QP_AppendEvent", `{"Event":{"WorkItemHash":"a","EventType":"x"}}`, `{"Success":true}`},
			{"QP_AppendEvent", `{"Event":{"WorkItemHash":"a","EventType":"x"}}`, `{"Success":true}`},
			{"QP_GetEvents", `{"WorkItemHash":"a","Limit":0}`, `{"Events":[{"WorkItemHash":"a","EventType":"x"},{"WorkItemHash":"a","EventType":"x"}],"Success":true}`},
			{"QP_GetEvents", `{"WorkItemHash":"a","Limit":1}`, `{"Events":[{"WorkItemHash":"a","EventType":"x"}],"Success":true}`},
		}},
		{"attempts are unique", false, []step{
			{"QP_InsertAttempt", `{"Attempt":{"WorkItemHash":"a","AttemptNumber":1,"Outcome":"Dispatched"}}`, `{"Success":true}`},
			{"QP_InsertAttempt", `{"Attempt":{"WorkItemHash":"a","AttemptNumber":1,"Outcome":"Dispatched"}}`, `{"Success":true}`},
			{"QP_UpdateAttemptOutcome", `{"WorkItemHash":"a","AttemptNumber":1,"Patch":{"Outcome":"Complete"}}`, `{"Success":true}`},
		}},
		{"manifests are replaced, removed and missed", false, []step{
			{"MS_UpsertManifest", `{"Manifest":{"Hash":"r","A":1}}`, `{"Success":true}`},
			{"MS_UpsertManifest", `{"Manifest":{"Hash":"r","B":2}}`, `{"Success":true}`},
			{"MS_GetManifest", `{"RunHash":"r"}`, `{"Manifest":{"B":2,"Hash":"r"},"Success":true}`},
			{"MS_RemoveManifest", `{"RunHash":"r"}`, `{"Success":true}`},
			{"MS_RemoveManifest", `{"RunHash":"r"}`, `{"Success":true}`},
			{"MS_GetManifest", `{"RunHash":"r"}`, `{"Manifest":null,"Success":false}`},
		}},
		{"lists are filtered and ordered", false, []step{
			{"QP_UpsertWorkItem", `{"WorkItem":{"WorkItemHash":"a","Status":"Error","EnqueuedAt":"2"}}`, `{"Success":true}`},
			{"QP_UpsertWorkItem", `{"WorkItem":{"WorkItemHash":"b","Status":"Complete","EnqueuedAt":"1"}}`, `{"Success":true}`},
			{"QP_UpsertWorkItem", `{"WorkItem":{"WorkItemHash":"c","Status":"Pending","EnqueuedAt":"3"}}`, `{"Success":true}`},
			{"QP_ListWorkItems", `{"Filter":{"Status":["Error","Complete"]}}`, `{"Success":true,"WorkItems":[{"EnqueuedAt":"1","Status":"Complete","WorkItemHash":"b"},{"EnqueuedAt":"2","Status":"Error","WorkItemHash":"a"}]}`},
			{"QP_ListWorkItems", `{"Filter":{"OrderBy":"-EnqueuedAt","Limit":1}}`, `{"Success":true,"WorkItems":[{"EnqueuedAt":"3","Status":"Pending","WorkItemHash":"c"}]}`},
			{"QP_ListWorkItems", `{"Filter":{"OrderBy":"EnqueuedAt DESC","Status":"Error"}}`, `{"Success":true,"WorkItems":[{"EnqueuedAt":"2","Status":"Error","WorkItemHash":"a"}]}`},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := NewPersistence()
			p.strict = c.strict
			for _, s := range c.steps {
				if got := string(p.do(s.action, json.RawMessage(s.settings))); !sameJSON(json.RawMessage(got), json.RawMessage(s.wanted)) {
					t.Errorf("%s %s: %s\nwanted %s", s.action, s.settings, got, s.wanted)
				}
			}
			if attempts := p.Holds().Attempts["a"]; len(attempts) > 1 {
				t.Errorf("attempts: %s", attempts)
			}
		})
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
