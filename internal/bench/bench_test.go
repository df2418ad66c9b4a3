package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"holdfast/internal/e2e"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(serveOne); path != "" {
		if err := oneProcess(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	e2e.Main(m)
}

// levels are the numbers of callers, and how many items each of them writes.
var levels = []struct{ callers, items int }{{1, 200}, {16, 100}, {64, 64}, {256, 16}}

const (
	bulkItems   = 10_000 // of each size of bulk
	part        = "Writes"
	readers     = 16
	ackLocal    = "local"
	ackJournal  = "journaled"
	singlesName = "singles, %s, %d callers"
)

// BenchmarkWrites compares holdfast with the bare program and the one-process server.
func BenchmarkWrites(b *testing.B) {
	b.ReportMetric(0, "ns/op")
	for range *rounds {
		round := round{b: b}
		round.bare()
		round.one()
		round.holdfast(ackLocal)
		round.holdfast(ackJournal)
	}
	if err := table.print(part); err != nil {
		b.Fatal(err)
	}
}

// round is one measurement of every variant.
type round struct {
	b       *testing.B
	bareOf  map[int]float64 // by the lines of a bulk: the bare rate while the file had the same size
	oneOf   map[int]float64 // by callers
	localOf map[int]float64
}

func (r *round) bare() {
	f, err := openFile(filepath.Join(r.b.TempDir(), "bare.db"))
	if err != nil {
		r.b.Fatal(err)
	}
	defer f.close()
	r.bareOf = map[int]float64{}
	for step, lines := range []int{10_000, 1_000} {
		took, err := bare(f, "bulk", step*bulkItems, (step+1)*bulkItems)
		if err != nil {
			r.b.Fatal(err)
		}
		r.bareOf[lines] = bulkItems * perItem / took.Seconds()
		table.add(part, fmt.Sprintf("bare, items %d to %d", step*bulkItems, (step+1)*bulkItems), "/s", r.bareOf[lines])
	}
}

func (r *round) one() {
	url, stop := startOne(r.b, filepath.Join(r.b.TempDir(), "one.db"))
	defer stop()
	l := newLoad(url)
	defer l.http.CloseIdleConnections()
	r.oneOf = map[int]float64{}
	from := 0
	for _, level := range levels {
		m := l.singles(r.b, "single", from, level.callers, level.items)
		from += level.callers * level.items
		r.oneOf[level.callers] = m.rate
		table.measured(part, fmt.Sprintf(singlesName, "one process", level.callers), m).of("bare", r.bareOf[10_000])
	}
}

func (r *round) holdfast(ack string) {
	r.b.Setenv("HOLDFAST_ACK", ack)
	host := e2e.Start(r.b)
	l := newLoad(host.URL)
	defer l.http.CloseIdleConnections()
	procs := familyOf(r.b)
	r.singles(l, ack)
	procs.note(part, ack+" singles")
	host.Stop(r.b)

	host = e2e.Start(r.b)
	l = newLoad(host.URL)
	defer l.http.CloseIdleConnections()
	procs = familyOf(r.b)
	r.bulk(l, ack)
	procs.note(part, ack+" bulk")
	if ack == ackLocal {
		r.reads(l)
	}
	host.Kill()
	began := time.Now()
	host.Restart(r.b)
	table.add(part, "start to ready after kill -9, "+ack, "ms", time.Since(began).Seconds()*1e3).target(target{What: "value", Most: 500})
	host.Stop(r.b)
}

func (r *round) singles(l *load, ack string) {
	if ack == ackLocal {
		r.localOf = map[int]float64{}
	}
	from := 0
	for _, level := range levels {
		m := l.singles(r.b, "single", from, level.callers, level.items)
		from += level.callers * level.items
		f := table.measured(part, fmt.Sprintf(singlesName, ack, level.callers), m)
		l.settle(r.b)
		switch {
		case ack == ackLocal:
			r.localOf[level.callers] = m.rate
			f.of("one process", r.oneOf[level.callers])
			if level.callers == 64 {
				f.target(target{What: "ratio", Least: 0.65}, target{What: "p99", Most: 20})
			}
		default:
			f.of("local", r.localOf[level.callers])
			if level.callers == 64 {
				f.target(target{What: "ratio", Least: 1.3}, target{What: "p99", Most: 20})
			}
		}
	}
}

func (r *round) bulk(l *load, ack string) {
	for step, size := range []struct {
		lines           int
		local, accepted float64
	}{{10_000, 0.7, 1.2}, {1_000, 0.6, 0}} {
		accepted, drained := l.bulk(r.b, bulk("bulk", step*bulkItems, (step+1)*bulkItems, size.lines))
		name := fmt.Sprintf("bulk of %d lines, %s", size.lines, ack)
		if ack == ackLocal {
			table.measured(part, name, accepted).of("bare", r.bareOf[size.lines]).target(target{What: "ratio", Least: size.local})
			continue
		}
		a := table.measured(part, name+", accepted", accepted).of("bare", r.bareOf[size.lines])
		d := table.add(part, name+", drained", "/s", drained).of("bare", r.bareOf[size.lines])
		if size.accepted > 0 {
			a.target(target{What: "ratio", Least: size.accepted})
			d.target(target{What: "ratio", Least: 0.8})
		}
	}
}

func (r *round) reads(l *load) {
	const items = 2 * bulkItems
	table.measured(part, fmt.Sprintf("reads by key, %d callers", readers), l.reads(r.b, "bulk", items, readers, 500))
	var writes measured
	m := l.readsDuring(r.b, "bulk", items, readers, func() { writes = l.singles(r.b, "beside", 0, 64, 16) })
	table.measured(part, fmt.Sprintf("the same beside writes of 64 callers, %d callers", readers), m)
	table.measured(part, "those writes", writes)
}
