package sqlite

import (
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/adapters/tables/tabletest"
	"holdfast/internal/workload"
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
		tabletest.Pour(b, s, entries)
		spent += time.Since(start)
	}
	rate := float64(n*bulkItems*workload.PerItem) / spent.Seconds()
	b.ReportMetric(rate, "writes/s")
	if bare := bareRate.Load(); bare > 0 {
		b.ReportMetric(rate/float64(bare), "of-bare")
	}
}
