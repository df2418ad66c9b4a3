package postgres

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/adapters/tables/tabletest"
	"holdfast/internal/pgtest"
	"holdfast/ports"
)

// What readers, followers and retention make of a database that several hosts write to.

// hostOf opens the store for one of several hosts.
func hostOf(t testing.TB, dsn, id string, retention time.Duration) *Backend {
	t.Helper()
	b := openStore(t, dsn)
	o := startOf(id, "")
	o.Retention = retention
	if err := b.Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return b
}

// Hosts commit at the same time, so that transactions that began earlier end later. A follower that went by anything but each host's own
// mark would pass over their rows.
func TestNoChangeIsMissedWhileHostsCommitAtTheSameTime(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	const hosts, batches, each = 3, 60, 8
	var stores []*Backend
	for h := range hosts {
		stores = append(stores, hostOf(t, dsn, fmt.Sprint("host-", h), 0))
	}
	var work sync.WaitGroup
	for h, s := range stores {
		work.Go(func() {
			for n := range uint64(batches) {
				var entries []ports.Entry
				for i := range uint64(each) {
					seq := n*each + i + 1
					e := upsert(seq, fmt.Sprint("k", (seq*7+uint64(h))%40), fmt.Sprintf(`{"By":"%d-%d"}`, h, seq))
					if i%3 == 0 {
						e = event(seq, "w", fmt.Sprintf("g-%d-%d", h, seq), `{}`)
					}
					entries = append(entries, e)
				}
				if _, err := tryCommit(s, batchOf(entries)); err != nil {
					t.Errorf("host %d: %v", h, err)
					return
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		work.Wait()
		close(ended)
	}()
	copied := map[tabletest.Told]ports.Row{}
	q := ports.ChangesQuery{Family: ports.Queue, Limit: 20}
	for done := false; !done; {
		select {
		case <-ended:
			done = true // and one walk more
		default:
		}
		rows, end := tabletest.Walk(t, stores[0], q, func() {})
		for _, r := range rows {
			copied[tabletest.ToldOf(&r)] = r
		}
		q.After = end
	}
	for h := range hosts {
		if at := q.After.Seqs[fmt.Sprint("host-", h)]; at != batches*each {
			t.Errorf("host %d is told up to %d", h, at)
		}
	}
	tabletest.SameAsStore(t, maps.Clone(copied), engine.Everything(t, stores[1], ports.Queue))
}

const longAgo = `"Status":"Complete","LastEventAt":"2020-01-01T00:00:00Z"`

func TestEachHostsRetentionIsItsOwn(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	hour := ports.PruneQuery{Before: time.Now().Add(-time.Hour)}
	keeps := hostOf(t, dsn, "keeps for ever", 0)
	day := hostOf(t, dsn, "keeps a day", 24*time.Hour)
	century := hostOf(t, dsn, "keeps a century", 100*365*24*time.Hour)
	for name, s := range map[string]*Backend{"ever": keeps, "day": day, "century": century} {
		commit(t, s, upsert(1, name, `{`+longAgo+`}`), event(2, name, "g"+name, `{}`))
		commit(t, s, entry(1, ports.UpsertManifest, name, `{"Status":"Complete","StopTime":"2020-01-01T00:00:00Z"}`))
	}
	nobodys := ports.Row{Kind: ports.KindItem, Key: "nobody", Body: []byte(`{` + longAgo + `}`)}
	if _, err := keeps.Put(t.Context(), ports.Batch{Family: ports.Queue, Rows: []ports.Row{nobodys}}); err != nil {
		t.Fatal(err)
	}
	left := func() string {
		page, err := keeps.Items(t.Context(), ports.ItemQuery{OrderBy: "WorkItemHash"})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(keysOf(page), " ")
	}
	// The host that keeps a century may be told to prune what is its own; what another host lets go, it lets go too.
	got, err := century.Prune(t.Context(), hour)
	if want := (ports.Pruned{Items: 3, Events: 2, Manifests: 2}); err != nil || got != want {
		t.Errorf("pruned %+v, %v, want %+v", got, err, want)
	}
	if left() != "ever" {
		t.Errorf("left are %s", left())
	}
	if got, err := day.Prune(t.Context(), hour); err != nil || got != (ports.Pruned{}) {
		t.Errorf("another host's records: %+v, %v", got, err)
	}
	if got, err := keeps.Prune(t.Context(), hour); err != nil || got.Items != 1 {
		t.Errorf("its own: %+v, %v", got, err)
	}
}

func TestPruneWaitsForNobodyWhoWrites(t *testing.T) {
	t.Parallel()
	s, dsn := ready(t)
	commit(t, s, upsert(1, "busy", `{`+longAgo+`}`), upsert(2, "old", `{`+longAgo+`}`))
	conn := session(t, dsn)
	run(t, conn, `BEGIN`)
	run(t, conn, `SELECT FROM "UVQueueWorkItem" WHERE "WorkItemHash" = 'busy' FOR UPDATE`)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if got, err := s.Prune(ctx, ports.PruneQuery{Before: time.Now()}); err != nil || got.Items != 1 {
		t.Errorf("beside a lock: %+v, %v", got, err)
	}
	run(t, conn, `ROLLBACK`)
	if got, err := s.Prune(t.Context(), ports.PruneQuery{Before: time.Now()}); err != nil || got.Items != 1 {
		t.Errorf("afterwards: %+v, %v", got, err)
	}
}

// The pooler gives every transaction another session, or the same one to several.
func TestReadersWorkThroughAPooler(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	dsn := server.Database(t)
	bouncer := pgtest.StartBouncer(t, server, 2)
	s := openStore(t, pgtest.Through(t, dsn, bouncer.Addr()), `"pooler":true,`, `"schema":"history",`)
	admit(t, s, "")
	var entries []ports.Entry
	for i := range uint64(300) {
		entries = append(entries, upsert(2*i+1, fmt.Sprintf("k%03d", i), `{`+longAgo+`,"RunID":"r"}`), event(2*i+2, fmt.Sprintf("k%03d", i), fmt.Sprint("g", i), `{}`))
	}
	fill(t, s, entries)
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for _, q := range []ports.ItemQuery{{Limit: 50}, {Limit: 50, Filter: ports.ItemFilter{RunID: "r"}, Desc: true}, {Limit: 50, Filter: ports.ItemFilter{ErrorText: "x"}}, {OrderBy: "Status"}} {
				want := 300
				if q.Filter.ErrorText != "" {
					want = 0
				}
				n := 0
				for {
					page, err := s.Items(t.Context(), q)
					n += len(page.Rows)
					if err != nil {
						t.Errorf("%+v: %v", q, err)
						return
					}
					if q.After = page.Next; q.After == nil {
						break
					}
				}
				if n != want {
					t.Errorf("%+v: %d rows, want %d", q, n, want)
				}
			}
			rows, _ := tabletest.Walk(t, s, ports.ChangesQuery{Family: ports.Queue, Limit: 100}, func() {})
			if len(rows) != 600 {
				t.Errorf("%d changes", len(rows))
			}
		})
	}
	work.Wait()
	if page, err := s.Events(t.Context(), ports.EventQuery{Key: "k001"}); err != nil || len(page.Rows) != 1 {
		t.Errorf("%+v, %v", page, err)
	}
	if n := len(engine.Everything(t, s, ports.Queue)); n != 600 {
		t.Errorf("%d are exported", n)
	}
	if survey, err := s.Survey(t.Context()); err != nil || survey.Counts[ports.KindEvent] != 300 {
		t.Errorf("%+v, %v", survey, err)
	}
	if got, err := s.Prune(t.Context(), ports.PruneQuery{Before: time.Now()}); err != nil || got.Items != 300 || got.Events != 300 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestASurveyThatRunsOutOfTimeCountsWhatItCould(t *testing.T) {
	t.Parallel()
	s, _ := ready(t)
	commit(t, s, upsert(1, "a", `{}`), event(2, "a", "g", `{}`))
	commit(t, s, entry(1, ports.UpsertManifest, "m", `{}`))
	whole, err := s.Survey(t.Context())
	if err != nil || whole.Partial || whole.Bytes == 0 || whole.Counts[ports.KindItem]+whole.Counts[ports.KindEvent]+whole.Counts[ports.KindManifest] != 3 {
		t.Errorf("%+v, %v", whole, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), surveyMargin)
	defer cancel()
	if part, err := s.Survey(ctx); err != nil || !part.Partial || part.Bytes == 0 {
		t.Errorf("%+v, %v", part, err)
	}
}
