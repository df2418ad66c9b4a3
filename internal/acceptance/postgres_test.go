package acceptance

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/internal/e2e"
	"holdfast/internal/pgtest"
	"holdfast/internal/tcpfault"
)

// What may happen to the PostgreSQL that is a host's local store, while callers write: nothing that was acknowledged is lost, no caller
// waits long, and the host goes on by itself.

// stormy is a host on a server of its own, which it reaches over a network of its own.
type stormy struct {
	*testing.T

	server *pgtest.Server
	link   *tcpfault.Link
	dsn    string // past the network
	host   *e2e.Host
}

const (
	poolSize = 4 // as the plugin has it when nothing is said
	recovery = 10 * time.Second
)

// storm is how long a trouble lasts.
func storm() time.Duration {
	if os.Getenv("HOLDFAST_SOAK") != "" {
		return 30 * time.Second
	}
	return 4 * time.Second
}

// onPostgres starts a host on a database. more are further options of the backend.
func onPostgres(t *testing.T, dsn, more string) *e2e.Host {
	t.Helper()
	return e2e.StartWith(t, e2e.Setup{
		Config: "backend \"postgres\" \"local\" {\n  local = true\n  dsn   = env(\"TEST_DSN\")\n" + more + "}\n",
		Env:    []string{"TEST_DSN=" + dsn},
	})
}

func startStormy(t *testing.T, o pgtest.Options, prepare func(*stormy)) *stormy {
	t.Helper()
	s := &stormy{T: t, server: pgtest.Start(t, o)}
	prepare(s)
	s.dsn = s.server.Database(t)
	s.link = tcpfault.Open(t, s.server.Addr())
	s.host = onPostgres(t, pgtest.Through(t, s.dsn, s.link.Addr()), "")
	return s
}

func (s *stormy) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// every does something again and again for as long as a storm lasts.
func (s *stormy) every(pause time.Duration, do func() error) {
	s.Helper()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for end := time.Now().Add(storm()); time.Now().Before(end); <-tick.C {
		s.must(do())
	}
}

// last waits for as long as a storm lasts.
func (s *stormy) last() { <-time.After(storm()) }

const (
	endSessions = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'holdfast'`
	reload      = `SELECT pg_reload_conf()`
)

// hogs takes every connection that the server has for its users, and gives them back.
func (s *stormy) hogs() {
	s.Helper()
	var taken []*pgx.Conn
	s.every(50*time.Millisecond, func() error {
		for {
			ctx, cancel := context.WithTimeout(s.Context(), recovery)
			conn, err := pgx.Connect(ctx, s.dsn+"&application_name=hog")
			cancel()
			if err != nil {
				break
			}
			taken = append(taken, conn)
		}
		if len(taken) >= 8 { // all but that of the one who counts: the host has none left to lose
			return nil
		}
		return s.server.Exec(endSessions)
	})
	if len(taken) < 8 {
		s.Errorf("only %d connections could be taken", len(taken))
	}
	for _, conn := range taken {
		_ = conn.Close(s.Context())
	}
}

// addColumns is what a newer program does to the tables, again and again.
func (s *stormy) addColumns() {
	s.Helper()
	conn, err := pgx.Connect(s.Context(), s.dsn)
	s.must(err)
	n := 0
	s.every(200*time.Millisecond, func() error {
		n++
		_, err := conn.Exec(s.Context(), fmt.Sprintf(`ALTER TABLE "UVQueueWorkItem" ADD COLUMN "New%d" text NOT NULL DEFAULT ''`, n))
		return err
	})
	s.must(conn.Close(s.Context()))
}

// troubles are what may happen. Each is over when it returns.
var troubles = map[string]struct {
	options pgtest.Options
	prepare func(*stormy)
	happens func(*stormy)
}{
	"its sessions are ended every 50 ms": {happens: func(s *stormy) {
		s.every(50*time.Millisecond, func() error { return s.server.Exec(endSessions) })
	}},
	"it is restarted every few seconds": {happens: func(s *stormy) {
		ways := []func() error{func() error { return s.server.Stop(pgtest.Fast) }, func() error { return s.server.Stop(pgtest.Immediate) }, s.server.Kill}
		s.every(2500*time.Millisecond, func() error {
			stop := ways[0]
			ways = append(ways[1:], stop)
			return errors.Join(stop(), s.server.Resume())
		})
	}},
	"what is said to it vanishes": {happens: func(s *stormy) {
		s.link.Swallow()
		s.last()
		s.must(s.link.Heal())
	}},
	"what it answers vanishes": {happens: func(s *stormy) {
		s.link.DropAnswers()
		s.last()
		s.must(s.link.Heal())
	}},
	"its machine does not know the connections any more": {happens: func(s *stormy) {
		s.every(100*time.Millisecond, func() error { s.link.Cut(); return nil })
	}},
	"it is not there": {happens: func(s *stormy) {
		s.link.Refuse()
		s.link.Cut()
		s.last()
		s.must(s.link.Heal())
	}},
	"it is read-only": {happens: func(s *stormy) {
		s.must(s.server.Exec(`ALTER SYSTEM SET default_transaction_read_only = on`, reload))
		s.last()
		s.must(s.server.Exec(`SET default_transaction_read_only = off`, `ALTER SYSTEM RESET default_transaction_read_only`, reload))
	}},
	"it has no connection left": {options: pgtest.Options{Settings: map[string]string{"max_connections": "12"}}, happens: (*stormy).hogs},
	"its tables get columns":    {happens: (*stormy).addColumns},
	"a table is locked": {happens: func(s *stormy) {
		conn, err := pgx.Connect(s.Context(), s.server.Superuser(s, s.dsn))
		s.must(err)
		for _, text := range []string{`BEGIN`, `LOCK TABLE "UVQueueWorkItem"`} {
			_, err := conn.Exec(s.Context(), text)
			s.must(err)
		}
		s.last()
		s.must(conn.Close(s.Context()))
	}},
}

func TestNothingIsLostWhateverHappensToThePostgresThatIsTheLocalStore(t *testing.T) {
	t.Parallel()
	for name, trouble := range troubles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startStormy(t, trouble.options, func(s *stormy) {
				if trouble.prepare != nil {
					trouble.prepare(s)
				}
			})
			s.weather(trouble.happens)
		})
	}
}

// Behind a pooler every transaction may have another session, which knows no statement of the one before.
func TestNoCallerOfAHostBehindAPoolerSeesThatTablesGetColumns(t *testing.T) {
	t.Parallel()
	s := &stormy{T: t, server: pgtest.Start(t, pgtest.Options{})}
	s.dsn = s.server.Database(t)
	bouncer := pgtest.StartBouncer(t, s.server, 2)
	s.host = onPostgres(t, pgtest.Through(t, s.dsn, bouncer.Addr()), "  pooler = true\n")
	s.weather((*stormy).addColumns)
}

// A standby that lags has less than the primary answered for; the host's journal has it, and brings the standby forward.
func TestNothingIsLostWhenAStandbyTakesOver(t *testing.T) {
	t.Parallel()
	for _, how := range []pgtest.Replication{pgtest.Sync, pgtest.Async} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			s := &stormy{T: t, server: pgtest.Start(t, pgtest.Options{})}
			s.dsn = s.server.Database(t)
			standby := s.server.Standby(t, how)
			s.host = onPostgres(t, pgtest.Through(t, s.dsn, s.server.Addr(), standby.Addr())+"&target_session_attrs=read-write", "")
			s.weather(func(s *stormy) {
				if how == pgtest.Async {
					s.must(standby.Detach())
					s.last()
				}
				s.must(s.server.Kill())
				s.must(standby.Promote())
			})
		})
	}
}

// weather lets something happen under load and checks what must hold.
func (s *stormy) weather(happens func(*stormy)) {
	s.Helper()
	before, err := s.host.Backend(s.Context(), "local")
	s.must(err)
	sessions := s.count()
	live := e2e.StartWorkload(s, s.host.Client(), 20*time.Millisecond)
	read := s.read()
	<-time.After(time.Second)
	happens(s)
	over := time.Now()
	s.writes()
	back := time.Since(over)
	<-time.After(500 * time.Millisecond)
	live.End()
	reads, slowest := read()
	live.Client.Settle(s)
	live.Check()
	most := sessions()
	s.Logf("%d writes, %d of them deferred, slowest answer %s; %d reads, slowest %s; back after %s; %d sessions at most",
		live.Writes, live.Deferred, live.Slowest.Round(time.Millisecond), reads, slowest.Round(time.Millisecond), back.Round(time.Millisecond), most)
	if waited := max(live.Slowest, slowest); waited > callerLimit {
		s.Errorf("a caller waited %s", waited)
	}
	for _, f := range live.Failures {
		s.Errorf("a write was not acknowledged: %s", f)
	}
	if back > recovery {
		s.Errorf("the host took %s to go on", back)
	}
	if most > poolSize+1 {
		s.Errorf("the host had %d sessions at a time", most)
	}
	if st := passed(s, s.host); lost(st) != 0 {
		s.Errorf("a lost range is told: %+v", st.Families)
	}
	if after, err := s.host.Backend(s.Context(), "local"); err != nil || after.PID != before.PID {
		s.Errorf("the plugin was started anew: %+v, %v", after, err)
	}
}

// read reads again and again until it is told to end. A read is answered in time, if only with the word that there is no history now.
func (s *stormy) read() (end func() (reads int, slowest time.Duration)) {
	ctx, cancel := context.WithCancel(s.Context())
	client := s.host.Client()
	n, slow := 0, time.Duration(0)
	var reader sync.WaitGroup
	reader.Go(func() {
		defer client.Close()
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for ; ctx.Err() == nil; <-tick.C {
			a, err := client.Get(context.WithoutCancel(ctx), "/v1/work-items", url.Values{"limit": {"5"}})
			if err != nil || !a.Success && a.Available {
				s.Errorf("a read is answered %d %s: %s, %v", a.Status, a.Code, a.Reason, err)
			}
			n++
			slow = max(slow, a.Took)
		}
	})
	s.Cleanup(func() {
		cancel()
		reader.Wait()
	})
	return func() (int, time.Duration) {
		cancel()
		reader.Wait()
		return n, slow
	}
}

// writes waits until a write is decided by the local store.
func (s *stormy) writes() {
	s.Helper()
	client := s.host.Client()
	defer client.Close()
	n := 0
	e2e.Await(s, "a write is decided", func() error {
		n++
		a, err := client.Send(s.Context(), "", "QP_UpsertWorkItem", item(fmt.Sprint("probe-", n), ""))
		if err == nil && (!a.Success || a.Deferred) {
			err = fmt.Errorf("it is answered %+v", a)
		}
		return err
	})
}

// count watches how many sessions the host has, until it is asked for the highest number.
func (s *stormy) count() func() int {
	ctx, cancel := context.WithCancel(s.Context())
	most := 0
	var watch sync.WaitGroup
	watch.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		var conn *pgx.Conn
		for ctx.Err() == nil {
			var err error
			if conn == nil {
				conn, err = pgx.Connect(ctx, s.server.Superuser(s, s.dsn))
			}
			n := 0
			if err == nil {
				err = conn.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity WHERE application_name = 'holdfast'`).Scan(&n)
			}
			if err != nil && conn != nil {
				_ = conn.Close(ctx)
				conn = nil
			}
			most = max(most, n)
			<-tick.C
		}
		if conn != nil {
			_ = conn.Close(context.WithoutCancel(ctx))
		}
	})
	s.Cleanup(func() {
		cancel()
		watch.Wait()
	})
	return func() int {
		cancel()
		watch.Wait()
		return most
	}
}
