package pgtest_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/internal/pgtest"
)

func TestATinyDiskFillsUpAndCanBeFreed(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	disk := server.TinyDisk(t, 32)
	conn := connect(t, server.Database(t))
	run(t, conn, `CREATE TABLE mine (a text)`)
	must(t, disk.Fill())
	const fill = `INSERT INTO mine SELECT repeat('x', 1000) FROM generate_series(1, 1000)`
	_, err := conn.Exec(t.Context(), fill)
	if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != "53100" {
		t.Errorf("it says %v", err)
	}
	must(t, disk.Free())
	run(t, conn, fill)
}
