package mesh

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come.
const testPatience = 20 * time.Second

// stand is a hub with its server, as a test uses it.
type stand struct {
	t   *testing.T
	hub *Hub
	url string
}

// serve starts a hub. What its Config does not say is as in a hub of this machine.
func serve(t *testing.T, c Config) *stand {
	t.Helper()
	c.Loopback = true
	if c.Name == "" {
		c.Name = "hub-1"
	}
	hub, err := New(c)
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
		http.DefaultClient.CloseIdleConnections()
	})
	return &stand{t, hub, server.URL}
}

// answer is what an HTTP call gave.
type answer struct {
	status int
	header http.Header
	body   map[string]any
	text   string
}

func (s *stand) call(method, path string, body any, cookie ...string) answer {
	s.t.Helper()
	a, err := request(s.url, method, path, body, cookie...)
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

func request(url, method, path string, body any, cookie ...string) (answer, error) {
	var in io.Reader
	if text, raw := body.(string); raw {
		in = strings.NewReader(text)
	} else if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return answer{}, err
		}
		in = bytes.NewReader(text)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 6*testPatience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url+path, in)
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	for _, c := range cookie {
		r.Header.Set("Cookie", c)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{status: response.StatusCode, header: response.Header, text: string(text)}
	if !json.Valid(text) {
		return a, fmt.Errorf("%s %s: %d, and no JSON: %q", method, path, a.status, text)
	}
	_ = json.Unmarshal(text, &a.body) // a list stays a text
	return a, nil
}

// peer is the other end of a socket.
type peer struct {
	t    *testing.T
	conn *websocket.Conn
	id   string
}

func (s *stand) dial(header ...string) *peer {
	s.t.Helper()
	p, err := s.tryDial(header...)
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

func (s *stand) tryDial(header ...string) (*peer, error) {
	options := &websocket.DialOptions{HTTPHeader: http.Header{}}
	for _, c := range header {
		options.HTTPHeader.Set("Cookie", c)
	}
	ctx, cancel := context.WithTimeout(context.Background(), testPatience)
	defer cancel()
	conn, response, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(s.url, "http")+"/", options)
	if err != nil {
		if response != nil {
			return nil, fmt.Errorf("%d: %w", response.StatusCode, err)
		}
		return nil, err
	}
	conn.SetReadLimit(-1)
	s.t.Cleanup(func() { _ = conn.CloseNow() })
	return &peer{t: s.t, conn: conn}, nil
}

func (p *peer) say(frame any) {
	p.t.Helper()
	text, raw := frame.(string)
	if !raw {
		b, err := json.Marshal(frame)
		if err != nil {
			p.t.Fatal(err)
		}
		text = string(b)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*testPatience)
	defer cancel()
	if err := p.conn.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
		p.t.Fatal(err)
	}
}

// hear waits for the next frame; its error is that of the connection.
func (p *peer) hear() (map[string]any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), testPatience)
	defer cancel()
	_, text, err := p.conn.Read(ctx)
	if err != nil {
		return nil, err
	}
	var frame map[string]any
	return frame, json.Unmarshal(text, &frame)
}

// expect waits for a frame with an EventType.
func (p *peer) expect(event string) map[string]any {
	p.t.Helper()
	frame, err := p.hear()
	if err != nil {
		p.t.Fatalf("waiting for %s: %v", event, err)
	}
	if frame["EventType"] != event {
		p.t.Fatalf("got %v, want %s", frame, event)
	}
	return frame
}

// beacon registers over a new socket.
func (s *stand) beacon(name string, slots int, capabilities ...string) *peer {
	s.t.Helper()
	p := s.dial()
	p.register(name, slots, capabilities...)
	return p
}

func (p *peer) register(name string, slots int, capabilities ...string) {
	p.t.Helper()
	p.say(map[string]any{"Action": "BeaconRegister", "Name": name, "Capabilities": capabilities, "MaxConcurrent": slots, "Tags": map[string]any{}, "HostID": "node-1"})
	p.id = p.expect("BeaconRegistered")["BeaconID"].(string)
}

// work waits for a work and gives its hash and settings.
func (p *peer) work() (hash string, item map[string]any) {
	p.t.Helper()
	item = p.expect("WorkItem")["WorkItem"].(map[string]any)
	return item["WorkItemHash"].(string), item
}

func (p *peer) complete(hash string, outputs any) {
	p.t.Helper()
	p.say(map[string]any{"Action": "WorkComplete", "WorkItemHash": hash, "Outputs": outputs, "Log": []string{"done"}})
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	eventuallyWithin(t, testPatience, what, holds)
}

func eventuallyWithin(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("it never came: %s", what)
		}
	}
}

func within(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

// logged is a logger, and everything that it wrote.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) logger() hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Level: hclog.Trace, Output: l})
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
