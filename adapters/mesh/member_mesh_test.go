package mesh

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"holdfast/adapters/mesh/stock"
	"holdfast/ports"
)

// echoes is a stock beacon that says back what it is told.
func echoes(t *testing.T, url, name string) *stock.Beacon {
	t.Helper()
	b := stock.NewBeacon(stock.BeaconConfig{ServerURL: url, Name: name, Tags: map[string]any{"PersistenceConnectionID": 7}, Actions: []stock.Action{
		{Capability: "MeadowProxy", Name: "Request", Do: func(ctx context.Context, w *stock.Work) (any, error) {
			switch {
			case strings.Contains(string(w.Settings), "crooked"):
				return nil, context.Canceled
			case strings.Contains(string(w.Settings), "silent"):
				<-ctx.Done()
			}
			return map[string]any{"Status": 200, "By": name}, nil
		}},
	}})
	t.Cleanup(b.Kill)
	if err := b.Start(within(t, testPatience)); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestABeaconOfAJoinedHubIsSeenAndWorks(t *testing.T) {
	t.Parallel()
	hub, url := ultravisor(t, stock.HubConfig{})
	m := joinedMember(t, url, quickCore(), func(c *MemberConfig) { c.Timing.Look = 10 * time.Millisecond })
	var mesh ports.Mesh = m
	before, err := mesh.Watch(within(t, testPatience), 0)
	if err != nil || len(before.List) != 0 || before.Version == 0 {
		t.Fatalf("%+v, %v", before, err)
	}
	db := echoes(t, url, "db-1")
	known, err := mesh.Watch(within(t, testPatience), before.Version)
	if err != nil || len(known.List) != 1 {
		t.Fatalf("%+v, %v", known, err)
	}
	if b := known.List[0]; b.Name != "db-1" || !b.Online || b.Session == 0 || string(b.Tags["PersistenceConnectionID"]) != "7" || b.RegisteredAt.IsZero() {
		t.Errorf("it is seen as %+v", b)
	}
	work := ports.Work{Beacon: "db-1", Capability: "MeadowProxy", Action: "Request", Settings: []byte(`{"Path":"/1.0/x"}`)}
	a, err := mesh.Dispatch(within(t, testPatience), work)
	if err != nil || a.Beacon != "db-1" || a.WorkItemHash == "" || !strings.Contains(string(a.Outputs), `"By":"db-1"`) {
		t.Errorf("it did %+v, %v", a, err)
	}
	work.Settings = []byte(`{"Path":"crooked"}`)
	if a, err := mesh.Dispatch(within(t, testPatience), work); err != nil || a.Failure == "" {
		t.Errorf("a work that fails gives %+v, %v", a, err)
	}
	work.Settings = []byte(`{"Path":"silent"}`)
	if a, err := mesh.Dispatch(within(t, 200*time.Millisecond), work); ports.CodeOf(err) != ports.Deadline {
		t.Errorf("a work without an answer gives %+v, %v", a, err)
	}
	for _, odd := range []ports.Work{{Beacon: "nobody", Capability: "MeadowProxy"}, {Beacon: m.name, Capability: "QueuePersistence"}} {
		if _, err := mesh.Dispatch(within(t, testPatience), odd); ports.CodeOf(err) != ports.Unavailable {
			t.Errorf("a work for %q gives %v", odd.Beacon, err)
		}
	}
	if _, err := mesh.Dispatch(context.Background(), work); ports.CodeOf(err) != ports.Invalid {
		t.Errorf("a work without a deadline gives %v", err)
	}
	session := known.List[0].Session
	db.DropSocket()
	eventually(t, "another session of it", func() bool {
		known, err := mesh.Watch(within(t, testPatience), 0)
		return err == nil && len(known.List) == 1 && known.List[0].Online && known.List[0].Session != session
	})
	hub.Restart()
}

func TestWhatAHubWritesAboutOurWorkIsIgnoredWhateverItsCapability(t *testing.T) {
	t.Parallel()
	hub, url := ultravisor(t, stock.HubConfig{})
	core := quickCore()
	m := joinedMember(t, url, core, func(c *MemberConfig) { c.Timing.Look = 10 * time.Millisecond })
	b := stock.NewBeacon(stock.BeaconConfig{ServerURL: url, Name: "db-1", Actions: []stock.Action{{
		Capability: "DataBeaconAccess", Name: "ListConnections", Do: func(context.Context, *stock.Work) (any, error) { return map[string]any{}, nil },
	}}})
	t.Cleanup(b.Kill)
	if err := b.Start(within(t, testPatience)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the beacon", func() bool {
		known, err := m.Watch(within(t, testPatience), 0)
		return err == nil && len(known.List) == 1
	})
	for _, settings := range []string{``, `null`, `{}`, `{"Capability":"Shell"}`} {
		if _, err := m.Dispatch(within(t, testPatience), ports.Work{Beacon: "db-1", Capability: "DataBeaconAccess", Action: "ListConnections", Settings: []byte(settings)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := hub.Await(within(t, testPatience), func(s stock.HubState) bool { return s.Calls == 0 && s.Flushing == 0 }); err != nil {
		t.Fatal(err)
	}
	if m.Status().Taken == 0 {
		t.Error("the hub writes nothing about it")
	}
	for _, call := range core.begun() {
		t.Errorf("of our own work the core is told %s %s", call.Action, call.Settings)
	}
}

func TestAHubThatIsGoneHasNobodyOnline(t *testing.T) {
	t.Parallel()
	hub := stock.NewHub(stock.HubConfig{})
	server := httptest.NewServer(hub)
	hub.Imagine(stock.Registration{Name: "db-1", Capabilities: []string{"MeadowProxy"}}, true)
	m := unjoined(t, server.URL, quickCore(), func(c *MemberConfig) { c.Timing.Look = 10 * time.Millisecond })
	t.Cleanup(m.web.close)
	known, err := m.Watch(within(t, testPatience), 0)
	if err != nil || len(known.List) != 1 || !known.List[0].Online {
		t.Fatalf("%+v, %v", known, err)
	}
	hub.Close()
	server.Close()
	known, err = m.Watch(within(t, testPatience), known.Version)
	if err != nil || len(known.List) != 1 || known.List[0].Online {
		t.Errorf("%+v, %v", known, err)
	}
	_, err = m.Dispatch(within(t, testPatience), ports.Work{Beacon: "db-1", Capability: "MeadowProxy"})
	if ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("a work gives %v", err)
	}
}

func TestTheBeaconsOfBothHubsAreOneMesh(t *testing.T) {
	t.Parallel()
	own := serve(t, Config{})
	_, url := ultravisor(t, stock.HubConfig{})
	m := joinedMember(t, url, quickCore(), func(c *MemberConfig) { c.Timing.Look = 10 * time.Millisecond })
	mesh := Together(own.hub, m)
	echoes(t, own.url, "here")
	echoes(t, url, "there")
	echoes(t, url, "here") // another one of that name
	eventually(t, "all of them", func() bool {
		known, err := mesh.Watch(within(t, testPatience), 0)
		return err == nil && len(known.List) == 2 && isIn(known.List, "here") && isIn(known.List, "there")
	})
	known, _ := mesh.Watch(within(t, testPatience), 0)
	for _, name := range []string{"here", "there"} {
		a, err := mesh.Dispatch(within(t, testPatience), ports.Work{Beacon: name, Capability: "MeadowProxy", Action: "Request"})
		if err != nil || !strings.Contains(string(a.Outputs), name) {
			t.Errorf("%s did %+v, %v", name, a, err)
		}
	}
	if _, err := mesh.Watch(within(t, 50*time.Millisecond), known.Version); ports.CodeOf(err) != ports.Deadline {
		t.Errorf("without news it tells %v", err)
	}
	echoes(t, url, "third")
	if next, err := mesh.Watch(within(t, testPatience), known.Version); err != nil || next.Version == known.Version {
		t.Errorf("%+v, %v", next, err)
	}
}
