package core

import (
	"encoding/json"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/ports"
)

func TestAWriteIsAnsweredWhenTheLocalStoreHasDecided(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.store.suffers(func(*ports.CommitBatch) fate { return fate{after: 1500 * time.Millisecond} })
		began := time.Now()
		a := s.does(upsert("a", "Pending"), Done)
		if took := time.Since(began); took != 1500*time.Millisecond {
			t.Errorf("it took %s", took)
		}
		if a.Seq != 1 || a.Backend != "local" {
			t.Errorf("the answer is %s", a.AppendJSON(nil))
		}
		s.does(patch("unknown", "Done"), NotFound)
		s.status("a", "Pending")
	})
}

func TestACallerWaitsTwoSecondsAndThenGetsDeferred(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.store.suffers(func(*ports.CommitBatch) fate { return fate{after: 3 * time.Second} })
		began := time.Now()
		s.does(upsert("a", "Pending"), Deferred)
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("it took %s", took)
		}
		s.in(5 * time.Second)
		s.store.suffers(nil)
		s.status("a", "Pending")
	})
}

func TestAPromiseSaysWhetherItsAnswerIsDue(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		due := func(what string, c Call, now, soon bool) {
			t.Helper()
			p := s.host.Begin(c)
			if p.Due() != now {
				t.Errorf("%s: at once it says %v", what, !now)
			}
			s.in(time.Second)
			if p.Due() != soon {
				t.Errorf("%s: after a second it says %v", what, !soon)
			}
			p.Wait(t.Context())
		}
		due("a write", upsert("a", "Pending"), false, true)
		due("a refused write", call(ports.UpsertWorkItem, `{"WorkItem":{}}`), true, true)
		due("a read", call(ports.GetWorkItemByHash, `{"WorkItemHash":"a"}`), false, false)
		s.store.suffers(func(*ports.CommitBatch) fate { return fate{kind: hangs} })
		due("a write that hangs", upsert("a", "Running"), false, false)
		s.store.back = 0
		s.store.kill(nil)
		s.in(time.Second)
		due("a write without a store", upsert("a", "Complete"), true, true)
	})
}

func TestACallerThatKnowsOfADownStoreGetsDeferredAtOnce(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.store.back = 0
		s.store.kill(nil)
		s.does(upsert("a", "Pending"), Deferred) // by this one the host learns of it
		began := time.Now()
		s.does(upsert("b", "Pending"), Deferred)
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %s", took)
		}
		s.store.start()
		s.in(3 * time.Second)
		s.status("a", "Pending")
		s.status("b", "Pending")
	})
}

func TestACallerIsLetGoTheMomentTheStoreDies(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.store.suffers(func(*ports.CommitBatch) fate { return fate{after: time.Minute} })
		time.AfterFunc(300*time.Millisecond, func() { s.store.kill(nil) })
		began := time.Now()
		s.does(upsert("a", "Pending"), Deferred)
		if took := time.Since(began); took != 300*time.Millisecond {
			t.Errorf("it took %s", took)
		}
	})
}

func TestWithAckJournaledACallerIsAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) { s.config.Ack = AckJournaled }, func(t *testing.T, s *stage) {
		s.store.suffers(func(*ports.CommitBatch) fate { return fate{after: time.Second} })
		began := time.Now()
		a := s.does(upsert("a", "Pending"), Deferred)
		if took := time.Since(began); took != 0 || a.Seq != 1 || a.HTTPStatus() != 202 {
			t.Errorf("it took %s: %s", took, a.AppendJSON(nil))
		}
		s.in(2 * time.Second)
		s.status("a", "Pending")
	})
}

func TestNothingIsAnsweredBeforeItIsDurable(t *testing.T) {
	t.Parallel()
	for _, ack := range []Ack{AckLocal, AckJournaled} {
		playWith(t, func(s *stage) { s.config.Ack = ack }, func(t *testing.T, s *stage) {
			j := s.journals[ports.Queue]
			j.change(func(j *memoryJournal) { j.lazy = true })
			time.AfterFunc(time.Second, func() { j.change(func(j *memoryJournal) { j.sync(nil) }) })
			began := time.Now()
			if a := s.host.Do(t.Context(), upsert("a", "Pending")); !a.Success() || time.Since(began) != time.Second {
				t.Errorf("%s: %s after %s", ack, a.AppendJSON(nil), time.Since(began))
			}
		})
	}
}

func TestAWriteThatTheDiskFailsIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		j := s.journals[ports.Queue]
		j.change(func(j *memoryJournal) { j.lazy = true })
		time.AfterFunc(time.Second, func() {
			j.change(func(j *memoryJournal) { j.sync(ports.Errorf(ports.Unavailable, "journal", "the disk fails")) })
		})
		a := s.does(upsert("a", "Pending"), Unavailable)
		if a.HTTPStatus() != 503 || !a.Failed() {
			t.Errorf("the answer is %s", a.AppendJSON(nil))
		}
		began := time.Now() // and one that never answers holds nobody
		s.does(upsert("b", "Pending"), Unavailable)
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

func TestAFullJournalTakesNothingMoreAndGoesOnWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.does(upsert("a", "Pending"), Done)
		s.journals[ports.Queue].change(func(j *memoryJournal) { j.bounds.Full = true })
		a := s.does(upsert("a", "Running"), Unavailable)
		if a.HTTPStatus() != 507 || a.Err.Code != ports.Full {
			t.Errorf("the answer is %d %s", a.HTTPStatus(), a.AppendJSON(nil))
		}
		if err := s.host.Ready(); ports.CodeOf(err) != ports.Full {
			t.Errorf("ready is %v", err)
		}
		s.does(call(ports.UpsertManifest, `{"Manifest":{"Hash":"m"}}`), Done) // the other family is not concerned
		s.journals[ports.Queue].change(func(j *memoryJournal) { j.bounds.Full = false })
		s.does(upsert("a", "Complete"), Done)
		s.status("a", "Complete")
	})
}

func TestAFullJournalStillCommitsWhatItHas(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.store.back = time.Second
		s.store.kill(nil)
		s.does(upsert("a", "Pending"), Deferred)
		s.journals[ports.Queue].change(func(j *memoryJournal) { j.bounds.Full = true })
		s.in(10 * time.Second)
		s.status("a", "Pending")
		if s.journals[ports.Queue].Bounds().First != 2 {
			t.Error("what the store has still takes the room")
		}
	})
}

func TestADeferredWriteThatIsDecidedOtherwiseIsKeptInMind(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.does(call(ports.AppendEvent, `{"Event":{"WorkItemHash":"a","EventGUID":"g","EventType":"x"}}`), Done)
		s.store.back = time.Second
		s.store.kill(nil)
		missing := s.does(patch("unknown", "Done"), Deferred)
		conflict := s.does(call(ports.AppendEvent, `{"Event":{"WorkItemHash":"a","EventGUID":"g","EventType":"y"}}`), Deferred)
		stored := s.does(upsert("a", "Pending"), Deferred)
		if w := s.host.Write(ports.Queue, missing.Seq); w.State != "pending" {
			t.Errorf("before the decision: %+v", w)
		}
		s.in(5 * time.Second)
		for seq, want := range map[uint64]WriteStatus{
			missing.Seq:  {Family: ports.Queue, Seq: missing.Seq, State: "decided", Outcome: "NotFound"},
			conflict.Seq: {Family: ports.Queue, Seq: conflict.Seq, State: "decided", Outcome: "conflict", Reason: "EventGUID: is stored already with other content; give a new event a GUID of its own"},
			stored.Seq:   {Family: ports.Queue, Seq: stored.Seq, State: "decided"},
			99:           {Family: ports.Queue, Seq: 99, State: "unknown"},
			0:            {Family: ports.Queue, State: "unknown"},
		} {
			if got := s.host.Write(ports.Queue, seq); got != want {
				t.Errorf("write %d is %+v, want %+v", seq, got, want)
			}
		}
		f := s.host.Status().Families[0]
		if f.Writes.Deferred != 3 || f.Writes.Overtaken != 2 || f.Writes.Accepted != 4 || f.Writes.NotFound != 1 || f.Writes.Refused != 1 || f.Writes.Stored != 2 {
			t.Errorf("the counts are %+v", f.Writes)
		}
		if len(f.Deferred) != 2 || f.Deferred[0].Seq != conflict.Seq || f.Deferred[1].Seq != missing.Seq {
			t.Errorf("the ring shows %+v", f.Deferred)
		}
	})
}

func TestALostReplyGivesTheFirstDecision(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.does(upsert("a", "Pending"), Done)
		var once atomic.Bool
		s.store.suffers(func(b *ports.CommitBatch) fate {
			if len(b.Entries) > 0 && once.Swap(false) {
				return fate{kind: loses}
			}
			return fate{}
		})
		once.Store(true)
		// Had it been decided twice, the second time would have found nothing to remove.
		s.does(patch("unknown", "x"), Deferred)
		s.in(3 * time.Second)
		if w, ok := s.queue().overtaken.find(2); !ok || w.Outcome != "NotFound" {
			t.Errorf("the deferred patch is remembered as %+v", w)
		}
		once.Store(true)
		s.does(call(ports.UpsertManifest, `{"Manifest":{"Hash":"m"}}`), Deferred)
		s.in(3 * time.Second)
		s.does(call(ports.UpsertManifest, `{"Manifest":{"Hash":"m2"}}`), Done)
		once.Store(true)
		s.does(call(ports.RemoveManifest, `{"RunHash":"m"}`), Deferred)
		s.in(3 * time.Second)
		if w := s.host.Write(ports.Manifest, 3); w.State != "decided" || w.Outcome != "" {
			t.Errorf("the removal was decided %+v", w)
		}
	})
}

func TestWritesOfOneCallerAreDecidedInTheOrderInWhichTheyBegan(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		var promises []*Promise
		for _, status := range []string{"Pending", "Running", "Complete"} {
			promises = append(promises, s.host.Begin(upsert("a", status)))
		}
		for i, p := range promises {
			if a := p.Wait(t.Context()); a.Situation != Done || a.Seq != uint64(i+1) {
				t.Errorf("write %d: %s", i, a.AppendJSON(nil))
			}
		}
		s.status("a", "Complete")
	})
}

func TestTheTimeOfAcceptanceNeverGoesBack(t *testing.T) {
	t.Parallel()
	var back atomic.Int64
	clock := func() time.Time { return time.Now().Add(-time.Duration(back.Load())) }
	playWith(t, func(s *stage) { s.config.Clock = clock }, func(t *testing.T, s *stage) {
		s.does(call(ports.AppendEvent, `{"Event":{"WorkItemHash":"a","EventType":"first"}}`), Done)
		back.Store(int64(time.Hour))
		s.does(call(ports.AppendEvent, `{"Event":{"WorkItemHash":"a","EventType":"second"}}`), Done)
		a := s.host.Events(t.Context(), ports.EventQuery{Key: "a", Limit: 10})
		var events []struct{ EventType, OrderKey string }
		if err := json.Unmarshal(a.Value, &events); err != nil || len(events) != 2 {
			t.Fatalf("%s: %v", a.Value, err)
		}
		if events[0].EventType != "first" || events[0].OrderKey >= events[1].OrderKey || events[0].OrderKey[:14] != events[1].OrderKey[:14] {
			t.Errorf("the events are %+v", events)
		}
	})
}

func TestACallerThatGoesAwayIsForgotten(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.store.suffers(func(*ports.CommitBatch) fate { return fate{after: time.Minute} })
		p := s.host.Begin(upsert("a", "Pending"))
		if a := p.Wait(t.Context()); a.Situation != Deferred {
			t.Errorf("the answer is %s", a.AppendJSON(nil))
		}
		synctest.Wait()
		s.queue().mu.Lock()
		defer s.queue().mu.Unlock()
		if n := len(s.queue().waiters); n != 0 {
			t.Errorf("%d callers are remembered", n)
		}
	})
}
