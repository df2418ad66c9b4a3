package stock

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestABeaconReconnectsLaterWithEachAttempt(t *testing.T) {
	t.Parallel()
	clock := NewHandClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	hub, _ := open(t, HubConfig{})
	gate := &gate{to: hub}
	b := join(t, NewBeacon(BeaconConfig{ServerURL: serve(t, gate), Name: "w", Actions: []Action{echo("C", "A")}, Clock: clock}))
	gate.shut(true)
	hub.DropSocket("w")
	for i, delay := range []int{10, 20, 40, 80, 160, 300, 300} {
		wait := time.Duration(delay) * time.Second
		if err := clock.Await(within(t), wait); err != nil {
			t.Fatalf("attempt %d does not wait %v: %v", i+1, wait, err)
		}
		if delay == 300 && i == 6 {
			gate.shut(false)
		}
		clock.Advance(wait)
		awaitBeacon(t, b, "the attempt", func(s BeaconState) bool { return s.Reconnects == i+1 })
	}
	awaitBeacon(t, b, "the return", func(s BeaconState) bool { return s.Connected && s.Registered == 2 })
	hub.DropSocket("w")
	if err := clock.Await(within(t), 10*time.Second); err != nil {
		t.Errorf("after a success the waits do not begin anew: %v", err)
	}
}

// gate refuses everything while it is shut.
type gate struct {
	mu     sync.Mutex
	to     http.Handler
	status int
	socket bool // only sockets are refused
}

func (g *gate) shut(shut bool) {
	g.refuse(0, false)
	if shut {
		g.refuse(http.StatusServiceUnavailable, false)
	}
}

func (g *gate) refuse(status int, socketsOnly bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.status, g.socket = status, socketsOnly
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	status := g.status
	if g.socket && r.Header.Get("Upgrade") == "" {
		status = 0
	}
	g.mu.Unlock()
	if status != 0 {
		answer(w, status, outputs{"Error": "refused"})
		return
	}
	g.to.ServeHTTP(w, r)
}

func TestABeaconThatIsRefusedOverItsSocketWaitsForEver(t *testing.T) {
	t.Parallel()
	hub, url := open(t, HubConfig{Secured: true, Auth: &Auth{JoinSecret: "right"}})
	b := NewBeacon(BeaconConfig{ServerURL: url, JoinSecret: "wrong", Clock: Hurry(1000)})
	t.Cleanup(b.Kill)
	ctx, end := context.WithCancel(within(t))
	started := make(chan error, 1)
	go func() { started <- b.Start(ctx) }()
	awaitBeacon(t, b, "the end of the socket", func(s BeaconState) bool { return s.Sockets == 1 && !s.Connected })
	select {
	case err := <-started:
		t.Fatalf("Start returned %v", err)
	default:
	}
	end()
	if err := <-started; err == nil {
		t.Error("Start says that it was registered")
	}
	if s := b.State(); s.Running || s.Registered != 0 || s.Reconnects != 0 || s.Polling {
		t.Errorf("it did something: %+v", s)
	}
	if len(hub.State().Beacons) != 0 {
		t.Error("the hub knows it")
	}
}

func TestABeaconWithTheJoinSecretIsLetIn(t *testing.T) {
	t.Parallel()
	hub, url := open(t, HubConfig{Secured: true, Auth: &Auth{JoinSecret: "right"}})
	join(t, NewBeacon(BeaconConfig{ServerURL: url, JoinSecret: "right", Name: "w"}))
	if hub.State().Beacon("w") == nil {
		t.Error("the hub does not know it")
	}
}

func TestABeaconPollsWhenItGetsNoSocket(t *testing.T) {
	t.Parallel()
	hub, _ := open(t, HubConfig{})
	gate := &gate{to: hub}
	gate.refuse(http.StatusServiceUnavailable, true)
	b := join(t, NewBeacon(BeaconConfig{
		ServerURL: serve(t, gate), Name: "w", Actions: []Action{echo("C", "A")}, PollInterval: time.Millisecond,
	}))
	if o := hub.Dispatch(Spec{Capability: "C", Action: "A"}); o.Err != nil || did(o) != "A" {
		t.Errorf("a work came back as %+v", o)
	}
	if s := b.State(); !s.Polling || s.Connected {
		t.Errorf("it is %+v", s)
	}
}

func TestABeaconThatIsToldUnauthorizedRegistersAgain(t *testing.T) {
	t.Parallel()
	hub, _ := open(t, HubConfig{})
	gate := &gate{to: hub}
	b := join(t, NewBeacon(BeaconConfig{
		ServerURL: serve(t, gate), Name: "w", ForceHTTP: true, PollInterval: time.Second, Clock: Hurry(1000),
	}))
	gate.refuse(http.StatusUnauthorized, false)
	awaitBeacon(t, b, "a poll that is refused", func(s BeaconState) bool { return !s.Polling })
	gate.refuse(0, false)
	awaitBeacon(t, b, "the second registration", func(s BeaconState) bool { return s.Registered >= 2 && s.Polling })
}

func TestABeaconThatTheHubForgotPollsOnForEver(t *testing.T) {
	t.Parallel()
	hub, url := open(t, HubConfig{})
	b := join(t, NewBeacon(BeaconConfig{
		ServerURL: url, Name: "w", ForceHTTP: true, PollInterval: time.Second, HeartbeatInterval: time.Second, Clock: Hurry(1000),
	}))
	hub.Forget("w")
	polls, beats := b.State().Polls, b.State().Beats
	awaitBeacon(t, b, "more polls and beats", func(s BeaconState) bool { return s.Polls > polls+5 && s.Beats > beats+5 })
	if s := b.State(); s.Registered != 1 {
		t.Errorf("it registered %d times", s.Registered)
	}
}

func TestABeaconDoesWhatTheStockExecutorDoes(t *testing.T) {
	t.Parallel()
	hub, url := open(t, HubConfig{})
	join(t, NewBeacon(BeaconConfig{
		ServerURL: url, Name: "w", Actions: []Action{echo("C", "First"), echo("C", "Second"), echo("D", "Other")},
	}))
	for _, c := range []struct{ capability, action, did string }{
		{"C", "Second", "Second"}, {"C", "Misspelt", "First"}, {"D", "First", "Other"},
	} {
		if o := hub.Dispatch(Spec{Capability: c.capability, Action: c.action}); did(o) != c.did {
			t.Errorf("%s %s did %q, wanted %q", c.capability, c.action, did(o), c.did)
		}
	}
	o := hub.Dispatch(Spec{Capability: "Nothing", Action: "A", AffinityKey: "w"})
	if o.Err != nil || string(inside(o.Outputs)["ExitCode"]) != "-1" {
		t.Errorf("an unknown capability came back as %+v", o)
	}
}

// behind is a handler that waits until it is let go.
func behind(let <-chan struct{}) Action {
	return Action{Capability: "C", Name: "A", Do: func(ctx context.Context, _ *Work) (any, error) {
		select {
		case <-let:
		case <-ctx.Done():
		}
		return map[string]any{"Did": "A"}, nil
	}}
}

func TestABeaconForgetsWhatIsPushedBeyondItsSlots(t *testing.T) {
	t.Parallel()
	hub, url := open(t, HubConfig{})
	let := make(chan struct{})
	b := join(t, NewBeacon(BeaconConfig{ServerURL: url, Name: "w", Actions: []Action{behind(let)}}))
	hub.Enqueue(Spec{Capability: "C", Action: "A"})
	awaitBeacon(t, b, "the first work", func(s BeaconState) bool { return s.Active == 1 })
	hub.Redeliver("w", 1)
	awaitBeacon(t, b, "the second push", func(s BeaconState) bool { return s.Dropped == 1 })
	close(let)
	awaitBeacon(t, b, "the report", func(s BeaconState) bool { return s.Active == 0 && s.Reported == 1 })
}

func TestABeaconReportsOverHTTPWhileItsSocketIsDown(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var reports []string
	hub, _ := open(t, HubConfig{})
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/Complete") {
			mu.Lock()
			reports = append(reports, r.URL.Path)
			mu.Unlock()
		}
		hub.ServeHTTP(w, r)
	}))
	let := make(chan struct{})
	clock := NewHandClock(time.Now())
	b := join(t, NewBeacon(BeaconConfig{ServerURL: url, Name: "w", Actions: []Action{behind(let)}, Clock: clock}))
	hash := hub.Enqueue(Spec{Capability: "C", Action: "A"})
	awaitBeacon(t, b, "the work", func(s BeaconState) bool { return s.Active == 1 })
	b.DropSocket()
	awaitBeacon(t, b, "the end of the socket", func(s BeaconState) bool { return !s.Connected })
	close(let)
	awaitHub(t, hub, "the report", func(s HubState) bool { return s.Waiting+s.Running == 0 })
	mu.Lock()
	defer mu.Unlock()
	if len(reports) != 1 || reports[0] != "/Beacon/Work/"+hash+"/Complete" {
		t.Errorf("reports over HTTP: %v", reports)
	}
}

func TestABeaconSaysGoodbyeTwice(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	said := map[string]int{}
	hub, _ := open(t, HubConfig{})
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		said[r.Method]++
		mu.Unlock()
		hub.ServeHTTP(w, r)
	}))
	b := join(t, NewBeacon(BeaconConfig{ServerURL: url, Name: "w"}))
	_ = b.Stop(within(t)) // the second goodbye may come late and be told 404
	awaitHub(t, hub, "the goodbye", func(s HubState) bool { return len(s.Beacons) == 0 && s.Sockets == 0 })
	mu.Lock()
	defer mu.Unlock()
	if said[http.MethodDelete] != 1 {
		t.Errorf("said over HTTP: %v", said)
	}
}

func TestABeaconKeepsTheCookieAsItCame(t *testing.T) {
	t.Parallel()
	hub, url := open(t, HubConfig{Secured: true, Auth: &Auth{Users: map[string]string{"u": "p"}}})
	b := join(t, NewBeacon(BeaconConfig{ServerURL: url, Name: "w", UserName: "u", Password: "p", ForceHTTP: true}))
	if b.State().ID == "" || hub.State().Beacon("w") == nil {
		t.Error("it did not register")
	}
	bad := NewBeacon(BeaconConfig{ServerURL: url, Name: "bad", UserName: "u", Password: "no", ForceHTTP: true, Clock: NewHandClock(time.Now())})
	t.Cleanup(bad.Kill)
	if err := bad.Start(within(t)); err == nil {
		t.Error("a beacon with a wrong password registered over HTTP")
	}
}

// A beacon sees a hub that says nothing sensible, and goes on.
func TestABeaconOutlivesNonsense(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	t.Cleanup(server.Close)
	b := NewBeacon(BeaconConfig{ServerURL: server.URL})
	t.Cleanup(b.Kill)
	if err := b.Start(within(t)); err == nil || !strings.Contains(err.Error(), "JSON") {
		t.Errorf("Start returned %v", err)
	}
}

func TestABeaconUploadsAndTellsProgress(t *testing.T) {
	t.Parallel()
	hub, url := open(t, HubConfig{NoLocalStore: true})
	half := 50.0
	join(t, NewBeacon(BeaconConfig{ServerURL: url, Name: "w", Actions: []Action{{
		Capability: "C", Name: "A", Do: func(_ context.Context, w *Work) (any, error) {
			w.Progress(Progress{Percent: &half, Message: "half", Log: []string{"line"}})
			w.Upload("out.bin", []byte{1, 2, 3})
			return map[string]any{"Did": "A"}, nil
		},
	}}}))
	if o := hub.Dispatch(Spec{Capability: "C", Action: "A"}); o.Err != nil {
		t.Fatal(o.Err)
	}
	if got := names(hub.Fired()); got != "QP_UpsertWorkItem QP_AppendEvent QP_UpdateWorkItem QP_UpdateWorkItem QP_AppendEvent QP_UpdateAttemptOutcome" {
		t.Errorf("written: %s", got)
	}
	var patch struct{ Patch map[string]json.RawMessage }
	if err := json.Unmarshal(hub.Fired()[2].Settings, &patch); err != nil || len(patch.Patch) != 2 || patch.Patch["StartedAt"] == nil {
		t.Errorf("progress was written as %s", hub.Fired()[2].Settings)
	}
}
