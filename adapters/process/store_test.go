package process

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"holdfast/plugins/sdk"
	"holdfast/ports"
)

// memory is a backend that keeps one row and has habits too.
type memory struct {
	habits []string
	mu     sync.Mutex
	row    ports.Row
	name   string
}

func (m *memory) Configure(_ context.Context, c ports.Configuration) error {
	if slices.Contains(m.habits, "refuse") {
		return ports.InField(ports.Invalid, "path", "lies outside the data directory")
	}
	if slices.Contains(m.habits, "configure-hangs") {
		select {}
	}
	if slices.Contains(m.habits, "mortal") {
		signal.Reset(os.Interrupt)
	}
	m.name = c.Name
	return nil
}

func (m *memory) Describe(context.Context) (ports.Description, error) {
	if slices.Contains(m.habits, "describe-hangs") {
		select {}
	}
	if slices.Contains(m.habits, "long-name") {
		return ports.Description{Kind: "memory", Version: strings.Repeat("v", 5000)}, nil
	}
	return ports.Description{Kind: "memory", Version: "1.0", Summary: "Keeps one row.", Families: ports.Families}, nil
}

func (m *memory) Probe(context.Context, ports.Family) error {
	if slices.Contains(m.habits, "panic") {
		panic("the tape is torn")
	}
	return nil
}

func (m *memory) Position(context.Context, ports.Family) (ports.Position, error) {
	return ports.Position{StoreID: m.name, Epoch: strings.Join(os.Environ(), "\n")}, nil
}

func (m *memory) Put(_ context.Context, b ports.Batch) (ports.Applied, error) {
	for _, r := range b.Rows {
		switch r.Key {
		case "die":
			fmt.Fprintln(os.Stderr, "about to die")
			os.Exit(7)
		case "die loudly":
			go panic("the reels fell off")
			select {}
		case "eat":
			eat()
		case "child eats":
			_ = exec.Command(os.Args[0], asPlugin, "eater").Run()
		case "flood": // past what the SDK does with os.Stdout
			_, _ = syscall.Write(1, bytes.Repeat([]byte{'o'}, 1<<20))
			_, _ = syscall.Write(2, bytes.Repeat([]byte{'e'}, 1<<20))
		case "slow":
			sdk.Logger().Info("the slow write has begun")
			<-time.After(500 * time.Millisecond)
		case "print":
			fmt.Println(strings.Repeat("p", 1<<20))
			fmt.Println("printed")
		case "log":
			sdk.Logger().Warn("tape is nearly full", "left", 3)
		}
		m.mu.Lock()
		m.row = r
		m.mu.Unlock()
	}
	return ports.Applied{Done: len(b.Rows)}, nil
}

func (m *memory) Item(_ context.Context, key string) (ports.Row, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if key == "big" {
		sdk.Logger().Info("the big read has begun")
	}
	if m.row.Key != key {
		return ports.Row{}, ports.Errorf(ports.NotFound, "memory: item", "there is no %q", key)
	}
	return m.row, nil
}

func (m *memory) Items(context.Context, ports.ItemQuery) (ports.Page, error) {
	return ports.Page{}, nil
}

func (m *memory) Stand(context.Context, string) (ports.Standing, error) {
	return ports.Standing{StoreID: m.name}, nil
}

func (m *memory) Open(context.Context, ports.Opening) error { return nil }

func (m *memory) Events(context.Context, ports.EventQuery) (ports.Page, error) {
	return ports.Page{}, nil
}

func (m *memory) Attempts(context.Context, ports.AttemptQuery) (ports.Page, error) {
	return ports.Page{}, nil
}

func (m *memory) Manifest(context.Context, string) (ports.Row, error) { return ports.Row{}, nil }

func (m *memory) Manifests(context.Context, ports.ManifestQuery) (ports.Page, error) {
	return ports.Page{}, nil
}

func (m *memory) Commit(_ context.Context, b ports.CommitBatch) (ports.Pending, error) {
	decided := make(decided, len(b.Entries))
	for i, e := range b.Entries {
		decided[i] = ports.Decision{Seq: e.Seq, Outcome: ports.Stored}
	}
	return decided, nil
}

// Changes tells the one row, as if every change were in it.
func (m *memory) Changes(_ context.Context, q ports.ChangesQuery) (ports.ChangePage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := ports.Position{StoreID: m.name, Seqs: map[string]uint64{m.row.Change.Host: m.row.Change.Seq}}
	if q.After.Covers(at) {
		return ports.ChangePage{Through: at, End: &at}, nil
	}
	return ports.ChangePage{Rows: []ports.Row{m.row}, Through: at, End: &at}, nil
}

type decided []ports.Decision

func (d decided) Wait(context.Context) ([]ports.Decision, error) { return d, nil }

func (m *memory) Drain(ctx context.Context) error {
	if slices.Contains(m.habits, "drain-hangs") {
		sdk.Logger().Info("draining")
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (m *memory) Close() error { return nil }
