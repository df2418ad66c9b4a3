package acceptance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/adapters/mesh/stock"
	"holdfast/internal/e2e"
)

// asked makes a call of the hub's and gives the status and the answer.
func asked(t *testing.T, method, url string, body any) (status int, answer map[string]json.RawMessage) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = json.Unmarshal(raw, &answer) // a list has no members
	return response.StatusCode, answer
}

// beacon starts a stock beacon of a host and waits until it is registered.
func beacon(t *testing.T, h *e2e.Host, config stock.BeaconConfig) {
	t.Helper()
	config.ServerURL = h.URL
	config.Actions = append(config.Actions, stock.Action{Capability: "Echo", Name: "Say", Do: func(_ context.Context, w *stock.Work) (any, error) {
		if strings.Contains(string(w.Settings), "crooked") {
			return nil, errors.New("this cannot be said")
		}
		return map[string]any{"Said": true, "By": config.Name}, nil
	}})
	b := stock.NewBeacon(config)
	t.Cleanup(b.Kill)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := b.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := b.Await(ctx, func(s stock.BeaconState) bool { return s.ID != "" }); err != nil {
		t.Fatal(err)
	}
}

func TestStockBeaconsWorkForWhoeverAsksAHostAndItsHistoryTells(t *testing.T) {
	t.Parallel()
	h := e2e.Start(t)
	beacon(t, h, stock.BeaconConfig{Name: "socket"})
	beacon(t, h, stock.BeaconConfig{Name: "polling", ForceHTTP: true, PollInterval: 20 * time.Millisecond})
	for _, name := range []string{"socket", "polling"} {
		for saying, status := range map[string]int{"plain": 200, "crooked": 500} {
			code, answer := asked(t, http.MethodPost, h.URL+"/Beacon/Work/Dispatch", map[string]any{
				"Capability": "Echo", "Action": "Say", "Settings": map[string]any{"Text": saying}, "AffinityKey": name, "TimeoutMs": 20_000,
			})
			if code != status {
				t.Fatalf("%s, %s: %d %s", name, saying, code, answer)
			}
			if status == 200 && !strings.Contains(string(answer["Outputs"]), fmt.Sprintf("%q", name)) {
				t.Errorf("%s was not the one that did it: %s", name, answer["Outputs"])
			}
		}
	}
	if out, _ := h.Run(t, "status"); !strings.Contains(out, "beacons: 2 of 2 connected; works: 0 underway, 0 wait, 2 done, 2 failed, 0 out of time") {
		t.Errorf("the status does not tell of the beacons:\n%s", out)
	}
	// What was done is history: two works of each beacon, one of which failed.
	for status, want := range map[string]int{"Complete": 2, "Error": 2} {
		var rows []map[string]json.RawMessage
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		for len(rows) != want && ctx.Err() == nil { // it is recorded behind the answer
			_, answer := asked(t, http.MethodGet, h.URL+"/v1/work-items?status="+status, nil)
			rows = nil
			if err := json.Unmarshal(answer["WorkItems"], &rows); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		if len(rows) != want {
			t.Errorf("%d works are %s, want %d", len(rows), status, want)
		}
	}
}

func TestACallerWhoWaitsForABeaconIsAnsweredWhenTheHostStops(t *testing.T) {
	t.Parallel()
	h := e2e.Start(t)
	began := make(chan struct{})
	beacon(t, h, stock.BeaconConfig{Name: "slow", Actions: []stock.Action{{
		Capability: "Slow", Name: "Wait", Do: func(ctx context.Context, _ *stock.Work) (any, error) {
			close(began)
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}}})
	answered := make(chan int, 1)
	go func() {
		code, _ := asked(t, http.MethodPost, h.URL+"/Beacon/Work/Dispatch", map[string]any{"Capability": "Slow", "Action": "Wait", "TimeoutMs": 300_000})
		answered <- code
	}()
	<-began
	h.Stop(t) // within its ten seconds, and nothing is left behind
	if code := <-answered; code < 500 {
		t.Errorf("the caller was answered with %d", code)
	}
}

func TestAHostThatAsksWhoComesLetsNobodyElseIn(t *testing.T) {
	t.Parallel()
	const block = `
mesh {
  name        = "hub-1"
  join_secret = "of-those-who-join"
  user "worker" {
    password = "of-the-worker"
  }
}
`
	h := e2e.StartWith(t, e2e.Setup{Config: block})
	if code, _ := asked(t, http.MethodGet, h.URL+"/Beacon", nil); code != http.StatusUnauthorized {
		t.Errorf("a stranger is answered with %d", code)
	}
	beacon(t, h, stock.BeaconConfig{Name: "joins", JoinSecret: "of-those-who-join"})
	beacon(t, h, stock.BeaconConfig{Name: "logs-in", UserName: "worker", Password: "of-the-worker", ForceHTTP: true})
	for _, secret := range []string{"of-those-who-join", "of-the-worker"} {
		if strings.Contains(h.Log(), secret) {
			t.Errorf("the log has the secret %q", secret)
		}
	}
}
