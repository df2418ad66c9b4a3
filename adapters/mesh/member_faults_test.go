package mesh

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/adapters/mesh/stock"
	"holdfast/ports"
)

func TestCallsAreBegunInTheOrderInWhichTheyWerePushed(t *testing.T) {
	t.Parallel()
	c := quickCore()
	hub, url := ultravisor(t, stock.HubConfig{})
	m := joinedMember(t, url, c, nil)
	hub.Hold(m.name)
	const works = 100
	for range works / 2 {
		hub.Enqueue(stock.Spec{Capability: "Nobody"})
	}
	var wanted []string
	for _, f := range hub.Fired() {
		wanted = append(wanted, f.Action)
	}
	hub.Release(m.name, nil)
	awaitUltravisor(t, hub, "the answers", settledHub)
	calls := c.begun()
	if len(calls) != works || len(wanted) != works {
		t.Fatalf("%d calls were begun, %d were fired", len(calls), len(wanted))
	}
	var last ports.Stamp
	for i, call := range calls {
		s := call.Source
		if string(call.Action) != wanted[i] || s.Origin != ports.OriginMember || s.Hub != m.hub || s.Actor != m.hub || !strings.HasSuffix(s.Work, fmt.Sprintf("-%d-%d", s.Stamp.Ms, s.Stamp.Count)) {
			t.Fatalf("call %d is %s of %+v, want %s", i, call.Action, s, wanted[i])
		}
		if !last.Older(s.Stamp) {
			t.Errorf("call %d is stamped %+v behind %+v", i, s.Stamp, last)
		}
		last = s.Stamp
	}
}

func TestWorksInHandAreReportedAlthoughTheSocketWasLost(t *testing.T) {
	t.Parallel()
	c := newSlowCore()
	hub, url := ultravisor(t, stock.HubConfig{BridgeTimeout: time.Minute})
	m := joinedMember(t, url, c, func(c *MemberConfig) {
		c.Timing.Answer = 20 * time.Second
		c.Timing.Retry, c.Timing.RetryMax = 300*time.Millisecond, 300*time.Millisecond
	})
	hub.Enqueue(stock.Spec{Capability: "Nobody"}) // two calls
	awaitMember(t, m, "the calls", func(s MemberStatus) bool { return s.InHand == 2 })
	hub.DropSocket(m.name)
	awaitMember(t, m, "a lost socket", func(s MemberStatus) bool { return s.State == MemberConnecting })
	close(c.let)
	awaitMember(t, m, "reports", func(s MemberStatus) bool { return s.ReportedOverHTTP+s.Reported >= 2 })
	awaitUltravisor(t, hub, "the answers", settledHub)
	if s := hub.State(); s.Failures != 0 {
		t.Errorf("%d calls failed", s.Failures)
	}
}

// While too much is in hand the socket is not read; nothing is dropped, and what waits is done later.
func TestAFloodIsTakenAsItCanBe(t *testing.T) {
	t.Parallel()
	c := newSlowCore()
	hub, url := ultravisor(t, stock.HubConfig{BridgeTimeout: time.Minute})
	m := joinedMember(t, url, c, func(c *MemberConfig) {
		c.Limits.Works, c.Timing.Answer, c.Timing.Quiet = 4, 20*time.Second, time.Second
	})
	hub.Hold(m.name)
	for range 50 {
		hub.Enqueue(stock.Spec{Capability: "Nobody"})
	}
	hub.Release(m.name, nil)
	awaitMember(t, m, "all hands full", func(s MemberStatus) bool { return s.InHand == 4 })
	full := time.Now()
	eventually(t, "more time than a hub may be silent", func() bool { return time.Since(full) > 1200*time.Millisecond })
	if n := len(c.begun()); n > 5 {
		t.Errorf("%d calls were begun while four may be in hand", n)
	}
	close(c.let)
	awaitUltravisor(t, hub, "the answers", settledHub)
	if s := hub.State(); s.Failures != 0 || len(c.begun()) != 100 || m.Status().Registrations != 1 {
		t.Errorf("%d failures, %d calls, %+v", s.Failures, len(c.begun()), m.Status())
	}
}

// A core that does not answer costs a call two seconds of the hub's five, and the flush that ended at it goes on later.
func TestAFlushThatEndedEarlyGoesOn(t *testing.T) {
	t.Parallel()
	c := &unreadyCore{}
	hub, url := ultravisor(t, stock.HubConfig{})
	keepItems(hub, 5)
	m := joinedMember(t, url, c, nil)
	awaitUltravisor(t, hub, "a sweep that broke off", func(s stock.HubState) bool {
		return slices.ContainsFunc(s.Sweeps, func(s stock.Sweep) bool { return s.Stopped != "" })
	})
	c.set(true)
	awaitUltravisor(t, hub, "a sweep that went through", func(s stock.HubState) bool {
		return slices.ContainsFunc(s.Sweeps, func(s stock.Sweep) bool { return s.Family == stock.QueueFamily && s.Stopped == "" && s.Pushed == 5 })
	})
	if id := m.Status().BeaconID; hub.State().Beacon(m.name).BeaconID != id {
		t.Error("it is known under another id than it thinks")
	}
}

// unreadyCore cannot take writes until it is set to.
// A hub's records about the works that persistence itself is made of would breed more of them.
func TestRecordsOfAHubAboutItsWritesToUsAreDropped(t *testing.T) {
	t.Parallel()
	host := history(t)
	hub, url := ultravisor(t, stock.HubConfig{})
	joinedMember(t, url, Over(host), nil)
	var outer string
	for _, action := range []string{"QP_UpsertWorkItem", "QP_AppendEvent", "QP_UpdateWorkItem"} {
		settings := map[string]any{"WorkItem": map[string]any{"WorkItemHash": "wi-1"}}
		switch action {
		case "QP_AppendEvent":
			settings = map[string]any{"Event": map[string]any{"WorkItemHash": outer, "EventType": "dispatched"}}
		case "QP_UpdateWorkItem":
			settings = map[string]any{"WorkItemHash": outer, "Patch": map[string]any{"Status": "Complete"}}
		}
		o := hub.Dispatch(stock.Spec{Capability: "QueuePersistence", Action: action, Settings: settings, TimeoutMs: 5000})
		if o.Err != nil || !strings.Contains(string(o.Outputs), `"Success":true`) || (outer != "") != strings.Contains(string(o.Outputs), `"Ignored":true`) {
			t.Errorf("%s about %q is answered %s, %v", action, outer, o.Outputs, o.Err)
		}
		if outer == "" {
			outer = o.WorkItemHash
		}
	}
	hub.Enqueue(stock.Spec{Capability: "Authentication", Settings: map[string]any{"Password": "pass-1"}})
	awaitUltravisor(t, hub, "the answers", settledHub)
	if got := held(t, host); got[ports.KindItem] != 1 || got[ports.KindEvent] != 0 {
		t.Errorf("the store has %v", got)
	}
}

// What cannot even be read is refused by the hash in front of it, and without ending a flush.
func TestAStampIsReadFromTheEndOfAHash(t *testing.T) {
	t.Parallel()
	for hash, want := range map[string]ports.Stamp{
		"wi-unknown-unknown-1764500000000-17":               {Ms: 1764500000000, Count: 17},
		"wi-run-op-1764400000000-node-7-1764500000000-9999": {Ms: 1764500000000, Count: 9999},
		"": {}, "wi": {}, "wi-1": {}, "wi-a-1": {}, "wi-1-a": {}, "-1-2": {Ms: 1, Count: 2}, "1-2": {},
		"wi-99999999999999999999-1": {}, "wi-1--2": {}, "wi-1-+2": {},
	} {
		if got := stampOf(hash); got != want {
			t.Errorf("%q gives %+v, want %+v", hash, got, want)
		}
	}
}
