package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"holdfast/internal/pgtest"
	"holdfast/ports"
)

func TestManyHostsMakeTheTablesAtTheSameMoment(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	rounds := 5
	if os.Getenv("HOLDFAST_SOAK") != "" {
		rounds = 50
	}
	for round := range rounds {
		schema := fmt.Sprintf(`"schema":"round%d",`, round)
		var backends []*Backend
		for range 8 {
			backends = append(backends, openStore(t, dsn, schema, `"pool":2,`))
		}
		ids := make([]string, len(backends))
		var all sync.WaitGroup
		for i, b := range backends {
			all.Go(func() {
				standing, err := b.Stand(t.Context(), host)
				if err != nil {
					t.Errorf("round %d, host %d: %v", round, i, err)
				}
				ids[i] = standing.StoreID
			})
		}
		all.Wait()
		for _, id := range ids {
			if id != ids[0] {
				t.Fatalf("round %d: the stores are %v", round, ids)
			}
		}
		for _, b := range backends {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestARoleThatMayMakeNothingUsesTablesThatAreThere(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	b, dsn := ready(t)
	commit(t, b, upsert(1, "w1", `{}`))
	admin := session(t, server.Superuser(t, dsn))
	name := "reader" + ask[string](t, admin, `SELECT current_database()::text`)
	run(t, admin, `CREATE ROLE `+name+` LOGIN PASSWORD 'p'`)
	t.Cleanup(func() {
		run(t, admin, `DROP OWNED BY `+name)
		run(t, admin, `DROP ROLE `+name)
	})
	theirs := pgtest.DSN(server.Addr(), name, "p", ask[string](t, admin, `SELECT current_database()::text`))
	narrow := openStore(t, theirs)
	if _, err := narrow.Stand(t.Context(), host); ports.CodeOf(err).Permanent() || !strings.Contains(fmt.Sprint(err), "permission denied for table") {
		t.Errorf("without any right: %v", err)
	}
	run(t, admin, `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO `+name)
	run(t, admin, `REVOKE CREATE ON SCHEMA public FROM PUBLIC`)
	other := strings.ReplaceAll(host, "1", "2")
	mine := openStore(t, theirs)
	if err := mine.Open(t.Context(), startOf(other, "")); err != nil {
		t.Fatal(err)
	}
	commit(t, mine, upsert(1, "w2", `{}`))
	if _, err := mine.Item(t.Context(), "w1"); err != nil {
		t.Error(err)
	}
}

func TestTablesOfANewerHoldfastAreRefusedWithBothVersions(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	b := openStore(t, dsn)
	if _, err := b.Stand(t.Context(), host); err != nil {
		t.Fatal(err)
	}
	conn := session(t, dsn)
	run(t, conn, `UPDATE "UVHoldfast" SET "Value" = '7' WHERE "Key" = 'Schema'`)
	_, err := openStore(t, dsn).Stand(t.Context(), host)
	if ports.AsError(err).Field != ports.FieldObstacle || ports.CodeOf(err) != ports.Unavailable || !strings.Contains(err.Error(), "schema version 7, this holdfast knows 2") {
		t.Errorf("it stands: %v", err)
	}
}

// Three hosts write the same few keys at the same time, each in batches in an order of its own, and one dies in the middle and comes
// back. All that they committed is there, in the state of whoever committed last, and nobody is told of a deadlock.
func TestHostsThatWriteTheSameKeysLoseNothingAndNeverDeadlock(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	keys, batches := 400, 30
	if os.Getenv("HOLDFAST_SOAK") != "" {
		keys, batches = 5000, 560 // 100,800 records
	}
	const hosts, size = 3, 60
	var foreign atomic.Int64
	var all sync.WaitGroup
	for h := range hosts {
		all.Go(func() {
			id, seq := fmt.Sprintf("%08d-2222-4333-8444-555555555555", h), uint64(0)
			var journal []ports.Entry
			for range batches {
				for _, k := range rand.Perm(keys)[:size/3] {
					key := fmt.Sprintf("k%d", k)
					journal = append(journal, upsert(seq+1, key, fmt.Sprintf(`{"Status":"Running","By%d":%d}`, h, seq+1)),
						event(seq+2, key, fmt.Sprintf("e-%d-%d", h, seq+2), `{"EventType":"t"}`),
						event(seq+3, key, "common-"+key, `{"EventType":"c"}`))
					seq += 3
				}
			}
			if h == 0 {
				lives(t, dsn, id, journal, len(journal)/size/2*size, &foreign)
			}
			lives(t, dsn, id, journal, len(journal), &foreign)
		})
	}
	all.Wait()
	if foreign.Load() == 0 {
		t.Error("no write went over another host's")
	}
	conn := session(t, dsn)
	if n := ask[int](t, conn, `SELECT count(*) FROM "UVQueueWorkItemEvent" WHERE "EventGUID" LIKE 'e-%'`); n != hosts*batches*size/3 {
		t.Errorf("%d events are there, want %d", n, hosts*batches*size/3)
	}
	// What each host wrote last of a key is in its row, whoever came later.
	for h := range hosts {
		wrong := ask[int](t, conn, fmt.Sprintf(`SELECT count(*) FROM "UVQueueWorkItem" i JOIN (
			SELECT "WorkItemHash" AS hash, max("ChangeSeq") AS seq FROM "UVQueueWorkItemEvent" WHERE "EventGUID" LIKE 'e-%d-%%' GROUP BY 1) AS e
			ON e.hash = i."WorkItemHash" WHERE coalesce(("Extra"::jsonb->>'By%d')::bigint, 0) <> e.seq - 1`, h, h))
		if wrong != 0 {
			t.Errorf("%d items lack what host %d wrote last", wrong, h)
		}
	}
	if n := ask[int](t, conn, `SELECT count(*) FROM "UVHoldfast" WHERE "Key" LIKE 'Mark/Queue/%' AND ("Value"::jsonb->>'Seq')::int = $1`, batches*size); n != hosts {
		t.Errorf("%d hosts are at the end", n)
	}
}

// lives is one life of a host: from where the store knows of its journal up to some entry. A life that ends early does not wait for the
// answers to what it has sent.
func lives(t *testing.T, dsn, id string, journal []ports.Entry, to int, foreign *atomic.Int64) {
	const size, flight = 60, 4
	b := openStore(t, dsn, `"timeout":"30s",`) // a busy machine makes the others wait
	standing, err := b.Stand(t.Context(), id)
	if err != nil {
		t.Error(err)
		return
	}
	at := standing.Marks[ports.Queue].Seq
	o := startOf(id, standing.Nonce)
	o.Epochs = map[ports.Family]ports.Epoch{ports.Queue: {ID: epoch + standing.Nonce, From: at + 1}}
	if err := b.Open(t.Context(), o); err != nil {
		t.Error(err)
		return
	}
	var sent []ports.Pending
	take := func() {
		decisions, err := sent[0].Wait(t.Context())
		if err != nil {
			t.Errorf("host %s: %v", id, err)
		}
		for _, d := range decisions {
			if d.Foreign {
				foreign.Add(1)
			}
		}
		sent = sent[1:]
	}
	for int(at) < to {
		end := min(at+size, uint64(to))
		p, err := b.Commit(t.Context(), ports.CommitBatch{Family: ports.Queue, Epoch: epoch + standing.Nonce, After: at, Through: end, Entries: journal[at:end]})
		if err != nil {
			t.Error(err)
			return
		}
		at = end
		if sent = append(sent, p); len(sent) == flight {
			take()
		}
	}
	if to < len(journal) {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		return
	}
	for len(sent) > 0 {
		take()
	}
}

// One host keeps early writes of hubs while another stores their items.
func TestAnEarlyWriteOfOneHostMeetsTheItemOfAnother(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	ids := []string{host, strings.ReplaceAll(host, "1", "2")}
	var stores []*Backend
	for _, id := range ids {
		b := openStore(t, dsn)
		if err := b.Open(t.Context(), startOf(id, "")); err != nil {
			t.Fatal(err)
		}
		stores = append(stores, b)
	}
	const rounds = 60
	var both sync.WaitGroup
	for n := range uint64(rounds) {
		key := fmt.Sprintf("w%d", n)
		both.Go(func() { commit(t, stores[0], upsert(n+1, key, `{"Status":"Pending"}`)) })
		both.Go(func() {
			e := patch(n+1, key, `{"Status":"Running"}`)
			e.Stamp = ports.Stamp{Ms: 1, Count: 1}
			commit(t, stores[1], e)
		})
		both.Wait()
	}
	standing, err := stores[0].Stand(t.Context(), host)
	if err != nil || standing.Early != 0 {
		t.Errorf("%d early writes wait still: %v", standing.Early, err)
	}
	if n := ask[int](t, session(t, dsn), `SELECT count(*) FROM "UVQueueWorkItem" WHERE "Status" = 'Running'`); n != rounds {
		t.Errorf("%d of %d items have what was sent early", n, rounds)
	}
}

func TestACopyOfAHostIsShutOutByTheOther(t *testing.T) {
	t.Parallel()
	first, dsn := ready(t)
	commit(t, first, upsert(1, "w1", `{}`))
	second := openStore(t, dsn)
	if err := second.Open(t.Context(), startOf(host, "")); ports.CodeOf(err) != ports.Conflict {
		t.Errorf("a copy that knows of no start: %v", err)
	}
	o := startOf(host, "n")
	o.Epochs = map[ports.Family]ports.Epoch{ports.Queue: {ID: "epoch-2", From: 2}}
	if err := second.Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if _, err := tryCommit(first, batchOf([]ports.Entry{upsert(2, "w2", `{}`)})); ports.CodeOf(err) != ports.Conflict {
		t.Errorf("the first goes on: %v", err)
	}
	if _, err := first.Item(t.Context(), "w2"); ports.CodeOf(err) != ports.NotFound {
		t.Errorf("and has written: %v", err)
	}
}

func TestTablesThatAreMadeAnewAreAnotherStore(t *testing.T) {
	t.Parallel()
	b, dsn := ready(t)
	commit(t, b, upsert(1, "w1", `{}`))
	before, err := b.Stand(t.Context(), host)
	if err != nil {
		t.Fatal(err)
	}
	conn := session(t, dsn)
	run(t, conn, `DROP TABLE "UVQueueWorkItem", "UVQueueWorkItemEvent", "UVQueueWorkItemAttempt", "UVManifest", "UVEarly", "UVGone", "UVHoldfast"`)
	if _, err := tryCommit(b, batchOf([]ports.Entry{upsert(2, "w2", `{}`)})); ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("a commit without tables: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(errors.New("done"))
	for {
		if standing, err := b.Stand(ctx, host); err == nil {
			if standing.StoreID == before.StoreID || !standing.Empty || standing.Nonce != "" {
				t.Errorf("it stands at %+v, before at %+v", standing, before)
			}
			return
		}
	}
}
