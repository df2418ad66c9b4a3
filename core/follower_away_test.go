package core

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/ports"
)

// Followers that were away, whose store is another one, or that never were there.

// many writes n items with an event each.
func (s *stage) many(n int, prefix string) {
	s.t.Helper()
	var last *Promise
	for i := range n {
		key := fmt.Sprintf("%s%04d", prefix, i)
		s.host.Begin(upsert(key, "Pending"))
		last = s.host.Begin(call(ports.AppendEvent, `{"Event":{"WorkItemHash":%q,"EventType":"e"}}`, key))
		if i%500 == 499 {
			last.Wait(s.t.Context())
		}
	}
	if a := last.Wait(s.t.Context()); a.Situation != Done {
		s.t.Errorf("the last write is answered %s", a.AppendJSON(nil))
	}
}

// with is a stage with a follower m1 in front of the route.
func withFollower(edit func(m *mirror)) func(s *stage) {
	return func(s *stage) {
		s.revive = true
		m := s.follows("m1")
		if edit != nil {
			edit(m)
		}
		s.config.Route = []string{"m1", "local"}
	}
}

func TestAFollowerWhoseStoreIsNotWhatItWasIsEqualInTheEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		happens func(s *stage, m *mirror, old *mirrorDisk)
		within  time.Duration
	}{
		"emptied while dead": {func(_ *stage, m *mirror, _ *mirrorDisk) {
			m.kill(func(d *mirrorDisk) *mirrorDisk { return newMirrorDisk(d.id) })
		}, 30 * time.Second},
		"made anew while dead": {func(_ *stage, m *mirror, _ *mirrorDisk) {
			m.kill(func(*mirrorDisk) *mirrorDisk { return newMirrorDisk("m1-2") })
		}, 30 * time.Second},
		"an older copy while dead": {func(_ *stage, m *mirror, old *mirrorDisk) {
			m.kill(func(*mirrorDisk) *mirrorDisk { return old })
		}, 30 * time.Second},
		"emptied while it runs": {func(_ *stage, m *mirror, _ *mirrorDisk) {
			m.becomes(newMirrorDisk("m1-1"))
		}, 30 * time.Second},
		"made anew while it runs": {func(_ *stage, m *mirror, _ *mirrorDisk) {
			m.becomes(newMirrorDisk("m1-2"))
		}, 30 * time.Second},
		"an older copy while it runs": {func(_ *stage, m *mirror, old *mirrorDisk) {
			m.becomes(old)
		}, 30 * time.Second},
		"an older copy under another id": {func(_ *stage, m *mirror, old *mirrorDisk) {
			old.id = "m1-3"
			m.kill(func(*mirrorDisk) *mirrorDisk { return old })
		}, 30 * time.Second},
		"emptied while the host is down": {func(s *stage, m *mirror, _ *mirrorDisk) {
			s.end()
			m.becomes(newMirrorDisk("m1-1"))
			s.restarts()
		}, 30 * time.Second},
		"away for thousands of changes": {func(s *stage, m *mirror, _ *mirrorDisk) {
			m.change(func(m *mirror) { m.back = 0 })
			m.kill(nil)
			s.many(250*rounds(100), "gone") // and as many events
			m.start()
		}, time.Minute},
		"away over a start of the host": {func(s *stage, m *mirror, _ *mirrorDisk) {
			m.change(func(m *mirror) { m.back = 0 })
			m.kill(nil)
			s.many(100, "gone")
			s.again()
			s.many(100, "still gone")
			m.start()
		}, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			playWith(t, withFollower(nil), func(t *testing.T, s *stage) {
				m := s.mirror("m1")
				s.many(50, "a")
				s.does(call(ports.UpsertManifest, `{"Manifest":{"Hash":"run1","Status":"Running"}}`), Done)
				s.in(time.Second)
				old := m.look()
				s.many(50, "b")
				s.does(patch("a0007", "Complete"), Done)
				s.does(call(ports.RemoveManifest, `{"RunHash":"run1"}`), Done)
				s.catchesUp("m1", 10*time.Second)
				c.happens(s, m, old)
				s.in(sign) // until somebody looks
				s.does(patch("a0008", "Complete"), Done)
				s.in(5 * time.Second)
				s.catchesUp("m1", c.within)
				s.equal("m1")
				s.answeredBy("a0007", "m1")
				s.status("a0008", "Complete")
			})
		})
	}
}

// restarts begins the host again after end.
func (s *stage) restarts() {
	s.t.Helper()
	for _, j := range s.journals {
		j.reopen(0)
	}
	s.begin()
	s.in(0)
}

func TestAFollowerThatHoldsALostHistoryIsCopiedAgain(t *testing.T) {
	t.Parallel()
	playWith(t, withFollower(nil), func(t *testing.T, s *stage) {
		s.many(20, "a")
		s.catchesUp("m1", 10*time.Second)
		s.in(5 * time.Second)
		old, state, journals := s.store.look(), s.state.copied(), map[ports.Family]*memoryJournal{}
		for f, j := range s.journals {
			journals[f] = j.copied()
		}
		s.does(patch("a0003", "Lost"), Done)
		s.catchesUp("m1", 10*time.Second)
		s.end()
		s.state, s.journals = state, journals
		s.store.kill(func(d *disk) *disk {
			d.annals.undo(ports.Queue, s.state.who.ID, s.journals[ports.Queue].Bounds().Head)
			return old
		})
		s.restarts()
		s.in(time.Second)
		s.does(patch("a0004", "Complete"), Done)
		s.in(sign)
		s.catchesUp("m1", time.Minute)
		s.equal("m1")
		s.status("a0003", "Pending")
	})
}

func TestTenFollowersThatNeverWereThereHoldNothingUp(t *testing.T) {
	t.Parallel()
	trimmed := map[int]uint64{}
	for _, n := range []int{0, 10} {
		playWith(t, func(s *stage) {
			for i := range n {
				name := fmt.Sprint("m", i)
				s.follows(name, func(m *mirror) { m.end() })
				s.config.Route = append(s.config.Route, name)
			}
			s.config.Route = append(s.config.Route, "local")
		}, func(t *testing.T, s *stage) {
			s.many(500, "a")
			for range 20 {
				began := time.Now()
				s.does(patch("a0001", fmt.Sprint(began.UnixNano())), Done)
				s.status("a0001", fmt.Sprint(began.UnixNano()))
				if took := time.Since(began); took > 50*time.Millisecond {
					t.Errorf("with %d followers a write and a read take %s", n, took)
				}
				s.in(time.Minute)
			}
			trimmed[n] = s.journals[ports.Queue].Bounds().First
			for i := range n {
				if f := s.follower(fmt.Sprint("m", i), ports.Queue); f.State != string(waiting) || f.Behind == 0 || f.Unsettled+f.InDoubt > 0 {
					t.Errorf("it is %+v", f)
				}
			}
			if keys := s.state.following.unsettled; len(keys) > 0 {
				t.Errorf("unsettled keys are kept: %v", keys)
			}
		})
	}
	if trimmed[0] < 2 || trimmed[10] != trimmed[0] {
		t.Errorf("the journal begins at %d with the followers, at %d without", trimmed[10], trimmed[0])
	}
}

func TestTwoBackendsWithOneStoreAreRefused(t *testing.T) {
	t.Parallel()
	for name, ids := range map[string][2]string{"two followers": {"one", "one"}, "a follower and the local store": {"store-1", "other"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			playWith(t, func(s *stage) {
				for i, id := range ids {
					s.follows(mirrorName(i), func(m *mirror) { m.disk.id = id })
				}
			}, func(t *testing.T, s *stage) {
				s.does(upsert("a", "Pending"), Done)
				s.in(10 * time.Second)
				refused := 0
				for i := range ids {
					b := s.backend(mirrorName(i))
					if b.State == string(needsOne) {
						refused++
						if b.Remedy == "" || !strings.Contains(b.Detail, ids[0]) {
							t.Errorf("it does not say what is wrong: %+v", b)
						}
					} else {
						s.equal(mirrorName(i))
					}
				}
				if refused != 1 {
					t.Errorf("%d backends are refused", refused)
				}
				s.status("a", "Pending")
			})
		})
	}
}

func TestAFollowerInNoRouteFollowsAndAnswersNothing(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) { s.follows("m1") }, func(t *testing.T, s *stage) {
		s.many(50, "a")
		s.catchesUp("m1", 10*time.Second)
		s.equal("m1")
		s.answeredBy("a0001", "local")
		if m := s.mirror("m1"); m.looks != 0 {
			t.Errorf("it was read %d times", m.looks)
		}
	})
}

func TestTheFirstOfTheRouteThatHasEverythingAnswers(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) {
		s.revive = true
		s.follows("m1")
		s.follows("m2")
		s.config.Route = []string{"m1", "m2", "local"}
	}, func(t *testing.T, s *stage) {
		s.does(upsert("a", "Pending"), Done)
		s.in(time.Second)
		s.answeredBy("a", "m1")
		s.mirror("m1").change(func(m *mirror) { m.delays = time.Minute })
		began := time.Now()
		s.answeredBy("a", "m2")
		if took := time.Since(began); took > followRead+50*time.Millisecond {
			t.Errorf("the second was asked after %s", took)
		}
		s.mirror("m2").suffers(every(putFate{kind: putSilent}))
		s.does(patch("a", "Running"), Done)
		if a := s.host.Item(t.Context(), "a"); a.Backend == "m2" || a.Stale {
			t.Errorf("it is answered %s", a.AppendJSON(nil))
		}
		s.status("a", "Running")
	})
}

func TestAFollowerAnswersForALocalStoreThatIsAway(t *testing.T) {
	t.Parallel()
	playWith(t, withFollower(nil), func(t *testing.T, s *stage) {
		s.does(upsert("a", "Pending"), Done)
		s.does(upsert("b", "Pending"), Done)
		s.catchesUp("m1", 5*time.Second)
		s.store.mu.Lock()
		s.store.back = 0
		s.store.mu.Unlock()
		s.store.kill(nil)
		s.in(time.Second)
		s.does(patch("b", "Running"), Deferred)
		s.answeredBy("a", "m1")
		a := s.host.Item(t.Context(), "b")
		if !a.Stale || a.Situation != Done || !strings.Contains(string(a.Value), "Pending") {
			t.Errorf("what is not decided yet is answered %s", a.AppendJSON(nil))
		}
		if list := s.host.Items(t.Context(), ports.ItemQuery{}); !list.Stale {
			t.Errorf("the list is answered %s", list.AppendJSON(nil))
		}
		s.store.start()
		s.in(sign)
		s.status("b", "Running")
		s.catchesUp("m1", 10*time.Second)
		s.equal("m1")
	})
}

func TestABackendThatKeepsOneFamilyIsLeftAloneWithTheOther(t *testing.T) {
	t.Parallel()
	playWith(t, withFollower(func(m *mirror) { m.families = []ports.Family{ports.Queue} }), func(t *testing.T, s *stage) {
		s.many(10, "a")
		s.does(call(ports.UpsertManifest, `{"Manifest":{"Hash":"run1","Status":"Running"}}`), Done)
		s.in(10 * time.Second)
		if f := s.follower("m1", ports.Manifest); f.State != "unassigned" || f.Behind != 0 || f.Remedy != "" {
			t.Errorf("the family that it does not keep is %+v", f)
		}
		if b := s.backend("m1"); b.State != string(ready) {
			t.Errorf("the backend is %+v", b)
		}
		s.answeredBy("a0001", "m1")
		if a := s.host.Manifest(t.Context(), "run1"); a.Backend != "local" || a.Situation != Done || a.Stale {
			t.Errorf("the manifest is answered %s", a.AppendJSON(nil))
		}
		for _, b := range s.mirror("m1").look().log {
			if b.Family != ports.Queue {
				t.Errorf("it was put %+v", b)
			}
		}
	})
}

func TestABackendThatDoesNotSayWhereItIsIsTold(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) { s.follows("mirror") }, func(t *testing.T, s *stage) {
		s.does(upsert("a", "Pending"), Done)
		s.catchesUp("mirror", 5*time.Second)
		m := s.mirror("mirror")
		m.change(func(m *mirror) { m.lost = true })
		m.kill(nil)
		s.in(5 * time.Second)
		if b := s.host.Status().Backends[1]; b.State != string(opening) || !strings.Contains(b.Detail, "where its store is") {
			t.Errorf("it is told as %+v", b)
		}
		m.change(func(m *mirror) { m.lost = false })
		s.in(openDeadline + 5*time.Second)
		s.catchesUp("mirror", 5*time.Second)
		if b := s.host.Status().Backends[1]; b.Detail != "" {
			t.Errorf("afterwards it is told as %+v", b)
		}
	})
}
