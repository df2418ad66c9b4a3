package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/core"
	"holdfast/internal/e2e"
	"holdfast/internal/model"
)

// beside is traffic that must not notice what happens to other keys.
type beside struct {
	written  [][2]string // action and settings, in order
	slowest  time.Duration
	failures []string
	stop     context.CancelFunc
	wg       sync.WaitGroup
}

func startBeside(t *testing.T, h *e2e.Host) *beside {
	ctx, stop := context.WithCancel(t.Context())
	b := &beside{stop: stop}
	client := h.Client()
	b.wg.Go(func() {
		defer client.Close()
		pace := time.NewTicker(20 * time.Millisecond)
		defer pace.Stop()
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-pace.C:
			}
			settings := item(fmt.Sprintf("other-%d", n%50), fmt.Sprintf(`"Status":"Running","Round":%d`, n))
			a, err := client.Send(context.WithoutCancel(ctx), "", "QP_UpsertWorkItem", settings)
			b.slowest = max(b.slowest, a.Took)
			if err != nil || !a.Success {
				b.failures = append(b.failures, fmt.Sprint(err, a.Code, " ", a.Reason))
				continue
			}
			b.written = append(b.written, [2]string{"QP_UpsertWorkItem", string(settings)})
		}
	})
	return b
}

func (b *beside) end(t *testing.T, m *model.Model) {
	t.Helper()
	b.stop()
	b.wg.Wait()
	for _, w := range b.written {
		m.Apply(w[0], json.RawMessage(w[1]))
	}
	if b.slowest > callerLimit {
		t.Errorf("a caller of another key waited %s", b.slowest)
	}
	for _, f := range b.failures {
		t.Errorf("a write of another key was not taken: %s", f)
	}
}

// unsettled lists what is set aside for a key, oldest first.
func unsettled(t testing.TB, h *e2e.Host, key string) (list []core.AsideStatus) {
	t.Helper()
	var whole struct{ Unsettled []core.AsideStatus }
	if text := must(t, h, "unsettled", "list", "--json"); json.Unmarshal([]byte(text), &whole) != nil {
		t.Fatalf("unsettled list --json prints %s", text)
	}
	for _, a := range whole.Unsettled {
		if a.Key == key {
			list = append(list, a)
		}
	}
	return list
}

func awaitUnsettled(t testing.TB, h *e2e.Host, key string, n int) {
	t.Helper()
	// A store that dies on a write is started again ever more slowly.
	look := func() error {
		if list := unsettled(t, h, key); len(list) != n {
			return fmt.Errorf("%d writes, want %d: %+v", len(list), n, list)
		}
		return nil
	}
	for deadline := time.Now().Add(3 * time.Minute); look() != nil && time.Now().Before(deadline); {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
	if err := look(); err != nil {
		t.Fatalf("set aside of %s: %v", key, err)
	}
}

func TestAWriteThatTheStoreCannotTakeIsSetAsideAndComesBackInOrder(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("waits for a store to be given up on a write")
	}
	built := filepath.Join(t.TempDir(), "holdfast-backend-faulty")
	if text, err := exec.Command("go", "build", "-o", built, "./testdata/faultyplugin").CombinedOutput(); err != nil {
		t.Fatalf("build the faulty plugin: %v\n%s", err, text)
	}
	for _, fault := range []string{"refuse", "kill", "hang"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			setAsideAndBack(t, built, fault)
		})
	}
}

func setAsideAndBack(t *testing.T, plugin, fault string) {
	h := e2e.StartWith(t, e2e.Setup{Config: fmt.Sprintf("backend \"sqlite\" \"local\" {\n  local  = true\n  plugin = %q\n}\n", plugin)})
	client, m := h.Client(), model.New(model.Options{})
	defer client.Close()
	other := startBeside(t, h)

	apply := func(action, settings string) {
		t.Helper()
		if a := client.Do(t, action, json.RawMessage(settings)); !a.Success {
			t.Fatalf("%s is answered %d %s: %s", action, a.Status, a.Code, a.Reason)
		}
		m.Apply(action, json.RawMessage(settings))
	}
	// bad sends what must be set aside, and gives its Seq.
	bad := func(action, settings string, kept bool) uint64 {
		t.Helper()
		a := client.Do(t, action, json.RawMessage(settings))
		if a.Took > callerLimit {
			t.Errorf("the caller of a marked record waited %s", a.Took)
		}
		told := a.Status == 422 && a.SetAside && !a.Success && a.Reason != ""
		later := a.Status == 202 && a.Deferred && a.Success
		if !told && !later || a.Seq == 0 {
			t.Errorf("%s is answered %d %+v", action, a.Status, a)
		}
		if kept {
			m.Apply(action, json.RawMessage(settings))
		}
		return a.Seq
	}
	update := func(key, members string) string {
		return fmt.Sprintf(`{"WorkItemHash":%q,"Patch":{%s}}`, key, members)
	}
	apply("QP_UpsertWorkItem", string(item("plain", `"Status":"Running"`)))
	mark := fmt.Sprintf(`"Mark":%q`, fault)
	for _, key := range []string{"kept", "given-up"} {
		apply("QP_UpsertWorkItem", string(item(key, `"Status":"Pending","AttemptNumber":1`)))
		apply("QP_AppendEvent", fmt.Sprintf(`{"Event":{"WorkItemHash":%q,"EventGUID":"%s-1","EventType":"enqueued"}}`, key, key))
	}
	seqs := []uint64{
		bad("QP_UpdateWorkItem", update("kept", `"Status":"Running",`+mark), true),
		bad("QP_AppendEvent", `{"Event":{"WorkItemHash":"kept","EventGUID":"kept-2","EventType":"dispatched"}}`, true),
		bad("QP_UpdateWorkItem", update("kept", `"Status":"Complete","Result":{"n":1.0}`), true),
	}
	awaitUnsettled(t, h, "kept", 3)
	seqs = append(seqs,
		bad("QP_UpdateWorkItem", update("given-up", `"Status":"Error",`+mark), false),
		bad("QP_UpdateWorkItem", update("given-up", `"Progress":7`), true))
	awaitUnsettled(t, h, "given-up", 2)
	other.end(t, m)

	h.Kill()
	h.Restart(t)
	for i, a := range unsettled(t, h, "kept") {
		if a.Seq != seqs[i] || (a.Code == "") != (i > 0) {
			t.Errorf("after the host's death the %d. write is %+v, want Seq %d", i+1, a, seqs[i])
		}
	}
	for _, seq := range seqs {
		if out, code := told(t, h, seq); code != 200 || !strings.Contains(out, `"set_aside"`) {
			t.Errorf("write %d is answered %d: %s", seq, code, out)
		}
	}
	for _, path := range []string{"/v1/work-items/kept", "/v1/work-items", "/v1/work-items/kept/events"} {
		if a, err := client.Get(t.Context(), path, nil); err != nil || !a.Success || !a.Incomplete {
			t.Errorf("%s: %v %+v", path, err, a)
		}
	}
	if a, err := client.Get(t.Context(), "/v1/work-items/plain", nil); err != nil || !a.Success || a.Incomplete || a.Stale {
		t.Errorf("another key reads as %+v, %v", a, err)
	}
	if fault == "refuse" {
		must(t, h, "unsettled", "retry", "queue", "kept")
		client.Settle(t)
		awaitUnsettled(t, h, "kept", 3)
	}

	must(t, h, "unsettled", "discard", "queue", "given-up")
	if err := os.WriteFile(filepath.Join(h.Data(), "mended"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"kept", "given-up"} {
		must(t, h, "unsettled", "retry", "queue", key)
		awaitUnsettled(t, h, key, 0)
	}
	client.Settle(t)
	apply("QP_UpdateWorkItem", update("kept", `"Note":"after"`))
	e2e.Compare(t, client, m)
}
