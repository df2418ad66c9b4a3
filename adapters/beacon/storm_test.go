package beacon

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/adapters/mesh/stock"
	"holdfast/core"
	"holdfast/ports"
)

// Random runs over the whole: callers write and read, and a beacon has one trouble after the other. The time in them is not the
// wall's: what a caller waits for is what the design lets him wait for, however busy the machine is.

var stormSeed = flag.Uint64("storm", 0, "the seed of a storm that is to be run again")

// storms is how many runs each trouble gets.
func storms() int {
	switch {
	case *stormSeed != 0:
		return 1
	case os.Getenv("HOLDFAST_SOAK") != "":
		return 100
	}
	return 10
}

// tally is what was counted in all runs of a trouble.
type tally struct {
	runs, writes, reads, strays, ids, told int
	longest, latest, back                  time.Duration
}

func TestWhateverTroubleABeaconHasNothingIsLostAndNobodyWaits(t *testing.T) {
	t.Parallel()
	for _, name := range slices.Sorted(maps.Keys(troubles)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sum tally
			for range storms() {
				seed := *stormSeed
				if seed == 0 {
					seed = rand.Uint64()
				}
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { storm(t, seed, name, &sum) })
				})
			}
			t.Logf("%d runs, %d writes and %d reads, longest call %s; told of %d signs, the latest after %s; everything was there again %s after the last trouble at most; %d ids, %d strays",
				sum.runs, sum.writes, sum.reads, sum.longest, sum.told, sum.latest, sum.back, sum.ids, sum.strays)
		})
	}
}

// storm is one run.
func storm(t *testing.T, seed uint64, name string, sum *tally) {
	d, net := newDice(seed), newLAN()
	hub := serveHubOn(t, net)
	s := &stage{t: t, hub: hub, store: stock.NewPersistence(), settle: settled}
	seen := newWitness(hub, s.store)
	out := &lookout{t: t, hub: hub, host: func() *core.Host { return s.host }, evidence: map[ports.Family]*sign{}, well: map[ports.Family]time.Time{}}
	s.asked = out.asked
	players := newTroupe(t, stock.BeaconConfig{
		ServerURL: "http://127.0.0.1:1", Dial: net.Dial, Name: "archive", MaxConcurrent: []int{1, 2, 4, 4, 4, 8}[d.n(6)], Actions: seen.actions(),
		ReconnectInterval: d.between(50*time.Millisecond, 2*time.Second),
	})
	t.Cleanup(players.end)
	players.enter(t.Context())
	s.start(seen)
	callers := newCrowd(t, s.host, d)
	ctx, end := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() { out.watch(ctx) })
	crowded, leave := context.WithCancel(t.Context())
	crowd := callers.come(crowded, 4, d.chance(25))

	var bad sync.WaitGroup
	other := slices.Sorted(maps.Keys(troubles))[d.n(len(troubles))]
	for _, kind := range []string{name, other} {
		bad.Go(func() {
			pause(ctx, d.between(0, 2*time.Second))
			for range 1 + d.n(3) {
				troubles[kind](ctx, players, d)
				pause(ctx, d.between(0, 3*time.Second))
			}
		})
	}
	bad.Wait()
	players.calm(ctx)
	pause(ctx, d.between(0, 2*time.Second))
	leave()
	crowd.Wait()
	calm := time.Now()
	s.await(func(w core.FollowerStatus) bool { return w.Phase == "ready" && w.Behind == 0 })
	back := time.Since(calm)
	s.await(func(w core.FollowerStatus) bool { return w.Phase == "ready" && w.Behind == 0 && w.InDoubt == 0 })
	end()
	watching.Wait()

	here, there := localRecords(t, s.local), seen.holds(t)
	for name := range maps.Keys(here) {
		if !maps.Equal(here[name], there[name]) {
			t.Errorf("%s is %v at the beacon, want %v", name, there[name], here[name])
		}
	}
	if len(here) != len(there) {
		t.Errorf("the beacon has %d records, the local store %d", len(there), len(here))
	}
	for _, lost := range callers.lost(there) {
		t.Errorf("lost: %s", lost)
	}
	callers.judge()
	for _, o := range seen.back(callers.written) {
		t.Error(o)
	}
	if seen.waited == 0 && len(callers.written) > 0 {
		t.Error("every write at the beacon is taken for a stray one")
	}
	if seen.doubles > 0 {
		t.Errorf("%d events were sent again though they were there", seen.doubles)
	}
	if callers.longest > 2*time.Second {
		t.Errorf("a caller waited for %s", callers.longest)
	}
	if t.Failed() {
		t.Logf("run it again with -args -storm %d", seed)
	}
	sum.runs++
	sum.writes += len(callers.written)
	sum.reads += len(callers.looks)
	sum.strays += seen.strays
	sum.told += out.told
	sum.ids = max(sum.ids, len(players.ids))
	sum.longest, sum.latest, sum.back = max(sum.longest, callers.longest), max(sum.latest, out.latest), max(sum.back, back)
}
