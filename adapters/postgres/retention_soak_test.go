package postgres

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/internal/pgtest"
	"holdfast/ports"
)

// Retention at size: what removing a million rows costs those who write meanwhile, and what it leaves behind on the disk.

// generated makes finished items with two events and an attempt each, as rows of a host that nobody reads from. They ended a second
// apart from a time on. Their bodies have some bytes.
func generated(t testing.TB, conn *pgx.Conn, body, from, to int, since time.Time) {
	t.Helper()
	const when = `to_char($4::timestamptz AT TIME ZONE 'UTC' + n * interval '1 second', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
	const key = `to_char($4::timestamptz AT TIME ZONE 'UTC' + n * interval '1 second', 'YYYY-MM-DD"T"HH24:MI:SS.MS"000000Z"')`
	text := func(size int) string { return fmt.Sprintf(`'{"text":"' || repeat(md5(n::text), %d) || '"}'`, size/32) }
	for _, each := range []string{
		`INSERT INTO "UVQueueWorkItem" ("WorkItemHash", "RunID", "RunHash", "Capability", "Action", "Settings", "AssignedBeaconID", "Status", "EnqueuedAt",
			"CompletedAt", "LastEventAt", "Result", "OrderKey", "ReceivedAt", "Origin", "EnqueuedKey", "ChangeHost", "ChangeSeq")
			SELECT md5(n::text), 'run-' || n / 20, 'hash-' || n / 20, 'Shell', 'Execute', ` + text(body) + `, 'bcn-' || n % 16,
			CASE n % 100 WHEN 37 THEN 'Error' ELSE 'Complete' END, ` + when + `, ` + when + `, ` + when + `, ` + text(body/2) + `,
			lpad(n::text, 20, '0'), ` + when + `, 'http', ` + key + `, $3, 5 * n::bigint FROM generate_series($1::int, $2::int - 1) AS n`,
		`INSERT INTO "UVQueueWorkItemEvent" ("EventGUID", "WorkItemHash", "EventType", "Payload", "EmittedAt", "OrderKey", "ChangeHost", "ChangeSeq")
			SELECT gen_random_uuid()::text, md5(n::text), 'progress', ` + text(body/5) + `, ` + when + `, lpad(n::text, 20, '0') || e, $3, 5 * n::bigint + e
			FROM generate_series($1::int, $2::int - 1) AS n, generate_series(1, 2) AS e`,
		`INSERT INTO "UVQueueWorkItemAttempt" ("WorkItemHash", "AttemptNumber", "BeaconID", "StartedAt", "Outcome", "OrderKey", "ChangeHost", "ChangeSeq")
			SELECT md5(n::text), 1, 'bcn-' || n % 16, ` + when + `, 'Complete', lpad(n::text, 20, '0'), $3, 5 * n::bigint + 3 FROM generate_series($1::int, $2::int - 1) AS n`,
	} {
		run(t, conn, each, from, to, host, since)
	}
}

// load writes batches of new items at a steady pace and keeps how long each took.
type load struct {
	mu   sync.Mutex
	took []time.Duration
}

func (l *load) run(ctx context.Context, t testing.TB, s *Backend, seq *uint64) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		var entries []ports.Entry
		for range 4 {
			*seq++
			entries = append(entries, upsert(*seq, fmt.Sprint("live-", *seq), `{"Status":"Running","Settings":{"Command":"true"}}`))
		}
		began := time.Now()
		if _, err := tryCommit(s, batchOf(entries)); err != nil {
			t.Errorf("commit: %v", err)
			return
		}
		l.mu.Lock()
		l.took = append(l.took, time.Since(began))
		l.mu.Unlock()
		<-tick.C
	}
}

// quantiles gives the median and the 99th percentile of what was measured so far, and begins anew.
func (l *load) quantiles() (p50, p99 time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.took)
	n := len(l.took)
	p50, p99 = l.took[n/2], l.took[n*99/100]
	l.took = nil
	return p50, p99
}

func TestRetentionUnderLoad(t *testing.T) {
	if os.Getenv("HOLDFAST_SOAK") == "" {
		t.Skip("takes minutes; set HOLDFAST_SOAK=1")
	}
	server := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"max_wal_size": "4GB", "shared_buffers": "256MB"}})
	dsn := server.Database(t)
	s := openStore(t, dsn)
	admit(t, s, "")
	conn := session(t, dsn)
	const old, young = 250_000, 250_000 // with two events and an attempt each, the old ones are a million rows
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	began := time.Now()
	for from := 0; from < old+young; from += 50_000 {
		generated(t, conn, 320, from, from+50_000, start)
	}
	run(t, conn, `ANALYZE`)
	t.Logf("generated in %s", time.Since(began).Round(time.Second))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var l load
	var seq uint64
	var work sync.WaitGroup
	work.Go(func() { l.run(ctx, t, s, &seq) })
	defer work.Wait()
	defer cancel()
	pause := time.NewTimer(20 * time.Second)
	<-pause.C
	calm50, calm99 := l.quantiles()
	began = time.Now()
	var total ports.Pruned
	for more := true; more; {
		got, err := s.Prune(t.Context(), ports.PruneQuery{Before: start.Add(old * time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		total.Items += got.Items
		total.Events += got.Events
		total.Attempts += got.Attempts
		more = got.More
	}
	took := time.Since(began)
	busy50, busy99 := l.quantiles()
	t.Logf("pruned %+v in %s; a write takes %s (p99 %s) beside it, %s (p99 %s) without", total, took.Round(time.Second), busy50, busy99, calm50, calm99)
	if rows := total.Items + total.Events + total.Attempts; rows != 4*old {
		t.Errorf("%d rows are pruned", rows)
	}
	if busy99 > 2*calm99 && busy99 > 50*time.Millisecond {
		t.Errorf("writes are slowed from a p99 of %s to %s", calm99, busy99)
	}
}
