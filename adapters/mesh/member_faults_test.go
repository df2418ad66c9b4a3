package mesh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"holdfast/adapters/mesh/stock"
	"holdfast/core"
	"holdfast/ports"
)

// slowCore takes calls in at once and answers them when it is let.
type slowCore struct {
	mu    sync.Mutex
	calls []core.Call
	let   chan struct{}
}

func newSlowCore() *slowCore { return &slowCore{let: make(chan struct{})} }

func (c *slowCore) Begin(call core.Call) Promise {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, call)
	return slowPromise(c.let)
}

func (c *slowCore) begun() []core.Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
}

type slowPromise chan struct{}

func (p slowPromise) Wait(ctx context.Context) core.Answer {
	select {
	case <-p:
		return core.Answer{}
	case <-ctx.Done():
		return core.Refusal(ports.Errorf(ports.Unavailable, "", "it takes too long"))
	}
}

// quickCore answers everything at once.
func quickCore() *slowCore {
	c := newSlowCore()
	close(c.let)
	return c
}

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

func TestAHubThatForgotTheMemberIsToldAgain(t *testing.T) {
	t.Parallel()
	hub, url := ultravisor(t, stock.HubConfig{})
	m := joinedMember(t, url, quickCore(), nil)
	for n := range 3 {
		old := m.Status().BeaconID
		hub.Forget(m.name) // as the end of an older socket of that name does, which is told to nobody
		awaitMember(t, m, "another registration", func(s MemberStatus) bool { return s.Registrations >= uint64(n+2) && s.BeaconID != old })
	}
	hub.Enqueue(stock.Spec{Capability: "Nobody"})
	awaitUltravisor(t, hub, "the answers", settledHub)
	if s := hub.State(); s.Failures != 0 || s.Beacon(m.name) == nil {
		t.Errorf("the hub: %+v", s)
	}
}

func TestAHubThatWasStartedAgainIsJoinedAgain(t *testing.T) {
	t.Parallel()
	host := history(t)
	hub, url := ultravisor(t, stock.HubConfig{})
	m := joinedMember(t, url, Over(host), nil)
	hub.Imagine(stock.Registration{Name: "worker", Capabilities: []string{"Echo"}}, true)
	hash := hub.Enqueue(stock.Spec{Capability: "Echo"})
	awaitUltravisor(t, hub, "the answers", settledHub)
	for n := range 3 {
		hub.Restart()
		awaitMember(t, m, "another registration", func(s MemberStatus) bool { return s.Registrations >= uint64(n+2) })
	}
	hub.Imagine(stock.Registration{Name: "worker", Capabilities: []string{"Echo"}}, true)
	if err := hub.Complete(hash, stock.Result{}); err != nil {
		t.Fatal(err)
	}
	awaitUltravisor(t, hub, "the answers", settledHub)
	eventually(t, "the end of the item", func() bool { return itemOf(t, host, hash)["Status"] == "Complete" })
}

func TestASecuredHubIsJoinedWithItsSecretAndSeenWithALogin(t *testing.T) {
	t.Parallel()
	secured := stock.HubConfig{Secured: true, Auth: &stock.Auth{Users: map[string]string{"holdfast": "pass-1"}, JoinSecret: "join-1"}}
	for _, c := range []struct {
		name         string
		change       func(*MemberConfig)
		state        string
		says, remedy string
	}{
		{"with both", func(c *MemberConfig) { c.JoinSecret, c.User, c.Password = "join-1", "holdfast", "pass-1" }, MemberJoined, "", ""},
		{"with the secret only it is joined, but blind", func(c *MemberConfig) { c.JoinSecret = "join-1" }, MemberJoined, "not known", "join_user"},
		{"a wrong login is told", func(c *MemberConfig) { c.JoinSecret, c.User, c.Password = "join-1", "holdfast", "pass-2" }, MemberJoined, "Authentication failed", "join_user"},
		{"with a login only it is rejected", func(c *MemberConfig) { c.User, c.Password = "holdfast", "pass-1" }, MemberRejected, "lets this beacon not in", "join_with"},
		{"with another secret too", func(c *MemberConfig) { c.JoinSecret = "join-2" }, MemberRejected, "denied", "join_with"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			hub, url := ultravisor(t, secured)
			var l logged
			m := unjoined(t, url, quickCore(), func(config *MemberConfig) {
				c.change(config)
				config.Logger = l.logger()
			})
			run(t, m)
			awaitMember(t, m, c.name, func(s MemberStatus) bool {
				return s.State == c.state && strings.Contains(s.Detail, c.says) && (c.says == "") == (s.Detail == "") && (s.State != MemberJoined || !s.CheckedAt.IsZero())
			})
			s := m.Status()
			if !strings.Contains(s.Remedy, c.remedy) {
				t.Errorf("the remedy is %q", s.Remedy)
			}
			if c.state == MemberJoined {
				hub.Enqueue(stock.Spec{Capability: "Nobody"})
				awaitUltravisor(t, hub, "the answers", settledHub)
				if failed := hub.State().Failures; failed != 0 {
					t.Errorf("%d calls failed", failed)
				}
			}
			for _, secret := range []string{"join-1", "join-2", "pass-1", "pass-2"} {
				if strings.Contains(l.String()+fmt.Sprint(m.Status()), secret) {
					t.Errorf("%q is told:\n%s%+v", secret, l.String(), m.Status())
				}
			}
		})
	}
}

// A hub that starts before its Authentication beacon rejects everybody until that one is there.
func TestAMemberThatWasRejectedComesBackUntilItIsLetIn(t *testing.T) {
	t.Parallel()
	hub, url := ultravisor(t, stock.HubConfig{Secured: true, BootstrapSecret: "boot"})
	m := unjoined(t, url, quickCore(), func(c *MemberConfig) { c.JoinSecret = "join-1" })
	run(t, m)
	awaitMember(t, m, "a rejection", func(s MemberStatus) bool { return s.State == MemberRejected })
	auth := stock.NewBeacon(stock.BeaconConfig{ServerURL: url, Name: "auth", JoinSecret: "boot", Actions: []stock.Action{
		{Capability: "Authentication", Name: "AUTH_ValidateBeaconJoin", Do: func(context.Context, *stock.Work) (any, error) {
			return map[string]any{"Allowed": true}, nil
		}},
	}})
	t.Cleanup(auth.Kill)
	if err := auth.Start(within(t, testPatience)); err != nil {
		t.Fatal(err)
	}
	awaitMember(t, m, "a member that is in", func(s MemberStatus) bool { return s.State == MemberJoined })
	if hub.State().Beacon(m.name) == nil {
		t.Error("the hub does not know it")
	}
}

func TestAStopLeavesTheHubAndAnswersWhatIsInHand(t *testing.T) {
	t.Parallel()
	c := newSlowCore()
	hub, url := ultravisor(t, stock.HubConfig{BridgeTimeout: time.Minute})
	m := unjoined(t, url, c, func(c *MemberConfig) { c.Timing.Answer = 10 * time.Second })
	stop := run(t, m)
	awaitMember(t, m, "a member that is in", MemberStatus.Joined)
	hub.Enqueue(stock.Spec{Capability: "Nobody"})
	awaitMember(t, m, "the calls", func(s MemberStatus) bool { return s.InHand == 2 })
	time.AfterFunc(50*time.Millisecond, func() { close(c.let) })
	stop()
	awaitUltravisor(t, hub, "the answers", settledHub)
	if s := hub.State(); s.Beacon(m.name) != nil || s.Failures != 0 || m.Status().State != MemberStopped {
		t.Errorf("after the stop: %+v, %+v", s, m.Status())
	}
}

// Whatever is there instead of a hub: each attempt ends, and says why.
func TestWhatIsNoHubIsToldAndNeverWaitedFor(t *testing.T) {
	t.Parallel()
	accept := func(speak func(conn *websocket.Conn, ctx context.Context)) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			defer func() { _ = conn.CloseNow() }()
			ctx, gone := context.WithCancel(context.Background())
			go func() { // what the member says is not heard
				defer gone()
				for {
					if _, _, err := conn.Read(context.Background()); err != nil {
						return
					}
				}
			}()
			speak(conn, ctx)
		})
	}
	for _, c := range []struct {
		name    string
		handler http.Handler
		says    string
	}{
		{"nothing but pages", http.NotFoundHandler(), "is a beacon hub at"},
		{"a socket that never answers", accept(func(_ *websocket.Conn, ctx context.Context) { <-ctx.Done() }), "did not answer the registration"},
		{"a socket that closes at once", accept(func(conn *websocket.Conn, _ context.Context) { _ = conn.Close(1000, "") }), "closed the socket"},
		{"a socket that breaks", accept(func(*websocket.Conn, context.Context) {}), "broke"},
		{"garbage without end", accept(func(conn *websocket.Conn, ctx context.Context) {
			for conn.Write(ctx, websocket.MessageText, []byte(`{"EventType":`)) == nil {
				continue
			}
		}), "nothing that a hub sends"},
		{"another address", http.RedirectHandler("http://elsewhere/", http.StatusFound), "302"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(c.handler)
			m := unjoined(t, server.URL, quickCore(), func(c *MemberConfig) { c.Timing.Register = 100 * time.Millisecond })
			stop := run(t, m)
			awaitMember(t, m, c.says, func(s MemberStatus) bool { return strings.Contains(s.LastError, c.says) })
			if s := m.Status(); s.State != MemberConnecting || s.Remedy == "" {
				t.Errorf("its status is %+v", s)
			}
			stop()
			server.CloseClientConnections()
			server.Close()
		})
	}
}

func TestAnAddressThatAcceptsAndSaysNothingIsGivenUpInTime(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	m := unjoined(t, "http://"+l.Addr().String(), quickCore(), func(c *MemberConfig) { c.Timing.Connect = 50 * time.Millisecond })
	stop := run(t, m)
	awaitMember(t, m, "a reason", func(s MemberStatus) bool { return strings.Contains(s.LastError, "did not open a socket within") })
	began := time.Now()
	stop()
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it stopped after %s", took)
	}
}

// A hub that freezes with its connection open is noticed, and joined again when it is back.
func TestASilentHubIsLetGo(t *testing.T) {
	t.Parallel()
	frozen := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			http.NotFound(w, r)
			return
		}
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = conn.CloseNow() }()
		if _, _, err := conn.Read(r.Context()); err != nil {
			return
		}
		_ = conn.Write(r.Context(), websocket.MessageText, []byte(`{"EventType":"BeaconRegistered","BeaconID":"b-1"}`))
		<-frozen // nobody reads, so nobody answers a ping
	}))
	m := unjoined(t, server.URL, quickCore(), func(c *MemberConfig) { c.Timing.Quiet, c.Timing.Check = 80*time.Millisecond, time.Hour })
	stop := run(t, m)
	awaitMember(t, m, "a reason", func(s MemberStatus) bool { return strings.Contains(s.LastError, "silent") })
	close(frozen)
	stop()
	server.CloseClientConnections()
	server.Close()
}

// While too much is in hand the socket is not read; nothing is dropped, and what waits is done later.
func TestAFloodIsTakenAsItCanBe(t *testing.T) {
	t.Parallel()
	c := newSlowCore()
	hub, url := ultravisor(t, stock.HubConfig{BridgeTimeout: time.Minute})
	m := joinedMember(t, url, c, func(c *MemberConfig) {
		c.Limits.Works, c.Timing.Answer, c.Timing.Quiet = 4, 20*time.Second, 100*time.Millisecond
	})
	hub.Hold(m.name)
	for range 50 {
		hub.Enqueue(stock.Spec{Capability: "Nobody"})
	}
	hub.Release(m.name, nil)
	awaitMember(t, m, "all hands full", func(s MemberStatus) bool { return s.InHand == 4 })
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
type unreadyCore struct {
	mu    sync.Mutex
	ready bool
}

func (c *unreadyCore) set(ready bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ready = ready
}

func (c *unreadyCore) Begin(core.Call) Promise {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ready {
		return settled{core.Answer{}}
	}
	return settled{core.Refusal(ports.Errorf(ports.Full, "journal", "it is full"))}
}

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
func TestAWorkThatCannotBeReadIsRefusedAndEndsNoFlush(t *testing.T) {
	t.Parallel()
	hub, url := ultravisor(t, stock.HubConfig{})
	c := quickCore()
	m := joinedMember(t, url, c, nil)
	deep := jsonText(strings.Repeat("[", maxFrameDepth+1) + strings.Repeat("]", maxFrameDepth+1))
	for _, again := range []bool{false, true} {
		item := map[string]any{"WorkItemHash": "wi-1", "Result": deep}
		if again {
			item["IDBeaconWorkItem"] = 1
		}
		o := hub.Dispatch(stock.Spec{Capability: "QueuePersistence", Action: "QP_UpsertWorkItem", Settings: map[string]any{"WorkItem": item}, TimeoutMs: 5000})
		if o.Err != nil || strings.Contains(string(o.Outputs), `"Success":true`) != again || !strings.Contains(string(o.Outputs), `"Reason":`) {
			t.Errorf("flushed %v, it is answered %s, %v", again, o.Outputs, o.Err)
		}
	}
	if s := m.Status(); len(c.begun()) != 0 || s.RefusedFrames != 2 || s.Registrations != 1 {
		t.Errorf("%d calls were begun; %+v", len(c.begun()), s)
	}
}

func TestGarbageBetweenWorksIsPassedOver(t *testing.T) {
	t.Parallel()
	hub, url := ultravisor(t, stock.HubConfig{})
	m := joinedMember(t, url, quickCore(), nil)
	for range maxOdd / 2 {
		for _, odd := range []string{`[]`, `7`, `{"EventType":"WorkItem","WorkItem":{}}`, `{"EventType":"queue.summary"}`, `{"EventType":"WorkItem","WorkItem":7}`} {
			hub.Say(m.name, jsonText(odd))
		}
		hub.Enqueue(stock.Spec{Capability: "Nobody"})
	}
	awaitUltravisor(t, hub, "the answers", settledHub)
	if s := m.Status(); hub.State().Failures != 0 || s.Registrations != 1 || s.Taken != maxOdd || s.RefusedFrames != 4*maxOdd/2 {
		t.Errorf("%d failures, %+v", hub.State().Failures, s)
	}
}

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

func TestThatAnAddressIsNoneIsToldAtOnce(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "ultravisor:54321", "ftp://ultravisor", "http://"} {
		var e *ports.Error
		if _, err := NewMember(MemberConfig{URL: url}); !errors.As(err, &e) || e.Code != ports.Invalid {
			t.Errorf("%q gives %v", url, err)
		}
	}
}
