package stock_test

// A databeacon connected to the real hub over a real socket, by the stand-in for the stock beacon client.

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"holdfast/adapters/meadowproxy/stock"
	"holdfast/adapters/mesh"
	client "holdfast/adapters/mesh/stock"
	"holdfast/ports"
)

// serve starts a hub of this machine.
func serve(t *testing.T) (hub *mesh.Hub, url string) {
	t.Helper()
	hub, err := mesh.New(mesh.Config{Name: "hub-1", Loopback: true})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(hub.Handler())
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = hub.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		server.Close()
	})
	return hub, server.URL
}

// connected joins a databeacon to a hub.
func connected(t *testing.T, url string, d *stock.Databeacon) *client.Beacon {
	t.Helper()
	b := client.NewBeacon(client.BeaconConfig{
		ServerURL: url, Name: d.Name(), MaxConcurrent: 3,
		Actions: stock.Behind(d, func(a stock.Action, do func(context.Context, json.RawMessage) (any, error)) client.Action {
			return client.Action{Capability: a.Capability, Name: a.Name, Do: func(ctx context.Context, w *client.Work) (any, error) {
				return do(ctx, w.Settings)
			}}
		}),
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := b.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Kill)
	return b
}

func TestADatabeaconWorksForARealHub(t *testing.T) {
	t.Parallel()
	d, err := stock.Open(stock.Options{Name: "databeacon", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	id, err := d.AddConnection("uv", "uv.sqlite", true)
	if err != nil {
		t.Fatal(err)
	}
	hub, url := serve(t)
	b := connected(t, url, d)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	work := func(capability, action string, settings map[string]any) ports.WorkAnswer {
		t.Helper()
		raw, err := json.Marshal(settings)
		if err != nil {
			t.Fatal(err)
		}
		a, err := hub.Dispatch(ctx, ports.Work{Beacon: "databeacon", Capability: capability, Action: action, Settings: raw})
		if err != nil {
			t.Fatalf("%s %s: %v", capability, action, err)
		}
		return a
	}
	now, err := hub.Watch(ctx, 0)
	if err != nil || len(now.List) != 1 || now.List[0].MaxConcurrent != 3 || len(now.List[0].Capabilities) != 4 {
		t.Fatalf("the hub sees %+v, %v", now, err)
	}
	tables := []map[string]any{{"Scope": "Thing", "Schema": []map[string]any{
		{"Column": "IDThing", "Type": "AutoIdentity"}, {"Column": "Mark", "Type": "String", "Size": "64"},
	}}}
	for _, step := range []struct {
		capability, action string
		settings           map[string]any
	}{
		{"DataBeaconSchema", "EnsureSchema", map[string]any{"IDBeaconConnection": id, "SchemaJSON": map[string]any{"Tables": tables}}},
		{"DataBeaconManagement", "Introspect", map[string]any{"IDBeaconConnection": id}},
		{"DataBeaconManagement", "EnableEndpoint", map[string]any{"IDBeaconConnection": id, "TableName": "Thing"}},
	} {
		if a := work(step.capability, step.action, step.settings); a.Failure != "" {
			t.Fatalf("%s failed: %s", step.action, a.Failure)
		}
	}
	a := work("MeadowProxy", "Request", map[string]any{"Method": "POST", "Path": "/1.0/uv/Thing", "Body": `{"Mark":"m"}`, "RemoteUser": "ann"})
	var said struct {
		Status int
		Body   string
	}
	if err := json.Unmarshal(a.Outputs, &said); err != nil || said.Status != 200 || said.Body != `{"IDThing":1,"Mark":"m"}` {
		t.Errorf("%+v, %v: %s", said, err, a.Failure)
	}
	if a := work("MeadowProxy", "Request", map[string]any{"Method": "GET", "Path": "/elsewhere"}); a.Failure != "MeadowProxy: path is not in the allowlist." {
		t.Errorf("a path that is not allowed: %+v", a)
	}
	if got := d.Users(); got["ann"] != 1 {
		t.Errorf("wrote: %v", got)
	}
	b.DropSocket()
	if _, err := hub.Watch(ctx, now.Version); err != nil {
		t.Errorf("the hub did not see it leave: %v", err)
	}
}
