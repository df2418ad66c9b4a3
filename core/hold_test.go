package core

import (
	"context"
	"fmt"
	"testing"
	"time"

	"holdfast/ports"
)

// A follower that a repair holds.

func TestAHeldFollowerTakesNothingAndGoesOnWhenEverybodyLetsGo(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(s *stage, m *mirror){
		"nothing else happens": func(_ *stage, _ *mirror) {},
		"its process dies":     func(_ *stage, m *mirror) { m.kill(nil) },
		"it takes no writes a while": func(s *stage, m *mirror) {
			m.change(func(m *mirror) { m.probe = errBusy })
			s.in(5 * time.Second)
			m.change(func(m *mirror) { m.probe = nil })
		},
		"the local store dies":        func(s *stage, _ *mirror) { s.store.kill(nil) },
		"a person asks for a resync":  func(s *stage, _ *mirror) { _ = s.host.Resync("mirror") },
		"its store becomes a new one": func(_ *stage, m *mirror) { m.becomes(newMirrorDisk("new")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			playWith(t, func(s *stage) { s.follows("mirror") }, func(t *testing.T, s *stage) {
				m := s.mirror("mirror")
				s.writes(3)
				s.catchesUp("mirror", 5*time.Second)
				m.suffers(every(putFate{after: time.Second}))
				s.does(upsert("under way", "Running"), Done)
				s.in(100 * time.Millisecond)
				began := time.Now()
				first, err := s.host.holdFollower(t.Context(), "mirror", ports.Queue)
				if err != nil || time.Since(began) > time.Second {
					t.Fatalf("it is held after %s, %v", time.Since(began), err)
				}
				second, err := s.host.holdFollower(t.Context(), "mirror", ports.Queue)
				if err != nil {
					t.Fatal(err)
				}
				m.suffers(nil)
				s.in(2 * time.Second)
				var puts int
				m.change(func(m *mirror) { puts = len(m.disk.log) })
				s.does(upsert("k", "Running"), Done)
				meanwhile(s, m)
				s.in(3 * time.Second)
				first()
				s.in(5 * time.Second)
				m.change(func(m *mirror) {
					for _, b := range m.disk.log {
						if b.Family == ports.Queue && len(b.Rows) > 0 && b.Rows[0].Key == "k" {
							t.Errorf("it was put into while it was held; %d Puts, before %d", len(m.disk.log), puts)
						}
					}
				})
				second()
				s.in(5 * time.Second)
				s.in(time.Minute)
				s.catchesUp("mirror", 10*time.Second)
				s.equal("mirror")
			})
		})
	}
}

func TestAHoldThatIsGivenUpLetsGo(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) { s.follows("mirror") }, func(t *testing.T, s *stage) {
		s.catchesUp("mirror", 5*time.Second)
		s.mirror("mirror").change(func(m *mirror) { m.mute = true })
		s.does(upsert("k", "Running"), Done)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if release, err := s.host.holdFollower(ctx, "mirror", ports.Queue); err == nil {
			release() // it had ended already
		}
		s.mirror("mirror").change(func(m *mirror) { m.mute = false })
		s.in(2 * time.Minute)
		s.catchesUp("mirror", 5*time.Second)
		s.equal("mirror")
	})
}

func TestAFollowerThatWasLoweredCopiesFromThereOn(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) { s.follows("mirror") }, func(t *testing.T, s *stage) {
		m := s.mirror("mirror")
		for i := range 20 {
			s.does(upsert(fmt.Sprint("k", i), "Running"), Done)
		}
		s.catchesUp("mirror", 5*time.Second)
		release, err := s.host.holdFollower(t.Context(), "mirror", ports.Queue)
		if err != nil {
			t.Fatal(err)
		}
		row, _ := m.row(ports.KindItem, "k15", "", 0)
		m.lacks(row)
		low := m.look().position(ports.Queue)
		low.StoreID, low.Seqs[s.host.hostID] = "", 12
		if err := s.host.lowerFollower("mirror", ports.Queue, low); err != nil {
			t.Error(err)
		}
		before := s.follower("mirror", ports.Queue).Copied
		release()
		s.in(time.Second)
		s.catchesUp("mirror", 5*time.Second)
		s.equal("mirror")
		if n := s.follower("mirror", ports.Queue).Copied - before; n != 8 {
			t.Errorf("%d rows were copied, want 8", n)
		}
	})
}
