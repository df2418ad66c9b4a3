package mesh

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"holdfast/adapters/mesh/stock"
	"holdfast/core"
	"holdfast/ports"
)

// expected is what a hub's writes come to when each of them arrives once and in its order.
func expected(t *testing.T, hub *stock.Hub) stock.Holdings {
	t.Helper()
	store := stock.NewPersistence()
	actions := map[string]stock.Action{}
	for _, a := range store.Actions() {
		actions[a.Name] = a
	}
	for _, f := range hub.Fired() {
		if f.Flush {
			continue
		}
		if _, err := actions[f.Action].Do(context.Background(), &stock.Work{Item: stock.Item{Settings: f.Settings}}); err != nil {
			t.Fatal(err)
		}
	}
	return store.Holds()
}

// ended are the statuses that an item ends with.
var ended = []any{"Complete", "Error", "Canceled"}

// compare holds a host's history against what a hub wrote. Of a record that a hub pushes only later it tells what it is then, so
// that without exact only what ended is compared, and how.
func compare(t *testing.T, host *core.Host, want stock.Holdings, exact bool) {
	t.Helper()
	wrong := 0
	errorf := func(format string, args ...any) {
		if wrong++; wrong <= 10 {
			t.Errorf(format, args...)
		}
	}
	if got := held(t, host)[ports.KindItem]; got != int64(len(want.Items)) {
		errorf("%d items, want %d", got, len(want.Items))
	}
	for key, text := range want.Items {
		var wanted map[string]any
		if err := json.Unmarshal(text, &wanted); err != nil {
			t.Fatal(err)
		}
		got := itemOf(t, host, key)
		for name, value := range wanted {
			if !exact && (name != "Status" && name != "Result" || !slices.Contains(ended, wanted["Status"])) {
				continue
			}
			if name == "HealthComputedAt" || reflect.DeepEqual(got[name], value) {
				continue // of a health that did not change, only the time would be written
			}
			errorf("%s of %s is %v, want %v", name, key, got[name], value)
		}
		var events []string
		for _, event := range want.Events[key] {
			var e struct{ EventType string }
			if err := json.Unmarshal(event, &e); err != nil {
				t.Fatal(err)
			}
			events = append(events, e.EventType)
		}
		kept := types(t, host, key)
		slices.Sort(events)
		slices.Sort(kept)
		if !slices.Equal(events, kept) {
			errorf("the events of %s are %v, want %v", key, kept, events)
		}
	}
	for key, text := range want.Manifests {
		var wanted map[string]any
		if err := json.Unmarshal(text, &wanted); err != nil {
			t.Fatal(err)
		}
		got := manifestOf(t, host, key)
		waiting, _ := got["WaitingTasks"].(map[string]any)
		for _, name := range []string{"Status", "Step", "TaskOutputs"} {
			if !reflect.DeepEqual(got[name], wanted[name]) || wanted["WaitingTasks"] == nil && len(waiting) > 0 {
				errorf("the manifest %s is %v, want %v", key, got, wanted)
				break
			}
		}
	}
}

// live has a hub do works of every fate, and tell of runs.
func live(hub *stock.Hub, r *rand.Rand, works int) {
	hub.Imagine(stock.Registration{Name: "worker", Capabilities: []string{"Echo"}, MaxConcurrent: 1000}, true)
	for n := range works {
		hash := hub.Enqueue(stock.Spec{Capability: "Echo", Settings: map[string]any{"N": n}})
		switch r.IntN(6) {
		case 0:
			_ = hub.Complete(hash, stock.Result{Outputs: made(map[string]any{"n": n})})
		case 1:
			hub.Report(hash, stock.Progress{})
			_ = hub.Fail(hash, "boom", nil)
		case 2:
			hub.Cancel(hash, "why")
			_ = hub.Complete(hash, stock.Result{})
		case 3:
			hub.Reorder(hash, n)
		case 4:
			hub.Cancel(hub.Enqueue(stock.Spec{Capability: "Nobody"}), "why")
		}
		if n%10 > 0 {
			continue
		}
		run := fmt.Sprintf("run-%s", hash)
		for step, status := range []string{"Waiting", "Waiting", "Abandoned"} {
			manifest := map[string]any{"Hash": run, "Status": status, "Step": step, "TaskOutputs": map[string]any{"step": step}}
			if status == "Waiting" {
				manifest["WaitingTasks"] = map[string]any{"node": step}
			}
			hub.UpsertManifest(made(manifest))
		}
	}
	hub.HealthTick()
}

func TestWhatAHubPushesInAnyOrderAndAgainEndsAsItWroteIt(t *testing.T) {
	t.Parallel()
	rounds, works := 3, 40 // fewer writes than the member takes at a time
	if whole() {
		rounds = 30
	}
	for round := range rounds {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(round), 7))
			host := history(t)
			hub, url := ultravisor(t, stock.HubConfig{BridgeTimeout: time.Minute})
			m := joinedMember(t, url, Over(host), nil)
			awaitUltravisor(t, hub, "the sweeps", func(s stock.HubState) bool { return len(s.Sweeps) >= 2 && settledHub(s) })
			hub.Hold(m.name)
			live(hub, r, works)
			for range 20 { // as many as the member takes at a time
				hub.Release(m.name, r.Shuffle)
				hub.Redeliver(m.name, r.IntN(30))
				hub.Hold(m.name)
				if hub.State().Calls == 0 {
					break
				}
			}
			hub.Release(m.name, r.Shuffle)
			awaitUltravisor(t, hub, "the answers", settledHub)
			hub.Redeliver(m.name, 100)
			taken := m.Status().Taken
			awaitMember(t, m, "the last ones", func(s MemberStatus) bool { return s.InHand == 0 && s.Taken >= taken })
			if failed := hub.State().Failures; failed != 0 {
				t.Errorf("%d calls failed", failed)
			}
			compare(t, host, expected(t, hub), true)
		})
	}
}

// Sockets are lost while works are in hand: the hub pushes again what was not answered, and its flush comes in between.
func TestWritesWhoseSocketsAreLostEndAsTheHubWroteThem(t *testing.T) {
	t.Parallel()
	drops, works := 5, 10
	if whole() {
		drops, works = 30, 50
	}
	host := history(t)
	hub, url := ultravisor(t, stock.HubConfig{BridgeTimeout: time.Minute, FlushTimeout: time.Minute})
	m := joinedMember(t, url, Over(host), nil)
	r := rand.New(rand.NewPCG(3, 4))
	for range drops {
		before := m.Status().Registrations
		live(hub, r, works)
		hub.DropSocket(m.name)
		awaitMember(t, m, "another registration", func(s MemberStatus) bool { return s.Registrations > before })
	}
	hub.Tick() // pushes what waits since a socket was lost; a registration alone does not
	awaitUltravisor(t, hub, "the answers", settledHub)
	compare(t, host, expected(t, hub), false)
}

// A flush comes between a write and its second push, after a socket was lost. What is flushed is older than what was written, or
// emptier, however late it is sent.
func TestAFlushBetweenAWriteAndItsSecondPushUndoesNothing(t *testing.T) {
	t.Parallel()
	host := history(t)
	hub, url := ultravisor(t, stock.HubConfig{})
	m := joinedMember(t, url, Over(host), nil)
	count, before := 0, m.Status().Reported
	push := func(stamp int, action string, settings string) {
		t.Helper()
		count++
		if !hub.Say(m.name, map[string]any{"EventType": "WorkItem", "WorkItem": map[string]any{
			"WorkItemHash": fmt.Sprintf("wi-unknown-unknown-%d-%d", 1767225660002+stamp, stamp), "Capability": capabilityFor(ports.Action(action)),
			"Action": action, "Settings": jsonText(settings),
		}}) {
			t.Fatal("the member is not there")
		}
		awaitMember(t, m, "the report", func(s MemberStatus) bool { return s.Reported == before+uint64(count) })
	}
	const t0, t1 = `"2026-01-01T00:00:00.000Z"`, `"2026-01-01T00:01:00.000Z"`
	push(20, "QP_UpsertWorkItem", `{"WorkItem":{"IDBeaconWorkItem":1,"WorkItemHash":"wi-1","Status":"Pending","EnqueuedAt":`+t0+`,"LastEventAt":`+t0+`}}`)
	push(10, "QP_UpdateWorkItem", `{"WorkItemHash":"wi-1","Patch":{"Status":"Complete","LastEventAt":`+t1+`}}`)
	push(30, "QP_UpsertWorkItem", `{"WorkItem":{"IDBeaconWorkItem":1,"WorkItemHash":"wi-1","Status":"Pending","EnqueuedAt":`+t0+`,"LastEventAt":`+t0+`}}`)
	if got := itemOf(t, host, "wi-1"); got["Status"] != "Complete" || got["LastEventAt"] != "2026-01-01T00:01:00.000Z" {
		t.Errorf("the item is %v", got)
	}
	push(21, "MS_UpsertManifest", `{"Manifest":{"Hash":"run-1","Status":"Complete","StopTime":`+t1+`,"Live":false,"TaskOutputs":{},"Log":[]}}`)
	push(11, "MS_UpsertManifest", `{"Manifest":{"Hash":"run-1","Status":"Complete","StopTime":`+t1+`,"TaskOutputs":{"a":1},"Log":["x"]}}`)
	push(31, "MS_UpsertManifest", `{"Manifest":{"Hash":"run-1","Status":"Complete","StopTime":`+t1+`,"Live":false,"TaskOutputs":{},"Log":[]}}`)
	if got := manifestOf(t, host, "run-1"); len(got["TaskOutputs"].(map[string]any)) != 1 || len(got["Log"].([]any)) != 1 {
		t.Errorf("the manifest is %v", got)
	}
}
