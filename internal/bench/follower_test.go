package bench

import (
	"bytes"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/internal/workload"
)

const partFollow = "Followers"

func configured(route string) string { return fmt.Sprintf(withMirror, route) }

// BenchmarkFollowers measures a second SQLite backend that is kept equal to the local store, and what it costs the others.
func BenchmarkFollowers(b *testing.B) {
	b.ReportMetric(0, "ns/op")
	data := filepath.Join(b.TempDir(), "data")
	fill(b, data)
	besides := &beside{data: data}
	besides.from.Store(followItems)
	for range *rounds {
		lagRound(b)
		copyRound(b, data)
		routeRound(b, data)
	}
	for range *rounds { // these add rows, which the rounds above count
		besides.round(b)
	}
	for _, p := range []string{partFollow, partCost, partMemory} {
		if err := table.print(p); err != nil {
			b.Fatal(err)
		}
	}
}

// fill makes the history that is copied.
func fill(b *testing.B, data string) {
	b.Helper()
	host, l := over(b, data, onlyLocal)
	for from := 0; from < followItems; from += bulkItems {
		l.bulk(b, bodies(from, min(from+bulkItems, followItems), 10_000))
	}
	stop(b, host, l)
}

// routeRound compares reads that the mirror answers with those that the local store answers, over the same history.
func routeRound(b *testing.B, data string) {
	const page = "/v1/work-items?limit=50"
	hashes := make([]string, followItems)
	for n := range hashes {
		hashes[n] = hashOf(n)
	}
	var base [2]float64
	for _, by := range []struct{ route, name string }{{localAlone, "local"}, {mirrorFirst, mirrorName}} {
		host, l := over(b, data, configured(by.route))
		l.caughtUp(b)
		read := func(path string) func(answer *bytes.Buffer) error {
			return func(answer *bytes.Buffer) error {
				if err := l.do(http.MethodGet, path, "", nil, answer); err != nil {
					return err
				}
				return answeredBy(answer.Bytes(), by.name)
			}
		}
		keyed := callers(b, readers, 500, func(c, i int, answer *bytes.Buffer) error {
			return read("/v1/work-items/" + hashes[(c*7919+i*104_729)%len(hashes)])(answer)
		})
		listed := callers(b, readers, 60, func(_, _ int, answer *bytes.Buffer) error { return read(page)(answer) })
		for i, m := range []measured{keyed, listed} {
			f := table.measured(partFollow, fmt.Sprintf("%s, %d callers, from %s", [2]string{"reads by key", "lists of 50"}[i], readers, by.name), m)
			if by.name == mirrorName {
				f.of("local", base[i])
			}
			base[i] = m.rate
		}
		stop(b, host, l)
	}
}

// beside measures single writes while the mirror catches up, and the same before and after.
type beside struct {
	data string
	from atomic.Int64 // the first item that nobody wrote yet
}

const (
	besideTime = 4 * time.Second
	besideMost = 2 * time.Minute
)

func (r *beside) round(b *testing.B) {
	for _, n := range []int{1, 64} {
		host, l := over(b, r.data, onlyLocal)
		none := r.write(b, l, n, after(besideTime))
		stop(b, host, l)

		host, l = over(b, r.data, configured(mirrorFirst))
		l.caughtUp(b)
		before := r.write(b, l, n, after(besideTime))
		stop(b, host, l)
		forget(b, r.data)

		host, l = over(b, r.data, configured(mirrorFirst))
		behind, took, rate := r.catchUp(b, l, n)
		l.caughtUp(b)
		behindAfter := r.write(b, l, n, after(besideTime))
		stop(b, host, l)

		head := measured{(before.rate + behindAfter.rate) / 2, slices.Concat(before.times, behindAfter.times)}
		name := fmt.Sprintf("singles, %d callers, ", n)
		if n == 1 {
			name = "singles, 1 caller, "
		}
		table.measured(partFollow, name+"no mirror", none)
		table.measured(partFollow, name+"mirror at the head", head).of("no mirror", none.rate)
		table.measured(partFollow, name+"mirror catches up", behind).of("no mirror", none.rate)
		table.add(partFollow, name+"rows copied beside them", "rows/s", rate)
		table.add(partFollow, name+"from zero to the head beside them", "s", took.Seconds()).target(target{What: "value", Most: besideMost.Seconds()})
		table.add(partFollow, name+"p99 while it catches up, of head's", "times", float64(behind.percentile(0.99))/float64(head.percentile(0.99))).
			target(target{What: "value", Most: 2})
		table.add(partFollow, name+"p99 at the head, of that without", "times", float64(head.percentile(0.99))/float64(none.percentile(0.99)))
	}
}

func after(d time.Duration) <-chan struct{} {
	done := make(chan struct{})
	time.AfterFunc(d, func() { close(done) })
	return done
}

// write lets callers write items of their own until done.
func (r *beside) write(b *testing.B, l *load, n int, done <-chan struct{}) measured {
	b.Helper()
	present := make([]item, n)
	return callersUntil(b, n, done, func(c, i int, answer *bytes.Buffer) error {
		if i%workload.PerItem == 0 {
			next := int(r.from.Add(1)) - 1
			present[c] = items(next, next+1)[0]
		}
		if err := l.do(http.MethodPost, "/v1/actions", "application/json", present[c][i%workload.PerItem], answer); err != nil {
			return err
		}
		return succeeded(answer.Bytes(), 1)
	})
}

// catchUp writes from the moment at which the mirror has its first rows until it has everything, or besideMost has passed.
// It also gives how long that was, and the rate at which the mirror was filled.
func (r *beside) catchUp(b *testing.B, l *load, n int) (m measured, took time.Duration, rate float64) {
	b.Helper()
	first := l.until(b, "the first row", func(f following) bool { return f.Copied > 0 })
	began, done := time.Now(), make(chan struct{})
	go func() {
		defer close(done)
		last := l.until(b, "the head", func(f following) bool { return f.Phase == "ready" || time.Since(began) > besideMost })
		took = time.Since(began)
		rate = float64(last.Copied-first.Copied) / took.Seconds()
	}()
	m = r.write(b, l, n, done)
	return m, took, rate
}
