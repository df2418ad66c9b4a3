package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"

	"holdfast/adapters/process"
	"holdfast/adapters/sqlite"
	"holdfast/internal/workload"
	"holdfast/plugins/sdk"
	"holdfast/ports"
)

// The way to a plugin and back: this test binary, started again as a store that does nothing, or as that of SQLite.

// beIdle and beSQLite are the arguments with which this binary is such a plugin.
const (
	beIdle   = "be-idle"
	beSQLite = "be-sqlite"
)

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

// asPlugin makes this process a plugin, if it was started as one.
func asPlugin() {
	switch {
	case len(os.Args) < 2:
	case os.Args[1] == beIdle:
		sdk.Serve(idle{})
	case os.Args[1] == beSQLite:
		sdk.Serve(sqlite.New())
	}
}

const partPlugin = "Plugin"

// launched starts this binary as a plugin that is called once it is ready.
func launched(b *testing.B, as, kind string) *process.Process {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	p, err := process.New(process.Spec{Name: kind, Kind: kind, Path: self, Args: []string{as}, Config: ports.Configuration{Name: kind, DataDir: b.TempDir()}})
	if err != nil {
		b.Fatal(err)
	}
	p.Start()
	if err := p.Await(b.Context()); err != nil {
		b.Fatal(err)
	}
	return p
}

func ended(b *testing.B, p *process.Process) {
	b.Helper()
	if err := p.Stop(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkPlugin measures what the boundary between the processes costs.
func BenchmarkPlugin(b *testing.B) {
	b.ReportMetric(0, "ns/op")
	for range *rounds {
		launches(b)
		calls(b)
		batches(b)
	}
	restarts(b)
	if err := table.print(partPlugin); err != nil {
		b.Fatal(err)
	}
}

// launches is from nothing to the first answer that counts, with Describe and Configure, and to the end again.
func launches(b *testing.B) {
	for _, c := range []struct{ as, kind, what string }{{beIdle, "idle", "a store that does nothing"}, {beSQLite, "sqlite", "SQLite"}} {
		var p *process.Process
		var m measured
		for range 30 {
			one := callers(b, 1, 1, func(_, _ int, _ *bytes.Buffer) error {
				p = launched(b, c.as, c.kind)
				return nil
			})
			ended(b, p)
			m.times = append(m.times, one.times...)
		}
		m.rate = 1 / m.percentile(0.5).Seconds()
		table.measured(partPlugin, "launch to ready, "+c.what, m)
	}
}

// calls are the way there and back.
func calls(b *testing.B) {
	p := launched(b, beIdle, "idle")
	defer ended(b, p)
	for _, n := range []int{1, 64} {
		m := callers(b, n, 8000/n, func(_, _ int, _ *bytes.Buffer) error { return p.Probe(context.Background(), ports.Queue) })
		table.measured(partPlugin, fmt.Sprintf("one call that does nothing, %d at once", n), m)
	}
	for _, batch := range []struct{ entries, times int }{{1, 4000}, {16, 2000}, {ports.MaxBatchEntries, 200}, {thousand, 100}} {
		entries := workload.Entries(0, batch.entries, 1)[:batch.entries]
		m := callers(b, 1, batch.times, func(_, _ int, _ *bytes.Buffer) error {
			pending, err := p.Commit(context.Background(), ports.CommitBatch{Family: ports.Queue, Epoch: "bench", Through: uint64(batch.entries), Entries: entries})
			if err == nil {
				_, err = pending.Wait(context.Background())
			}
			return err
		})
		table.measured(partPlugin, fmt.Sprintf("commit of %d that does nothing, one at a time", batch.entries), m)
	}
}

// thousand is the size of the batch that is named in promises; the host itself sends at most ports.MaxBatchEntries.
const thousand = 1000

// batches are a thousand writes into SQLite: here, and behind the boundary.
func batches(b *testing.B) {
	here := sqlite.New()
	if err := here.Configure(b.Context(), ports.Configuration{Name: "here", DataDir: b.TempDir()}); err != nil {
		b.Fatal(err)
	}
	defer here.Close()
	there := launched(b, beSQLite, "sqlite")
	defer ended(b, there)
	base := commits(b, here)
	table.measured(partPlugin, "commit of 1000 into SQLite, in this process", base)
	m := commits(b, there)
	table.measured(partPlugin, "commit of 1000 into SQLite, in a plugin", m).of("in this process", base.rate)
}

func commits(b *testing.B, s ports.LocalStore) measured {
	b.Helper()
	const host, epoch, times = "11111111-2222-4333-8444-555555555555", "bench", 20
	if _, err := s.Stand(b.Context(), host); err != nil {
		b.Fatal(err)
	}
	if err := s.Open(b.Context(), ports.Opening{HostID: host, Next: "n", Epochs: map[ports.Family]ports.Epoch{ports.Queue: {ID: epoch, From: 1}}}); err != nil {
		b.Fatal(err)
	}
	entries := workload.Entries(0, 1+times*thousand/workload.PerItem, 1)
	return callers(b, 1, times, func(_, i int, _ *bytes.Buffer) error {
		from := uint64(i * thousand)
		pending, err := s.Commit(context.Background(), ports.CommitBatch{Family: ports.Queue, Epoch: epoch, After: from, Through: from + thousand, Entries: entries[from : from+thousand]})
		if err == nil {
			_, err = pending.Wait(context.Background())
		}
		return err
	})
}
