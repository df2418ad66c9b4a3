package acceptance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"holdfast/core"
	"holdfast/internal/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }

// callerLimit is what a caller may have to wait: the two seconds that are promised, and the slowness of a busy machine.
const callerLimit = 4 * time.Second

// rounds is a number of rounds, ten times as many in a soak.
func rounds(n int) int {
	if os.Getenv("HOLDFAST_SOAK") != "" {
		return 10 * n
	}
	return n
}

// run runs a command of holdfast beside a host and gives what it printed and its exit code.
func run(t testing.TB, h *e2e.Host, args ...string) (out string, code int) {
	t.Helper()
	cmd := h.Command(args...)
	cmd.Env = append(cmd.Env, "HOLDFAST_LISTEN="+strings.TrimPrefix(h.URL, "http://"), "HOLDFAST_DATA="+h.Data())
	text, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// must is run for a command that has to succeed.
func must(t testing.TB, h *e2e.Host, args ...string) string {
	t.Helper()
	out, code := run(t, h, args...)
	if code != 0 {
		t.Fatalf("holdfast %s: exit code %d\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

// status asks a host how it is.
func status(ctx context.Context, h *e2e.Host) (s core.Status, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.URL+"/v1/status", nil)
	if err != nil {
		return s, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return s, err
	}
	defer res.Body.Close()
	return s, json.NewDecoder(res.Body).Decode(&s)
}

// passed waits until the local store has passed everything that the journals have, ready for more or not.
func passed(t testing.TB, h *e2e.Host) core.Status {
	t.Helper()
	var last core.Status
	e2e.Await(t, "the local store has everything", func() error {
		s, err := status(t.Context(), h)
		if err != nil {
			return err
		}
		last = s
		if len(s.Families) != 2 || s.Backends[0].State != "bootstrapped" {
			return fmt.Errorf("the local store is %s: %s", s.Backends[0].State, s.Backends[0].Detail)
		}
		for _, f := range s.Families {
			if f.Backlog > 0 {
				return fmt.Errorf("%s is at %d of %d", f.Family, f.Committed, f.Head)
			}
		}
		return nil
	})
	return last
}

// post sends an action as it stands and gives the whole answer.
func post(t testing.TB, h *e2e.Host, contentType string, body []byte) (status int, answer []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL+"/v1/actions", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if answer, err = io.ReadAll(res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, answer
}

// item is an item's upsert with more members.
func item(hash, members string) json.RawMessage {
	if members != "" {
		members = "," + members
	}
	return fmt.Appendf(nil, `{"WorkItem":{"WorkItemHash":%q%s}}`, hash, members)
}

// told asks what became of a write of the queue.
func told(t testing.TB, h *e2e.Host, seq uint64) (answer string, status int) {
	t.Helper()
	status, text := get(t, h, fmt.Sprintf("/v1/writes/queue/%d", seq))
	return string(text), status
}

// get reads a path and gives the whole answer.
func get(t testing.TB, h *e2e.Host, path string) (status int, answer []byte) {
	t.Helper()
	res, err := http.Get(h.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if answer, err = io.ReadAll(res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, answer
}
