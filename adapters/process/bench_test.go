package process

import (
	"bytes"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"holdfast/ports"
)

func BenchmarkLaunchToReady(b *testing.B) {
	spec := specOf(b, hclog.NewNullLogger())
	numbers := quick
	for b.Loop() {
		c, err := launch(b.Context(), &spec, spec.Logger, &numbers, func(step) {})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		c.discard(&numbers)
		b.StartTimer()
	}
}

func BenchmarkOneCall(b *testing.B) {
	p := run(b, nil)
	b.ReportAllocs()
	for b.Loop() {
		if err := p.Probe(b.Context(), ports.Queue); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCommitOf1000(b *testing.B) {
	for name, window := range map[string]int{"one at a time": 1, "four ahead": 4} {
		b.Run(name, func(b *testing.B) {
			p := run(b, nil)
			sent := ports.CommitBatch{Family: ports.Queue, Epoch: "e", Through: 1000, Entries: make([]ports.Entry, 1000)}
			for i := range sent.Entries {
				sent.Entries[i] = ports.Entry{
					Seq: uint64(i + 1), Action: ports.UpsertWorkItem, Class: ports.Live, Key: "wi-run-node-1700000000000-1",
					Record: bytes.Repeat([]byte{'x'}, 600), Host: "0123abcd", Actor: "token", Origin: ports.OriginHTTP,
				}
			}
			var flight []ports.Pending
			b.ReportAllocs()
			for b.Loop() {
				pending, err := p.Commit(b.Context(), sent)
				if err != nil {
					b.Fatal(err)
				}
				if flight = append(flight, pending); len(flight) < window {
					continue
				}
				if _, err := flight[0].Wait(b.Context()); err != nil {
					b.Fatal(err)
				}
				flight = flight[1:]
			}
		})
	}
}

// BenchmarkDeathToFirstCall is from kill -9 to the first call that the next child answers, 50 times whatever b.N is: the first
// runs of a benchmark are short. Only the first death of a healthy child is followed at once; here each counts as the first.
func BenchmarkDeathToFirstCall(b *testing.B) {
	const deaths = 50
	p := prepare(b, specOf(b, hclog.NewNullLogger()))
	p.timing = usual
	p.timing.healthy = 0
	p.Start()
	if err := p.Await(b.Context()); err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	for b.Loop() {
		for range deaths {
			starts, pid := p.Status().Starts, pidOf(b, p)
			began := time.Now()
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				b.Fatal(err)
			}
			eventually(b, 5*time.Second, "the next child answers", func() bool {
				return p.Status().Starts > starts && p.Probe(b.Context(), ports.Queue) == nil
			})
			took = append(took, time.Since(began))
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(0, "ns/op")
}
