package core

import (
	"strings"
	"testing"
	"time"

	"holdfast/ports"
)

// Two backends that are one store.

func TestOfTwoBackendsWithOneStoreOneIsRefusedUntilItHasItsOwn(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) {
		s.follows("first")
		s.follows("second", func(m *mirror) { m.disk.id = "first-1" })
		s.config.Route = []string{"first", "second", "local"}
	}, func(t *testing.T, s *stage) {
		s.does(upsert("k", "Running"), Done)
		s.in(5 * time.Second)
		var well, ill []string
		for _, name := range []string{"first", "second"} {
			for _, f := range ports.Families {
				switch status := s.follower(name, f); {
				case status.Phase == string(modeReady):
					well = append(well, name)
				case status.State == string(needsOne) && status.Remedy != "" && strings.Contains(status.Detail, "first"):
					ill = append(ill, name)
				}
			}
		}
		if len(well) != len(ports.Families) || len(ill) != len(ports.Families) || well[0] == ill[0] {
			t.Errorf("%v are well, %v are refused: %+v %+v", well, ill, s.backend("first"), s.backend("second"))
		}
		if id := s.backend(ill[0]).StoreID; id != "" {
			t.Errorf("%s says that it is %s", ill[0], id)
		}
		if rows := s.mirror(ill[0]).look().rows; len(rows) != 0 {
			t.Errorf("%d records were put into it", len(rows))
		}
		notices := strings.Join(s.host.Status().Notices, "\n")
		if !strings.Contains(notices, ill[0]+", Queue: ") {
			t.Errorf("nobody is told: %s", notices)
		}
		// It gets a store of its own.
		s.mirror(ill[0]).becomes(newMirrorDisk("another"))
		s.in(errorRetry + 5*time.Second)
		s.catchesUp(ill[0], 5*time.Second)
		s.equal("first")
		s.equal("second")
	})
}

func TestAFollowerThatIsTheLocalStoreIsRefused(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) {
		s.follows("mirror", func(m *mirror) { m.disk.id = "store-1" })
	}, func(t *testing.T, s *stage) {
		s.does(upsert("k", "Running"), Done)
		s.in(5 * time.Second)
		for _, f := range ports.Families {
			if status := s.follower("mirror", f); status.State != string(needsOne) || status.Remedy == "" {
				t.Errorf("it is %+v", status)
			}
		}
		if puts := s.mirror("mirror").look().log; len(puts) != 0 {
			t.Errorf("%d Puts were sent", len(puts))
		}
		s.status("k", "Running")
	})
}

func TestAStoreThatMovesToAnotherBackendIsTakenThere(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) {
		s.follows("first")
		s.follows("second")
	}, func(t *testing.T, s *stage) {
		s.does(upsert("k", "Running"), Done)
		s.catchesUp("first", 5*time.Second)
		s.catchesUp("second", 5*time.Second)
		first, second := s.mirror("first"), s.mirror("second")
		one, other := first.look(), second.look()
		first.becomes(newMirrorDisk("new"))
		s.in(5 * time.Second)
		second.becomes(one)
		s.in(5 * time.Second)
		first.becomes(other)
		s.in(errorRetry + 10*time.Second)
		s.does(upsert("l", "Running"), Done)
		s.catchesUp("first", 5*time.Second)
		s.catchesUp("second", 5*time.Second)
		s.equal("first")
		s.equal("second")
	})
}

func TestStoresThatCannotSayWhoTheyAreAreNotTakenForOne(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) {
		s.follows("first", func(m *mirror) { m.noPosition = true })
		s.follows("second", func(m *mirror) { m.noPosition = true })
	}, func(t *testing.T, s *stage) {
		s.does(upsert("k", "Running"), Done)
		s.catchesUp("first", 5*time.Second)
		s.catchesUp("second", 5*time.Second)
		s.equal("first")
		s.equal("second")
	})
}
