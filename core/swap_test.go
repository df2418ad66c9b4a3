package core

import (
	"testing"
	"time"

	"holdfast/ports"
)

func TestAStoreThatIsElsewhereIsAskedAgainAndNoKeyIsBlamed(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) { s.follows("mirror") }, func(t *testing.T, s *stage) {
		s.catchesUp("mirror", 5*time.Second)
		m := s.mirror("mirror")
		m.suffers(oneByOne("k", putFate{kind: putRefuses, err: ports.InField(ports.Conflict, ports.FieldPosition, "the store is elsewhere")}))
		s.does(upsert("k", "Running"), Done)
		s.in(100 * time.Millisecond)
		if f := s.follower("mirror", ports.Queue); f.Unsettled != 0 || f.LastError == "" {
			t.Errorf("after the refusal: %+v", f)
		}
		s.catchesUp("mirror", 5*time.Second)
		s.equal("mirror")
	})
}

func TestABatchSaysWhereItsStoreMustBe(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) { s.follows("mirror") }, func(t *testing.T, s *stage) {
		s.catchesUp("mirror", 5*time.Second)
		var last *ports.Position
		s.mirror("mirror").suffers(func(b *ports.Batch) putFate {
			if b.Family != ports.Queue || b.Position == nil {
				return putFate{}
			}
			switch {
			case b.After == nil || b.After.StoreID == "":
				t.Errorf("a batch with a position does not say behind which: %+v", b.After)
			case last != nil && !samePlace(*b.After, *last):
				t.Errorf("a batch is behind %v, the store was told %v", b.After.Seqs, last.Seqs)
			}
			last = b.Position
			return putFate{}
		})
		for range 20 {
			s.does(upsert("k", "Running"), Done)
			s.in(time.Millisecond)
		}
		if s.catchesUp("mirror", 5*time.Second); last == nil {
			t.Error("nothing was put")
		}
	})
}

func samePlace(a, b ports.Position) bool { return a.Covers(b) && b.Covers(a) }
