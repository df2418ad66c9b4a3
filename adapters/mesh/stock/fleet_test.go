package stock

import (
	"sync"
	"testing"
)

// The works that leave their beacon busy come last: a stock hub gives their slots away while the beacons still need them, and
// a stock beacon forgets what it is pushed then.
func TestAFleetDoesWhatItsWorksSay(t *testing.T) {
	t.Parallel()
	hub, url := open(t, HubConfig{NoLocalStore: true})
	fleet := NewFleet(FleetConfig{ServerURL: url})
	t.Cleanup(fleet.Kill)
	if err := fleet.Start(within(t)); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	told := map[Fate]map[bool]int{FateDone: {}, FateTwice: {}, FateFail: {}, FateNever: {}, FateLate: {}}
	send := func(timeout int64, fates ...Fate) {
		var all sync.WaitGroup
		for n := range 100 {
			for _, fate := range fates {
				if FateOf(n) != fate {
					continue
				}
				all.Go(func() {
					o := hub.Dispatch(Spec{
						Capability: fleet.Capability(n), Action: "Do", Settings: loose(fleet.Settings(n, fate)), TimeoutMs: timeout,
					})
					mu.Lock()
					defer mu.Unlock()
					told[fate][o.Err == nil]++
				})
			}
		}
		all.Wait()
	}
	send(60_000, FateDone, FateTwice, FateFail)
	send(100, FateNever, FateLate)
	for fate, well := range map[Fate]bool{FateDone: true, FateTwice: true, FateFail: false, FateNever: false, FateLate: false} {
		if told[fate][well] == 0 || told[fate][!well] != 0 {
			t.Errorf("%s: %v", fate, told[fate])
		}
	}
	for n, times := range fleet.Done() {
		if times != 1 {
			t.Errorf("work %d was done %d times", n, times)
		}
	}
	pollers := 0
	for n, b := range fleet.Beacons {
		if b.State().Taken > 0 && n%2 == 1 {
			pollers++
		}
	}
	if pollers == 0 {
		t.Error("no poller got work")
	}
}
