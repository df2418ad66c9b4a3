package sqlite

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/internal/workload"
	"holdfast/ports"
)

// bulk is the 10,000 lines of the target, as whole items.
const bulkItems = 10_000 / workload.PerItem

// BenchmarkBare and BenchmarkCommit write 10,000 lines an iteration; the second gives its ratio to the first, when both
// run: go test -bench 'Bare|Commit' -benchtime 5x ./adapters/sqlite
var bareRate atomic.Int64 // writes a second

func BenchmarkBare(b *testing.B) {
	path := filepath.Join(b.TempDir(), "bare.db")
	emptyFile(b, path)
	bare, err := workload.OpenBare(path)
	if err != nil {
		b.Fatal(err)
	}
	var spent time.Duration
	n := 0
	for b.Loop() {
		b.StopTimer()
		entries := workload.Entries(n*bulkItems, bulkItems, uint64(n*bulkItems*workload.PerItem+1))
		writes, err := workload.Writes(entries, "host")
		if err != nil {
			b.Fatal(err)
		}
		n++
		b.StartTimer()
		start := time.Now()
		if err := bare.Run(b.Context(), writes); err != nil {
			b.Fatal(err)
		}
		spent += time.Since(start)
	}
	rate := float64(n*bulkItems*workload.PerItem) / spent.Seconds()
	bareRate.Store(int64(rate))
	b.ReportMetric(rate, "writes/s")
	if err := bare.Close(); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkCommit(b *testing.B) {
	s := openStore(b, filepath.Join(b.TempDir(), "history.db"))
	admit(b, s, "")
	var spent time.Duration
	n := 0
	for b.Loop() {
		b.StopTimer()
		first := uint64(n*bulkItems*workload.PerItem + 1)
		entries := workload.Entries(n*bulkItems, bulkItems, first)
		n++
		b.StartTimer()
		start := time.Now()
		pour(b, s, entries, 4)
		spent += time.Since(start)
	}
	rate := float64(n*bulkItems*workload.PerItem) / spent.Seconds()
	b.ReportMetric(rate, "writes/s")
	if bare := bareRate.Load(); bare > 0 {
		b.ReportMetric(rate/float64(bare), "of-bare")
	}
}

// pour commits entries in batches of 512 with a number of them in flight.
func pour(t testing.TB, s *Store, entries []ports.Entry, flight int) {
	t.Helper()
	var waiting []ports.Pending
	settle := func(left int) {
		for len(waiting) > left {
			if _, err := waiting[0].Wait(context.Background()); err != nil {
				t.Fatal(err)
			}
			waiting = waiting[1:]
		}
	}
	for len(entries) > 0 {
		n := min(ports.MaxBatchEntries, len(entries))
		p, err := s.Commit(context.Background(), batchOf(entries[:n]))
		if err != nil {
			t.Fatal(err)
		}
		waiting = append(waiting, p)
		entries = entries[n:]
		settle(flight - 1)
	}
	settle(0)
}
