package stock

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of a test.
const patience = 20 * time.Second

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, end := context.WithTimeout(t.Context(), patience)
	t.Cleanup(end)
	return ctx
}

func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return server.URL
}

// open is a hub and its address.
func open(t *testing.T, config HubConfig) (*Hub, string) {
	t.Helper()
	h := NewHub(config)
	url := serve(t, h)
	t.Cleanup(h.Close)
	return h, url
}

// join starts a beacon and waits for its registration.
func join(t *testing.T, b *Beacon) *Beacon {
	t.Helper()
	t.Cleanup(b.Kill)
	if err := b.Start(within(t)); err != nil {
		t.Fatalf("the beacon did not start: %v", err)
	}
	return b
}

func awaitHub(t *testing.T, h *Hub, what string, wanted func(HubState) bool) {
	t.Helper()
	if err := h.Await(within(t), wanted); err != nil {
		t.Fatalf("%s: %v; the hub: %+v", what, err, h.State())
	}
}

func awaitBeacon(t *testing.T, b *Beacon, what string, wanted func(BeaconState) bool) {
	t.Helper()
	if err := b.Await(within(t), wanted); err != nil {
		t.Fatalf("%s: %v; the beacon: %+v", what, err, b.State())
	}
}

func idle(s HubState) bool { return s.Calls == 0 && s.Flushing == 0 }

func transcript(t *testing.T, name string) []Step {
	t.Helper()
	steps, err := Transcript(filepath.Join("..", "..", "..", "testdata", "transcripts", name))
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) < 10 {
		t.Fatalf("%s has only %d steps", name, len(steps))
	}
	return steps
}

// echo is an action that answers with its settings.
func echo(capability, name string) Action {
	return Action{Capability: capability, Name: name, Do: func(_ context.Context, w *Work) (any, error) {
		w.Say(capability + " " + name)
		return map[string]any{"StdOut": text(inside(w.Settings)["Text"]), "ExitCode": 0, "Did": name}, nil
	}}
}

func did(o Outcome) string { return text(inside(o.Outputs)["Did"]) }
