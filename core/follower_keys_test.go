package core

import (
	"fmt"
	"testing"
	"time"

	"holdfast/ports"
)

// Unsettled keys: their limit, what a person can do about them, and what outlives a start of the host.

func takesNot(keys ...string) func(*ports.Batch) putFate {
	return func(b *ports.Batch) putFate {
		for i := range b.Rows {
			for _, key := range keys {
				if b.Rows[i].Key == key {
					return putFate{kind: putRefuses, key: key, err: fails(ports.TooLarge)}
				}
			}
		}
		return putFate{}
	}
}

// unsettledKeys are the unsettled keys of m1's Queue.
func (s *stage) unsettledKeys() (keys []string) {
	s.t.Helper()
	list, err := s.host.UnsettledKeys("m1", ports.Queue, "", 100)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, k := range list {
		keys = append(keys, fmt.Sprint(k.Key, " ", k.Kind))
	}
	return keys
}

func (s *stage) unsettledAre(want ...string) {
	s.t.Helper()
	if got := s.unsettledKeys(); fmt.Sprint(got) != fmt.Sprint(want) {
		s.t.Errorf("unsettled is %v, want %v", got, want)
	}
}

func TestUnsettledKeysOutliveAStartOfTheHost(t *testing.T) {
	t.Parallel()
	playWith(t, withFollower(nil), func(t *testing.T, s *stage) {
		m := s.mirror("m1")
		m.suffers(takesNot("a", "b"))
		for _, key := range []string{"a", "b", "c"} {
			s.does(upsert(key, "Pending"), Done)
		}
		s.in(2 * time.Second)
		s.unsettledAre("a refused", "b refused")
		s.again()
		s.in(2 * time.Second)
		s.unsettledAre("a refused", "b refused")
		s.does(patch("a", "Running"), Done)
		s.in(2 * time.Second)
		s.answeredBy("a", "local")
		s.answeredBy("c", "m1")
		m.suffers(takesNot("b"))
		if n, err := s.host.RetryUnsettled("m1", ports.Queue, "a"); n != 1 || err != nil {
			t.Errorf("%d keys are tried again: %v", n, err)
		}
		s.in(2 * time.Second)
		s.unsettledAre("b refused")
		s.answeredBy("a", "m1")
		if _, err := s.host.RetryUnsettled("m1", ports.Queue, "a"); ports.CodeOf(err) != ports.NotFound {
			t.Errorf("a settled key can be tried again: %v", err)
		}
		if n, err := s.host.RetryUnsettled("m1", ports.Queue, ""); n != 1 || err != nil {
			t.Errorf("%d keys are tried again: %v", n, err)
		}
		s.in(2 * time.Second)
		s.unsettledAre("b refused")
		m.suffers(nil)
		if _, err := s.host.RetryUnsettled("m1", ports.Queue, ""); err != nil {
			t.Error(err)
		}
		s.catchesUp("m1", 5*time.Second)
		s.equal("m1")
	})
}

func TestADiscardedKeyIsReadElsewhereUntilItChanges(t *testing.T) {
	t.Parallel()
	playWith(t, withFollower(nil), func(t *testing.T, s *stage) {
		m := s.mirror("m1")
		m.suffers(takesNot("a"))
		s.does(upsert("a", "Pending"), Done)
		s.does(upsert("b", "Pending"), Done)
		s.in(2 * time.Second)
		if err := s.host.DiscardUnsettled("m1", ports.Queue, "b"); ports.CodeOf(err) != ports.NotFound {
			t.Errorf("a settled key can be given up: %v", err)
		}
		if err := s.host.DiscardUnsettled("m1", ports.Queue, "a"); err != nil {
			t.Error(err)
		}
		s.unsettledAre("a discarded")
		if f := s.follower("m1", ports.Queue); f.Unsettled != 0 || f.Discarded != 1 {
			t.Errorf("its status is %+v", f)
		}
		s.answeredBy("a", "local")
		s.again()
		s.in(2 * time.Second)
		s.unsettledAre("a discarded")
		s.answeredBy("a", "local")
		m.suffers(nil)
		s.does(patch("a", "Complete"), Done) // the fix is an ordinary write
		s.in(2 * time.Second)
		s.answeredBy("a", "m1")
		s.catchesUp("m1", 5*time.Second)
		s.equal("m1")
	})
}

func TestAtTheLimitOfUnsettledKeysAFollowerStopsAndTheOthersGoOn(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) {
		s.follows("m1")
		s.follows("m2")
		s.config.Route = []string{"m1", "m2", "local"}
		s.state.keyRoom = 2
	}, func(t *testing.T, s *stage) {
		m := s.mirror("m1")
		m.suffers(takesNot("a", "b", "c"))
		for _, key := range []string{"a", "b", "c", "d"} {
			s.does(upsert(key, "Pending"), Done)
		}
		s.in(2 * time.Second)
		f := s.follower("m1", ports.Queue)
		if f.State != string(needsOne) || f.Remedy == "" || f.Unsettled > 2 {
			t.Errorf("it is %+v", f)
		}
		if p := s.follower("m1", ports.Manifest); p.Phase != string(modeReady) {
			t.Errorf("the other family is %+v", p)
		}
		s.catchesUp("m2", 5*time.Second)
		s.equal("m2")
		s.answeredBy("d", "m2")
		if holes := s.holes("m1"); len(holes) > 0 {
			t.Errorf("it went beyond what it has: %v", holes)
		}
		m.suffers(nil)
		if _, err := s.host.RetryUnsettled("m1", ports.Queue, ""); err != nil {
			t.Error(err)
		}
		if !s.until(2*time.Minute, func() bool { return s.follower("m1", ports.Queue).Phase == string(modeReady) }) {
			t.Errorf("it does not go on: %+v", s.follower("m1", ports.Queue))
		}
		s.catchesUp("m1", time.Minute)
		s.equal("m1")
	})
}

func TestAFollowerThatMayHoldRemovedRecordsAnswersNoReads(t *testing.T) {
	t.Parallel()
	playWith(t, withFollower(nil), func(t *testing.T, s *stage) {
		m := s.mirror("m1")
		s.does(call(ports.UpsertManifest, `{"Manifest":{"Hash":"run1","Status":"Running"}}`), Done)
		s.does(call(ports.UpsertManifest, `{"Manifest":{"Hash":"run2","Status":"Running"}}`), Done)
		s.catchesUp("m1", 5*time.Second)
		m.change(func(m *mirror) { m.back = 0 })
		m.kill(nil)
		s.does(call(ports.RemoveManifest, `{"RunHash":"run1"}`), Done)
		s.store.mu.Lock()
		s.store.disk.forget(ports.KindManifest, "run1")
		s.store.mu.Unlock()
		m.start()
		s.in(10 * time.Second)
		if f := s.follower("m1", ports.Manifest); !f.Doubtful {
			t.Errorf("it is not doubtful: %+v", f)
		}
		for _, key := range []string{"run1", "run2"} {
			if a := s.host.Manifest(t.Context(), key); a.Backend == "m1" {
				t.Errorf("manifest %s is answered %s", key, a.AppendJSON(nil))
			}
		}
		s.again()
		s.in(10 * time.Second)
		if f := s.follower("m1", ports.Manifest); !f.Doubtful {
			t.Errorf("it is forgotten at the start of the host: %+v", f)
		}
	})
}

func TestAFollowerThatIsReadByKeyOnlyPassesListsOn(t *testing.T) {
	t.Parallel()
	playWith(t, withFollower(func(m *mirror) { m.keyOnly, m.noPosition = true, true }), func(t *testing.T, s *stage) {
		s.many(10, "a")
		s.in(2 * time.Second)
		s.answeredBy("a0001", "m1")
		if a := s.host.Items(t.Context(), ports.ItemQuery{}); a.Backend != "local" || a.Situation != Done || a.Stale {
			t.Errorf("the list is answered %s", a.AppendJSON(nil))
		}
		before := s.mirror("m1").puts
		s.again()
		s.in(2 * time.Minute)
		if after := s.mirror("m1").puts; after > before+5 {
			t.Errorf("a start of the host cost %d Puts", after-before)
		}
		s.catchesUp("m1", 5*time.Second)
		s.equal("m1")
	})
}
