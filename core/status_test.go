package core

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/ports"
)

func TestStatusNeverWaitsForAStoreThatHangs(t *testing.T) {
	t.Parallel()
	for name, hang := range map[string]func(s *stage){
		"mute":             func(s *stage) { s.store.mute = true },
		"hung on a batch":  func(s *stage) { s.store.suffers(func(*ports.CommitBatch) fate { return fate{kind: hangs} }) },
		"dead":             func(s *stage) { s.store.back = 0; s.store.kill(nil) },
		"never there once": func(s *stage) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prepare := func(s *stage) {
				if name == "never there once" {
					s.store.back = 0
					s.store.kill(nil)
				}
			}
			playWith(t, prepare, func(t *testing.T, s *stage) {
				hang(s)
				for range 30 {
					s.host.Begin(upsert("a", "Pending"))
					began := time.Now()
					status := s.host.Status()
					s.host.Write(ports.Queue, 1)
					_ = s.host.Ready()
					if _, err := s.host.Asides(); err != nil {
						t.Error(err)
					}
					if took := time.Since(began); took != 0 || len(status.Families) != 2 || len(status.Backends) != 1 {
						t.Errorf("it took %s: %+v", took, status)
					}
					s.in(700 * time.Millisecond)
				}
				if b := s.host.Status().Backends[0]; b.State != "waiting-for-beacon" && name != "hung on a batch" {
					t.Errorf("the store is %+v", b)
				}
			})
		})
	}
}

func TestStatusTellsHowLongTheOldestWriteWaits(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		oldest := func() (backlog uint64, waits int64) {
			f := s.host.Status().Families[0]
			return f.Backlog, f.OldestMs
		}
		s.does(upsert("a", "Pending"), Done)
		if n, ms := oldest(); n != 0 || ms != 0 {
			t.Errorf("%d writes wait %d ms", n, ms)
		}
		s.store.back = 0
		s.store.kill(nil)
		s.host.Begin(upsert("a", "Running"))
		s.in(time.Minute)
		s.host.Begin(upsert("a", "Complete"))
		s.in(time.Minute)
		if n, ms := oldest(); n != 2 || ms != 120_000 {
			t.Errorf("%d writes wait %d ms", n, ms)
		}
		s.again() // it is no younger for a new start
		if n, ms := oldest(); n != 2 || ms != 120_000 {
			t.Errorf("after a start %d writes wait %d ms", n, ms)
		}
		s.store.start()
		s.in(time.Minute)
		if n, ms := oldest(); n != 0 || ms != 0 {
			t.Errorf("in the end %d writes wait %d ms", n, ms)
		}
	})
}

// A write that comes in the moment when the one before it is decided is the oldest then.
func TestStatusTellsTheAgeOfAWriteThatCameWhileAnotherWasDecided(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		j := s.journals[ports.Queue]
		s.store.suffers(func(*ports.CommitBatch) fate { return fate{after: time.Second} })
		s.host.Begin(upsert("a", "Pending"))
		synctest.Wait()
		j.change(func(j *memoryJournal) { j.lazy = true })
		s.host.Begin(upsert("b", "Pending")) // not durable yet when the first is decided
		s.in(1500 * time.Millisecond)
		s.store.suffers(func(*ports.CommitBatch) fate { return fate{kind: hangs} })
		j.change(func(j *memoryJournal) { j.sync(nil) })
		s.in(2500 * time.Millisecond)
		if f := s.host.Status().Families[0]; f.Backlog != 1 || f.OldestMs != 4000 {
			t.Errorf("%d writes wait %d ms", f.Backlog, f.OldestMs)
		}
	})
}

func TestStatusNamesWhatAPersonShouldLookAt(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		if list := s.host.Status().Notices; len(list) != 0 {
			t.Errorf("all is well, but: %q", list)
		}
		s.store.suffers(on("bad", neverTakes))
		s.does(upsert("bad", "Pending"), SetAside)
		s.journals[ports.Queue].change(func(j *memoryJournal) {
			j.bounds.Full, j.bounds.Fault, j.bounds.Damaged = true, "the disk fails", []string{"q.corrupt-1"}
		})
		if err := s.host.lose(ports.Manifest, ports.Span{From: 1, To: 2}); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(s.host.Status().Notices, "\n")
		for _, want := range []string{"Queue: the journal is full", "the disk fails", "degraded", "Manifest: a range of writes is lost", "unsettled list"} {
			if !strings.Contains(text, want) {
				t.Errorf("nothing tells %q:\n%s", want, text)
			}
		}
		if s.host.Status().Ready || s.host.Status().Detail == "" {
			t.Error("it calls itself ready")
		}
		if _, err := json.Marshal(s.host.Status()); err != nil {
			t.Error(err)
		}
	})
}

func TestWhatWentWrongLastIsTold(t *testing.T) {
	t.Parallel()
	at := time.Now()
	var b BackendStatus
	for _, n := range []struct {
		what string
		at   time.Time
		want string
	}{
		{"", time.Time{}, ""},
		{"the plugin exited with code 3", at, "the plugin exited with code 3"},
		{"", time.Time{}, "the plugin exited with code 3"},
		{"an older one", at.Add(-time.Second), "the plugin exited with code 3"},
		{"a newer one", at.Add(time.Second), "a newer one"},
	} {
		if b.note(n.what, n.at); b.LastError != n.want {
			t.Errorf("after %q it tells %q, want %q", n.what, b.LastError, n.want)
		}
	}
}

func TestASilentPluginIsToldOfWhileItRuns(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		const silence = "has answered no health check for 3s"
		s.host.link.Health = func() Health { return Health{Running: true, Detail: silence} }
		if got := s.host.Status().Backends[0].Detail; got != silence {
			t.Errorf("it is told as %q", got)
		}
	})
}

func TestALocalStoreThatAnswersNoBatchIsToldOfWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) { s.revive = true }, func(t *testing.T, s *stage) {
		s.store.suffers(func(*ports.CommitBatch) fate { return fate{kind: hangs} })
		s.host.Begin(upsert("a", "Pending"))
		s.in(1900 * time.Millisecond)
		status := s.host.Status()
		if b := status.Backends[0]; !strings.HasPrefix(b.Detail, "has not answered a batch for ") {
			t.Errorf("the store is told as %q", b.Detail)
		}
		if !strings.Contains(strings.Join(status.Notices, "\n"), "local: has not answered a batch") {
			t.Errorf("the notices are %q", status.Notices)
		}
		s.store.suffers(nil)
		s.in(30 * time.Second)
		if b := s.host.Status().Backends[0]; b.Detail != "" {
			t.Errorf("afterwards it is told as %q", b.Detail)
		}
	})
}
