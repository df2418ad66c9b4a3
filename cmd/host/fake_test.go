package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"holdfast/adapters/httpapi"
	"holdfast/core"
	"holdfast/ports"
)

// standIn answers behind the real API, so that commands are tested with real requests. What a test does not give is not asked.
type standIn struct {
	httpapi.Host
	answer func(n int, call core.Call) core.Answer
	read   func(query any) core.Answer
	status core.Status
	asides []core.AsideStatus
	export []ports.Row
	fault  error // of an export, after its rows
	pruned []ports.Pruned
	keys   []core.UnsettledStatus
	repair repaired

	mu     sync.Mutex
	calls  []core.Call
	orders []string
}

func (h *standIn) Begin(call core.Call) httpapi.Promise {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, call)
	a := core.Answer{Seq: uint64(len(h.calls))}
	if h.answer != nil {
		a = h.answer(len(h.calls), call)
	}
	return kept{a}
}

type kept struct{ answer core.Answer }

func (k kept) Due() bool { return true }

func (k kept) Wait(context.Context) core.Answer { return k.answer }

func (h *standIn) orderf(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.orders = append(h.orders, fmt.Sprintf(format, args...))
}

func (h *standIn) ask(q any) core.Answer {
	h.orderf("%+v", q)
	return h.read(q)
}

func (h *standIn) Item(_ context.Context, key string) core.Answer               { return h.ask(key) }
func (h *standIn) Items(_ context.Context, q ports.ItemQuery) core.Answer       { return h.ask(q) }
func (h *standIn) Events(_ context.Context, q ports.EventQuery) core.Answer     { return h.ask(q) }
func (h *standIn) Attempts(_ context.Context, q ports.AttemptQuery) core.Answer { return h.ask(q) }
func (h *standIn) Manifest(_ context.Context, key string) core.Answer           { return h.ask(key) }
func (h *standIn) Manifests(_ context.Context, q ports.ManifestQuery) core.Answer {
	return h.ask(q)
}
func (h *standIn) Status() core.Status { return h.status }
func (h *standIn) Survey(context.Context) (ports.Survey, error) {
	return ports.Survey{Counts: map[ports.Kind]int64{ports.KindItem: 1, ports.KindEvent: 5}, Bytes: 4096}, nil
}
func (h *standIn) Asides() ([]core.AsideStatus, error) { return h.asides, nil }
func (h *standIn) RetryAside(f ports.Family, key string) (int, error) {
	h.orderf("retry %s %s", f, key)
	return 2, nil
}
func (h *standIn) DiscardAside(f ports.Family, key string) (core.AsideStatus, error) {
	if len(h.asides) == 0 {
		return core.AsideStatus{}, ports.InField(ports.NotFound, "Key", "has nothing set aside")
	}
	h.orderf("discard %s %s", f, key)
	return h.asides[0], nil
}
func (h *standIn) AcceptLocal(adopt bool) error {
	h.orderf("accept %t", adopt)
	return nil
}
func (h *standIn) Assign(families []ports.Family, beacon string, connection int64) error {
	h.orderf("assign %s %d to %v", beacon, connection, families)
	return nil
}
func (h *standIn) Unassign(families []ports.Family) error {
	h.orderf("unassign %v", families)
	return nil
}
func (h *standIn) Assignments() []core.AssignmentStatus { return h.status.Assignments }
func (h *standIn) Prune(_ context.Context, before time.Time) (ports.Pruned, error) {
	h.orderf("prune %s", time.Since(before).Round(time.Minute))
	next := h.pruned[0]
	h.pruned = h.pruned[1:]
	return next, nil
}

// Export gives one row a page.
func (h *standIn) Export(_ context.Context, q ports.ExportQuery) (ports.Page, error) {
	n := 0
	if q.After != nil {
		n, _ = strconv.Atoi(q.After.Key)
	}
	if q.Family == ports.Manifest || n >= len(h.export) {
		return ports.Page{}, h.fault
	}
	page := ports.Page{Rows: h.export[n : n+1]}
	if n+1 < len(h.export) || h.fault != nil {
		page.Next = &ports.Cursor{Key: strconv.Itoa(n + 1)}
	}
	return page, nil
}

// serve puts a stand-in behind the API and gives its URL.
func (h *standIn) serve(t *testing.T, tokens ...httpapi.Token) string {
	t.Helper()
	api, err := httpapi.New(httpapi.Config{Host: h, Loopback: true, Tokens: tokens, Logger: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(nil)
	server.Config = api.Server()
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

// at runs the program against a host.
func at(t *testing.T, server string, args ...string) outcome {
	t.Helper()
	return runProgram(t, nil, append(args, "--server", server)...)
}

// wants checks an outcome: the exit code, and texts that must stand in what was printed.
func (o outcome) wants(t *testing.T, code int, texts ...string) {
	t.Helper()
	said, asExpected := o.stdout+o.stderr, o.code == code
	for _, text := range texts {
		if !strings.Contains(said, text) {
			t.Errorf("it does not say %q", text)
			asExpected = false
		}
	}
	if !asExpected {
		t.Errorf("exit code %d, want %d; it said\n%.2000s", o.code, code, said)
	}
}
