package core

import (
	"testing"
	"time"

	"holdfast/ports"
)

// Who answers a read while backends, and the local store first of all, are slow or away.

func TestAMissAtAFollowerIsAskedOfTheLocalStore(t *testing.T) {
	t.Parallel()
	routed(t, func(t *testing.T, s *stage, first *mirror) {
		row, _ := first.row(ports.KindItem, "k", "", 0)
		first.lacks(row)
		s.asks("k", "local", false, 0)
		miss := func(what, backend string) {
			t.Helper()
			began := time.Now()
			a := s.host.Item(t.Context(), "nobody")
			if took := time.Since(began); a.Situation != NotFound || a.Stale || a.Backend != backend || took >= 2*time.Second {
				t.Errorf("%s: in %s a miss is answered %s", what, took, a.AppendJSON(nil))
			}
		}
		miss("all is well", "local")
		s.store.mu.Lock()
		s.store.mute = true // nobody knows that yet
		s.store.mu.Unlock()
		miss("the local store is mute", "first")
		s.store.mu.Lock()
		s.store.mute, s.store.back = false, 0
		s.store.mu.Unlock()
		s.store.kill(nil)
		s.in(time.Second)
		miss("the local store is away", "first")
	})
}

func TestWithoutTheLocalStoreAFollowerAnswersFreshOrSaysThatItIsStale(t *testing.T) {
	t.Parallel()
	routed(t, func(t *testing.T, s *stage, first *mirror) {
		s.store.mu.Lock()
		s.store.back = 0
		s.store.mu.Unlock()
		s.store.kill(nil)
		s.in(time.Second)
		s.asks("k", "first", false, 0)
		s.lists("first", 0)
		s.does(patch("k", "Complete"), Deferred)
		if a := s.asks("k", "first", true, freshWait); string(a.Value) != `{"WorkItemHash":"k","Status":"Running"}` {
			t.Errorf("it reads %s", a.Value)
		}
		s.asks("other", "first", false, 0)
		first.change(func(m *mirror) { m.back = 0 })
		first.kill(nil)
		s.in(time.Second)
		s.asks("k", "second", true, freshWait)
		s.asks("other", "second", false, 0)
		s.mirror("second").change(func(m *mirror) { m.back = 0 })
		s.mirror("second").kill(nil)
		for want, a := range map[string]Answer{
			`"WorkItem":null}`: s.host.Item(t.Context(), "k"), `"WorkItems":[]}`: s.host.Items(t.Context(), ports.ItemQuery{}),
			`"Events":[]}`: s.host.Events(t.Context(), ports.EventQuery{Key: "k"}), `"Manifest":null}`: s.host.Manifest(t.Context(), "m"),
		} {
			text := string(a.AppendJSON(nil))
			if a.HTTPStatus() != 503 || len(text) < len(want) || text[len(text)-len(want):] != want {
				t.Errorf("without anybody it is answered %s", text)
			}
		}
	})
}

func TestAHostThatStartsWithoutItsLocalStoreReadsFromAFollower(t *testing.T) {
	t.Parallel()
	routed(t, func(t *testing.T, s *stage, first *mirror) {
		s.store.mu.Lock()
		s.store.back = 0
		s.store.mu.Unlock()
		s.store.kill(nil)
		s.again()
		s.in(5 * time.Second)
		s.asks("k", "first", true, freshWait)
		if a := s.host.Items(t.Context(), ports.ItemQuery{}); a.Situation != Done || !a.Stale {
			t.Errorf("a list is answered %s", a.AppendJSON(nil))
		}
		s.store.start()
		s.in(5 * time.Second)
		s.asks("k", "first", false, 0)
	})
}

func TestNoReadTakesTwoSeconds(t *testing.T) {
	t.Parallel()
	for _, deferred := range []bool{false, true} {
		for n := range 3 * 3 * 3 {
			state := []int{n % 3, n / 3 % 3, n / 9}
			routed(t, func(t *testing.T, s *stage, first *mirror) {
				for i, name := range []string{"first", "second"} {
					s.mirror(name).change(func(m *mirror) {
						m.mute = state[i] == 1
						if state[i] == 2 {
							m.delays = followRead - time.Millisecond
						}
					})
				}
				s.store.mu.Lock()
				s.store.mute = state[2] == 1
				s.store.mu.Unlock()
				if state[2] == 2 {
					s.store.suffers(func(*ports.CommitBatch) fate { return fate{kind: hangs} })
				}
				if deferred {
					s.host.Begin(patch("k", "Complete"))
				}
				for what, ask := range map[string]func() Answer{
					"item": func() Answer { return s.host.Item(t.Context(), "k") },
					"miss": func() Answer { return s.host.Item(t.Context(), "nobody") },
					"list": func() Answer { return s.host.Items(t.Context(), ports.ItemQuery{}) },
				} {
					began := time.Now()
					a := ask()
					if took := time.Since(began); took >= 2*time.Second {
						t.Errorf("%v, deferred %v: %s takes %s: %s", state, deferred, what, took, a.AppendJSON(nil))
					}
				}
			})
		}
	}
}

func TestTheLocalStoreMayStandAnywhereInARoute(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		route                          []string
		well, behind, away, behindAway string
	}{
		{[]string{"local", "first", "second"}, "local", "local stale", "first", "first stale"},
		{[]string{"first", "local", "second"}, "first", "local stale", "first", "first stale"},
		{[]string{"local"}, "local", "local stale", "first", "first stale"},
		{nil, "local", "local stale", "first", "first stale"},
		{[]string{"second", "first"}, "second", "local stale", "second", "first stale"},
		{[]string{"nobody", "second", "local"}, "second", "local stale", "second", "first stale"},
	} {
		playWith(t, func(s *stage) {
			s.follows("first")
			s.follows("second")
			s.config.Route = c.route
		}, func(t *testing.T, s *stage) {
			s.does(upsert("k", "Running"), Done)
			s.does(upsert("other", "Running"), Done)
			s.catchesUp("first", 5*time.Second)
			s.catchesUp("second", 5*time.Second)
			who := func(key string) string {
				a := s.host.Item(t.Context(), key)
				if a.Stale {
					return a.Backend + " stale"
				}
				return a.Backend
			}
			if got := who("k"); got != c.well {
				t.Errorf("%v: %s, want %s", c.route, got, c.well)
			}
			s.store.suffers(func(*ports.CommitBatch) fate { return fate{after: time.Second} })
			s.host.Begin(patch("k", "Complete"))
			if got := who("k"); got != c.behind {
				t.Errorf("%v, behind: %s, want %s", c.route, got, c.behind)
			}
			s.store.mu.Lock()
			s.store.back = 0
			s.store.mu.Unlock()
			s.store.kill(nil)
			s.in(time.Second)
			if got := who("other"); got != c.away {
				t.Errorf("%v, away: %s, want %s", c.route, got, c.away)
			}
			if got := who("k"); got != c.behindAway {
				t.Errorf("%v, behind and away: %s, want %s", c.route, got, c.behindAway)
			}
		})
	}
}
