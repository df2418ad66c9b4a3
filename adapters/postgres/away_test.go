package postgres

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/internal/pgtest"
	"holdfast/internal/tcpfault"
	"holdfast/ports"
)

// What becomes of commits while the server goes away, comes back, and refuses.

// stream commits one item after the other, as a host does: what failed without being refused for good is sent again as it was.
type stream struct {
	b     *Backend
	next  uint64
	fails map[ports.Code]int
}

func streamTo(b *Backend) *stream { return &stream{b: b, next: 1, fails: map[ports.Code]int{}} }

// one commits the next item, and tries again until it is in or the time is over.
func (s *stream) one(t *testing.T, within time.Duration) {
	t.Helper()
	batch := batchOf([]ports.Entry{upsert(s.next, fmt.Sprintf("w%d", s.next), `{"Status":"Pending"}`)})
	end := time.Now().Add(within)
	pause := time.NewTicker(5 * time.Millisecond)
	defer pause.Stop()
	for {
		decisions, err := tryCommit(s.b, batch)
		if err == nil {
			if decisions[0].Outcome != ports.Stored {
				t.Fatalf("item %d is decided %+v", s.next, decisions[0])
			}
			s.next++
			return
		}
		s.fails[ports.CodeOf(err)]++
		if ports.CodeOf(err).Permanent() {
			t.Fatalf("item %d is refused for good: %v", s.next, err)
		}
		if time.Now().After(end) {
			t.Fatalf("item %d is not in after %v: %v", s.next, within, err)
		}
		<-pause.C
	}
}

// whole checks that everything that was committed is there, once.
func (s *stream) whole(t *testing.T) {
	t.Helper()
	standing, err := s.b.Stand(t.Context(), host)
	if err != nil || standing.Marks[ports.Queue].Seq != s.next-1 {
		t.Fatalf("the store stands at %+v, %v, want %d", standing, err, s.next-1)
	}
	for n := uint64(1); n < s.next; n++ {
		row, err := s.b.Item(t.Context(), fmt.Sprintf("w%d", n))
		if err != nil || row.Change.Seq != n {
			t.Fatalf("item %d: %+v, %v", n, row, err)
		}
	}
}

func TestSessionsThatAreEndedAgainAndAgainLoseNothing(t *testing.T) {
	t.Parallel()
	b, dsn := ready(t)
	killer := session(t, pgtest.Shared(t).Superuser(t, dsn))
	s := streamTo(b)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	killed := 0
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		select {
		case <-tick.C:
			killed += ask[int](t, killer, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		default:
			s.one(t, 20*time.Second)
		}
	}
	s.whole(t)
	if killed == 0 || s.next < 5 {
		t.Errorf("%d sessions were ended, %d items are in", killed, s.next-1)
	}
	if len(s.fails) > 0 {
		t.Logf("of %d commits failed %v", s.next-1, s.fails)
	}
}

func TestAServerThatIsStartedAnewIsFoundAgain(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	b := openStore(t, server.Database(t))
	admit(t, b, "")
	s := streamTo(b)
	for _, how := range []func() error{func() error { return server.Stop(pgtest.Fast) }, func() error { return server.Stop(pgtest.Immediate) }, server.Kill} {
		s.one(t, 10*time.Second)
		if err := how(); err != nil {
			t.Fatal(err)
		}
		if _, err := tryCommit(b, batchOf([]ports.Entry{upsert(s.next, "x", `{}`)})); ports.CodeOf(err) != ports.Unavailable {
			t.Errorf("a commit without a server: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if err := b.Probe(ctx, ports.Queue); ports.CodeOf(err) != ports.Unavailable {
			t.Errorf("a probe without a server: %v", err)
		}
		cancel()
		if err := server.Resume(); err != nil {
			t.Fatal(err)
		}
		s.one(t, 10*time.Second)
	}
	s.whole(t)
}

func TestATransactionWithoutAnAnswerIsGivenUpAndFoundAgain(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	link := tcpfault.Open(t, server.Addr())
	dsn := server.Database(t)
	b := openStore(t, pgtest.Through(t, dsn, link.Addr()), `"timeout":"1s",`)
	admit(t, b, "")
	s := streamTo(b)
	look := session(t, server.Superuser(t, dsn))
	for _, bad := range []func(){link.Swallow, link.DropAnswers} {
		s.one(t, 10*time.Second)
		bad()
		began := time.Now()
		if _, err := tryCommit(b, batchOf([]ports.Entry{upsert(s.next, fmt.Sprintf("w%d", s.next), `{"Status":"Pending"}`)})); ports.CodeOf(err) != ports.Unavailable {
			t.Errorf("a commit that nobody answers: %v", err)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("it took %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if _, err := b.Item(ctx, "w1"); ports.CodeOf(err) != ports.Deadline && ports.CodeOf(err) != ports.Unavailable {
			t.Errorf("a read that nobody answers: %v", err)
		}
		cancel()
		if err := link.Heal(); err != nil {
			t.Fatal(err)
		}
		s.one(t, 20*time.Second)
	}
	s.whole(t)
	if n := ask[int](t, look, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`); n > 2*defaultPool+2 {
		t.Errorf("the server has %d sessions of it", n)
	}
}

func TestAReadOnlyServerIsAwayForWritesAlone(t *testing.T) {
	t.Parallel()
	b, dsn := ready(t)
	s := streamTo(b)
	s.one(t, 10*time.Second)
	admin := session(t, pgtest.Shared(t).Superuser(t, dsn))
	name := ask[string](t, admin, `SELECT current_database()::text`)
	run(t, admin, `ALTER DATABASE `+name+` SET default_transaction_read_only = on`)
	run(t, admin, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	_, err := tryCommit(b, batchOf([]ports.Entry{upsert(s.next, "x", `{}`)}))
	if ports.CodeOf(err) != ports.Unavailable || !strings.Contains(err.Error(), "takes no writes") {
		t.Errorf("a commit: %v", err)
	}
	if err := b.Probe(t.Context(), ports.Queue); ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("a probe: %v", err)
	}
	if _, err := b.Item(t.Context(), "w1"); err != nil {
		t.Errorf("a read: %v", err)
	}
	run(t, admin, `SET default_transaction_read_only = off`)
	run(t, admin, `ALTER DATABASE `+name+` RESET default_transaction_read_only`)
	s.one(t, 10*time.Second)
	s.whole(t)
}

func TestAServerWithoutConnectionsIsAwayForAWhile(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"max_connections": "10"}})
	dsn := server.Database(t)
	s := streamTo(openStore(t, dsn))
	var others []func(context.Context) error
	for range 7 { // and three are kept for superusers
		others = append(others, session(t, dsn).Close)
	}
	_, err := s.b.Stand(t.Context(), host)
	if ports.CodeOf(err) != ports.Unavailable || !strings.Contains(err.Error(), "no connection left") {
		t.Errorf("it stands: %v", err)
	}
	for _, end := range others {
		if err := end(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(10 * time.Second); ; <-tick.C {
		if err = s.b.Open(t.Context(), startOf(host, "")); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	s.one(t, 10*time.Second)
	s.whole(t)
}

func TestAFullDiskIsToldAndLosesNothing(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	disk := server.TinyDisk(t, 40)
	b := openStore(t, server.Database(t))
	admit(t, b, "")
	s := streamTo(b)
	s.one(t, 10*time.Second)
	if err := disk.Fill(); err != nil {
		t.Fatal(err)
	}
	large := fmt.Sprintf(`{"Settings":%q}`, randomText(2<<20))
	batch := batchOf([]ports.Entry{upsert(s.next, fmt.Sprintf("w%d", s.next), large)})
	if _, err := tryCommit(b, batch); ports.CodeOf(err) != ports.Full {
		t.Errorf("a commit: %v", err)
	}
	if err := disk.Free(); err != nil {
		t.Fatal(err)
	}
	if _, err := tryCommit(b, batch); err != nil {
		t.Errorf("a commit when there is room again: %v", err)
	}
	s.next++
	s.one(t, 10*time.Second)
	s.whole(t)
}

func TestAPromotedStandbyTakesOver(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{})
	dsn := primary.Database(t)
	standby := primary.Standby(t, pgtest.Sync)
	b := openStore(t, pgtest.Through(t, dsn, primary.Addr(), standby.Addr()))
	admit(t, b, "")
	s := streamTo(b)
	for range 20 {
		s.one(t, 10*time.Second)
	}
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := standby.Promote(); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		s.one(t, 15*time.Second)
	}
	s.whole(t)
}
