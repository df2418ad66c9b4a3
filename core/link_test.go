package core

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"holdfast/ports"
)

func TestAStoreThatComesBackOlderIsBroughtForwardFromTheJournal(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"while the host runs", "while it is down"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			play(t, func(t *testing.T, s *stage) {
				s.does(upsert("a", "Pending"), Done)
				backup := s.store.look()
				s.again() // the backup is of an earlier start
				for i := range 20 {
					s.does(upsert(fmt.Sprint("k", i), "Pending"), Done)
				}
				s.does(patch("a", "Complete"), Done)
				restore := func(*disk) *disk { return backup }
				if how == "while it is down" {
					s.end()
					s.store.kill(restore)
					s.in(time.Second)
					s.begin()
				} else {
					s.store.kill(restore)
					s.does(upsert("later", "Pending"), Deferred) // by this one the host learns of it
				}
				s.in(5 * time.Second)
				s.status("a", "Complete")
				s.status("k19", "Pending")
				if f := s.host.Status().Families[0]; len(f.Lost) != 0 || f.Backlog != 0 {
					t.Errorf("in the end %+v", f)
				}
				inTurn(t, s.store.look())
			})
		})
	}
}

func TestADeathIsNoticedAlsoWhileNothingIsWritten(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.does(upsert("a", "Pending"), Done)
		backup := s.store.look()
		s.does(patch("a", "Complete"), Done)
		s.store.kill(func(*disk) *disk { return backup })
		s.in(time.Second)
		s.status("a", "Complete") // the older copy was brought forward, or nobody might read it as fresh
		s.store.kill(nil)
		s.in(time.Second)
		s.does(upsert("b", "Pending"), Done) // the new process was opened before it is needed
		s.store.back = 0
		s.store.kill(nil)
		s.in(time.Second)
		if b := s.host.Status().Backends[0]; b.State != "waiting-for-beacon" || s.host.Ready() == nil {
			t.Errorf("the dead store is %+v", b)
		}
	})
}

func TestAStoreThatIsBehindTheJournalIsToldAsLost(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.does(upsert("a", "Pending"), Done)
		backup := s.store.look()
		for i := range 9 {
			s.does(upsert(fmt.Sprint("k", i), "Pending"), Done)
		}
		if err := s.journals[ports.Queue].Trim(6); err != nil {
			t.Fatal(err)
		}
		s.store.kill(func(*disk) *disk { return backup })
		s.does(upsert("b", "Pending"), Deferred)
		s.in(5 * time.Second)
		want := []ports.Span{{From: 2, To: 6}}
		if f := s.host.Status().Families[0]; !reflect.DeepEqual(f.Lost, want) || f.Committed != 11 {
			t.Errorf("in the end %+v", f)
		}
		s.status("k8", "Pending")
		s.status("b", "Pending")
		s.again()
		if f := s.host.Status().Families[0]; !reflect.DeepEqual(f.Lost, want) || len(s.host.Status().Notices) == 0 {
			t.Errorf("after another start lost are %v", f.Lost)
		}
	})
}

func TestAWipedStoreIsFilledFromTheJournal(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.does(upsert("a", "Pending"), Done)
		s.does(call(ports.UpsertManifest, `{"Manifest":{"Hash":"m"}}`), Done)
		s.store.kill(func(*disk) *disk { return newDisk("store-2") })
		s.does(patch("a", "Complete"), Deferred)
		s.in(5 * time.Second)
		s.status("a", "Complete")
		if a := s.host.Manifest(t.Context(), "m"); a.Situation != Done {
			t.Errorf("the manifest reads %s", a.AppendJSON(nil))
		}
		if s.host.Status().Backends[0].StoreID != "store-2" || s.state.known.StoreID != "store-2" {
			t.Error("the new store is not remembered")
		}
	})
}

// swapped is a stage on which the store was replaced by one that holds other history.
func swapped(t *testing.T, scene func(t *testing.T, s *stage)) {
	t.Helper()
	play(t, func(t *testing.T, s *stage) {
		s.does(upsert("a", "Pending"), Done)
		s.does(upsert("b", "Pending"), Done)
		other := newDisk("store-2")
		b := ports.CommitBatch{Family: ports.Queue, Through: 1, Entries: []ports.Entry{{Seq: 1, Action: ports.UpsertWorkItem, Key: "x", Record: []byte(`{"WorkItemHash":"x"}`)}}}
		if _, err := other.commit("another host", &b); err != nil {
			t.Fatal(err)
		}
		clear(other.marks)
		s.store.kill(func(*disk) *disk { return other })
		s.does(patch("a", "Complete"), Deferred)
		s.in(5 * time.Second)
		scene(t, s)
	})
}

func TestAnotherStoreWaitsForAPersonAndAnswersNothingAsFresh(t *testing.T) {
	t.Parallel()
	swapped(t, func(t *testing.T, s *stage) {
		b := s.host.Status().Backends[0]
		if b.State != "error" || b.Detail == "" || b.Remedy == "" || s.host.Ready() == nil {
			t.Errorf("the store is %+v", b)
		}
		if !strings.Contains(b.Detail, "nothing of it is this host's, but what the host another  wrote") || !strings.HasPrefix(b.Remedy, "run `holdfast local accept --adopt`") {
			t.Errorf("whose history it is, and what helps, is told as %q, %q", b.Detail, b.Remedy)
		}
		if len(s.store.look().applied[ports.Queue]) != 1 {
			t.Error("something was written to it")
		}
		s.does(upsert("c", "Pending"), Deferred) // the journal accepts
		if got := s.item("b"); !got.Stale {
			t.Errorf("a read is answered from another store's history: %+v", got)
		}
		since := b.Since
		s.in(time.Minute)
		if b := s.host.Status().Backends[0]; b.Since != since {
			t.Errorf("it waits since %s, not %s", b.Since, since)
		}
		if err := s.host.AcceptLocal(false); err != nil {
			t.Error(err)
		}
		s.in(time.Second)
		s.status("c", "Pending")
		if got := s.item("b"); !got.NotFound {
			t.Errorf("what the old store has is here: %+v", got)
		}
		if got := s.item("a"); !got.NotFound {
			t.Errorf("a patch made a row: %+v", got)
		}
		if err := s.host.AcceptLocal(true); ports.CodeOf(err) != ports.Conflict {
			t.Errorf("there is nothing more to accept: %v", err)
		}
	})
}

func TestAnotherStoreThatIsAdoptedGetsWhatTheJournalHas(t *testing.T) {
	t.Parallel()
	swapped(t, func(t *testing.T, s *stage) {
		if err := s.host.AcceptLocal(true); err != nil {
			t.Error(err)
		}
		s.in(time.Second)
		s.status("a", "Complete")
		s.status("b", "Pending")
		if got := s.item("x"); !got.Success {
			t.Errorf("its own history is gone: %+v", got)
		}
	})
}

func TestTheOldStoreMayComeBackInsteadOfAWord(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.does(upsert("a", "Pending"), Done)
		var old *disk
		other := newDisk("store-2")
		other.held[place{kind: ports.KindItem, key: "x"}] = s.store.look().held[place{kind: ports.KindItem, key: "a"}]
		s.store.kill(func(d *disk) *disk { old = d; return other })
		s.does(patch("a", "Complete"), Deferred)
		s.in(5 * time.Second)
		s.store.kill(func(*disk) *disk { return old })
		s.in(5 * time.Second)
		s.status("a", "Complete")
		inTurn(t, s.store.look())
	})
}

func TestACopiedDataDirectoryIsRefusedAndNoWordHelps(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.does(upsert("a", "Pending"), Done)
		original, copied := s.state, s.state.copied()
		s.again() // the original goes on
		s.end()
		s.state = copied
		s.begin()
		s.in(5 * time.Second)
		b := s.host.Status().Backends[0]
		if b.State != "error" || b.Remedy == "" {
			t.Errorf("the store is %+v", b)
		}
		if err := s.host.AcceptLocal(false); ports.CodeOf(err) != ports.Conflict {
			t.Errorf("it can be accepted: %v", err)
		}
		s.does(upsert("b", "Pending"), Deferred)
		s.in(time.Minute)
		if got := s.store.look(); len(got.applied[ports.Queue]) != 1 {
			t.Errorf("the copy wrote: %v", got.applied)
		}
		s.end()
		s.state = original
		s.begin()
		s.in(5 * time.Second)
		s.status("a", "Pending")
	})
}

// No Seq is used twice, also when the store knows of higher ones than the journal.
func TestAJournalThatWasLostGoesOnAboveTheStore(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		for i := range 5 {
			s.does(upsert(fmt.Sprint("k", i), "Pending"), Done)
		}
		s.end()
		s.journals[ports.Queue] = newMemoryJournal()
		s.begin()
		s.in(time.Second)
		if a := s.does(upsert("k5", "Pending"), Done); a.Seq != 6 {
			t.Errorf("it has Seq %d", a.Seq)
		}
		s.status("k0", "Pending")
		s.status("k5", "Pending")
	})
}

func TestAStoreThatCannotBeUsedIsAskedCalmly(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) { s.store.stand = ports.Errorf(ports.Invalid, "memory", "belongs to a newer holdfast") }, func(t *testing.T, s *stage) {
		s.in(time.Minute)
		s.store.mu.Lock()
		stood := s.store.stood
		s.store.stand = nil
		s.store.mu.Unlock()
		if b := s.host.Status().Backends[0]; b.State != "error" || b.Remedy == "" || stood > 60 {
			t.Errorf("asked %d times in a minute: %+v", stood, b)
		}
		s.does(upsert("a", "Pending"), Deferred)
		s.in(5 * time.Second)
		s.status("a", "Pending")
	})
}

func TestAStoreThatOpensAndHasNoRoomIsToldAsAwayOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	playWith(t, func(s *stage) { s.config.Logger = hclog.New(&hclog.LoggerOptions{Output: &log}) }, func(t *testing.T, s *stage) {
		s.does(upsert("a", "Pending"), Done)
		s.store.suffers(func(*ports.CommitBatch) fate {
			return fate{kind: refuses, err: ports.Errorf(ports.Full, "memory", "the disk is full")}
		})
		s.does(upsert("b", "Pending"), Deferred)
		s.in(20 * time.Second)
		s.store.suffers(nil)
		s.in(5 * time.Second)
		s.status("b", "Pending")
		away, back := strings.Count(log.String(), "the local store is away"), strings.Count(log.String(), "the local store is back")
		if away != 1 || back != 1 || !strings.Contains(log.String(), "the disk is full") {
			t.Errorf("it is told %d times as away and %d times as back:\n%s", away, back, log.String())
		}
	})
}

func TestAStoreThatIsMuteFromItsStartIsReplaced(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) { s.revive = true }, func(t *testing.T, s *stage) {
		s.does(upsert("a", "Pending"), Done)
		s.store.mu.Lock()
		s.store.mute = true // each of its processes from now on
		s.store.mu.Unlock()
		s.store.kill(nil)
		s.does(upsert("b", "Pending"), Deferred)
		s.in(5 * time.Second)
		if b := s.host.Status().Backends[0]; b.State != string(waiting) || b.Detail != "has not said for 1s what it holds" {
			t.Errorf("it is told as %+v", b)
		}
		s.in(openLimit)
		s.store.mu.Lock()
		deaths := s.store.deaths
		s.store.mute = false
		s.store.mu.Unlock()
		if deaths < 2 {
			t.Errorf("a process that answers nothing was never replaced")
		}
		s.store.kill(nil)
		s.in(5 * time.Second)
		s.status("b", "Pending")
		if b := s.host.Status().Backends[0]; b.State != string(ready) || b.LastError == "" || b.LastErrorAt.IsZero() {
			t.Errorf("what went wrong is not told any more: %+v", b)
		}
	})
}

func TestTheHostEndsAtOnceWhateverTheStoreDoes(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]func(s *stage){
		"hangs":              func(s *stage) { s.store.suffers(func(*ports.CommitBatch) fate { return fate{kind: hangs} }) },
		"is mute":            func(s *stage) { s.store.mute = true },
		"is dead":            func(s *stage) { s.store.back = 0; s.store.kill(nil) },
		"refuses everything": func(s *stage) { s.store.suffers(func(*ports.CommitBatch) fate { return neverTakes }) },
		"dies of everything": func(s *stage) { s.store.suffers(func(*ports.CommitBatch) fate { return fate{kind: dies} }) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(t *testing.T, s *stage) {
				s.store.mu.Lock()
				s.store.back = time.Second
				s.store.mu.Unlock()
				what(s)
				var promises []*Promise
				for i := range 10 {
					promises = append(promises, s.host.Begin(upsert(fmt.Sprint("k", i), "Pending")))
				}
				s.in(time.Duration(len(name)) * 700 * time.Millisecond)
				s.end() // checks how long it takes
				began := time.Now()
				for _, p := range promises {
					if a := p.Wait(t.Context()); !slices.Contains([]Situation{Deferred, SetAside, Done}, a.Situation) {
						t.Errorf("the answer is %s", a.AppendJSON(nil))
					}
				}
				if took := time.Since(began); took > patience {
					t.Errorf("the answers took %s", took)
				}
				s.begin()
			})
		})
	}
}
