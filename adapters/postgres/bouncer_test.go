package postgres

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"holdfast/internal/pgtest"
	"holdfast/ports"
)

// Behind a pooler nothing may be kept in a session: two hosts share its few sessions, and meanwhile the tables change.
func TestAPoolerAndASchemaChangeUnderLoadAreNoTroubleToCallers(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	bouncer := pgtest.StartBouncer(t, server, 3)
	dsn := server.Database(t)
	through := pgtest.Through(t, dsn, bouncer.Addr())
	const hosts, commits = 2, 60
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	for h := range hosts {
		b := openStore(t, through, `"pooler":true,"schema":"behind",`)
		if err := b.Open(t.Context(), startOf(fmt.Sprintf("%08d-2222-4333-8444-555555555555", h), "")); err != nil {
			t.Fatal(err)
		}
		key := fmt.Sprintf("w%d", h)
		commit(t, b, upsert(1, key, `{"Status":"Pending"}`))
		writers.Go(func() {
			for n := uint64(2); n < commits; n++ {
				if _, err := tryCommit(b, batchOf([]ports.Entry{patch(n, key, fmt.Sprintf(`{"Priority":%d}`, n))})); err != nil {
					t.Errorf("host %d: %v", h, err)
				}
			}
		})
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if _, err := b.Item(t.Context(), key); err != nil {
					t.Errorf("a read of host %d: %v", h, err)
				}
				if _, err := b.Items(t.Context(), ports.ItemQuery{Limit: 10}); err != nil {
					t.Errorf("a list of host %d: %v", h, err)
				}
				if _, err := b.Changes(t.Context(), ports.ChangesQuery{Family: ports.Queue}); err != nil {
					t.Errorf("changes of host %d: %v", h, err)
				}
			}
		})
	}
	conn := session(t, dsn)
	for n := range 10 {
		run(t, conn, fmt.Sprintf(`ALTER TABLE behind."UVQueueWorkItem" ADD COLUMN "Another%d" text NOT NULL DEFAULT ''`, n))
		run(t, conn, fmt.Sprintf(`ALTER TABLE behind."UVQueueWorkItem" ALTER COLUMN "Another%d" TYPE varchar(10)`, n))
	}
	writers.Wait()
	close(done)
	readers.Wait()
}

// Without a pooler statements are prepared, and a column that changes its type makes the server refuse them once.
func TestASchemaChangeUnderLoadIsNoTroubleToCallers(t *testing.T) {
	t.Parallel()
	b, dsn := ready(t)
	commit(t, b, upsert(1, "w", `{"Status":"Pending"}`))
	conn := session(t, dsn)
	for n := range uint64(6) {
		kind := []string{"varchar(100)", `text COLLATE "C"`}[n%2]
		run(t, conn, `ALTER TABLE "UVQueueWorkItem" ALTER COLUMN "HealthReason" TYPE `+kind)
		commit(t, b, patch(2+n, "w", fmt.Sprintf(`{"HealthReason":"r%d"}`, n)))
		for range 5 { // on whatever connection
			row, err := b.Item(t.Context(), "w")
			if err != nil || !strings.Contains(string(row.Body), fmt.Sprintf(`"r%d"`, n)) {
				t.Fatalf("round %d: %s, %v", n, row.Body, err)
			}
			if _, err := b.Changes(t.Context(), ports.ChangesQuery{Family: ports.Queue}); err != nil {
				t.Fatalf("round %d: %v", n, err)
			}
		}
	}
}

func TestAPoolerThatWasNotToldOfSaysWhatHelps(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	bouncer := pgtest.StartBouncer(t, server, 2)
	b := openStore(t, pgtest.Through(t, server.Database(t), bouncer.Addr()))
	_, err := b.Stand(t.Context(), host)
	if ports.CodeOf(err).Permanent() || !strings.Contains(fmt.Sprint(err), "pooler = true") {
		t.Errorf("it stands: %v", err)
	}
}
