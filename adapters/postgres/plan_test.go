package postgres

import (
	"fmt"
	"testing"
	"time"

	"holdfast/internal/pgtest"
	"holdfast/ports"
)

// The server plans a statement by the statistics of a table that was empty, and keeps the plan: a table that grows would be read as a
// whole for every transaction.
func TestWritesFindTheirRowsByTheIndexesAlsoInTablesThatWereEmptyAMomentAgo(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	scans := func(batches int) (items, attempts, events int64) {
		dsn := server.Database(t)
		b := openStore(t, dsn)
		admit(t, b, "")
		seq := uint64(0)
		next := func() uint64 { seq++; return seq }
		for round := range batches {
			var entries []ports.Entry
			for i := range 20 {
				key := fmt.Sprintf("w%d", i+round*10) // half of them were in the batch before
				entries = append(entries, upsert(next(), key, `{"Status":"Running"}`))
				entries = append(entries, event(next(), key, fmt.Sprintf("g%d", seq), `{}`))
				try := entry(next(), ports.InsertAttempt, key, `{}`)
				try.Number = 1
				entries = append(entries, try)
			}
			commit(t, b, entries...)
		}
		if err := b.Close(); err != nil { // the session's counts are in when it ends
			t.Fatal(err)
		}
		conn := session(t, server.Superuser(t, dsn))
		of := func(table *ports.Table) int64 {
			return ask[int64](t, conn, `SELECT coalesce(seq_scan, 0) FROM pg_stat_user_tables WHERE relname = $1`, table.Name)
		}
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for end := time.Now().Add(time.Minute); ask[int64](t, conn, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'`) > 1; <-tick.C {
			if time.Now().After(end) {
				t.Fatal("the sessions of the store do not end")
			}
		}
		return of(ports.Items), of(ports.Attempts), of(ports.Events)
	}
	items, attempts, events := scans(0)
	if i, a, e := scans(25); i > items || a > attempts || e > events {
		t.Errorf("25 batches read all of the items %d times, of the attempts %d times, of the events %d times", i-items, a-attempts, e-events)
	}
}
