package beacon

import (
	"fmt"
	"testing"
	"time"

	"holdfast/adapters/mesh/stock"
	"holdfast/ports"
)

// Catching up: full batches of items with an event each, new keys each time, through the real hub to a stock beacon.
func BenchmarkCatchingUpThroughTheHub(b *testing.B) {
	hub, url := serveHub(b)
	worker := stock.NewPersistence().Beacon(stock.BeaconConfig{Name: "archive", ServerURL: url, MaxConcurrent: 16})
	b.Cleanup(worker.Kill)
	if err := worker.Start(within(b)); err != nil {
		b.Fatal(err)
	}
	backend := over(b, hub, b.TempDir(), `{"timeout":"60s"}`)
	at, err := backend.Position(within(b), ports.Queue)
	if err != nil {
		b.Fatal(err)
	}
	rows, n := 0, 0
	began := time.Now()
	for b.Loop() {
		var batch []ports.Row
		for range ports.MaxBatchEntries / 2 {
			n++
			key := fmt.Sprint("w", n)
			batch = append(batch, item(key, uint64(n), `,"Status":"Complete","Settings":{"a":[1,2,3]}`), event(key, "e"+key, `,"EventType":"completed"`))
		}
		at.Seqs = map[string]uint64{"h": uint64(n)}
		if _, err := backend.Put(within(b), ports.Batch{Family: ports.Queue, Rows: batch, Position: &at}); err != nil {
			b.Fatal(err)
		}
		rows += len(batch)
	}
	b.ReportMetric(float64(rows)/time.Since(began).Seconds(), "rows/s")
}
