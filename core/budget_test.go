package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"holdfast/ports"
)

// How a backend's slots are shared.

func TestSlotsGoToTheMostUrgentAndWithinAClassToTheFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(1)
		if err := b.take(t.Context(), ofRead); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []string
		wait := func(name string, u urgency) {
			go func() {
				if b.take(t.Context(), u) == nil {
					mu.Lock()
					order = append(order, name)
					mu.Unlock()
					b.give()
				}
			}()
			synctest.Wait()
		}
		wait("catch up", ofCatchUp)
		wait("head", ofHead)
		wait("head, later", ofHead)
		wait("read", ofRead)
		wait("catch up, later", ofCatchUp)
		wait("probe", ofProbe)
		b.give()
		synctest.Wait()
		if want := []string{"probe", "read", "head", "head, later", "catch up", "catch up, later"}; !slices.Equal(order, want) {
			t.Errorf("the order is %q, want %q", order, want)
		}
		if b.free != 1 {
			t.Errorf("%d slots are free in the end", b.free)
		}
	})
}

func TestCatchingUpNeverTakesTheLastSlot(t *testing.T) {
	t.Parallel()
	for slots, most := range map[int]int{1: 1, 2: 1, 3: 2, 8: 7} {
		synctest.Test(t, func(t *testing.T) {
			b := newBudget(slots)
			ctx, cancel := context.WithCancel(t.Context())
			var mu sync.Mutex
			got := 0
			for range slots + 2 {
				go func() {
					if b.take(ctx, ofCatchUp) == nil {
						mu.Lock()
						got++
						mu.Unlock()
					}
				}()
			}
			synctest.Wait()
			if got != most {
				t.Errorf("of %d slots catching up has %d, want %d", slots, got, most)
			}
			if slots > 1 {
				if err := b.take(ctx, ofHead); err != nil {
					t.Error(err)
				}
			}
			cancel()
			synctest.Wait()
		})
	}
}

func TestAWaiterThatGivesUpAtTheMomentOfItsTurnLosesNoSlot(t *testing.T) {
	t.Parallel()
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			b := newBudget(1)
			if err := b.take(t.Context(), ofHead); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			taken := make(chan bool, 1)
			go func() { taken <- b.take(ctx, ofRead) == nil }()
			synctest.Wait()
			var both sync.WaitGroup
			both.Go(cancel)
			both.Go(b.give)
			both.Wait()
			if <-taken {
				b.give()
			}
			if b.free != 1 || len(b.lines[ofRead]) != 0 {
				t.Errorf("%d slots are free, %d wait", b.free, len(b.lines[ofRead]))
			}
		})
	}
}

func TestWhoGivesUpDoesNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(2)
		for range 2 {
			if err := b.take(t.Context(), ofHead); err != nil {
				t.Fatal(err)
			}
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		later := make(chan error, 1)
		go func() { later <- b.take(t.Context(), ofCatchUp) }()
		if err := b.take(short, ofProbe); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it gives up with %v", err)
		}
		b.give()
		synctest.Wait()
		select {
		case err := <-later:
			t.Errorf("catching up has the last slot: %v", err)
		default:
		}
		b.give()
		if err := <-later; err != nil {
			t.Error(err)
		}
	})
}

func TestWithoutALimitNobodyWaits(t *testing.T) {
	t.Parallel()
	b := newBudget(0)
	for range 100 {
		if err := b.take(t.Context(), ofCatchUp); err != nil {
			t.Fatal(err)
		}
	}
	b.give()
	if n := b.lanes(); n != 1 {
		t.Errorf("it has %d lanes", n)
	}
	for slots, lanes := range map[int]int{1: 1, 2: 1, 3: 2, 10: 9} {
		if n := newBudget(slots).lanes(); n != lanes {
			t.Errorf("%d slots give %d lanes, want %d", slots, n, lanes)
		}
	}
}

func TestAStoreWithOneSlotThatIsBusyIsNotSuspect(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) {
		s.follows("mirror", func(m *mirror) { m.slots = 1 })
	}, func(t *testing.T, s *stage) {
		s.does(upsert("first", "Running"), Done)
		s.catchesUp("mirror", 5*time.Second)
		m := s.mirror("mirror")
		m.suffers(every(putFate{after: 3 * time.Second}))
		for i := range 60 {
			s.host.Begin(upsert(fmt.Sprint("k", i), "Running"))
			s.host.Begin(call(ports.UpsertManifest, `{"Manifest":{"Hash":"m%d"}}`, i))
			s.in(time.Second)
			for _, f := range s.backend("mirror").Followers {
				if f.Suspect || !mode(f.Phase).takes() {
					t.Fatalf("after %d s it answers one Put after the other, and is %+v", i+1, f)
				}
			}
		}
		m.suffers(nil)
		s.catchesUp("mirror", 30*time.Second)
		s.equal("mirror")
	})
}

// Whoever comes and gives up when, the slots in use never pass the limit, catching up leaves one, and all come back.
func TestSlotsAreNeitherLostNorGivenTwice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		slots := rapid.IntRange(1, 4).Draw(rt, "slots")
		type visit struct{ comes, holds, patience time.Duration }
		ms := rapid.Map(rapid.IntRange(0, 20), func(n int) time.Duration { return time.Duration(n) * time.Millisecond })
		visits := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) visit {
			return visit{ms.Draw(rt, "comes"), ms.Draw(rt, "holds"), ms.Draw(rt, "patience")}
		}), 1, 30).Draw(rt, "visits")
		classes := rapid.SliceOfN(rapid.IntRange(0, int(urgencies)-1), len(visits), len(visits)).Draw(rt, "classes")
		synctest.Test(t, func(t *testing.T) {
			b := newBudget(slots)
			var mu sync.Mutex
			in, lost := 0, 0
			var all sync.WaitGroup
			for i, v := range visits {
				all.Go(func() {
					<-time.After(v.comes)
					ctx, cancel := context.WithTimeout(t.Context(), v.patience)
					defer cancel()
					if b.take(ctx, urgency(classes[i])) != nil {
						return
					}
					mu.Lock()
					in++
					if in > slots {
						lost++
					}
					mu.Unlock()
					<-time.After(v.holds)
					mu.Lock()
					in--
					mu.Unlock()
					b.give()
				})
			}
			all.Wait()
			waiting := 0
			for _, line := range b.lines {
				waiting += len(line)
			}
			if lost > 0 || b.free != slots || waiting > 0 {
				rt.Fatalf("%d too many had a slot; in the end %d of %d are free and %d wait", lost, b.free, slots, waiting)
			}
		})
	})
}
