package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"holdfast/internal/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m, func() { _ = os.RemoveAll(hostileDir) }) }

// callerLimit is what a caller may have to wait: the two seconds that are promised, and the slowness of a busy machine.
const callerLimit = 4 * time.Second

// rounds is a number of rounds, ten times as many in a soak.
func rounds(n int) int {
	if os.Getenv("HOLDFAST_SOAK") != "" {
		return 10 * n
	}
	return n
}

// must runs a command that has to succeed.
func must(t testing.TB, h *e2e.Host, args ...string) string {
	t.Helper()
	out, code := h.Run(t, args...)
	if code != 0 {
		t.Fatalf("holdfast %s: exit code %d\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

// passed waits until the local store has passed everything that the journals have, ready for more or not.
func passed(t testing.TB, h *e2e.Host) e2e.Status {
	t.Helper()
	var last e2e.Status
	e2e.Await(t, "the local store has everything", func() error {
		s, err := h.Status(t.Context())
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
