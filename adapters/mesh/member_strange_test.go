package mesh

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"holdfast/adapters/mesh/stock"
	"holdfast/ports"
)

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

func TestThatAnAddressIsNoneIsToldAtOnce(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "ultravisor:54321", "ftp://ultravisor", "http://"} {
		var e *ports.Error
		if _, err := NewMember(MemberConfig{URL: url}); !errors.As(err, &e) || e.Code != ports.Invalid {
			t.Errorf("%q gives %v", url, err)
		}
	}
}
