package core

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"holdfast/ports"
)

// Who answers a read.

// routed plays two followers before the local store, with an item each backend has.
func routed(t *testing.T, scene func(t *testing.T, s *stage, first *mirror)) {
	t.Helper()
	playWith(t, func(s *stage) {
		s.follows("first")
		s.follows("second")
		s.config.Route = []string{"first", "second", "local"}
	}, func(t *testing.T, s *stage) {
		s.does(upsert("k", "Running"), Done)
		s.does(upsert("other", "Running"), Done)
		s.does(call(ports.UpsertManifest, `{"Manifest":{"Hash":"m","Status":"Running"}}`), Done)
		s.catchesUp("first", 5*time.Second)
		s.catchesUp("second", 5*time.Second)
		scene(t, s, s.mirror("first"))
	})
}

// asks for an item and says who answered; it must be found.
func (s *stage) asks(key, backend string, stale bool, within time.Duration) Answer {
	s.t.Helper()
	began := time.Now()
	a := s.host.Item(s.t.Context(), key)
	if took := time.Since(began); a.Situation != Done || a.Backend != backend || a.Stale != stale || took > within {
		s.t.Errorf("in %s it is answered %s, want %s, stale %v, within %s", took, a.AppendJSON(nil), backend, stale, within)
	}
	return a
}

func (s *stage) lists(backend string, within time.Duration) Answer {
	s.t.Helper()
	began := time.Now()
	a := s.host.Items(s.t.Context(), ports.ItemQuery{Limit: 10})
	if took := time.Since(began); a.Situation != Done || a.Backend != backend || a.Stale || took > within {
		s.t.Errorf("in %s a list is answered %s, want %s", took, a.AppendJSON(nil), backend)
	}
	return a
}

func TestAReadIsAnsweredByTheFirstBackendThatProvablyHasEverything(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		happens  func(t *testing.T, s *stage, first *mirror)
		key      string // who answers k,
		other    string // another key,
		list     string // a list,
		manifest string // and a manifest
	}{
		"all is well": {key: "first", other: "first", list: "first", manifest: "first"},
		"it is gone": {func(_ *testing.T, s *stage, first *mirror) {
			first.change(func(m *mirror) { m.back = 0 })
			first.kill(nil)
		}, "second", "second", "second", "second"},
		"it takes no writes": {func(_ *testing.T, s *stage, first *mirror) {
			first.change(func(m *mirror) { m.probe = errBusy })
			s.in(probeEvery + watchTick)
		}, "second", "second", "second", "second"},
		"it needs a person": {func(_ *testing.T, s *stage, first *mirror) {
			first.change(func(m *mirror) { m.probe = errNoWrite })
			s.in(probeEvery + watchTick)
		}, "second", "second", "second", "second"},
		"it is suspect": {func(_ *testing.T, s *stage, first *mirror) {
			first.change(func(m *mirror) { m.mute = true })
			s.in(probeEvery + watchTick + probeDeadline)
		}, "second", "second", "second", "second"},
		"it fails": {func(_ *testing.T, s *stage, first *mirror) {
			first.change(func(m *mirror) { m.stale = true })
		}, "second", "second", "second", "second"},
		"it cannot list": {func(_ *testing.T, s *stage, first *mirror) {
			first.change(func(m *mirror) { m.keyOnly = true })
		}, "first", "first", "second", "first"},
		"it did not take the key": {func(_ *testing.T, s *stage, first *mirror) {
			first.suffers(onPut("k", putFate{kind: putRefuses, err: ports.Errorf(ports.Invalid, "mirror", "no")}))
			s.does(patch("k", "Complete"), Done)
			s.in(time.Second)
		}, "second", "first", "second", "first"},
		"a Put of the key is under way": {func(_ *testing.T, s *stage, first *mirror) {
			first.suffers(every(putFate{after: 800 * time.Millisecond}))
			s.does(patch("k", "Complete"), Done)
			s.in(100 * time.Millisecond)
		}, "second", "first", "second", "first"},
		"a Put of the key had no answer": {func(_ *testing.T, s *stage, first *mirror) {
			first.suffers(oneByOne("k", putFate{kind: putSilent}))
			s.does(patch("k", "Complete"), Done)
			s.in(10 * time.Second)
		}, "second", "first", "second", "first"},
		"it may have removed records": {func(_ *testing.T, s *stage, first *mirror) {
			w := s.host.follower("first", ports.Queue)
			w.mu.Lock()
			w.mark.Doubtful = true
			w.mu.Unlock()
		}, "second", "second", "second", "first"},
		"everything is copied to it again": {func(t *testing.T, s *stage, first *mirror) {
			first.suffers(every(putFate{after: 2 * time.Second}))
			if err := s.host.Resync("first"); err != nil {
				t.Error(err)
			}
			s.in(time.Second)
		}, "second", "second", "second", "second"},
		"a repair writes to it": {func(t *testing.T, s *stage, first *mirror) {
			release, err := s.host.holdFollower(t.Context(), "first", ports.Queue)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(release)
			s.in(time.Second)
		}, "second", "second", "second", "first"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			routed(t, func(t *testing.T, s *stage, first *mirror) {
				if c.happens != nil {
					c.happens(t, s, first)
				}
				s.asks("k", c.key, false, 0)
				s.asks("other", c.other, false, 0)
				s.lists(c.list, 0)
				if a := s.host.Manifest(t.Context(), "m"); a.Backend != c.manifest || a.Situation != Done || a.Stale {
					t.Errorf("the manifest is answered %s", a.AppendJSON(nil))
				}
			})
		})
	}
}

func TestABackendThatDoesNotAnswerInTimeIsPassedOver(t *testing.T) {
	t.Parallel()
	routed(t, func(t *testing.T, s *stage, first *mirror) {
		first.change(func(m *mirror) { m.delays = followRead - time.Millisecond })
		s.asks("k", "first", false, followRead)
		first.change(func(m *mirror) { m.delays = time.Minute })
		s.asks("k", "second", false, followRead)
		s.mirror("second").change(func(m *mirror) { m.delays = time.Minute })
		s.asks("k", "local", false, 2*followRead)
		first.change(func(m *mirror) { m.delays, m.mute = 0, true })
		s.mirror("second").change(func(m *mirror) { m.delays = 0 })
		s.asks("k", "second", false, followRead)
	})
}

func TestAListThatBeganAtOneBackendGoesOnAtAnother(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) {
		s.follows("first")
		s.follows("second")
		s.config.Route = []string{"first", "second", "local"}
	}, func(t *testing.T, s *stage) {
		for i := range 10 {
			s.does(upsert(fmt.Sprint("k", i), "Running"), Done)
			s.in(time.Millisecond)
		}
		s.catchesUp("first", 5*time.Second)
		s.catchesUp("second", 5*time.Second)
		var keys, backends []string
		var after *ports.Cursor
		for i := range 4 {
			a := s.host.Items(t.Context(), ports.ItemQuery{Limit: 3, After: after, Desc: true})
			var rows []struct{ WorkItemHash string }
			if err := json.Unmarshal(a.Value, &rows); err != nil {
				t.Fatal(err)
			}
			for _, row := range rows {
				keys = append(keys, row.WorkItemHash)
			}
			backends = append(backends, a.Backend)
			if a.More != (i < 3) {
				t.Errorf("page %d says more: %v", i, a.More)
			}
			if i < 3 {
				var err error
				if after, err = ports.ParseCursor(a.Cursor); err != nil {
					t.Fatal(err)
				}
			}
			if i < 2 {
				m := s.mirror([]string{"first", "second"}[i])
				m.change(func(m *mirror) { m.back = 0 })
				m.kill(nil)
			}
		}
		if got, want := fmt.Sprint(keys, backends), "[k9 k8 k7 k6 k5 k4 k3 k2 k1 k0] [first second local local]"; got != want {
			t.Errorf("the list is %s, want %s", got, want)
		}
	})
}

func TestAKeyOfWhichAWriteIsSetAsideIsIncompleteWhoeverAnswers(t *testing.T) {
	t.Parallel()
	routed(t, func(t *testing.T, s *stage, first *mirror) {
		s.store.suffers(on("k", neverTakes))
		s.does(patch("k", "Complete"), SetAside)
		s.store.suffers(nil)
		s.in(time.Second)
		if a := s.asks("k", "first", false, 0); !a.Incomplete {
			t.Error("the key is not incomplete")
		}
		if a := s.asks("other", "first", false, 0); a.Incomplete {
			t.Error("another key is incomplete")
		}
		if a := s.lists("first", 0); !a.Incomplete {
			t.Error("the list is not incomplete")
		}
		s.store.mu.Lock()
		s.store.back = 0
		s.store.mu.Unlock()
		s.store.kill(nil)
		s.in(time.Second)
		if a := s.asks("k", "first", false, 0); !a.Incomplete {
			t.Error("the key is not incomplete without the local store")
		}
	})
}
