package acceptance

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/internal/e2e"
	"holdfast/internal/pgtest"
)

// A copy with a retention of its own gets rid of what ended long ago, by itself, a minute after the start; the local store keeps it, and
// nobody who reads notices.

func TestACopyKeepsNoMoreThanItsOwnRetentionSays(t *testing.T) {
	t.Parallel()
	h := e2e.StartWith(t, e2e.Setup{
		Config: "route = [\"small\", \"reports\", \"local\"]\n" +
			"backend \"sqlite\" \"local\" {\n  local = true\n}\n" +
			"backend \"sqlite\" \"small\" {\n  path = \"small.db\"\n  retention = \"24h\"\n}\n" +
			"backend \"postgres\" \"reports\" {\n  dsn = env(\"TEST_DSN\")\n  retention = \"720h\"\n}\n",
		Env: []string{"TEST_DSN=" + pgtest.Shared(t).Database(t)},
	})
	client := h.Client()
	defer client.Close()
	for hash, ago := range map[string]time.Duration{"young": time.Hour, "older": 48 * time.Hour, "oldest": 900 * time.Hour} {
		at := time.Now().Add(-ago).UTC().Format(time.RFC3339)
		client.Do(t, "QP_UpsertWorkItem", item(hash, fmt.Sprintf(`"Status":"Complete","EnqueuedAt":%q,"CompletedAt":%[1]q`, at)))
		client.Do(t, "QP_AppendEvent", json.RawMessage(fmt.Sprintf(`{"Event":{"WorkItemHash":%q,"EventType":"Done"}}`, hash)))
		client.Do(t, "QP_UpdateWorkItem", json.RawMessage(fmt.Sprintf(`{"WorkItemHash":%q,"Patch":{"LastEventAt":%q}}`, hash, at)))
	}
	h.AwaitEqual(t)
	for name, pruned := range map[string]string{"small": "4 more only in the local store, past the retention of the other", "reports": "2 more only in"} {
		var out string
		tries := 0
		for again := time.NewTicker(500 * time.Millisecond); !strings.Contains(out, pruned); <-again.C {
			var code int
			if out, code = h.Run(t, "verify", "local", name); code != 0 || tries == 300 {
				t.Fatalf("verify local %s ends with %d, after %d others:\n%s", name, code, tries, out)
			}
			tries++
		}
		if !strings.Contains(out, "0 only in local; 0 only in "+name) {
			t.Errorf("verify local %s finds\n%s", name, out)
		}
	}
	if items := client.Items(t); len(items) != 3 {
		t.Errorf("a list has %d items", len(items))
	}
	for _, hash := range []string{"young", "older", "oldest"} {
		if status, answer := get(t, h, "/v1/work-items/"+hash); status != 200 {
			t.Errorf("%s is answered %d %s", hash, status, answer)
		}
		if events := client.Events(t, hash); len(events) != 1 {
			t.Errorf("%s has %d events", hash, len(events))
		}
	}
	if out := must(t, h, "status", "--json"); !strings.Contains(out, `"PrunedUntil"`) {
		t.Errorf("the status does not tell:\n%s", out)
	}
}
