package sqlite

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/adapters/tables"
	"holdfast/adapters/tables/tabletest"
	"holdfast/internal/workload"
	"holdfast/ports"
)

// records is how many records the workload leaves for one item: itself, two events, an attempt.
const records = 4

// BenchmarkChanges measures what a follower asks of a store with 200,000 records: nothing new, ten new rows, everything. The
// last is set against an export of the same rows:
//
//	go test -run '^$' -bench Changes ./adapters/sqlite
func BenchmarkChanges(b *testing.B) {
	const count = 200_000 / records
	s := openStore(b, filepath.Join(b.TempDir(), "history.db"))
	admit(b, s, "")
	for n := 0; n < count; n += 5000 {
		tabletest.Pour(b, s, workload.Entries(n, 5000, uint64(n*workload.PerItem+1)))
	}
	head := ports.Position{Epoch: epoch, Seqs: map[string]uint64{host: count * workload.PerItem}}
	for name, c := range map[string]struct{ behind, want int }{"nothing": {0, 0}, "ten": {10, 10}} {
		b.Run(name, func(b *testing.B) {
			at := ports.Position{Epoch: epoch, Seqs: map[string]uint64{host: head.Seqs[host] - uint64(c.behind)}}
			for b.Loop() {
				page := tabletest.Changes(b, s, ports.ChangesQuery{Family: ports.Queue, After: at})
				if len(page.Rows) != c.want || page.End == nil {
					b.Fatalf("%d rows", len(page.Rows))
				}
			}
		})
	}
	b.Run("one key", func(b *testing.B) {
		key := workload.Entries(count/2, 1, 1)[0].Key
		for b.Loop() {
			if page := tabletest.Changes(b, s, ports.ChangesQuery{Family: ports.Queue, Key: key}); len(page.Rows) != records {
				b.Fatalf("%d rows", len(page.Rows))
			}
		}
	})
	b.Run("walk", func(b *testing.B) {
		var walked, exported time.Duration
		for b.Loop() {
			start := time.Now()
			rows, _ := tabletest.Walk(b, s, ports.ChangesQuery{Family: ports.Queue}, func() {})
			walked += time.Since(start)
			start = time.Now()
			if n := len(engine.Everything(b, s, ports.Queue)); n != len(rows) || n != count*records {
				b.Fatalf("%d exported, %d told", n, len(rows))
			}
			exported += time.Since(start)
		}
		b.ReportMetric(float64(b.N*count*records)/walked.Seconds(), "rows/s")
		b.ReportMetric(exported.Seconds()/walked.Seconds(), "of-export")
	})
}

// BenchmarkPut copies records into an empty store, 512 rows at a time, and sets that against the same rows put by one bare
// statement for each table.
func BenchmarkPut(b *testing.B) {
	const count = 5000
	from := openStore(b, filepath.Join(b.TempDir(), "from.db"))
	admit(b, from, "")
	tabletest.Pour(b, from, workload.Entries(0, count, 1))
	var batches []ports.Batch
	var decoded []workload.Write
	q := ports.ChangesQuery{Family: ports.Queue}
	for end := false; !end; {
		page := tabletest.Changes(b, from, q)
		q.After, end = page.Through, page.End != nil
		batches = append(batches, ports.Batch{Family: ports.Queue, Rows: page.Rows, Position: &page.Through})
		for i := range page.Rows {
			decoded = append(decoded, bareUpsert(b, &page.Rows[i]))
		}
	}
	var spent, bare time.Duration
	for n := 0; b.Loop(); n++ {
		path := filepath.Join(b.TempDir(), fmt.Sprint("bare", n, ".db"))
		emptyFile(b, path)
		w, err := workload.OpenBare(path)
		if err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		for left := decoded; len(left) > 0; left = left[min(ports.MaxBatchEntries, len(left)):] {
			if err := w.Run(b.Context(), left[:min(ports.MaxBatchEntries, len(left))]); err != nil {
				b.Fatal(err)
			}
		}
		bare += time.Since(start)
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
		to := openStore(b, filepath.Join(b.TempDir(), fmt.Sprint("to", n, ".db")))
		if err := to.Probe(b.Context(), ports.Queue); err != nil {
			b.Fatal(err)
		}
		start = time.Now()
		for _, batch := range batches {
			if got, err := to.Put(b.Context(), batch); err != nil || got.Done != len(batch.Rows) {
				b.Fatal(got, err)
			}
		}
		spent += time.Since(start)
	}
	b.ReportMetric(float64(b.N*len(decoded))/spent.Seconds(), "rows/s")
	b.ReportMetric(float64(b.N*len(decoded))/bare.Seconds(), "bare-rows/s")
	b.ReportMetric(bare.Seconds()/spent.Seconds(), "of-bare")
}

// bareUpsert is a row with all its columns decoded, for a statement that replaces what is there.
func bareUpsert(b *testing.B, r *ports.Row) workload.Write {
	l := layoutOf(r.Kind)
	record, err := ports.ParseRecord(l.Table, r.Body)
	if err != nil {
		b.Fatal(err)
	}
	values := make([]any, len(l.Names))
	l.values(values, r.Key, &ports.Held{Record: record, First: r.First, Change: r.Change}, clock())
	unique := l.Table.Key
	switch r.Kind {
	case ports.KindEvent:
		unique = "EventGUID"
	case ports.KindAttempt:
		unique = `WorkItemHash", "AttemptNumber`
	}
	var sets []string
	for _, name := range l.Names {
		sets = append(sets, `"`+name+`" = excluded."`+name+`"`)
	}
	marks := strings.TrimSuffix(strings.Repeat("?, ", len(l.Names)), ", ")
	return workload.Write{Args: values, SQL: `INSERT INTO "` + l.Table.Name + `" (` + tables.Quoted(l.Names) + `) VALUES (` + marks + `)
		ON CONFLICT ("` + unique + `") DO UPDATE SET ` + strings.Join(sets, ", ")}
}
