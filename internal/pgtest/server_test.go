package pgtest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/internal/pgtest"
)

// connect opens a session that ends with the test.
func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, conn *pgx.Conn, text string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// ask gives the one value of a query.
func ask[T any](t *testing.T, conn *pgx.Conn, text string, args ...any) (value T) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), text, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

func TestEveryTestHasAnEmptyDatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	for range 2 {
		conn := connect(t, server.Database(t))
		run(t, conn, `CREATE TABLE mine (a text)`)
		if super := ask[string](t, conn, `SELECT rolsuper::text FROM pg_roles WHERE rolname = current_user`); super != "false" {
			t.Error("the owner of a database is a superuser")
		}
	}
}

func TestASuperuserReachesTheDatabaseOfATest(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	dsn := server.Database(t)
	run(t, connect(t, dsn), `CREATE TABLE mine (a text)`)
	conn := connect(t, server.Superuser(t, dsn))
	run(t, conn, `INSERT INTO mine VALUES ('x')`)
	if user := ask[string](t, conn, `SELECT current_user`); user != "postgres" {
		t.Errorf("it is %s", user)
	}
}

// A statement that forgets COLLATE "C" sorts and compares by a language here, which must show in a test.
func TestTextDoesNotSortByItsBytesUnlessAsked(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.Shared(t).Database(t))
	if ask[int](t, conn, `SELECT current_setting('server_version_num')::int`) < 150000 {
		t.Skip("this version of PostgreSQL cannot")
	}
	if !ask[bool](t, conn, `SELECT 'a' < 'B'`) || ask[bool](t, conn, `SELECT 'a' < 'B' COLLATE "C"`) {
		t.Error("the default order is that of bytes")
	}
}

func TestAWrongPasswordIsRefused(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	_, err := pgx.Connect(t.Context(), pgtest.DSN(server.Addr(), "holdfast", "wrong", "postgres"))
	if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != "28P01" {
		t.Errorf("it says %v", err)
	}
}

func TestAServerKeepsItsAddressAndItsRowsHoweverItWasStopped(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"max_connections": "17"}})
	dsn := server.Database(t)
	run(t, connect(t, dsn), `CREATE TABLE mine (a int)`)
	for i, stop := range []func() error{
		func() error { return server.Stop(pgtest.Fast) },
		func() error { return server.Stop(pgtest.Immediate) },
		server.Kill,
	} {
		run(t, connect(t, dsn), `INSERT INTO mine VALUES (1)`)
		must(t, stop())
		if _, err := pgx.Connect(t.Context(), dsn); err == nil {
			t.Fatal("a stopped server takes connections")
		}
		must(t, server.Resume())
		conn := connect(t, dsn)
		if n := ask[int](t, conn, `SELECT count(*) FROM mine`); n != i+1 {
			t.Errorf("there are %d rows, want %d", n, i+1)
		}
		if limit := ask[string](t, conn, `SHOW max_connections`); limit != "17" {
			t.Errorf("max_connections is %s", limit)
		}
	}
}

// The process is this test's binary again, which starts a server and is killed.
func TestNothingStaysBehindOfATestProcessThatIsKilled(t *testing.T) {
	t.Parallel()
	const inner = "HOLDFAST_PGTEST_INNER"
	if os.Getenv(inner) != "" {
		server := pgtest.Start(t, pgtest.Options{})
		_ = connect(t, server.Database(t))
		_, _ = os.Stdout.WriteString("up\n")
		<-t.Context().Done()
		return
	}
	tmp, err := os.MkdirTemp("", "hfk")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(tmp) })
	must(t, os.Chmod(tmp, 0o755)) // the server's user must be able to pass
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), inner+"=1", "TMPDIR="+tmp)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	if line := make([]byte, 3); func() error { _, err := out.Read(line); return err }() != nil || string(line) != "up\n" {
		t.Fatalf("the inner process says %q", line)
	}
	if n := len(processesBelow(tmp)); n < 2 {
		t.Fatalf("%d processes work there", n)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	await(t, func() bool {
		left, err := os.ReadDir(tmp)
		return err == nil && len(left) == 0 && len(processesBelow(tmp)) == 0
	})
}

func processesBelow(dir string) (found []string) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		if at, err := os.Readlink(link); err == nil && strings.HasPrefix(at, dir+"/") {
			found = append(found, link)
		}
	}
	return found
}

// await waits until something is so, for a minute at most.
func await(t *testing.T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); !done(); <-tick.C {
		if time.Now().After(end) {
			t.Fatal("it never comes")
		}
	}
}
