package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"

	"holdfast/adapters/process"
	"holdfast/internal/workload"
	"holdfast/plugins/sdk"
	"holdfast/ports"
)

// The way to a plugin and back: this test binary, started again as a store that does nothing.

// beIdle is the argument with which this binary is that plugin.
const beIdle = "be-idle"

type idle struct{ ports.LocalStore } // what is not here is never called

func (idle) Describe(context.Context) (ports.Description, error) {
	return ports.Description{Kind: "idle", Version: "0", Families: ports.Families, Powers: ports.PowersOf(idle{})}, nil
}
func (idle) Configure(context.Context, ports.Configuration) error { return nil }
func (idle) Probe(context.Context, ports.Family) error            { return nil }
func (idle) Close() error                                         { return nil }
func (idle) Commit(_ context.Context, b ports.CommitBatch) (ports.Pending, error) {
	decisions := make(decided, len(b.Entries))
	for i := range b.Entries {
		decisions[i] = ports.Decision{Seq: b.Entries[i].Seq, Outcome: ports.Stored}
	}
	return decisions, nil
}

type decided []ports.Decision

func (d decided) Wait(context.Context) ([]ports.Decision, error) { return d, nil }

func idlePlugin() { sdk.Serve(idle{}) }

// BenchmarkPlugin measures what the boundary between the processes costs.
func BenchmarkPlugin(b *testing.B) {
	const name = "Plugin"
	b.ReportMetric(0, "ns/op")
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	p, err := process.New(process.Spec{Name: "idle", Kind: "idle", Path: self, Args: []string{beIdle}, Config: ports.Configuration{Name: "idle"}})
	if err != nil {
		b.Fatal(err)
	}
	if err := p.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	for range *rounds {
		for _, n := range []int{1, 64} {
			m := callers(b, n, 8000/n, func(_, _ int, _ *bytes.Buffer) error { return p.Probe(context.Background(), ports.Queue) })
			table.measured(name, fmt.Sprintf("one call that does nothing, %d at once", n), m)
		}
		for _, batch := range []struct{ entries, times int }{{1, 4000}, {16, 2000}, {ports.MaxBatchEntries, 200}} {
			entries := workload.Entries(0, batch.entries, 1)[:batch.entries]
			m := callers(b, 1, batch.times, func(_, _ int, _ *bytes.Buffer) error {
				pending, err := p.Commit(context.Background(), ports.CommitBatch{Family: ports.Queue, Epoch: "bench", Through: uint64(batch.entries), Entries: entries})
				if err == nil {
					_, err = pending.Wait(context.Background())
				}
				return err
			})
			table.measured(name, fmt.Sprintf("commit of %d that does nothing, one at a time", batch.entries), m)
		}
	}
	if err := p.Stop(context.Background()); err != nil {
		b.Fatal(err)
	}
	if err := table.print(name); err != nil {
		b.Fatal(err)
	}
}
