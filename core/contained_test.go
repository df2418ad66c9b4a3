package core

import (
	"testing"
	"time"

	"holdfast/ports"
)

// contain makes a follower one of whose Puts nothing outlives its process.
func contain(m *mirror) { m.contained = true }

func TestTheDeathOfAContainedStoreLeavesNothingInDoubt(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) { s.follows("mirror", contain) }, func(t *testing.T, s *stage) {
		s.catchesUp("mirror", 5*time.Second)
		s.mirror("mirror").suffers(oneByOne("k", putFate{kind: putDies}))
		s.does(upsert("k", "Running"), Done)
		s.in(100 * time.Millisecond)
		s.catchesUp("mirror", 5*time.Second)
		s.equal("mirror")
	})
}

func TestAContainedStoreThatHangsIsInDoubtUntilItsProcessIsReplaced(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) { s.revive = true; s.follows("mirror", contain) }, func(t *testing.T, s *stage) {
		s.catchesUp("mirror", 5*time.Second)
		m := s.mirror("mirror")
		m.suffers(oneByOne("k", putFate{kind: putSilent}))
		s.does(upsert("k", "Running"), Done)
		s.in(putDeadline + time.Second)
		if f := s.follower("mirror", ports.Queue); f.InDoubt != 1 {
			t.Errorf("while the Put is under way it is told as %+v", f)
		}
		m.kill(nil)
		s.catchesUp("mirror", 5*time.Second)
		s.equal("mirror")
	})
}

func TestAHostThatWasKilledLeavesNothingInDoubtInAContainedStore(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) { s.follows("mirror", contain) }, func(t *testing.T, s *stage) {
		s.catchesUp("mirror", 5*time.Second)
		m := s.mirror("mirror")
		m.suffers(oneByOne("k", putFate{kind: putSilent}))
		s.does(upsert("k", "Running"), Done)
		s.in(time.Second)
		s.dies()
		s.catchesUp("mirror", 5*time.Second)
		s.equal("mirror")
	})
}
