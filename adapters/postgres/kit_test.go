package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"holdfast/internal/pgtest"
	"holdfast/ports"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	host  = "11111111-2222-4333-8444-555555555555"
	epoch = "epoch-1"
)

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

// admit opens the store for the host, as a start of it does.
func admit(t testing.TB, b *Backend, nonce string) {
	t.Helper()
	if err := b.Open(context.Background(), startOf(host, nonce)); err != nil {
		t.Fatal(err)
	}
}

func startOf(host, nonce string) ports.Opening {
	return ports.Opening{
		HostID: host, Nonce: nonce, Next: nonce + "n",
		Epochs: map[ports.Family]ports.Epoch{ports.Queue: {ID: epoch, From: 1}, ports.Manifest: {ID: epoch, From: 1}},
	}
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

func batchOf(entries []ports.Entry) ports.CommitBatch {
	return ports.CommitBatch{
		Family: entries[0].Action.Family(), Epoch: epoch,
		After: entries[0].Seq - 1, Through: entries[len(entries)-1].Seq, Entries: entries,
	}
}

// commit commits entries as one batch and gives the decisions.
func commit(t testing.TB, b *Backend, entries ...ports.Entry) []ports.Decision {
	t.Helper()
	decisions, err := tryCommit(b, batchOf(entries))
	if err != nil {
		t.Fatal(err)
	}
	return decisions
}

func tryCommit(b *Backend, batch ports.CommitBatch) ([]ports.Decision, error) {
	p, err := b.Commit(context.Background(), batch)
	if err != nil {
		return nil, err
	}
	return p.Wait(context.Background())
}

// entry is a live write that came at a time made of its Seq.
func entry(seq uint64, action ports.Action, key, record string) ports.Entry {
	e := ports.Entry{
		Seq: seq, Action: action, Class: ports.Live, Key: key, Record: []byte(record),
		ReceivedMs: 1796004734800 + int64(seq), Host: "11111111", Actor: "ops", Origin: ports.OriginHTTP,
	}
	if record == "" {
		e.Record = nil
	}
	return e
}

func upsert(seq uint64, key, record string) ports.Entry {
	return entry(seq, ports.UpsertWorkItem, key, record)
}

func patch(seq uint64, key, record string) ports.Entry {
	return entry(seq, ports.UpdateWorkItem, key, record)
}

func event(seq uint64, key, guid, record string) ports.Entry {
	e := entry(seq, ports.AppendEvent, key, record)
	e.EventGUID = guid
	return e
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
