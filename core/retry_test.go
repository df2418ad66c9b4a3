package core

import (
	"slices"
	"testing"
	"time"

	"holdfast/ports"
)

// bothAside has two writes of a key set aside, of which the store refuses the first.
func bothAside(s *stage) {
	s.store.suffers(on("bad", neverTakes))
	s.does(upsert("bad", "Pending"), SetAside)
	s.does(patch("bad", "Complete"), SetAside)
}

func TestARetryReplaysInOrder(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		bothAside(s)
		s.store.suffers(nil)
		n, err := s.host.RetryAside(ports.Queue, "bad")
		if n != 2 || err != nil {
			t.Errorf("%d are retried: %v", n, err)
		}
		s.in(time.Second)
		s.status("bad", "Complete")
		if got := s.item("bad"); got.Incomplete || s.asides() != nil {
			t.Errorf("it reads %+v, aside are %v", got, s.asides())
		}
		for _, seq := range []uint64{1, 2} {
			if w := s.host.Write(ports.Queue, seq); (w != WriteStatus{Family: ports.Queue, Seq: seq, State: "decided"}) {
				t.Errorf("write %d is %+v", seq, w)
			}
		}
		inTurn(t, s.store.look())
		if _, err := s.host.RetryAside(ports.Queue, "bad"); ports.CodeOf(err) != ports.NotFound {
			t.Errorf("nothing is left to retry: %v", err)
		}
	})
}

func TestADeferredWriteThatARetryStoresIsNoLongerToldAsRefused(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.store.suffers(on("bad", fate{kind: dies}))
		s.does(upsert("bad", "Pending"), Deferred)
		s.does(patch("other", "Running"), Deferred)
		s.in(10 * time.Second)
		if n := len(s.host.Status().Families[0].Deferred); n != 2 {
			t.Errorf("%d deferred writes were decided otherwise", n)
		}
		s.store.suffers(nil)
		if _, err := s.host.RetryAside(ports.Queue, "bad"); err != nil {
			t.Error(err)
		}
		s.in(time.Second)
		if w := s.host.Write(ports.Queue, 1); (w != WriteStatus{Family: ports.Queue, Seq: 1, State: "decided"}) {
			t.Errorf("the write is %+v", w)
		}
		if list := s.host.Status().Families[0].Deferred; len(list) != 1 || list[0].Key != "other" {
			t.Errorf("decided otherwise are %+v", list)
		}
	})
}

func TestADeferredWriteThatARetryDecidesOtherwiseIsToldUnderItsOwnSeq(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.store.suffers(on("bad", fate{kind: dies}))
		s.does(patch("bad", "Running"), Deferred)
		s.in(10 * time.Second)
		s.store.suffers(nil)
		if _, err := s.host.RetryAside(ports.Queue, "bad"); err != nil {
			t.Error(err)
		}
		s.in(time.Second)
		if w := s.host.Write(ports.Queue, 1); (w != WriteStatus{Family: ports.Queue, Seq: 1, State: "decided", Outcome: "NotFound"}) {
			t.Errorf("the write is %+v", w)
		}
	})
}

func TestARetryThatFailsAgainLeavesEverythingWhereItIs(t *testing.T) {
	t.Parallel()
	for _, f := range []fate{neverTakes, {kind: dies}} {
		play(t, func(t *testing.T, s *stage) {
			bothAside(s)
			s.store.suffers(on("bad", f))
			for range 2 {
				if _, err := s.host.RetryAside(ports.Queue, "bad"); err != nil {
					t.Error(err)
				}
				s.in(10 * time.Second)
				if got := s.asides(); !slices.Equal(got, []uint64{1, 2}) {
					t.Errorf("aside are %v", got)
				}
			}
			s.does(upsert("good", "Pending"), Done)
			s.store.suffers(nil)
			if _, err := s.host.RetryAside(ports.Queue, "bad"); err != nil {
				t.Error(err)
			}
			s.in(time.Second)
			s.status("bad", "Complete")
			inTurn(t, s.store.look())
		})
	}
}

func TestWritesThatComeDuringARetryFollowByThemselves(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		bothAside(s)
		s.store.suffers(func(*ports.CommitBatch) fate { return fate{after: 100 * time.Millisecond} })
		before := s.host.Begin(patch("bad", "Claimed")) // not yet looked at by the commit loop
		if _, err := s.host.RetryAside(ports.Queue, "bad"); err != nil {
			t.Error(err)
		}
		during := s.host.Begin(patch("bad", "Failed"))
		before.Wait(t.Context())
		during.Wait(t.Context())
		s.in(5 * time.Second)
		if got := s.asides(); got != nil {
			t.Errorf("aside are still %v", got)
		}
		s.status("bad", "Failed")
		s.does(patch("bad", "Canceled"), Done)
		inTurn(t, s.store.look())
	})
}

func TestADiscardGivesUpTheFirstOnly(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.does(upsert("bad", "Pending"), Done)
		s.store.suffers(on("bad", neverTakes))
		s.does(patch("bad", "Running"), SetAside)
		s.does(call(ports.UpdateWorkItem, `{"WorkItemHash":"bad","Patch":{"LastError":"late"}}`), SetAside)
		dropped, err := s.host.DiscardAside(ports.Queue, "bad")
		if err != nil || dropped.Seq != 2 || dropped.Code != ports.Invalid || dropped.Action != ports.UpdateWorkItem {
			t.Errorf("discarded is %+v: %v", dropped, err)
		}
		if got := s.asides(); !slices.Equal(got, []uint64{3}) {
			t.Errorf("aside are %v", got)
		}
		s.store.suffers(nil)
		if _, err := s.host.RetryAside(ports.Queue, "bad"); err != nil {
			t.Error(err)
		}
		s.in(time.Second)
		if got := s.item("bad"); got.WorkItem["Status"] != "Pending" || got.WorkItem["LastError"] != "late" || got.Incomplete {
			t.Errorf("it reads %+v", got)
		}
		if _, err := s.host.DiscardAside(ports.Queue, "bad"); ports.CodeOf(err) != ports.NotFound {
			t.Errorf("nothing is left to discard: %v", err)
		}
		s.does(patch("bad", "Complete"), Done)
	})
}

func TestADiscardDuringARetryTakesItsReplayToo(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		bothAside(s)
		s.store.suffers(func(*ports.CommitBatch) fate { return fate{after: time.Second} })
		s.host.Begin(upsert("other", "Pending")) // keeps the loop busy
		if _, err := s.host.RetryAside(ports.Queue, "bad"); err != nil {
			t.Error(err)
		}
		if _, err := s.host.DiscardAside(ports.Queue, "bad"); err != nil {
			t.Error(err)
		}
		s.in(10 * time.Second)
		s.store.suffers(nil)
		if got := s.item("bad"); !got.NotFound || s.asides() != nil {
			t.Errorf("it reads %+v, aside are %v", got, s.asides())
		}
	})
}

// The batches behind a refused one are met again after what came still later.
func TestWhatIsSetAsideOutOfOrderIsReplayedInOrder(t *testing.T) {
	t.Parallel()
	var a asides
	for _, seq := range []uint64{84, 99, 100, 89, 84, 97} {
		a.add("k", seq)
	}
	for _, want := range []uint64{84, 89, 97, 99, 100} {
		if !a.mayReplay(&ports.Entry{Seq: 200, Key: "k", Again: want}) {
			t.Errorf("it is not the turn of %d", want)
		}
		if seq, ok := a.left("k"); !ok || seq != want {
			t.Errorf("left is %d, want %d", seq, want)
		}
		a.drop("k", want)
	}
	if a.any() || a.count() != 0 {
		t.Error("something is left")
	}
}

// A host that dies between setting aside one write of a key and an older one of a batch that was under way leaves a gap
// among them; the next one closes it, and a retry in the meantime still replays all of them in order.
func TestARetryReplaysAlsoWhatIsFoundBetween(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.store.back = 0
		s.store.kill(nil)
		for _, status := range []string{"Pending", "Running", "Complete"} {
			s.host.Begin(upsert("a", status))
		}
		s.end()
		for _, seq := range []uint64{1, 3} {
			kept := s.journals[ports.Queue].entries[seq-1]
			if err := s.state.SetAside(ports.Queue, []ports.Aside{{Entry: kept}}); err != nil {
				t.Fatal(err)
			}
		}
		s.begin()
		if _, err := s.host.RetryAside(ports.Queue, "a"); err != nil {
			t.Error(err)
		}
		s.store.start()
		s.in(5 * time.Second)
		s.status("a", "Complete")
		if got := s.asides(); got != nil {
			t.Errorf("aside are still %v", got)
		}
		inTurn(t, s.store.look())
	})
}
