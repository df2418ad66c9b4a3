package meadowproxy

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"holdfast/adapters/meadowproxy/stock"
	"holdfast/ports"
)

// BenchmarkCatchingUp puts 10,000 writes into a databeacon with the costs of a real one: as a follower does that was
// away, in batches of the last states, and as the stock bridges would if they worked, one request after the other: look up, then
// POST or PUT. The ratio of the two is told as "times".
func BenchmarkCatchingUp(b *testing.B) {
	for _, m := range []stock.Manner{stock.SQLite, stock.Postgres, stock.MySQL} {
		b.Run(string(m), func(b *testing.B) {
			for range b.N {
				ours := catchUp(b, m)
				theirs := oneByOne(b, m)
				b.ReportMetric(float64(writes)/ours.Seconds(), "writes/s")
				b.ReportMetric(float64(writes)/theirs.Seconds(), "one-by-one/s")
				b.ReportMetric(theirs.Seconds()/ours.Seconds(), "times")
			}
		})
	}
}

const writes = 10_000

// history is a stream of new records: items, their events and attempts, and manifests. Each is a write of its own.
func history(b *behind) (rows []ports.Row) {
	for i := 0; len(rows) < writes; i++ {
		key := fmt.Sprintf("wi-%d", i)
		rows = append(rows,
			b.row(ports.KindItem, key, 1, `"Capability":"Shell","Action":"Execute","Settings":{"Command":"ls -l"},"Status":"Complete","Result":{"Outputs":{"StdOut":"total 0"},"Log":["done"]}`),
			b.row(ports.KindEvent, key, 1, `"EventType":"enqueued","Payload":{"Capability":"Shell"},"ToStatus":"Pending"`),
			b.row(ports.KindEvent, key, 2, `"EventType":"completed","Payload":{},"FromStatus":"Running","ToStatus":"Complete"`),
			b.row(ports.KindAttempt, key, 1, `"BeaconID":"bcn-1","Outcome":"Complete"`))
	}
	return rows[:writes]
}

func catchUp(b *testing.B, m stock.Manner) time.Duration {
	b.Helper()
	there := newBehind(b, stock.Options{Manner: m, Costs: true})
	rows := history(there)
	begun := time.Now()
	for from := 0; from < len(rows); {
		done, err := there.w.put(b.Context(), rows[from:min(len(rows), from+ports.MaxBatchEntries)], ports.ClassCatchUp)
		if err != nil && ports.CodeOf(err) != ports.Unavailable {
			b.Fatal(err)
		}
		from += done
	}
	return time.Since(begun)
}

func oneByOne(b *testing.B, m stock.Manner) time.Duration {
	b.Helper()
	there := newBehind(b, stock.Options{Manner: m, Costs: true})
	w := there.w
	const some = writes / 10 // it is the same for each
	rows := history(there)[:some]
	begun := time.Now()
	for i := range rows {
		row := &rows[i]
		l := layouts[row.Kind]
		key := row.Key
		if l.natural == "EventGUID" {
			key = row.GUID
		}
		base := w.bases[l.table.Name]
		path := base + "s/FilteredTo/FBV~" + l.natural + "~EQ~" + escaped(key)
		if l.number != "" {
			path += "~FBV~" + l.number + "~EQ~" + strconv.FormatInt(row.Number, 10)
		}
		r, err := w.request(b.Context(), ports.ClassCatchUp, "GET", path, nil, "")
		var found []json.RawMessage
		if err != nil || json.Unmarshal(r.body, &found) != nil || len(found) > 0 {
			b.Fatalf("%d %s, %v", r.status, r.body, err)
		}
		s, err := w.project(l, row)
		if err != nil {
			b.Fatal(err)
		}
		body, _ := w.body(l, row, s, key, 0)
		if r, err = w.request(b.Context(), ports.ClassCatchUp, "POST", base, body, row.First.Actor); err != nil || r.status != 200 {
			b.Fatalf("%d %s, %v", r.status, r.body, err)
		}
	}
	return time.Since(begun) * writes / some
}
