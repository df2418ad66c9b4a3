package acceptance_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"holdfast/adapters/mesh/stock"
	"holdfast/internal/e2e"
)

// ultravisor is a stock hub that runs somewhere else.
func ultravisor(t *testing.T, config stock.HubConfig) (hub *stock.Hub, url string) {
	t.Helper()
	hub = stock.NewHub(config)
	server := httptest.NewServer(hub)
	t.Cleanup(func() {
		hub.Close()
		server.CloseClientConnections()
		server.Close()
	})
	return hub, server.URL
}

func awaitUltravisor(t *testing.T, hub *stock.Hub, what string, wanted func(stock.HubState) bool) {
	t.Helper()
	// A hub forgets a beacon whose former socket closes late; the host finds that within a minute.
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := hub.Await(ctx, wanted); err != nil {
		t.Fatalf("%s: %v; the hub: %+v", what, err, hub.State())
	}
}

func settledHub(s stock.HubState) bool { return s.Calls == 0 && s.Flushing == 0 }

func TestAnUltravisorThatAHostJoinsKeepsItsHistoryThere(t *testing.T) {
	t.Parallel()
	hub, url := ultravisor(t, stock.HubConfig{})
	hub.Keep(json.RawMessage(`{"WorkItemHash":"wi-before","Status":"Complete","EnqueuedAt":"2026-11-01T00:00:00.000Z","LastEventAt":"2026-11-01T00:00:00.000Z"}`),
		json.RawMessage(`{"WorkItemHash":"wi-before","EventType":"completed"}`))
	hub.Imagine(stock.Registration{Name: "worker", Capabilities: []string{"Echo"}}, true)
	h := e2e.StartWith(t, e2e.Setup{Config: "mesh {\n  join = \"" + url + "\"\n  as   = \"holdfast-here\"\n}\n"})
	there := func(s stock.HubState) bool {
		return s.Beacon("holdfast-here") != nil && len(s.Sweeps) >= 2 && settledHub(s)
	}
	awaitUltravisor(t, hub, "the host and what was before it", there)
	hash := hub.Enqueue(stock.Spec{Capability: "Echo", Action: "Say", Settings: map[string]any{"Text": "hello"}})
	if err := hub.Complete(hash, stock.Result{Outputs: json.RawMessage(`{"Said":true}`)}); err != nil {
		t.Fatal(err)
	}
	awaitUltravisor(t, hub, "the answers", settledHub)
	if s := hub.State(); s.Failures != 0 {
		t.Errorf("%d of the hub's calls failed", s.Failures)
	}
	for key, status := range map[string]string{"wi-before": `"Complete"`, hash: `"Complete"`} {
		_, answer := asked(t, http.MethodGet, h.URL+"/v1/work-items/"+key, nil)
		if !strings.Contains(string(answer["WorkItem"]), status) {
			t.Errorf("%s reads as %s", key, answer["WorkItem"])
		}
	}
	if out, _ := h.Run(t, "status"); !strings.Contains(out, "joined as holdfast-here") {
		t.Errorf("the status is\n%s", out)
	}
	if out, _ := h.Run(t, "doctor"); !strings.Contains(out, "ok    joined hub") {
		t.Errorf("the doctor says\n%s", out)
	}

	// A host that is killed and comes back under its name goes on; nothing is there twice.
	h.Kill()
	awaitUltravisor(t, hub, "a hub that noticed", func(s stock.HubState) bool { return s.Beacon("holdfast-here") == nil })
	h.Restart(t)
	awaitUltravisor(t, hub, "another sweep", func(s stock.HubState) bool { return len(s.Sweeps) >= 4 && there(s) })
	_, answer := asked(t, http.MethodGet, h.URL+"/v1/work-items/wi-before/events", nil)
	if n := strings.Count(string(answer["Events"]), `"completed"`); n != 1 {
		t.Errorf("an event that was flushed twice is there %d times", n)
	}

	// It leaves when it stops, and the hub keeps its history itself again.
	h.Stop(t)
	if hub.State().Beacon("holdfast-here") != nil {
		t.Error("the hub still has the beacon of a host that stopped")
	}
}

func TestAHostThatIsNotTakenSaysWhatStandsInTheWay(t *testing.T) {
	t.Parallel()
	hub, url := ultravisor(t, stock.HubConfig{Secured: true, Auth: &stock.Auth{Users: map[string]string{"holdfast": "of-the-login"}, JoinSecret: "of-the-hub"}})
	hub.Imagine(stock.Registration{Name: "other-store", Capabilities: []string{"QueuePersistence"}}, true)
	h := e2e.StartWith(t, e2e.Setup{Config: "mesh {\n  join = \"" + url + "\"\n  join_with = \"of-the-hub\"\n  join_user = \"holdfast\"\n  join_password = \"of-the-login\"\n}\n"})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	out := ""
	for ctx.Err() == nil && !strings.Contains(out, "passed-over") {
		out, _ = h.Run(t, "status")
	}
	for _, want := range []string{`the beacon "other-store" offers QueuePersistence and comes before this one`, "stop that beacon"} {
		if !strings.Contains(out, want) {
			t.Errorf("the status does not say %q:\n%s", want, out)
		}
	}
	if out, _ := h.Run(t, "doctor"); !strings.Contains(out, "warn  joined hub") {
		t.Errorf("the doctor says\n%s", out)
	}
	for _, secret := range []string{"of-the-hub", "of-the-login"} {
		if strings.Contains(h.Log()+out, secret) {
			t.Errorf("the log or the status has the secret %q", secret)
		}
	}
}
