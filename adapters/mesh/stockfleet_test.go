package mesh_test

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"holdfast/adapters/mesh/stock"
	"holdfast/ports"
)

// Stock beacons, half with sockets and half polling: each work is done at most once, each caller is told what became of its
// own, no beacon is pushed more than it takes, and works that nobody reports do not keep their slots.
func TestStockBeaconsDoEachWorkOnce(t *testing.T) {
	t.Parallel()
	config, works := stock.FleetConfig{Beacons: 20}, 400
	if os.Getenv("HOLDFAST_SOAK") != "" {
		config, works = stock.FleetConfig{Beacons: 200, PollInterval: 200 * time.Millisecond}, 20_000
	}
	hub, url := serveHub(t)
	config.ServerURL = url
	fleet := stock.NewFleet(config)
	t.Cleanup(fleet.Kill)
	ctx := limited(t)
	if err := fleet.Start(ctx); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	wrong := map[stock.Fate]int{}
	var all sync.WaitGroup
	for n := range works {
		all.Go(func() {
			fate := stock.FateOf(n)
			patience := 5 * time.Minute
			if fate == stock.FateNever || fate == stock.FateLate {
				patience = 200 * time.Millisecond
			}
			ctx, end := context.WithTimeout(context.Background(), patience)
			defer end()
			answer, err := hub.Dispatch(ctx, ports.Work{Capability: fleet.Capability(n), Action: "Do", Settings: fleet.Settings(n, fate)})
			if !became(fate, answer, err) {
				mu.Lock()
				defer mu.Unlock()
				if wrong[fate]++; wrong[fate] < 5 {
					t.Errorf("work %d, %s: %+v, %v", n, fate, answer, err)
				}
			}
		})
	}
	all.Wait()
	for n, times := range fleet.Done() {
		if times != 1 {
			t.Errorf("work %d was done %d times", n, times)
		}
	}
	for _, b := range fleet.Beacons {
		if s := b.State(); s.Dropped > 0 {
			t.Errorf("a beacon was pushed %d works beyond its slots", s.Dropped)
		}
	}
}

// became says whether an answer is that of a fate.
func became(fate stock.Fate, answer ports.WorkAnswer, err error) bool {
	switch fate {
	case stock.FateDone, stock.FateTwice:
		return err == nil && answer.Failure == "" && len(answer.Outputs) > 0
	case stock.FateFail:
		return err == nil && answer.Failure != ""
	case stock.FateLate: // a caller that is slow to give up has its report yet
		return err == nil || ports.CodeOf(err) == ports.Deadline || ports.CodeOf(err) == ports.Unavailable
	default:
		return ports.CodeOf(err) == ports.Deadline || ports.CodeOf(err) == ports.Unavailable
	}
}
