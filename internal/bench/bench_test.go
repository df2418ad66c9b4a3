package bench

import (
	"fmt"
	"os"
	"testing"
	"time"

	"holdfast/internal/e2e"
	"holdfast/internal/workload"
)

func TestMain(m *testing.M) {
	asPlugin()
	if dir := os.Getenv(serveOne); dir != "" {
		if err := oneProcess(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if url := os.Getenv(serveBeacon); url != "" {
		if err := beBeacon(url); err != nil {
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
	bulkItems  = 10_000 // of each size of bulk
	part       = "Writes and reads"
	partCost   = "Processor time"
	partMemory = "Memory and start"
	readers    = 16
	ackLocal   = "local"
	ackJournal = "journaled"
)

// BenchmarkWrites compares holdfast with the bare program and the one-process server.
func BenchmarkWrites(b *testing.B) {
	b.ReportMetric(0, "ns/op")
	for range *rounds {
		round := round{b: b}
		round.bare()
		round.one()
		round.singles(ackLocal)
		round.bulk(ackLocal)
		round.singles(ackJournal)
		round.bulk(ackJournal)
	}
	for _, p := range []string{part, partCost, partMemory} {
		if err := table.print(p); err != nil {
			b.Fatal(err)
		}
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
	f, err := openFile(r.b.TempDir())
	if err != nil {
		r.b.Fatal(err)
	}
	r.bareOf = map[int]float64{}
	for step, lines := range []int{10_000, 1_000} {
		took, busy, err := bare(f, step*bulkItems, (step+1)*bulkItems)
		if err != nil {
			r.b.Fatal(err)
		}
		const writes = bulkItems * workload.PerItem
		r.bareOf[lines] = writes / took.Seconds()
		name := fmt.Sprintf("bare, items %d to %d", step*bulkItems, (step+1)*bulkItems)
		table.add(part, name, "/s", r.bareOf[lines])
		table.add(partCost, name, "us/write", busy.Seconds()*1e6/writes)
	}
	if err := f.Close(); err != nil {
		r.b.Fatal(err)
	}
}

func (r *round) one() {
	url, pid, stop := startOne(r.b, r.b.TempDir())
	defer stop()
	l := newLoad(url)
	defer l.http.CloseIdleConnections()
	r.oneOf = map[int]float64{}
	from := 0
	for _, level := range levels {
		all := items(from, from+level.callers*level.items)
		from += len(all)
		since := processorTime(pid)
		m := l.singles(r.b, all, level.callers)
		r.oneOf[level.callers] = m.rate
		name := fmt.Sprintf("singles, one process, %d callers", level.callers)
		table.measured(part, name, m).of("bare", r.bareOf[10_000])
		table.add(partCost, name, "us/write", (processorTime(pid)-since).Seconds()*1e6/float64(len(m.times)))
	}
}

// host starts a holdfast.
func (r *round) host(ack string) (*e2e.Host, *load, family) {
	r.b.Setenv("HOLDFAST_ACK", ack)
	host := e2e.Start(r.b)
	return host, newLoad(host.URL), familyOf(r.b)
}

func (r *round) singles(ack string) {
	host, l, procs := r.host(ack)
	if ack == ackLocal {
		r.localOf = map[int]float64{}
	}
	from := 0
	for _, level := range levels {
		all := items(from, from+level.callers*level.items)
		from += len(all)
		since := procs.busy()
		m := l.singles(r.b, all, level.callers)
		l.settle(r.b)
		name := fmt.Sprintf("singles, %s, %d callers", ack, level.callers)
		procs.cost(name, since, len(m.times))
		f := table.measured(part, name, m)
		of, base, least := "one process", r.oneOf[level.callers], 0.65
		if ack == ackJournal {
			of, base, least = ackLocal, r.localOf[level.callers], 1.3
		} else {
			r.localOf[level.callers] = m.rate
		}
		f.of(of, base)
		if level.callers == 64 {
			f.target(target{What: "ratio", Least: least}, target{What: "p99", Most: 20})
		}
	}
	procs.note(ack + " singles")
	l.http.CloseIdleConnections() // some were dialled and never used, and those a server waits for
	host.Stop(r.b)
}

func (r *round) bulk(ack string) {
	host, l, procs := r.host(ack)
	for step, size := range []struct {
		lines                    int
		local, accepted, drained float64
	}{{10_000, 0.7, 1.2, 0.8}, {1_000, 0.6, 0, 0}} {
		all := bodies(step*bulkItems, (step+1)*bulkItems, size.lines)
		since := procs.busy()
		accepted, drained := l.bulk(r.b, all)
		name := fmt.Sprintf("bulk of %d lines, %s", size.lines, ack)
		procs.cost(name, since, bulkItems*workload.PerItem)
		if ack == ackLocal {
			table.measured(part, name, accepted).of("bare", r.bareOf[size.lines]).target(target{What: "ratio", Least: size.local})
			continue
		}
		a := table.measured(part, name+", accepted", accepted).of("bare", r.bareOf[size.lines])
		d := table.add(part, name+", drained", "/s", drained).of("bare", r.bareOf[size.lines])
		if size.accepted > 0 {
			a.target(target{What: "ratio", Least: size.accepted})
			d.target(target{What: "ratio", Least: size.drained})
		}
	}
	procs.note(ack + " bulk")
	if ack == ackLocal {
		r.reads(l)
	}
	l.http.CloseIdleConnections()
	host.Kill()
	began := time.Now()
	host.Restart(r.b)
	table.add(partMemory, "from start to ready after kill -9, "+ack, "ms", time.Since(began).Seconds()*1e3).target(target{What: "value", Most: 500})
	host.Stop(r.b)
}

func (r *round) reads(l *load) {
	hashes := make([]string, 2*bulkItems)
	for n := range hashes {
		hashes[n] = hashOf(n)
	}
	table.measured(part, fmt.Sprintf("reads by key, %d callers", readers), l.reads(r.b, hashes, readers, 500))
	all := items(len(hashes), len(hashes)+64*16)
	var writes measured
	m := l.readsDuring(r.b, hashes, readers, func() { writes = l.singles(r.b, all, 64) })
	table.measured(part, fmt.Sprintf("reads by key, %d callers, beside 64 writers", readers), m)
	table.measured(part, fmt.Sprintf("singles, local, 64 callers, beside %d readers", readers), writes)
}
