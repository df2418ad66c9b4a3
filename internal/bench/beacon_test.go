package bench

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/adapters/mesh/stock"
	"holdfast/internal/e2e"
	"holdfast/internal/workload"
)

const partBeacon = "Beacons"

const withBeacon = onlyLocal + `
backend "beacon" "` + mirrorName + `" {}
`

var backlog = flag.Int("backlog", 50_000, "how many changes are made while the beacon is away")

// serveBeacon has this binary be a beacon of the host that it names: it works in a process of its own, as a real one does.
const serveBeacon = "HOLDFAST_BENCH_BEACON"

// beBeacon is that process. It keeps what it has, and does what its standard input says: come and go, each answered with a line.
func beBeacon(url string) error {
	store, b := stock.NewPersistence(), (*stock.Beacon)(nil)
	for said := bufio.NewScanner(os.Stdin); said.Scan(); {
		connections := 0
		switch said.Text() {
		case come:
			b = store.Beacon(stock.BeaconConfig{ServerURL: url, Name: "archive"})
			if err := b.Start(context.Background()); err != nil {
				return err
			}
		case leave:
			connections = b.State().Sockets
			b.Kill()
		}
		fmt.Println(connections)
	}
	return nil
}

// come and leave are what a beacon is told.
const (
	come  = "come"
	leave = "leave"
)

// startBeacon starts the process of a beacon. tell tells it something; to leave gives how often it connected since it came.
func startBeacon(b *testing.B, host *e2e.Host) (tell func(what string) (connections int)) {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), serveBeacon+"="+host.URL)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	answers := bufio.NewReader(out)
	return func(what string) (connections int) {
		b.Helper()
		_, err := fmt.Fprintln(in, what)
		if err == nil {
			_, err = fmt.Fscanln(answers, &connections)
		}
		if err != nil {
			b.Fatal(err)
		}
		return connections
	}
}

// BenchmarkBeacons measures live writes while a beacon that was away gets the backlog, and the same before and after.
func BenchmarkBeacons(b *testing.B) {
	b.ReportMetric(0, "ns/op")
	var from atomic.Int64
	for range *rounds {
		for _, callers := range []int{1, 16} {
			backlogRound(b, callers, &from)
		}
	}
	for _, p := range []string{partBeacon, partCost, partMemory} {
		if err := table.print(p); err != nil {
			b.Fatal(err)
		}
	}
}

func backlogRound(b *testing.B, n int, from *atomic.Int64) {
	name := "singles, 16 callers, "
	if n == 1 {
		name = "singles, 1 caller, "
	}
	data := filepath.Join(b.TempDir(), "data")
	live := &beside{data: data}
	live.from.Store(1_000_000)
	host, l := over(b, data, withBeacon)
	defer stop(b, host, l)

	beacon := startBeacon(b, host)
	beacon(come)
	l.caughtUp(b)
	before := live.write(b, l, n, after(besideTime))
	l.caughtUp(b)
	beacon(leave)
	l.until(b, "a beacon that is away", func(f following) bool { return f.Phase == "down" })

	items := *backlog / workload.PerItem
	at := int(from.Add(int64(items))) - items
	l.bulk(b, bodies(at, at+items, 10_000))
	away := live.write(b, l, n, after(besideTime))

	procs := l.trio(b)
	since := procs.busy()
	beacon(come)
	began := l.until(b, "the first row", func(f following) bool { return f.Phase == "copying" })
	done, start := make(chan struct{}), time.Now()
	var took time.Duration
	var last following
	go func() {
		defer close(done)
		last = l.until(b, "the head", func(f following) bool { return f.Phase == "ready" || time.Since(start) > besideMost })
		took = time.Since(start)
	}()
	behind := live.write(b, l, n, done)
	l.caughtUp(b)
	procs.note(name+"a beacon gets the backlog", since, last.Copied-began.Copied)
	then := live.write(b, l, n, after(besideTime))
	l.caughtUp(b)
	connected := beacon(leave)

	idle := measured{(before.rate + then.rate) / 2, slices.Concat(before.times, then.times)}
	table.measured(partBeacon, name+"beacon away", away)
	table.measured(partBeacon, name+"beacon at the head", idle).of("away", away.rate)
	table.measured(partBeacon, name+"beacon gets the backlog", behind).of("away", away.rate)
	table.add(partBeacon, name+"rows copied beside them", "rows/s", float64(last.Copied-began.Copied)/took.Seconds())
	table.add(partBeacon, name+"from the reconnect to the head", "s", took.Seconds()).target(target{What: "value", Most: besideMost.Seconds()})
	table.add(partBeacon, name+"connections for it", "", float64(connected)).target(target{What: "value", Least: 1, Most: 1})
	table.add(partBeacon, name+"p99 beside it, of that at the head", "times", float64(behind.percentile(0.99))/float64(idle.percentile(0.99))).
		target(target{What: "value", Most: 2})
	table.add(partBeacon, name+"p99 beside it, of that without a beacon", "times", float64(behind.percentile(0.99))/float64(away.percentile(0.99))).
		target(target{What: "value", Most: 2})
}
