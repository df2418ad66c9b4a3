package core

import (
	"strings"
	"testing"
	"time"

	"holdfast/ports"
)

// byAnother leaves the position of another host's history in a mirror.
func byAnother(m *mirror, seq uint64) {
	m.change(func(m *mirror) {
		m.disk.setPosition(ports.Queue, ports.Position{Epoch: "of another", Seqs: map[string]uint64{"another host": seq}})
	})
}

func TestTwoHostsThatFollowIntoOneStoreDoNotCopyForEver(t *testing.T) {
	t.Parallel()
	playWith(t, withFollower(nil), func(t *testing.T, s *stage) {
		s.many(20, "a")
		s.catchesUp("m1", 10*time.Second)
		m := s.mirror("m1")
		waits := func() bool { return s.follower("m1", ports.Queue).State == string(needsOne) }
		for seq := uint64(1); seq < rivalTimes; seq++ {
			byAnother(m, seq)
			s.in(5 * time.Second)
			s.catchesUp("m1", 10*time.Second)
		}
		byAnother(m, rivalTimes)
		if !s.until(10*time.Second, waits) {
			t.Fatalf("it goes on copying: %+v", s.backend("m1"))
		}
		if b := s.backend("m1"); !strings.Contains(b.Detail, "another host") || !strings.Contains(b.Remedy, "resync m1") {
			t.Errorf("it says %q, %q", b.Detail, b.Remedy)
		}
		for seq := uint64(10); seq < 30; seq++ { // the other goes on
			byAnother(m, seq)
			s.many(1, "b")
			if s.in(time.Minute); !waits() || m.look().positions[ports.Queue].Epoch != "of another" {
				t.Fatalf("it copies again: %+v", s.backend("m1"))
			}
		}
		if err := s.host.Resync("m1"); err != nil {
			t.Fatal(err)
		}
		s.catchesUp("m1", time.Minute)
		s.equal("m1")
	})
}

func TestAStoreThatIsSeldomPutBackIsCopiedToAgain(t *testing.T) {
	t.Parallel()
	playWith(t, withFollower(nil), func(t *testing.T, s *stage) {
		s.many(20, "a")
		s.catchesUp("m1", 10*time.Second)
		for seq := range uint64(3 * rivalTimes) {
			byAnother(s.mirror("m1"), seq+1)
			s.in(rivalWindow/2 + time.Second)
			s.catchesUp("m1", 10*time.Second)
		}
		s.equal("m1")
	})
}
