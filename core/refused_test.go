package core

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"holdfast/ports"
)

// Keys that a follower's store refused, and those that a person gave up.

func TestOneRefusalStopsOneKey(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) {
		s.follows("mirror")
		s.config.Route = []string{"mirror", "local"}
	}, func(t *testing.T, s *stage) {
		s.catchesUp("mirror", 5*time.Second)
		m := s.mirror("mirror")
		m.suffers(onPut("k", putFate{kind: putRefuses, err: ports.Errorf(ports.TooLarge, "mirror", "it does not fit")}))
		for i := range 5 {
			s.does(upsert(fmt.Sprint("a", i), "Running"), Done)
			s.does(upsert("k", fmt.Sprint("Running", i)), Done)
			s.in(100 * time.Millisecond)
		}
		s.in(time.Second)
		keys, err := s.host.UnsettledKeys("mirror", ports.Queue, "", 10)
		if err != nil || len(keys) != 1 || keys[0].Kind != ports.RefusedKey || keys[0].Code != ports.TooLarge || keys[0].First != 2 || keys[0].Last != 10 {
			t.Errorf("unsettled are %+v %v", keys, err)
		}
		for key, backend := range map[string]string{"a4": "mirror", "k": "local"} {
			if a := s.host.Item(t.Context(), key); a.Backend != backend || a.Stale || a.Situation != Done {
				t.Errorf("%s is answered %s", key, a.AppendJSON(nil))
			}
		}
		m.suffers(nil)
		s.again()
		s.in(5 * time.Second)
		again, err := s.host.UnsettledKeys("mirror", ports.Queue, "", 10)
		if err != nil || !slices.Equal(again, keys) {
			t.Errorf("after a start unsettled are %+v %v, not %+v", again, err, keys)
		}
		if n, err := s.host.RetryUnsettled("mirror", ports.Queue, ""); n != 1 || err != nil {
			t.Errorf("%d keys are tried again, %v", n, err)
		}
		s.in(time.Second)
		if n := s.follower("mirror", ports.Queue).Unsettled; n != 0 {
			t.Errorf("after a retry %d keys are unsettled", n)
		}
		s.equal("mirror")
	})
}

func TestWhatOneStoreRefusedIsTriedWithEachThatTakesItsPlace(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) { s.follows("mirror") }, func(t *testing.T, s *stage) {
		s.catchesUp("mirror", 5*time.Second)
		m := s.mirror("mirror")
		for i := range 3 { // sooner after each other than the log tells it
			m.suffers(onPut("k", putFate{kind: putRefuses, err: ports.Errorf(ports.TooLarge, "mirror", "it does not fit")}))
			s.does(upsert("k", fmt.Sprint("Running", i)), Done)
			s.in(5 * time.Second)
			if n := s.follower("mirror", ports.Queue).Unsettled; n != 1 {
				t.Fatalf("%d keys are unsettled", n)
			}
			m.suffers(nil)
			m.becomes(newMirrorDisk(fmt.Sprint("other-", i)))
			s.in(10 * time.Second)
			if n := s.follower("mirror", ports.Queue).Unsettled; n != 0 {
				t.Errorf("%d keys are unsettled with store %d", n, i)
			}
			s.equal("mirror")
		}
	})
}

func TestAKeyThatWasGivenUpComesBackWithItsNextChange(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) { s.follows("mirror") }, func(t *testing.T, s *stage) {
		s.catchesUp("mirror", 5*time.Second)
		m := s.mirror("mirror")
		no := onPut("k", putFate{kind: putRefuses, err: ports.Errorf(ports.Invalid, "mirror", "no")})
		m.suffers(no)
		s.does(upsert("k", "Running"), Done)
		s.does(call(ports.AppendEvent, `{"Event":{"WorkItemHash":"k","EventGUID":"e"}}`), Done)
		s.in(time.Second)
		if err := s.host.DiscardUnsettled("mirror", ports.Queue, "k"); err != nil {
			t.Fatal(err)
		}
		if f := s.follower("mirror", ports.Queue); f.Unsettled != 0 || f.Discarded != 1 {
			t.Errorf("it is told as %+v", f)
		}
		s.again()
		s.in(5 * time.Second)
		s.does(patch("k", "Complete"), Done)
		s.in(5 * time.Second)
		if f := s.follower("mirror", ports.Queue); f.Unsettled != 1 || f.Discarded != 0 {
			t.Errorf("it changed, was refused again, and is told as %+v", f)
		}
		if err := s.host.DiscardUnsettled("mirror", ports.Queue, "k"); err != nil {
			t.Fatal(err)
		}
		m.suffers(nil)
		s.does(patch("k", "Error"), Done)
		s.in(5 * time.Second)
		if f := s.follower("mirror", ports.Queue); f.Unsettled != 0 || f.Discarded != 0 {
			t.Errorf("it changed, was taken, and is told as %+v", f)
		}
		s.equal("mirror")
	})
}

func TestWithTooManyUnsettledKeysAFollowerNeedsAPersonAndGoesOnAfterwards(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) {
		s.follows("mirror")
		s.state.following.room = 3
	}, func(t *testing.T, s *stage) {
		s.catchesUp("mirror", 5*time.Second)
		m := s.mirror("mirror")
		m.suffers(every(putFate{kind: putRefuses, err: ports.Errorf(ports.Invalid, "mirror", "no")}))
		for i := range 5 {
			s.does(upsert(fmt.Sprint("k", i), "Running"), Done)
		}
		s.in(5 * time.Second)
		f := s.follower("mirror", ports.Queue)
		if f.State != string(needsOne) || f.Remedy == "" || f.Detail == "" || f.Unsettled != 3 {
			t.Errorf("it is told as %+v", f)
		}
		if p := m.look().positions[ports.Queue]; p.Seqs[s.host.hostID] > 3 {
			t.Errorf("the position passed a key that is not recorded: %v", p)
		}
		s.status("k4", "Running")
		m.suffers(nil)
		if _, err := s.host.RetryUnsettled("mirror", ports.Queue, ""); err != nil {
			t.Error(err)
		}
		s.catchesUp("mirror", 5*time.Second)
		s.equal("mirror")
	})
}

func TestARefusalRemembersTheFirstChangeThatMayBeMissing(t *testing.T) {
	t.Parallel()
	u := unsettled{name: "mirror", family: ports.Queue, state: newMemoryState()}
	if err := u.load(); err != nil {
		t.Fatal(err)
	}
	why := ports.Errorf(ports.Invalid, "mirror", "no")
	u.doubt([]group{{key: "a", first: 5, last: 7}}, "no answer", noon)
	u.doubt([]group{{key: "a", first: 8, last: 9}}, "no answer", noon.Add(time.Second))
	if err := u.refuse("a", ports.RefusedKey, why, 11, 12, noon.Add(2*time.Second)); err != nil {
		t.Fatal(err)
	}
	if got := u.list("", 10); len(got) != 1 || got[0].First != 5 || got[0].Last != 12 {
		t.Errorf("it is remembered as %+v", got)
	}
	again := unsettled{name: "mirror", family: ports.Queue, state: u.state}
	if err := again.load(); err != nil || !slices.Equal(again.list("", 10), u.list("", 10)) {
		t.Errorf("after a start it is %+v %v", again.list("", 10), err)
	}
}
