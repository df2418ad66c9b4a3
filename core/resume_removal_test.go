package core

import (
	"testing"
	"time"

	"holdfast/ports"
)

// Removals that a follower may have missed, and a resync, which removes nothing.

func TestAResyncCopiesEverythingAndRemovesNothing(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) { s.follows("mirror") }, func(t *testing.T, s *stage) {
		m := s.mirror("mirror")
		s.writes(5)
		s.catchesUp("mirror", 5*time.Second)
		m.lacks(itemRow("live-001", "", 0))
		m.has(itemRow("alone", "", 1))
		if err := s.host.Resync("mirror"); err != nil {
			t.Fatal(err)
		}
		s.in(2 * time.Second)
		s.catchesUp("mirror", 5*time.Second)
		if _, there := m.row(ports.KindItem, "live-001", "", 0); !there {
			t.Error("what was missing is not there")
		}
		if _, there := m.row(ports.KindItem, "alone", "", 0); !there {
			t.Error("what only it had is gone")
		}
	})
}

func TestAFollowerThatMayHaveMissedARemovalAnswersNoReads(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) {
		s.follows("mirror", func(m *mirror) { m.back = 0 })
		s.config.Route = []string{"mirror", "local"}
	}, func(t *testing.T, s *stage) {
		m := s.mirror("mirror")
		manifest := call(ports.UpsertManifest, `{"Manifest":{"Hash":"m","Status":"Running"}}`)
		s.does(manifest, Done)
		s.does(upsert("k", "Running"), Done)
		s.catchesUp("mirror", 5*time.Second)
		m.kill(nil)
		s.does(call(ports.RemoveManifest, `{"RunHash":"m"}`), Done)
		s.store.mu.Lock()
		s.store.disk.forget(ports.KindManifest, "m")
		s.store.mu.Unlock()
		m.start()
		s.in(5 * time.Second)
		if f := s.follower("mirror", ports.Manifest); !f.Doubtful || f.Phase != string(modeReady) {
			t.Errorf("it is told as %+v", f)
		}
		if a := s.host.Manifest(t.Context(), "m"); a.Situation != NotFound || a.Stale {
			t.Errorf("the removed manifest is answered %s", a.AppendJSON(nil))
		}
		if a := s.host.Manifests(t.Context(), ports.ManifestQuery{}); a.Backend != "local" {
			t.Errorf("manifests are listed by %s", a.Backend)
		}
		if a := s.host.Item(t.Context(), "k"); a.Backend != "mirror" {
			t.Errorf("the other family is read from %s", a.Backend)
		}
		s.again()
		s.in(5 * time.Second)
		if f := s.follower("mirror", ports.Manifest); !f.Doubtful {
			t.Errorf("after a start it is told as %+v", f)
		}
	})
}

func TestAFollowerThatHadNothingMissedNoRemoval(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) {
		s.follows("mirror", func(m *mirror) { m.back = 0 })
		s.store.flaws.page = 1
	}, func(t *testing.T, s *stage) {
		m := s.mirror("mirror")
		m.kill(nil)
		for _, key := range []string{"a", "b", "c", "d", "e"} {
			s.does(call(ports.UpsertManifest, `{"Manifest":{"Hash":%q}}`, key), Done)
		}
		s.does(call(ports.RemoveManifest, `{"RunHash":"c"}`), Done)
		s.does(call(ports.UpsertManifest, `{"Manifest":{"Hash":"f"}}`), Done)
		s.store.mu.Lock()
		s.store.disk.forget(ports.KindManifest, "c")
		s.store.mu.Unlock()
		// Its first copy is broken off in the middle.
		m.suffers(oneByOne("d", putFate{kind: putDies}))
		m.change(func(m *mirror) { m.back = time.Second })
		m.start()
		s.in(10 * time.Second)
		s.catchesUp("mirror", 2*time.Minute)
		s.equal("mirror")
		if f := s.follower("mirror", ports.Manifest); f.Doubtful {
			t.Errorf("it is told as %+v", f)
		}
	})
}
