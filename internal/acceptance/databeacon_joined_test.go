package acceptance

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"holdfast/adapters/meadowproxy/stock"
	hub "holdfast/adapters/mesh/stock"
	"holdfast/internal/e2e"
)

// A host that joined an Ultravisor, whose history it keeps, behind a databeacon that is connected there.
func TestADatabeaconOfAJoinedUltravisorKeepsItsHistoryAndNothingOfItsOwnWork(t *testing.T) {
	t.Parallel()
	ultravisor := hub.NewHub(hub.HubConfig{})
	server := httptest.NewServer(ultravisor)
	t.Cleanup(func() {
		ultravisor.Close()
		server.CloseClientConnections()
		server.Close()
	})
	setup := keptBehind()
	setup.Config += "mesh {\n  join = \"" + server.URL + "\"\n  as   = \"holdfast-here\"\n}\n"
	host := e2e.StartWith(t, setup)
	d := openDatabeacon(t, host, stock.Options{Name: "databeacon"}, 1)
	d.at = server.URL
	d.join(t)
	ultravisor.Imagine(hub.Registration{Name: "worker", Capabilities: []string{"Echo"}}, true)
	must(t, host, "assign", "databeacon", "1")
	keeping(t, host, patience, "databeacon", "bootstrapped")

	const works = 20
	for range works {
		hash := ultravisor.Enqueue(hub.Spec{Capability: "Echo", Action: "Say", Settings: map[string]any{"Text": "hello"}})
		if err := ultravisor.Complete(hash, hub.Result{Outputs: json.RawMessage(`{"Said":true}`)}); err != nil {
			t.Fatal(err)
		}
	}
	// What holdfast has the databeacon do is work of the Ultravisor, which its scheduler may write about, as about any other.
	for _, line := range []string{
		`{"Action":"QP_UpsertWorkItem","Settings":{"WorkItem":{"WorkItemHash":"wi-proxy","Capability":"MeadowProxy","Action":"Request","Status":"Dispatched"}}}`,
		`{"Action":"QP_UpdateWorkItem","Settings":{"WorkItemHash":"wi-proxy","Patch":{"Status":"Complete"}}}`,
		`{"Action":"QP_AppendEvent","Settings":{"Event":{"WorkItemHash":"wi-proxy","EventType":"completed","Payload":{"Capability":"MeadowProxy"}}}}`,
	} {
		status, answer := post(t, host, "application/json", []byte(line))
		if status != 200 || !strings.Contains(string(answer), `"Ignored":true`) {
			t.Errorf("%s is answered %d %s", line, status, answer)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := ultravisor.Await(ctx, func(s hub.HubState) bool { return s.Calls == 0 && s.Flushing == 0 }); err != nil {
		t.Fatal(err)
	}
	client := host.Client()
	t.Cleanup(client.Close)
	client.Settle(t)
	host.AwaitEqual(t)
	host.Verify(t, "local", "databeacon")
	if n := d.rows(t, 1, "UVQueueWorkItem"); n != works {
		t.Errorf("the databeacon has %d work items, want %d", n, works)
	}
	items := client.Items(t)
	if len(items) != works {
		t.Errorf("%d work items are history, want %d", len(items), works)
	}
	for _, item := range items {
		if c := item.Text("Capability"); c != "Echo" {
			t.Errorf("a work of the capability %s is history", c)
		}
	}
	if out := must(t, host, "status"); !strings.Contains(out, "joined as holdfast-here") {
		t.Errorf("an assignment here is taken for one of the hub:\n%s", out)
	}
}
