package postgres

import (
	"context"
	"testing"

	"holdfast/internal/workload"
	"holdfast/ports"
)

// BenchmarkCommit is the store alone: batches as a host sends them, a few on their way at a time.
func BenchmarkCommit(b *testing.B) {
	const items, batch, flight = 4000, ports.MaxBatchEntries, 4
	for range b.N {
		s, _ := ready(b)
		entries := workload.Entries(0, items, 1)
		b.ResetTimer()
		var pending []ports.Pending
		for len(entries) > 0 {
			n := min(batch, len(entries))
			p, err := s.Commit(context.Background(), batchOf(entries[:n]))
			if err != nil {
				b.Fatal(err)
			}
			entries, pending = entries[n:], append(pending, p)
			if len(pending) == flight || len(entries) == 0 {
				for _, p := range pending {
					if _, err := p.Wait(context.Background()); err != nil {
						b.Fatal(err)
					}
				}
				pending = pending[:0]
			}
		}
		b.ReportMetric(float64(items*workload.PerItem*b.N)/b.Elapsed().Seconds(), "writes/s")
	}
}
