package postgres

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/internal/pgtest"
	"holdfast/ports"
)

// A table is locked and every call gives up at once: canceled statements must not leave sessions behind while new ones are opened.
func TestCallsThatGiveUpOpenNoMoreSessionsThanThePoolHas(t *testing.T) {
	t.Parallel()
	const pool = 4
	b, dsn := ready(t)
	commit(t, b, upsert(1, "w1", `{}`))
	locker := session(t, dsn)
	look := session(t, pgtest.Shared(t).Superuser(t, dsn))
	run(t, locker, `BEGIN`)
	run(t, locker, `LOCK TABLE "UVQueueWorkItem"`)
	var calls sync.WaitGroup
	var most, answered atomic.Int64
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for n := range 400 {
		<-tick.C
		calls.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			began := time.Now()
			_, err := b.Item(ctx, "w1")
			if err == nil {
				answered.Add(1)
			}
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("a read with 100 ms took %v: %v", took, err)
			}
		})
		if n%20 == 0 {
			most.Store(max(most.Load(), ask[int64](t, look, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'`)-2))
		}
	}
	calls.Wait()
	if answered.Load() > 0 || most.Load() > pool+1 {
		t.Errorf("%d reads were answered, %d sessions were open at once", answered.Load(), most.Load())
	}
	run(t, locker, `COMMIT`)
	if _, err := b.Item(t.Context(), "w1"); err != nil {
		t.Errorf("a read when the table is free: %v", err)
	}
	commit(t, b, upsert(2, "w2", `{}`))
}

func TestACommitThatWaitsForALockIsGivenUpAndComesLater(t *testing.T) {
	t.Parallel()
	b, dsn := ready(t, `"timeout":"1s",`)
	commit(t, b, upsert(1, "w1", `{}`))
	locker := session(t, dsn)
	run(t, locker, `BEGIN`)
	run(t, locker, `SELECT FROM "UVQueueWorkItem" FOR UPDATE`)
	batch := batchOf([]ports.Entry{patch(2, "w1", `{"Status":"Running"}`)})
	if _, err := tryCommit(b, batch); ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("a commit behind a lock: %v", err)
	}
	if err := b.Probe(t.Context(), ports.Queue); err != nil {
		t.Errorf("a probe beside the lock: %v", err)
	}
	run(t, locker, `COMMIT`)
	if _, err := tryCommit(b, batch); err != nil {
		t.Errorf("a commit without the lock: %v", err)
	}
}

// The server's own limit, or its administrator: the plugin does not hang for it.
func TestACommitThatTheServerCancelsIsNoHangingOne(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	b, dsn := ready(t)
	commit(t, b, upsert(1, "w1", `{}`))
	locker, admin := session(t, dsn), session(t, server.Superuser(t, dsn))
	run(t, locker, `BEGIN`)
	run(t, locker, `SELECT FROM "UVQueueWorkItem" FOR UPDATE`)
	batch := batchOf([]ports.Entry{patch(2, "w1", `{"Status":"Running"}`)})
	p, err := b.Commit(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); ask[int](t, admin, `SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 0; <-tick.C {
		if time.Now().After(end) {
			t.Fatal("the commit does not wait for the lock")
		}
	}
	if _, err := p.Wait(t.Context()); ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("a commit that was canceled is told as %s: %v", ports.CodeOf(err), err)
	}
	run(t, locker, `COMMIT`)
	if _, err := tryCommit(b, batch); err != nil {
		t.Errorf("a commit without the lock: %v", err)
	}
}

func TestWhatOnlyAPersonCanMendIsToldAndSeldomTried(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	dsn := server.Database(t)
	const secret = "not-the-password"
	for what, wrong := range map[string]struct{ dsn, says string }{
		"the password": {pgtest.DSN(server.Addr(), "holdfast", secret, "postgres"), "wrong password or user"},
		"the database": {strings.Replace(dsn, "/t", "/no"+secret, 1), "no such database"},
	} {
		b := openStore(t, wrong.dsn)
		var first error
		for range 20 {
			_, err := b.Stand(t.Context(), host)
			if first == nil {
				first = err
			}
			if err == nil || !strings.Contains(err.Error(), wrong.says) || what == "the password" && strings.Contains(fmt.Sprintf("%+v", err), secret) {
				t.Errorf("%s: %+v", what, err)
			}
			p := b.Probe(t.Context(), ports.Queue)
			if ports.CodeOf(p).Permanent() {
				t.Errorf("%s: %v is for good", what, p)
			}
			for _, e := range []error{err, p} {
				if ports.CodeOf(e) != ports.Unauthorized && ports.AsError(e).Field != ports.FieldObstacle {
					t.Errorf("%s: %v does not say that it needs a person", what, e)
				}
			}
		}
		if n := b.pool.Stat().NewConnsCount(); n > 45 {
			t.Errorf("%s: %d attempts", what, n)
		}
		b.patience.mu.Lock()
		if b.patience.failures > 2 {
			t.Errorf("%s was tried %d times: %v", what, b.patience.failures, first)
		}
		b.patience.mu.Unlock()
	}
}
