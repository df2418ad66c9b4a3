package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/adapters/tables/tabletest"
	"holdfast/internal/workload"
	"holdfast/ports"
)

func TestFiftyGoroutinesAndAStrangerNeverSeeBusy(t *testing.T) {
	t.Parallel()
	s := ready(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 60)
	run := func(each func(i int) error) {
		go func() {
			var err error
			for i := 0; err == nil && ctx.Err() == nil; i++ {
				err = each(i)
			}
			if ctx.Err() != nil {
				err = nil
			}
			done <- err
		}()
	}
	var reads atomic.Int64
	for n := range 45 {
		run(func(i int) (err error) {
			reads.Add(1)
			key := workload.Entries((n+i)%200, 1, 1)[0].Key
			switch (n + i) % 6 {
			case 0:
				_, err = s.Items(ctx, ports.ItemQuery{Filter: ports.ItemFilter{Status: []string{"Complete", "Pending"}}, Limit: 50})
			case 1:
				_, err = s.Events(ctx, ports.EventQuery{Key: key, Bodies: true})
			case 2:
				_, err = s.Stand(ctx, host)
			case 3:
				_, err = s.Survey(ctx)
			case 4:
				err = s.Probe(ctx, ports.Queue)
			default:
				if _, err = s.Item(ctx, key); ports.CodeOf(err) == ports.NotFound {
					err = nil
				}
			}
			return err
		})
	}
	run(func(i int) error { // manifests, from a second committer
		e := entry(uint64(i+1), ports.UpsertManifest, fmt.Sprint("m", i%10), fmt.Sprintf(`{"Hash":"m%d","n":%d}`, i%10, i))
		_, err := tryCommit(s, batchOf([]ports.Entry{e}))
		return err
	})
	run(func(i int) error { // a row of another family's follower
		_, err := s.Put(ctx, ports.Batch{Family: ports.Queue, Rows: []ports.Row{{Kind: ports.KindItem, Key: "put", Body: fmt.Appendf(nil, `{"WorkItemHash":"put","n":%d}`, i)}}})
		return err
	})
	var at ports.Position
	run(func(int) error { // a follower
		page, err := s.Changes(ctx, ports.ChangesQuery{Family: ports.Queue, After: at})
		if err == nil {
			at = page.Through
		}
		return err
	})
	run(func(int) error {
		_, err := s.Prune(ctx, ports.PruneQuery{Before: time.UnixMilli(0)})
		return err
	})
	// The engine's lock is not fair: who polls for it beside a writer that has always work waits long on a busy machine.
	db, err := sql.Open("sqlite", "file:"+s.conf.path+"?_pragma=busy_timeout(60000)")
	if err != nil {
		t.Fatal(err)
	}
	run(func(int) error { // a person at the sqlite3 shell
		_, err := db.ExecContext(ctx, `UPDATE UVQueueWorkItem SET CancelReason = 'by hand' WHERE rowid = (SELECT max(rowid) FROM UVQueueWorkItem)`)
		return err
	})
	const running = 45 + 5
	tabletest.Pour(t, s, workload.Entries(0, 2000/slowdown, 1))
	stop()
	for range running {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if reads.Load() < 50 {
		t.Errorf("only %d reads", reads.Load())
	}
	var check string
	if err := s.file.readers.QueryRowContext(t.Context(), `PRAGMA integrity_check`).Scan(&check); err != nil || check != "ok" {
		t.Errorf("%s, %v", check, err)
	}
}

// What another program changes shows in the next decision: the cache is not believed then.
func TestAnotherProgramsWriteIsNotOverlooked(t *testing.T) {
	t.Parallel()
	s := ready(t)
	commit(t, s, upsert(1, "a", `{"WorkItemHash":"a","Status":"Pending"}`), upsert(2, "b", `{"WorkItemHash":"b"}`))
	script(t, s.conf.path, `UPDATE UVQueueWorkItem SET Status = 'Running' WHERE WorkItemHash = 'a'`, `DELETE FROM UVQueueWorkItem WHERE WorkItemHash = 'b'`)
	d := commit(t, s, patch(3, "a", `{"Priority":7}`), patch(4, "b", `{"Priority":7}`))
	row, err := s.Item(t.Context(), "a")
	if err != nil || string(row.Body) != `{"WorkItemHash":"a","Status":"Running","Priority":7}` || d[1].Outcome != ports.Missing {
		t.Errorf("%s, %v, %v", row.Body, d, err)
	}
}

func TestTheLogStaysShortWhileReadersOverlap(t *testing.T) {
	t.Parallel()
	s := ready(t)
	if err := s.work.do(t.Context(), false, func() error { s.work.walNext = 2 << 20; return nil }); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	for range 3 {
		go func() {
			defer func() { done <- struct{}{} }()
			for ctx.Err() == nil {
				_, _ = s.Items(ctx, ports.ItemQuery{Limit: 500, Bodies: true}) // canceled at the end
			}
		}()
	}
	longest := int64(0)
	const rounds = max(24/slowdown, 3)
	for n := range rounds {
		tabletest.Pour(t, s, workload.Entries(n*128, 128, uint64(n*128*workload.PerItem+1)))
		longest = max(longest, s.file.walSize())
	}
	stop()
	for range 3 {
		<-done
	}
	if longest > walLimit {
		t.Errorf("the log grew to %d bytes", longest)
	}
}
