package bench

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"holdfast/adapters/journal"
	"holdfast/internal/workload"
	"holdfast/ports"
)

// BenchmarkJournal measures the journal alone: one entry an append, each waited for.
func BenchmarkJournal(b *testing.B) {
	b.ReportMetric(0, "ns/op")
	entries := workload.Entries(0, 100, 1)
	for range *rounds {
		for _, level := range []struct{ callers, each int }{{1, 1000}, {64, 500}, {512, 120}} {
			j, err := journal.Open(journal.Options{Dir: b.TempDir(), Family: ports.Queue})
			if err != nil {
				b.Fatal(err)
			}
			m := callers(b, level.callers, level.each, func(c, i int, _ *bytes.Buffer) error {
				one := []ports.Entry{entries[(c*31+i)%len(entries)]}
				receipt, err := j.Append(one)
				if err != nil {
					return err
				}
				return receipt.Wait(context.Background())
			})
			if err := j.Close(); err != nil {
				b.Fatal(err)
			}
			table.measured("Journal", fmt.Sprintf("append and wait, %d at once", level.callers), m)
		}
	}
	if err := table.print("Journal"); err != nil {
		b.Fatal(err)
	}
}
