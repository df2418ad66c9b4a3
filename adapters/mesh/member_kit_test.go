package mesh

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"holdfast/adapters/mesh/stock"
	"holdfast/core"
	"holdfast/ports"
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
		http.DefaultClient.CloseIdleConnections()
	})
	return hub, server.URL
}

// hurry is a member's time for tests.
var hurry = MemberTiming{Check: 50 * time.Millisecond, Retry: 5 * time.Millisecond, RetryMax: 100 * time.Millisecond}

// unjoined is a member that does not run yet.
func unjoined(t *testing.T, url string, over MemberCore, change func(*MemberConfig)) *Member {
	t.Helper()
	c := MemberConfig{URL: url, Name: "holdfast-1", HostID: "machine-1", Core: over, Timing: hurry}
	if change != nil {
		change(&c)
	}
	m, err := NewMember(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// run runs a member; the function that it gives stops it, once.
func run(t *testing.T, m *Member) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = m.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return stop
}

// joined is a member that a hub has taken in and looked at.
func joinedMember(t *testing.T, url string, over MemberCore, change func(*MemberConfig)) *Member {
	t.Helper()
	m := unjoined(t, url, over, change)
	run(t, m)
	awaitMember(t, m, "a member that is in", func(s MemberStatus) bool { return s.Joined() && !s.CheckedAt.IsZero() })
	return m
}

func awaitMember(t *testing.T, m *Member, what string, wanted func(MemberStatus) bool) {
	t.Helper()
	deadline := time.NewTimer(testPatience)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !wanted(m.Status()) {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("it never came: %s; the member: %+v", what, m.Status())
		}
	}
}

func awaitUltravisor(t *testing.T, hub *stock.Hub, what string, wanted func(stock.HubState) bool) {
	t.Helper()
	patience := 4 * testPatience
	if whole() {
		patience *= 5
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := hub.Await(ctx, wanted); err != nil {
		s := hub.State()
		t.Fatalf("it never came: %s; the hub: %d calls, %d failures, %d waiting, %d running, %d local, sweeps %+v", what, s.Calls, s.Failures, s.Waiting, s.Running, s.Local, s.Sweeps)
	}
}

func settledHub(s stock.HubState) bool { return s.Calls == 0 && s.Flushing == 0 }

// made writes JSON.
func made(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// keepItems gives a hub items with two events each, as its own store has them.
func keepItems(hub *stock.Hub, items int) {
	began := time.Now().Add(-time.Hour)
	for n := range items {
		at := isoTime(began.Add(time.Duration(n) * time.Millisecond))
		hash := itemHash(n)
		hub.Keep(
			made(map[string]any{"WorkItemHash": hash, "Capability": "Echo", "Status": "Complete", "EnqueuedAt": at, "LastEventAt": at}),
			made(map[string]any{"WorkItemHash": hash, "EventType": "enqueued", "FromStatus": "", "ToStatus": "Pending"}),
			made(map[string]any{"WorkItemHash": hash, "EventType": "completed", "FromStatus": "Running", "ToStatus": "Complete"}),
		)
	}
}

func itemHash(n int) string { return fmt.Sprintf("wi-unknown-unknown-1700000000000-%d", n+1) }

// item reads a work item, nil when there is none.
func itemOf(t *testing.T, host *core.Host, key string) (item map[string]any) {
	t.Helper()
	return recordIn(t, host.Item(within(t, testPatience), key))
}

func manifestOf(t *testing.T, host *core.Host, key string) map[string]any {
	t.Helper()
	return recordIn(t, host.Manifest(within(t, testPatience), key))
}

func recordIn(t *testing.T, a core.Answer) (record map[string]any) {
	t.Helper()
	if a.Situation == core.NotFound {
		return nil
	}
	if !a.Success() {
		t.Fatalf("a read failed: %v", a.Err)
	}
	if len(a.Value) > 0 {
		if err := json.Unmarshal(a.Value, &record); err != nil {
			t.Fatal(err)
		}
	}
	return record
}

// types are the types of the events of an item, in order.
func types(t *testing.T, host *core.Host, key string) (list []string) {
	t.Helper()
	for _, event := range rows(t, host.Events(within(t, testPatience), ports.EventQuery{Key: key, Limit: 1000})) {
		list = append(list, fmt.Sprint(event["EventType"]))
	}
	return list
}

// held is how many records of each kind the core's local store has.
func held(t *testing.T, host *core.Host) map[ports.Kind]int64 {
	t.Helper()
	survey, err := host.Survey(within(t, testPatience))
	if err != nil {
		t.Fatal(err)
	}
	return survey.Counts
}
