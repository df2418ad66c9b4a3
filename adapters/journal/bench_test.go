package journal

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/ports"
)

// BenchmarkAppend has callers that each wait for their entry, as the Door does, and in-bulk ones that append 512 at once.
func BenchmarkAppend(b *testing.B) {
	for _, callers := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("callers-%d", callers), func(b *testing.B) { benchAppend(b, callers, 1) })
	}
	b.Run("bulk-512", func(b *testing.B) { benchAppend(b, 2, 512) })
}

func benchAppend(b *testing.B, callers, batch int) {
	j := opened(b, Options{Dir: b.TempDir(), Family: ports.Queue, Limit: 16 << 30, Reserve: -1, SegmentBytes: mostSegment})
	record := body("item", 600)
	put(b, j, sample("first"))
	var left atomic.Int64
	left.Store(int64(b.N))
	took := make([][]time.Duration, callers)
	var wg sync.WaitGroup
	b.ResetTimer()
	for c := range callers {
		wg.Go(func() {
			for left.Add(-int64(batch)) > -int64(batch) {
				entries := make([]ports.Entry, batch)
				for i := range entries {
					entries[i] = ports.Entry{
						Action: ports.UpsertWorkItem, Class: ports.Live, Key: "0123456789abcdef0123456789abcdef", Record: record,
						ReceivedMs: 1767225600000, Host: "0123abcd", Actor: "token:ops", Origin: ports.OriginHTTP,
					}
				}
				start := time.Now()
				put(b, j, entries...)
				took[c] = append(took[c], time.Since(start))
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "entries/s")
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-us")
}

// BenchmarkRead reads a journal from end to end in pages.
func BenchmarkRead(b *testing.B) {
	j := opened(b, Options{Dir: b.TempDir(), Family: ports.Queue, Limit: 1 << 30, Reserve: -1, SegmentBytes: mostSegment})
	const n = 100_000
	for range n / 1000 {
		batch := make([]ports.Entry, 1000)
		for i := range batch {
			batch[i] = sample(fmt.Sprint("item-", i))
		}
		put(b, j, batch...)
	}
	for _, page := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("page-%d", page), func(b *testing.B) {
			b.ReportAllocs()
			after := uint64(0)
			for done := 0; done < b.N; {
				s, err := j.Read(after, page, ports.MaxBatchBytes)
				if err != nil {
					b.Fatal(err)
				}
				done += len(s.Entries)
				if after = s.Through; after == n {
					after = 0
				}
			}
		})
	}
}
