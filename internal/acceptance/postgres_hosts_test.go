package acceptance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/internal/e2e"
	"holdfast/internal/model"
	"holdfast/internal/pgtest"
)

// Several hosts whose local store is one PostgreSQL.

// onShared starts a host on a database, with a file that follows it.
func onShared(t *testing.T, dsn string) *e2e.Host {
	t.Helper()
	return e2e.StartWith(t, e2e.Setup{
		Config: "route = [\"local\"]\nbackend \"postgres\" \"local\" {\n  local = true\n  dsn   = env(\"TEST_DSN\")\n}\nbackend \"sqlite\" \"mirror\" {\n  path = \"mirror.db\"\n}\n",
		Env:    []string{"TEST_DSN=" + dsn},
	})
}

const (
	sharedKeys = 40
	pieceLines = 240 // of a stream, a third of it of each kind
)

// piece is the n-th piece of what a host writes: items of its own, items that all hosts write, and events of those.
func piece(host, n int) []byte {
	var text bytes.Buffer
	for i := n * pieceLines / 3; i < (n+1)*pieceLines/3; i++ {
		shared := fmt.Sprint("shared-", i%sharedKeys)
		for _, line := range [][]byte{
			e2e.Line("QP_UpsertWorkItem", item(fmt.Sprintf("own-%d-%d", host, i), `"Status":"Running"`)),
			e2e.Line("QP_UpsertWorkItem", item(shared, fmt.Sprintf(`"By%d":%d`, host, i))),
			e2e.Line("QP_AppendEvent", fmt.Appendf(nil, `{"Event":{"WorkItemHash":%q,"EventType":"by","Payload":{"Host":%d,"n":%d}}}`, shared, host, i)),
		} {
			text.Write(append(line, '\n'))
		}
	}
	return text.Bytes()
}

func TestThreeHostsOnOnePostgresKeepWhatEachOfThemWroteThoughOneIsKilled(t *testing.T) {
	t.Parallel()
	pieces := 10
	if os.Getenv("HOLDFAST_SOAK") != "" {
		pieces = 140 // 100,000 records
	}
	dsn := pgtest.Shared(t).Database(t)
	var hosts []*e2e.Host
	var clients []*e2e.Client
	for range 3 {
		h := onShared(t, dsn)
		hosts, clients = append(hosts, h), append(clients, h.Client())
		t.Cleanup(clients[len(clients)-1].Close)
	}
	var work errgroup.Group
	var killed atomic.Bool
	sent := make(chan struct{}) // the host that is killed has a third of its pieces behind it
	for h, client := range clients {
		work.Go(func() error {
			for n := range pieces {
				if h == 1 && n == pieces/3 {
					close(sent)
				}
				if err := pour(t.Context(), client, fmt.Sprintf("host-%d-%d", h, n), piece(h, n), func() bool { return h == 1 && killed.Load() }); err != nil {
					return fmt.Errorf("host %d, piece %d: %w", h, n, err)
				}
			}
			return nil
		})
	}
	<-sent
	killed.Store(true)
	hosts[1].Kill()
	hosts[1].Restart(t)
	if err := work.Wait(); err != nil {
		t.Fatal(err)
	}
	each := pieces * pieceLines / 3
	want := model.Counts{Items: 3*each + sharedKeys, Events: 3 * each}
	for _, client := range clients {
		client.Settle(t) // what one host still has to commit no other one shows
	}
	for h, client := range clients {
		if got := client.Counts(t); got != want {
			t.Errorf("host %d counts %+v, want %+v", h, got, want)
		}
	}
	for key := range sharedKeys {
		for reader, client := range clients {
			a := client.Do(t, "QP_GetWorkItemByHash", fmt.Appendf(nil, `{"WorkItemHash":"shared-%d"}`, key))
			var got map[string]json.RawMessage
			if err := json.Unmarshal(a.WorkItem, &got); err != nil {
				t.Fatalf("%+v: %v", a, err)
			}
			last := each - sharedKeys + (key-each%sharedKeys+sharedKeys)%sharedKeys
			for by := range clients {
				if text := string(got[fmt.Sprint("By", by)]); text != fmt.Sprint(last) {
					t.Errorf("shared-%d, read through host %d, has %q of host %d, want %d", key, reader, text, by, last)
				}
			}
		}
	}
	for _, h := range hosts {
		h.AwaitEqual(t)
		h.Verify(t, "local", "mirror")
	}
}

// pour sends a stream, again as long as mayBreak says that its host may be down. Every line must be acknowledged.
func pour(ctx context.Context, client *e2e.Client, name string, lines []byte, mayBreak func() bool) error {
	var err error
	for range 200 {
		var answers []e2e.Answer
		answers, err = client.Stream(ctx, name, bytes.NewReader(lines))
		if err == nil {
			for _, a := range answers {
				if !a.Success {
					return fmt.Errorf("a line is answered %+v", a)
				}
			}
			return nil
		}
		if !mayBreak() {
			return err
		}
		<-time.After(100 * time.Millisecond)
	}
	return err
}

// What a host wrote and another one overwrote stays overwritten, though the first is killed and goes through its journal again.
func TestAHostThatStartsAgainUndoesNothingThatAnotherWroteMeanwhile(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	first, second := onShared(t, dsn), onShared(t, dsn)
	write := func(h *e2e.Host, by string) {
		t.Helper()
		var lines []string
		for key := range sharedKeys {
			lines = append(lines, string(e2e.Line("QP_UpsertWorkItem", item(fmt.Sprint("k", key), `"By":"`+by+`"`))))
		}
		client := h.Client()
		defer client.Close()
		if err := pour(t.Context(), client, by, []byte(strings.Join(lines, "\n")+"\n"), func() bool { return false }); err != nil {
			t.Fatal(err)
		}
		client.Settle(t)
	}
	for round := range rounds(3) {
		write(first, fmt.Sprint("first-", round))
		first.Kill()
		write(second, fmt.Sprint("second-", round))
		first.Restart(t)
		client := first.Client()
		client.Settle(t)
		for key := range sharedKeys {
			a := client.Do(t, "QP_GetWorkItemByHash", fmt.Appendf(nil, `{"WorkItemHash":"k%d"}`, key))
			if want := fmt.Sprintf(`"By":"second-%d"`, round); !strings.Contains(string(a.WorkItem), want) {
				t.Errorf("k%d is %s, want %s", key, a.WorkItem, want)
			}
		}
		client.Close()
	}
	first.AwaitEqual(t)
	first.Verify(t, "local", "mirror")
}
