package core

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"holdfast/ports"
)

// crash lets the host end in the middle of whatever it does, and starts another one on what is on the disks at that moment.
func (s *stage) crash() {
	s.t.Helper()
	synctest.Wait()
	state, journals, store := s.state.copied(), map[ports.Family]*memoryJournal{}, newMemory()
	for f, j := range s.journals {
		journals[f] = j.copied()
	}
	s.store.mu.Lock()
	store.disk, store.fate, store.back = s.store.disk.copied(), s.store.fate, s.store.back
	s.store.mu.Unlock()
	s.end()
	s.store.end()
	s.state, s.journals, s.store = state, journals, store
	for _, j := range s.journals {
		j.reopen(0)
	}
	s.begin()
}

// A key that the store refuses for a while, retries at any moment, writes of the key all the while, deaths of the store and
// of the host: in the end nothing is set aside, nothing is lost, and every key has its writes in their order.
func TestRetriesAmongNewWritesAndCrashesKeepTheOrderOfAKey(t *testing.T) {
	t.Parallel()
	for seed := range 80 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(uint64(seed), 3))
			keys := []string{"k1", "k2", "k3"}
			acts := rapid.SliceOfN(ofKeys(keys...), 100, 100).Example(1000 + seed)
			playWith(t, func(s *stage) {
				s.store.back = 100 * time.Millisecond
				s.state.slow = 10 * time.Millisecond
			}, func(t *testing.T, s *stage) {
				fates := rand.New(rand.NewPCG(uint64(seed), 4)) // used under the store's lock
				bad := ""
				s.store.suffers(func(b *ports.CommitBatch) fate {
					f := fate{after: time.Duration(fates.IntN(30)) * time.Millisecond}
					f.kind = []fateKind{dies, loses, takes}[min(fates.IntN(20), 2)]
					if slices.ContainsFunc(b.Entries, func(e ports.Entry) bool { return e.Key == bad }) {
						f.kind, f.err = refuses, neverTakes.err
					}
					return f
				})
				for _, a := range acts {
					c := call(ports.Action(a.Action), "%s", a.Settings)
					c.Source.Import = a.Again
					s.host.Begin(c)
					switch random.IntN(12) {
					case 0:
						s.store.mu.Lock()
						bad = rapid.SampledFrom(append(keys, "")).Example(random.IntN(1000))
						s.store.mu.Unlock()
					case 1, 2:
						for _, f := range ports.Families {
							if _, err := s.host.RetryAside(f, keys[random.IntN(len(keys))]); err != nil && ports.CodeOf(err) != ports.NotFound {
								t.Error(err)
							}
						}
					case 3:
						s.crash()
					}
					if random.IntN(2) == 0 {
						s.in(time.Duration(random.IntN(300)) * time.Millisecond)
					}
				}
				s.settle()
				got := s.store.look()
				if differ := diff(whole(inOrder(t, s)), whole(got)); len(differ) > 0 {
					t.Errorf("history is not that of the journal:\n%s", differ)
				}
				inTurn(t, got)
			})
		})
	}
}
