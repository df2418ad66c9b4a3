package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"holdfast/core"
	"holdfast/ports"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeHost notes what it was asked and answers at once, or when a test lets it.
type fakeHost struct {
	mu       sync.Mutex
	calls    []core.Call
	queries  []any
	panics   atomic.Bool   // the next Wait does
	gate     chan struct{} // nil: answers are due at once; else each waits for one value
	answer   func(call core.Call, n int) core.Answer
	notReady error
	pages    []ports.Page // of an export, one after the other
	pageErr  error        // after the pages
	asides   []core.AsideStatus
	pruned   ports.Pruned
	pruneFor time.Duration
	keys     []core.UnsettledStatus
	assigned []string
	work     func(ctx context.Context, tell func(core.Progress)) error // of what lasts; nil ends at once
}

func (h *fakeHost) Begin(call core.Call) Promise {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, call)
	answer := core.Answer{Seq: uint64(len(h.calls)), Backend: "local"}
	if h.answer != nil {
		answer = h.answer(call, len(h.calls))
	}
	return &fakePromise{host: h, answer: answer, late: time.After(2 * time.Second)}
}

type fakePromise struct {
	host   *fakeHost
	answer core.Answer
	late   <-chan time.Time // a core makes nobody wait longer
}

func (p *fakePromise) Due() bool { return p.host.gate == nil }

func (p *fakePromise) Wait(ctx context.Context) core.Answer {
	if p.host.panics.CompareAndSwap(true, false) {
		panic("a defect")
	}
	if p.host.gate != nil {
		select {
		case <-p.host.gate:
		case <-ctx.Done():
			return core.Answer{Situation: core.Deferred}
		case <-p.late:
			return core.Answer{Situation: core.Deferred}
		}
	}
	return p.answer
}

func (h *fakeHost) begun() []core.Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

func (h *fakeHost) ask(q any, payload string) core.Answer {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queries = append(h.queries, q)
	if key, ok := q.(string); ok && strings.HasPrefix(key, "absent") {
		return core.Answer{Situation: core.NotFound, Payload: payload}
	}
	return core.Answer{Payload: payload, Value: []byte(`"here"`), Backend: "local"}
}

func (h *fakeHost) Item(_ context.Context, key string) core.Answer { return h.ask(key, "WorkItem") }
func (h *fakeHost) Items(_ context.Context, q ports.ItemQuery) core.Answer {
	return h.ask(q, "WorkItems")
}
func (h *fakeHost) Events(_ context.Context, q ports.EventQuery) core.Answer {
	return h.ask(q, "Events")
}
func (h *fakeHost) Attempts(_ context.Context, q ports.AttemptQuery) core.Answer {
	return h.ask(q, "Attempts")
}
func (h *fakeHost) Manifest(_ context.Context, key string) core.Answer { return h.ask(key, "Manifest") }
func (h *fakeHost) Manifests(_ context.Context, q ports.ManifestQuery) core.Answer {
	return h.ask(q, "Manifests")
}

func (h *fakeHost) Export(_ context.Context, q ports.ExportQuery) (ports.Page, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queries = append(h.queries, q)
	n := 0
	if q.After != nil {
		n, _ = strconv.Atoi(q.After.Key)
	}
	if q.Family == ports.Manifest {
		return ports.Page{}, nil
	}
	if n >= len(h.pages) {
		return ports.Page{}, h.pageErr
	}
	page := h.pages[n]
	if n+1 < len(h.pages) || h.pageErr != nil {
		page.Next = &ports.Cursor{Key: strconv.Itoa(n + 1)}
	}
	return page, nil
}

func (h *fakeHost) Ready() error { return h.notReady }
func (h *fakeHost) Status() core.Status {
	return core.Status{
		Version: "1.2.3", HostID: "host", Ack: core.AckLocal, Ready: h.notReady == nil,
		Families: []core.FamilyStatus{{
			Family: ports.Queue, Head: 12, Committed: 10, Backlog: 2, OldestMs: 1500, SetAside: 1, Lost: []ports.Span{{From: 3, To: 5}},
			Journal: core.JournalStatus{Bytes: 100, Limit: 1000, Free: 5000}, Writes: core.WriteCounts{Accepted: 12, Stored: 9, AlreadyPresent: 1},
		}},
		Backends: []core.BackendStatus{
			{Name: "history", Kind: "sqlite", Local: true, State: "bootstrapped", Starts: 2},
			{Name: "mirror", Kind: "sqlite", State: "bootstrapped", Starts: 1, Followers: []core.FollowerStatus{
				{Family: ports.Queue, State: "bootstrapped", Phase: "lagging", Position: 4, Behind: 6, BehindMs: 2500, Copied: 9, Unsettled: 2, InDoubt: 1, Suspect: true},
				{Family: ports.Manifest, State: "error", Phase: "error", Discarded: 3},
			}},
		},
	}
}
func (h *fakeHost) Survey(context.Context) (ports.Survey, error) {
	return ports.Survey{Counts: map[ports.Kind]int64{ports.KindItem: 7}}, nil
}
func (h *fakeHost) Write(f ports.Family, seq uint64) core.WriteStatus {
	return core.WriteStatus{Family: f, Seq: seq, State: "decided"}
}
func (h *fakeHost) Asides() ([]core.AsideStatus, error) { return h.asides, nil }
func (h *fakeHost) RetryAside(f ports.Family, key string) (int, error) {
	h.ask([2]string{string(f), key}, "")
	return 3, nil
}
func (h *fakeHost) DiscardAside(f ports.Family, key string) (core.AsideStatus, error) {
	if key == "absent" {
		return core.AsideStatus{}, ports.InField(ports.NotFound, "Key", "has nothing set aside")
	}
	return core.AsideStatus{Family: f, Key: key, Seq: 9}, nil
}
func (h *fakeHost) AcceptLocal(adopt bool) error {
	h.ask(adopt, "")
	return nil
}
func (h *fakeHost) Assign(families []ports.Family, beacon string, connection int64) error {
	if beacon == "" {
		return ports.InField(ports.Invalid, "BeaconID", "is missing")
	}
	h.assigned = append(h.assigned, fmt.Sprint(families, beacon, connection))
	return nil
}
func (h *fakeHost) Unassign(families []ports.Family) error {
	h.assigned = append(h.assigned, fmt.Sprint(families, "none"))
	return nil
}
func (h *fakeHost) Assignments() []core.AssignmentStatus {
	return []core.AssignmentStatus{{Family: ports.Queue, State: "bootstrapped", BeaconID: "d"}, {Family: ports.Manifest, State: "unassigned"}}
}
func (h *fakeHost) Prune(ctx context.Context, before time.Time) (ports.Pruned, error) {
	h.ask(before, "")
	if h.pruneFor > 0 {
		<-ctx.Done()
		return h.pruned, ctx.Err()
	}
	return h.pruned, nil
}

// client is a host behind a real server.
type client struct {
	t      *testing.T
	host   *fakeHost
	api    *API
	server *httptest.Server
	token  string
}

func serve(t *testing.T, host *fakeHost, change ...func(*Config)) *client {
	t.Helper()
	c := Config{Host: host, Version: "1.2.3", Loopback: true, Logger: hclog.NewNullLogger()}
	for _, f := range change {
		f(&c)
	}
	api, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return &client{t: t, host: host, api: api, server: start(t, api)}
}

// start serves an API until the test ends.
func start(t testing.TB, api *API) *httptest.Server {
	server := httptest.NewUnstartedServer(nil)
	server.Config = api.Server()
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// reply is an answer that was read to its end.
type reply struct {
	status int
	header http.Header
	body   string
}

// member gives a member of the JSON body.
func (r reply) member(t *testing.T, name string) any {
	t.Helper()
	var body map[string]any
	if err := json.Unmarshal([]byte(r.body), &body); err != nil {
		t.Fatalf("no JSON object: %q", r.body)
	}
	return body[name]
}

func (c *client) send(method, path, contentType, body string, headers ...string) reply {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.server.URL+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	return c.read(r)
}

func (c *client) read(r *http.Request) reply {
	c.t.Helper()
	got, err := c.server.Client().Do(r)
	for range 4 { // a server that answers before it has read all may close under the writer
		if err == nil || r.GetBody == nil {
			break
		}
		r.Body, _ = r.GetBody()
		got, err = c.server.Client().Do(r)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return reply{got.StatusCode, got.Header, string(text)}
}

func (c *client) get(path string) reply { return c.send("GET", path, "", "") }

// eventually waits for a condition, some seconds at most.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("never: %s", what)
		}
	}
}

const upsert = `{"Action":"QP_UpsertWorkItem","Settings":{"WorkItem":{"WorkItemHash":"a"}}}`
