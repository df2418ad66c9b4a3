package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Replication says when a primary answers a commit.
type Replication string

const (
	Sync  Replication = "sync"  // when the standby has it too
	Async Replication = "async" // at once
)

// Standby starts a server that follows this one. It ends with the test.
func (s *Server) Standby(t testing.TB, how Replication) *Server {
	t.Helper()
	standby, err := s.standby(how)
	if err != nil {
		t.Fatal(err)
	}
	endWith(t, standby)
	return standby
}

func (s *Server) standby(how Replication) (*Server, error) {
	standby := &Server{keeper: s.keeper, programs: s.programs, settings: s.settings}
	var err error
	if standby.dir, err = s.keeper.folder(); err != nil {
		return nil, err
	}
	source := fmt.Sprintf("host=%s port=%d user=postgres application_name=standby", s.dir, s.port)
	if err := s.keeper.run(s.programs, standby.dir, "pg_basebackup", "-D", standby.data(), "-R", "-X", "stream", "-c", "fast", "-d", source); err != nil {
		return nil, err
	}
	if err := errors.Join(standby.configure(), standby.Resume()); err != nil {
		return nil, err
	}
	if how == Sync {
		err = s.Exec("ALTER SYSTEM SET synchronous_standby_names = 'standby'", "SELECT pg_reload_conf()")
	}
	if err == nil {
		err = s.until(`SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = $1`, string(how))
	}
	if err != nil {
		return nil, errors.Join(err, standby.Stop(Immediate))
	}
	return standby, nil
}

// until asks again and again until a query says true.
func (s *Server) until(query string, args ...any) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.superuser(s.port, "postgres"))
	if err != nil {
		return err
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for so := false; !so; <-tick.C {
		if err := conn.QueryRow(ctx, query, args...).Scan(&so); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", query, err), conn.Close(ctx))
		}
	}
	return conn.Close(ctx)
}

// Detach has a standby receive nothing more, so that it falls behind.
func (s *Server) Detach() error {
	err := s.Exec("ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
	return errors.Join(err, s.until(`SELECT count(*) = 0 FROM pg_stat_wal_receiver`))
}

// Promote makes a standby a server that takes writes. What it was sent before it has; the old primary must be stopped by hand.
func (s *Server) Promote() error {
	return errors.Join(s.Exec("SELECT pg_promote()"), s.until(`SELECT NOT pg_is_in_recovery()`))
}

// endWith ends a server with a test, and tells what it said when the test failed.
func endWith(t testing.TB, s *Server) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the server at %s said:\n%s", s.Addr(), tail(s.dir))
		}
		if err := errors.Join(s.Stop(Immediate), os.RemoveAll(s.dir)); err != nil {
			t.Error(err)
		}
	})
}
