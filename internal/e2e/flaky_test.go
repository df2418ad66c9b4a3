package e2e_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"holdfast/internal/e2e"
	"holdfast/ports"
)

// flaky is a local store whose plugin dies again and again: before a batch took effect, after it did but before the answer,
// or so that the answer never comes.
type flaky struct{ ports.LocalStore }

var errDied = ports.Errorf(ports.BackendGone, "flaky: commit", "the plugin died")

func (s flaky) Commit(ctx context.Context, b ports.CommitBatch) (ports.Pending, error) {
	fate := rand.IntN(300)
	if fate == 0 {
		return nil, errDied
	}
	pending, err := s.LocalStore.Commit(ctx, b)
	if err != nil {
		return nil, err
	}
	switch fate {
	case 1:
		return dead{}, nil
	case 2:
		return hung{}, nil
	}
	return pending, nil
}

type dead struct{}

func (dead) Wait(context.Context) ([]ports.Decision, error) { return nil, errDied }

type hung struct{}

func (hung) Wait(ctx context.Context) ([]ports.Decision, error) {
	select {
	case <-ctx.Done():
		return nil, ports.Wrap(ports.Deadline, "flaky: commit", ctx.Err())
	case <-time.After(100 * time.Millisecond):
		return nil, errDied
	}
}

func TestAStoreThatDiesAgainAndAgainLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, store ports.LocalStore) {
		w := e2e.StartWorkload(t, within(t, flaky{store}), 5*time.Millisecond)
		<-time.After(4 * time.Second)
		w.End()
		w.Client.Settle(t)
		w.Check()
		t.Logf("%d writes, %d of them deferred, slowest answer %s", w.Writes, w.Deferred, w.Slowest.Round(time.Millisecond))
		if w.Slowest > e2e.CallerLimit {
			t.Errorf("a caller waited %s", w.Slowest)
		}
		for _, f := range w.Failures {
			t.Errorf("a write was not acknowledged: %s", f)
		}
	})
}
