package acceptance_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"holdfast/adapters/mesh/stock"
	"holdfast/internal/e2e"
)

// A hub keeps its history with a host that is killed again and again while it writes. What it wrote there is there, each event
// once; what it wrote into its own store meanwhile came later. Only items of which it wrote one half here and lost the other half
// itself, since its own store knew no such item, are left out.
func TestAHostThatIsKilledWhileAHubWritesLosesNothing(t *testing.T) {
	t.Parallel()
	kills, works := 3, 60
	if os.Getenv("HOLDFAST_SOAK") != "" {
		kills, works = 20, 200
	}
	hub, url := ultravisor(t, stock.HubConfig{BridgeTimeout: 2 * time.Minute, FlushTimeout: 2 * time.Minute})
	hub.Imagine(stock.Registration{Name: "worker", Capabilities: []string{"Echo"}, MaxConcurrent: 1000}, true)
	h := e2e.StartWith(t, e2e.Setup{Config: "mesh {\n  join = \"" + url + "\"\n  as   = \"holdfast-here\"\n}\n"})
	there := func(s stock.HubState) bool { return s.Beacon("holdfast-here") != nil }
	for range kills {
		awaitUltravisor(t, hub, "the host", there)
		killed := make(chan struct{})
		for n := range works {
			if n == works/2 {
				go func() {
					defer close(killed)
					h.Kill()
				}()
			}
			hash := hub.Enqueue(stock.Spec{Capability: "Echo", Settings: map[string]any{"N": n}})
			if err := hub.Complete(hash, stock.Result{Outputs: json.RawMessage(`{"Done":true}`)}); err != nil {
				t.Fatal(err)
			}
		}
		<-killed
		h.Restart(t)
	}
	awaitUltravisor(t, hub, "the host", there)
	ticks := make(chan struct{})
	go func() { // pushes what waits since a socket was lost; a registration alone does not
		defer close(ticks)
		for tick := time.NewTicker(time.Second); t.Context().Err() == nil; {
			hub.Tick()
			select {
			case <-tick.C:
			case <-t.Context().Done():
			}
		}
	}()
	t.Cleanup(func() { <-ticks })
	awaitUltravisor(t, hub, "everything", func(s stock.HubState) bool { return there(s) && settledHub(s) })
	if failed := hub.State().Failures; failed != 0 {
		t.Errorf("%d of the hub's calls failed", failed)
	}
	places := map[string]map[string]bool{}
	for _, f := range hub.Fired() {
		key := keyOf(t, f.Settings)
		if !f.Flush && key != "" {
			if places[key] == nil {
				places[key] = map[string]bool{}
			}
			places[key][f.To] = true
		}
	}
	whole := 0
	for key, to := range places {
		if len(to) > 1 {
			continue
		}
		whole++
		_, answer := asked(t, http.MethodGet, h.URL+"/v1/work-items/"+key, nil)
		var item struct{ Status string }
		if err := json.Unmarshal(answer["WorkItem"], &item); err != nil || item.Status != "Complete" {
			t.Errorf("the item %s, written to %v, is %.300s", key, to, answer["WorkItem"])
		}
		_, answer = asked(t, http.MethodGet, h.URL+"/v1/work-items/"+key+"/events", nil)
		for _, kind := range []string{"enqueued", "completed"} {
			if n := strings.Count(string(answer["Events"]), fmt.Sprintf(`"EventType":%q`, kind)); n != 1 {
				t.Errorf("the event %s of %s is there %d times: %s", kind, key, n, answer["Events"])
			}
		}
	}
	if whole < kills*works/2 {
		t.Errorf("only %d items of %d could be compared", whole, kills*works)
	}
}

// keyOf is the WorkItemHash that a call is about.
func keyOf(t *testing.T, settings json.RawMessage) string {
	t.Helper()
	type about struct{ WorkItemHash string }
	var s struct {
		about
		WorkItem, Event, Attempt about
	}
	if err := json.Unmarshal(settings, &s); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{s.WorkItemHash, s.WorkItem.WorkItemHash, s.Event.WorkItemHash, s.Attempt.WorkItemHash} {
		if key != "" {
			return key
		}
	}
	return ""
}
