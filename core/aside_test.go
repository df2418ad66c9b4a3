package core

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/ports"
)

var neverTakes = fate{kind: refuses, err: ports.InField(ports.Invalid, "Result", "cannot be stored")}

func TestAWriteThatTheStoreRefusesForGoodIsSetAsideWithThoseBehindIt(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.does(upsert("bad", "Pending"), Done)
		s.store.suffers(on("bad", neverTakes))
		a := s.does(upsert("bad", "Running"), SetAside)
		if a.HTTPStatus() != 422 || !a.Failed() || a.Success() || a.Err.Code != ports.Invalid || a.Err.Field != "Result" || a.Seq != 2 {
			t.Errorf("the answer is %d %s", a.HTTPStatus(), a.AppendJSON(nil))
		}
		behind := s.does(patch("bad", "Complete"), SetAside)
		if behind.Err.Code != ports.Conflict {
			t.Errorf("the one behind is answered %s", behind.AppendJSON(nil))
		}
		s.does(upsert("good", "Pending"), Done)
		s.does(patch("good", "Complete"), Done)
		s.status("good", "Complete")
		if got := s.item("bad"); !got.Success || !got.Incomplete || got.Stale || got.WorkItem["Status"] != "Pending" {
			t.Errorf("the key with writes aside reads %+v", got)
		}
		if got := s.item("good"); got.Incomplete {
			t.Error("another key is incomplete too")
		}
		if a := s.host.Items(t.Context(), ports.ItemQuery{Limit: 10}); !a.Incomplete {
			t.Error("a list does not say that it is incomplete")
		}
		if got := s.asides(); !slices.Equal(got, []uint64{2, 3}) {
			t.Errorf("set aside are %v", got)
		}
		for seq, want := range map[uint64]WriteStatus{
			2: {Family: ports.Queue, Seq: 2, State: "set_aside", Outcome: "invalid", Reason: "Result: cannot be stored"},
			3: {Family: ports.Queue, Seq: 3, State: "set_aside"},
			4: {Family: ports.Queue, Seq: 4, State: "decided"},
		} {
			if got := s.host.Write(ports.Queue, seq); got != want {
				t.Errorf("write %d is %+v, want %+v", seq, got, want)
			}
		}
		if b := s.host.Status().Backends[0]; b.State != "bootstrapped" || s.store.deaths != 0 {
			t.Errorf("the store is %+v", b)
		}
	})
}

func TestOneRefusedWriteAmongManyIsFoundAndTheOthersAreStored(t *testing.T) {
	t.Parallel()
	for _, f := range []fate{neverTakes, {kind: dies}, {kind: refuses, err: ports.Errorf(ports.Internal, "memory", "panic")}} {
		play(t, func(t *testing.T, s *stage) {
			s.store.suffers(on("k137", f))
			for i := range 600 {
				s.host.Begin(upsert(fmt.Sprint("k", i), "Pending"))
			}
			s.host.Begin(patch("k137", "Complete"))
			s.in(5 * time.Minute)
			if got := s.asides(); !slices.Equal(got, []uint64{138, 601}) {
				t.Errorf("%+v: set aside are %v", f, got)
			}
			if n := len(s.store.look().held); n != 599 {
				t.Errorf("%+v: %d items are stored", f, n)
			}
			s.does(upsert("k0", "Complete"), Done)
		})
	}
}

func TestNothingElseIsUnderWayWhileAGuiltyWriteIsSought(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.store.back = 0
		s.store.kill(nil)
		for i := range 40 {
			s.host.Begin(upsert(fmt.Sprint("k", i), "Pending"))
		}
		synctest.Wait() // all of them are durable, and come in one batch
		const takes = 50 * time.Millisecond
		var first, last time.Time
		s.store.suffers(func(b *ports.CommitBatch) fate {
			f := on("k20", fate{kind: dies})(b)
			f.after = takes
			if since := time.Since(last); b.Through <= 40 && since < takes {
				t.Errorf("a batch up to %d is sent %s after another", b.Through, since)
			}
			if last = time.Now(); first.IsZero() {
				first = last
				go func() { // more comes all the while
					for i := range 40 {
						<-time.After(takes / 2)
						s.host.Begin(upsert(fmt.Sprint("later", i), "Pending"))
					}
				}()
			}
			return f
		})
		s.store.mu.Lock()
		s.store.back = time.Millisecond
		s.store.mu.Unlock()
		s.store.start()
		s.in(time.Minute)
		if got := s.asides(); !slices.Equal(got, []uint64{21}) {
			t.Errorf("aside are %v", got)
		}
	})
}

func TestAWriteThatKillsTheStoreThreeTimesIsSetAside(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.store.suffers(on("bad", fate{kind: dies}))
		a := s.does(upsert("bad", "Pending"), Deferred)
		s.in(10 * time.Second)
		if w := s.host.Write(ports.Queue, a.Seq); s.store.deaths != 3 || w.State != "set_aside" || w.Outcome != "backend_gone" {
			t.Errorf("after %d deaths it is %+v", s.store.deaths, w)
		}
		s.does(upsert("good", "Pending"), Done)
		s.does(patch("bad", "Complete"), SetAside)
		if s.store.deaths != 3 {
			t.Errorf("the store died %d times", s.store.deaths)
		}
	})
}

func TestAWriteThatTookEffectBeforeItKilledTheStoreIsNotSetAside(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		ends := []fateKind{dies, dies, loses}
		s.store.suffers(func(b *ports.CommitBatch) fate {
			if len(b.Entries) == 0 || len(ends) == 0 {
				return fate{}
			}
			f := fate{kind: ends[0]}
			ends = ends[1:]
			return f
		})
		s.does(upsert("a", "Pending"), Deferred)
		s.in(10 * time.Second)
		if got := s.asides(); got != nil || s.store.deaths != 3 {
			t.Errorf("after %d deaths aside are %v", s.store.deaths, got)
		}
		s.does(patch("a", "Complete"), Done)
		s.status("a", "Complete")
		inTurn(t, s.store.look())
	})
}

func TestAWriteThatHangsTheStoreWhileItProbesWellIsSetAside(t *testing.T) {
	t.Parallel()
	for name, hang := range map[string]fateKind{"it alone": silent, "with all behind it, until the process is replaced": hangs} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			playWith(t, func(s *stage) { s.revive = hang == hangs }, func(t *testing.T, s *stage) {
				s.store.suffers(on("bad", fate{kind: hang}))
				a := s.does(upsert("bad", "Pending"), Deferred)
				s.does(upsert("good", "Pending"), Deferred)
				s.in(2 * time.Minute)
				if w := s.host.Write(ports.Queue, a.Seq); w.State != "set_aside" || w.Outcome != "deadline" {
					t.Errorf("it is %+v", w)
				}
				s.status("good", "Pending")
			})
		})
	}
}

func TestAStoreThatIsOnlySlowIsNotReplaced(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) { s.revive = true }, func(t *testing.T, s *stage) {
		s.store.suffers(func(*ports.CommitBatch) fate { return fate{after: commitDeadline + time.Second/2} })
		s.does(upsert("a", "Pending"), Deferred)
		s.in(20 * time.Second)
		if s.store.deaths != 0 || s.asides() != nil {
			t.Errorf("it was killed %d times; aside are %v", s.store.deaths, s.asides())
		}
		s.store.suffers(nil)
		s.status("a", "Pending")
	})
}

func TestAStoreThatAnswersNothingAtAllIsReplacedAndNoWriteBlamed(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) { s.revive = true }, func(t *testing.T, s *stage) {
		s.store.probe = ports.Errorf(ports.Deadline, "memory", "no answer")
		hung := false
		s.store.suffers(func(*ports.CommitBatch) fate {
			if hung {
				return fate{}
			}
			hung = true
			return fate{kind: hangs}
		})
		s.does(upsert("a", "Pending"), Deferred)
		s.in(20 * time.Second)
		if s.store.deaths != 1 || s.asides() != nil {
			t.Errorf("it was replaced %d times; aside are %v", s.store.deaths, s.asides())
		}
		s.status("a", "Pending")
	})
}

func TestAStoreThatIsDownSetsNothingAside(t *testing.T) {
	t.Parallel()
	for name, down := range map[string]func(s *stage){
		"dead": func(s *stage) { s.store.kill(nil) },
		"dead again and again": func(s *stage) {
			s.store.back = time.Millisecond
			s.store.kill(nil)
			synctest.Wait() // the host knows
			for i := range 100 {
				time.AfterFunc(time.Duration(i+1)*7*time.Millisecond, func() { s.store.kill(nil) })
			}
		},
		"mute":        func(s *stage) { s.store.mute = true },
		"unavailable": func(s *stage) { s.store.suffers(refusing(ports.Unavailable)) },
		"full":        func(s *stage) { s.store.suffers(refusing(ports.Full)) },
		"hung, and no probe answers": func(s *stage) {
			s.store.probe = ports.Errorf(ports.Deadline, "memory", "no answer")
			s.store.suffers(func(*ports.CommitBatch) fate { return fate{kind: hangs} })
		},
		"broken, and the probe says so": func(s *stage) {
			s.store.probe = ports.Errorf(ports.Internal, "memory", "malformed")
			s.store.suffers(refusing(ports.Internal))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(t *testing.T, s *stage) {
				s.store.mu.Lock()
				s.store.back = 0
				s.store.mu.Unlock()
				down(s)
				s.does(upsert("a", "Pending"), Deferred)
				s.does(patch("a", "Complete"), Deferred)
				s.in(3 * time.Minute)
				if got := s.asides(); got != nil {
					t.Errorf("set aside are %v", got)
				}
				s.store.suffers(nil)
				s.store.mu.Lock()
				s.store.back, s.store.mute, s.store.probe = time.Second, false, nil
				s.store.mu.Unlock()
				s.store.kill(nil)
				s.store.start()
				s.in(time.Minute)
				s.status("a", "Complete")
			})
		})
	}
}

func refusing(code ports.Code) func(*ports.CommitBatch) fate {
	return func(*ports.CommitBatch) fate {
		return fate{kind: refuses, err: ports.Errorf(code, "memory", "not this time")}
	}
}

func TestWhatIsSetAsideSurvivesTheHost(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		bothAside(s)
		s.again()
		if got := s.asides(); !slices.Equal(got, []uint64{1, 2}) || s.host.Status().Families[0].SetAside != 2 {
			t.Errorf("aside are %v", got)
		}
		s.does(patch("bad", "Failed"), SetAside)
		s.store.suffers(nil)
		s.store.back = 0
		s.store.kill(nil)
		if _, err := s.host.RetryAside(ports.Queue, "bad"); err != nil { // the journal keeps the retry too
			t.Error(err)
		}
		s.again()
		s.store.start()
		s.in(5 * time.Second)
		s.status("bad", "Failed")
		if s.asides() != nil {
			t.Errorf("aside are %v", s.asides())
		}
		inTurn(t, s.store.look())
	})
}

func TestAtItsLimitTheStatusSaysWhatToDoAndNothingIsLost(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) { s.state.room = 2 }, func(t *testing.T, s *stage) {
		bothAside(s)
		s.does(patch("bad", "Failed"), Deferred)
		s.does(upsert("good", "Pending"), Deferred)
		s.in(10 * time.Second)
		if b := s.host.Status().Backends[0]; b.State != "error" || b.Remedy == "" || b.Detail == "" {
			t.Errorf("the store is %+v", b)
		}
		if len(s.host.Status().Notices) == 0 || s.host.Ready() == nil {
			t.Error("nobody is told")
		}
		if _, err := s.host.DiscardAside(ports.Queue, "bad"); err != nil {
			t.Error(err)
		}
		s.in(5 * time.Second)
		s.status("good", "Pending")
		if got := s.asides(); !slices.Equal(got, []uint64{2, 3}) {
			t.Errorf("aside are %v", got)
		}
		if b := s.host.Status().Backends[0]; b.State != "bootstrapped" || b.Remedy != "" {
			t.Errorf("the store is %+v", b)
		}
	})
}

// One falsy answer would end a hub's sweep for good.
func TestWhatAHubSendsAgainIsSetAsideQuietly(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.store.suffers(on("bad", neverTakes))
		a := s.does(call(ports.UpsertWorkItem, `{"WorkItem":{"WorkItemHash":"bad","IDBeaconWorkItem":7}}`), RefusedQuietly)
		if !a.Success() || !a.Failed() || s.host.Status().Families[0].SetAside != 1 {
			t.Errorf("the answer is %s", a.AppendJSON(nil))
		}
	})
}
