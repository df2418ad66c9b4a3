package bench

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast/adapters/postgres"
	"holdfast/internal/e2e"
	"holdfast/internal/pgtest"
	"holdfast/internal/workload"
	"holdfast/ports"
)

const partPostgres = "PostgreSQL"

// BenchmarkPostgres compares holdfast over HTTP, with its plugin for PostgreSQL, and the store alone with the bare program. Each has a
// database of its own on one server that keeps its promises, and writes the same items.
func BenchmarkPostgres(b *testing.B) {
	b.ReportMetric(0, "ns/op")
	server := pgtest.Start(b, pgtest.Options{Settings: map[string]string{"max_wal_size": "4GB"}})
	const writes = bulkItems * workload.PerItem
	work := bareOf(b, workload.Entries(0, bulkItems, 1))
	for range *rounds {
		conn := tables(b, server.Database(b))
		took, err := work.run(b.Context(), conn)
		if err != nil {
			b.Fatal(err)
		}
		base := writes / took.Seconds()
		table.add(partPostgres, "bare, 1024 writes a transaction", "/s", base)

		const few = 3
		conn = tables(b, server.Database(b))
		_, took, err = work.single(b.Context(), conn, few)
		if err != nil {
			b.Fatal(err)
		}
		one := few * workload.BareBatch / took.Seconds()
		table.add(partPostgres, "one INSERT a record", "/s", one).of("bare", base)

		store := postgres.New()
		if err := store.Configure(b.Context(), ports.Configuration{Name: "local", Options: fmt.Appendf(nil, `{"dsn":%q}`, server.Database(b))}); err != nil {
			b.Fatal(err)
		}
		table.measured(partPostgres, "the store alone, commits of 1000, one at a time", thousands(b, store)).of("bare", base)
		if err := store.Close(); err != nil {
			b.Fatal(err)
		}

		for _, lines := range []int{10_000, 1_000} {
			b.Setenv("HOLDFAST_ACK", ackLocal)
			host := e2e.StartWith(b, e2e.Setup{
				Env:    []string{"BENCH_DSN=" + server.Database(b)},
				Config: "backend \"postgres\" \"local\" {\n  local = true\n  dsn = env(\"BENCH_DSN\")\n}\n",
			})
			l := newLoad(host.URL)
			accepted, _ := l.bulk(b, bodies(0, bulkItems, lines))
			f := table.measured(partPostgres, fmt.Sprintf("bulk of %d lines, local", lines), accepted).of("bare", base)
			if lines == 10_000 {
				f.target(target{What: "ratio", Least: 0.6})
				table.add(partPostgres, "the same, of one INSERT a record", "/s", accepted.rate).of("one INSERT", one)
			}
			l.http.CloseIdleConnections()
			host.Stop(b)
		}
	}
	if err := table.print(partPostgres); err != nil {
		b.Fatal(err)
	}
}

// tables gives a session of a database in which the store made its tables.
func tables(b *testing.B, dsn string) *pgx.Conn {
	b.Helper()
	store := postgres.New()
	if err := store.Configure(b.Context(), ports.Configuration{Name: "local", Options: fmt.Appendf(nil, `{"dsn":%q}`, dsn)}); err != nil {
		b.Fatal(err)
	}
	if _, err := store.Stand(b.Context(), benchHost); err != nil {
		b.Fatal(err)
	}
	if err := store.Close(); err != nil {
		b.Fatal(err)
	}
	conn, err := pgx.Connect(b.Context(), dsn)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// thousands commits all items a thousand writes at a time, and gives the rate of writes.
func thousands(b *testing.B, s ports.LocalStore) measured {
	b.Helper()
	const epoch = "bench"
	if err := s.Open(b.Context(), ports.Opening{HostID: benchHost, Next: "n", Epochs: map[ports.Family]ports.Epoch{ports.Queue: {ID: epoch, From: 1}}}); err != nil {
		b.Fatal(err)
	}
	entries := workload.Entries(0, bulkItems, 1)
	m := callers(b, 1, len(entries)/thousand, func(_, i int, _ *bytes.Buffer) error {
		from := uint64(i * thousand)
		pending, err := s.Commit(context.Background(), ports.CommitBatch{Family: ports.Queue, Epoch: epoch, After: from, Through: from + thousand, Entries: entries[from : from+thousand]})
		if err == nil {
			_, err = pending.Wait(context.Background())
		}
		return err
	})
	m.rate *= thousand
	return m
}
