package pgtest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast/internal/pgtest"
)

func TestAPromotedStandbyHasEveryCommitThatASynchronousPrimaryAnswered(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{})
	dsn := primary.Database(t)
	run(t, connect(t, dsn), `CREATE TABLE mine (a int)`)
	standby := primary.Standby(t, pgtest.Sync)
	run(t, connect(t, dsn), `INSERT INTO mine VALUES (1)`)
	must(t, primary.Kill())
	must(t, standby.Promote())
	either := pgtest.Through(t, dsn, primary.Addr(), standby.Addr()) + "&target_session_attrs=read-write"
	conn := connect(t, either)
	run(t, conn, `INSERT INTO mine VALUES (2)`)
	if n := ask[int](t, conn, `SELECT count(*) FROM mine`); n != 2 {
		t.Errorf("there are %d rows", n)
	}
}

func TestAStandbyThatIsDetachedFallsBehindAnAsynchronousPrimary(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t, pgtest.Options{})
	dsn := primary.Database(t)
	standby := primary.Standby(t, pgtest.Async)
	run(t, connect(t, dsn), `CREATE TABLE mine (a int)`)
	run(t, connect(t, dsn), `INSERT INTO mine VALUES (1)`)
	there := pgtest.Through(t, dsn, standby.Addr())
	await(t, func() bool {
		conn, err := pgx.Connect(t.Context(), there)
		if err != nil {
			return false
		}
		defer func() { _ = conn.Close(t.Context()) }()
		var n int
		return conn.QueryRow(t.Context(), `SELECT count(*) FROM mine`).Scan(&n) == nil && n == 1
	})
	must(t, standby.Detach())
	run(t, connect(t, dsn), `INSERT INTO mine VALUES (2)`)
	must(t, primary.Stop(pgtest.Immediate))
	must(t, standby.Promote())
	conn := connect(t, there)
	run(t, conn, `INSERT INTO mine VALUES (3)`)
	if sum := ask[int](t, conn, `SELECT sum(a) FROM mine`); sum != 4 {
		t.Errorf("the rows' sum is %d", sum)
	}
}
