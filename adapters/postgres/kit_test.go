package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"holdfast/adapters/tables/tabletest"
	"holdfast/internal/pgtest"
	"holdfast/ports"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The words of tests on tables.
const (
	host  = tabletest.Host
	epoch = tabletest.Epoch
)

var (
	batchOf   = tabletest.BatchOf
	tryCommit = tabletest.TryCommit
	entry     = tabletest.EntryOf
	upsert    = tabletest.UpsertOf
	patch     = tabletest.PatchOf
	event     = tabletest.EventOf
	keysOf    = tabletest.KeysOf
	pages     = tabletest.Pages
)

func startOf(host, nonce string) ports.Opening { return tabletest.StartOf(host, nonce, 0) }

func commit(t testing.TB, b *Backend, entries ...ports.Entry) []ports.Decision {
	t.Helper()
	return tabletest.Commit(t, b, entries...)
}

func fill(t testing.TB, b *Backend, entries []ports.Entry) {
	t.Helper()
	tabletest.Pour(t, b, entries)
}

// openStore gives a backend on a database, closed with the test. more are options, each ending in a comma.
func openStore(t testing.TB, dsn string, more ...string) *Backend {
	t.Helper()
	b := New()
	options := "{"
	for _, each := range more {
		options += each
	}
	if err := b.Configure(context.Background(), ports.Configuration{Name: "local", Options: fmt.Appendf(nil, `%s"dsn":%q}`, options, dsn)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return b
}

func admit(t testing.TB, b *Backend, nonce string) {
	t.Helper()
	tabletest.Admit(t, b, nonce)
}

// ready gives a store in a new database that takes commits, and the database.
func ready(t testing.TB, more ...string) (*Backend, string) {
	t.Helper()
	dsn := pgtest.Shared(t).Database(t)
	b := openStore(t, dsn, more...)
	admit(t, b, "")
	return b, dsn
}

// session is a connection of the test's own.
func session(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func run(t testing.TB, conn *pgx.Conn, text string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(context.Background(), text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// ask gives the one value of a query.
func ask[T any](t testing.TB, conn *pgx.Conn, text string, args ...any) (value T) {
	t.Helper()
	if err := conn.QueryRow(context.Background(), text, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

// randomText is a text that does not become shorter by compression.
func randomText(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"[rand.IntN(64)]
	}
	return string(b)
}

// commitManifests commits manifests, one a Seq.
func commitManifests(t testing.TB, b *Backend, first uint64, records ...string) {
	t.Helper()
	var entries []ports.Entry
	for i, record := range records {
		r, err := ports.ParseRecord(ports.Manifests, []byte(record))
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, entry(first+uint64(i), ports.UpsertManifest, r.Text("Hash"), record))
	}
	commit(t, b, entries...)
}
