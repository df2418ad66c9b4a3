package stock

import (
	"testing"
	"time"
)

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
