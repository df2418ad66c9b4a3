package stock

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"holdfast/ports"
)

func TestTheMeshTellsWhoIsThere(t *testing.T) {
	t.Parallel()
	m := NewMesh()
	t.Cleanup(m.Close)
	d := open(t, Options{Name: "db"})
	nobody, err := m.Watch(t.Context(), 0)
	if err != nil || len(nobody.List) != 0 || nobody.Version == 0 {
		t.Fatalf("%+v, %v", nobody, err)
	}
	m.Connect(d)
	m.Assign(ports.Queue, "db", 1)
	first, err := m.Watch(t.Context(), nobody.Version)
	if err != nil || len(first.List) != 1 || !first.List[0].Online || first.Assigned[ports.Queue].IDBeaconConnection != 1 {
		t.Fatalf("%+v, %v", first, err)
	}
	m.Connect(d)
	second, err := m.Watch(t.Context(), first.Version)
	if err != nil || second.List[0].ID == first.List[0].ID || second.List[0].Session == first.List[0].Session {
		t.Fatalf("%+v, %v", second, err)
	}
	m.Disconnect("db")
	m.Unassign(ports.Queue)
	gone, err := m.Watch(t.Context(), second.Version)
	if err != nil || gone.List[0].Online || len(gone.Assigned) != 0 {
		t.Fatalf("%+v, %v", gone, err)
	}
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := m.Watch(short, gone.Version); err == nil {
		t.Error("nothing happened, and the watch ended")
	}
}

func TestTheMeshSaysWhatBecameOfAWork(t *testing.T) {
	t.Parallel()
	m := NewMesh()
	t.Cleanup(m.Close)
	d := open(t, Options{Name: "db"})
	list := ports.Work{Beacon: "db", Capability: "DataBeaconAccess", Action: "ListConnections", Settings: json.RawMessage(`{}`)}
	limited, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	code := func(ctx context.Context) ports.Code {
		t.Helper()
		_, err := m.Dispatch(ctx, list)
		return ports.CodeOf(err)
	}
	if got := code(t.Context()); got != ports.Invalid {
		t.Errorf("without a deadline: %s", got)
	}
	if got := code(limited); got != ports.Unavailable {
		t.Errorf("nobody is there: %s", got)
	}
	m.Connect(d)
	if a, err := m.Dispatch(limited, list); err != nil || a.Failure != "" || string(a.Outputs) != `{"Connections":[]}` || a.Beacon != "db" {
		t.Errorf("%+v, %v", a, err)
	}
	begun, release := make(chan struct{}, 1), make(chan struct{})
	d.Fault(func(string, string, json.RawMessage) (string, bool) {
		begun <- struct{}{}
		<-release
		return "", false
	})
	ended := make(chan ports.Code, 1)
	go func() { ended <- code(limited) }()
	<-begun
	m.Disconnect("db")
	if got := <-ended; got != ports.BackendGone {
		t.Errorf("it left while it worked: %s", got)
	}
	m.Connect(d)
	short, end := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer end()
	if got := code(short); got != ports.Deadline {
		t.Errorf("it is slow: %s", got)
	}
	close(release)
}

func TestCatchingUpLeavesASlotFree(t *testing.T) {
	t.Parallel()
	m := NewMesh()
	t.Cleanup(m.Close)
	d := open(t, Options{Name: "db"})
	m.Connect(d)
	begun, release := make(chan struct{}), make(chan struct{})
	d.Fault(func(_, action string, _ json.RawMessage) (string, bool) {
		if action == "ListConnections" {
			begun <- struct{}{}
			<-release
		}
		return "", false
	})
	limited, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	slow := ports.Work{Beacon: "db", Capability: "DataBeaconAccess", Action: "ListConnections", Class: ports.ClassCatchUp}
	ended := make(chan error)
	for range 3 {
		go func() {
			_, err := m.Dispatch(limited, slow)
			ended <- err
		}()
	}
	<-begun
	<-begun
	if a, err := m.Dispatch(limited, ports.Work{Beacon: "db", Capability: "MeadowProxy", Action: "Request", Class: ports.ClassLive}); err != nil || a.Failure == "" {
		t.Errorf("%+v, %v", a, err)
	}
	release <- struct{}{}
	<-begun
	close(release)
	for range 3 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
