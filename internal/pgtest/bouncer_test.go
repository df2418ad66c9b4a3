package pgtest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast/internal/pgtest"
	"holdfast/internal/tcpfault"
)

func TestABouncerGivesSessionsAwayForOneTransaction(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	dsn := server.Database(t)
	bouncer := pgtest.StartBouncer(t, server, 1)
	conf, err := pgx.ParseConfig(pgtest.Through(t, dsn, bouncer.Addr()))
	must(t, err)
	conf.DefaultQueryExecMode = pgx.QueryExecModeExec
	var pids []int
	for range 2 { // neither waits for the other, though there is one session
		conn, err := pgx.ConnectConfig(t.Context(), conf)
		must(t, err)
		defer func() { _ = conn.Close(t.Context()) }()
		pids = append(pids, ask[int](t, conn, `SELECT pg_backend_pid()`))
	}
	if pids[0] != pids[1] {
		t.Errorf("the sessions are %v", pids)
	}
}

func TestAServerCanBeReachedThroughABadNetwork(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	link := tcpfault.Open(t, server.Addr())
	conn := connect(t, pgtest.Through(t, server.Database(t), link.Addr()))
	link.Cut()
	if err := conn.Ping(t.Context()); err == nil {
		t.Error("the connection lives on")
	}
}
