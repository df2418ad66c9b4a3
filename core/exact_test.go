package core

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/ports"
)

// tainted plays a scene with a follower that has everything and, beside it, some history of its own.
func tainted(t *testing.T, scene func(t *testing.T, s *stage, m *mirror)) {
	t.Helper()
	repairing(t, []string{"a"}, func(t *testing.T, s *stage) {
		s.writes(5)
		s.catchesUp("a", time.Second)
		s.mirror("a").has(history(4)...)
		s.mirror("a").has(eventRow("live-001", "not ours", "", 1))
		scene(t, s, s.mirror("a"))
	})
}

func TestExactCountsWithoutAConfirmationAndRemovesNothing(t *testing.T) {
	t.Parallel()
	tainted(t, func(t *testing.T, s *stage, m *mirror) {
		puts := m.puts
		e, err := s.host.ResyncExact(t.Context(), "a", -1, nil)
		if err != nil || e != (Exactness{Backend: "a", OnlyThere: 22}) {
			t.Errorf("%+v, %v", e, err)
		}
		if m.puts != puts || len(m.look().rows) != 42 {
			t.Errorf("%d puts, %d records left", m.puts-puts, len(m.look().rows))
		}
		if q, r := s.follower("a", ports.Queue).OnlyThere, s.follower("a", ports.Manifest).OnlyThere; *q != 18 || *r != 4 {
			t.Errorf("the status says %d and %d", *q, *r)
		}
	})
}

func TestExactWithAWrongCountNamesBothAndRemovesNothing(t *testing.T) {
	t.Parallel()
	tainted(t, func(t *testing.T, s *stage, m *mirror) {
		for _, wrong := range []int64{0, 21, 23, 1000} {
			e, err := s.host.ResyncExact(t.Context(), "a", wrong, nil)
			if ports.CodeOf(err) != ports.Conflict || !strings.Contains(err.Error(), "22") || !strings.Contains(err.Error(), fmt.Sprint(wrong)) {
				t.Errorf("%d: %v", wrong, err)
			}
			if e.OnlyThere != 22 || e.Removed != 0 || len(m.look().rows) != 42 {
				t.Errorf("%d: %+v, %d records left", wrong, e, len(m.look().rows))
			}
		}
	})
}

func TestExactWithTheRightCountRemovesWhatOnlyTheBackendHas(t *testing.T) {
	t.Parallel()
	tainted(t, func(t *testing.T, s *stage, m *mirror) {
		var last Progress
		e, err := s.host.ResyncExact(t.Context(), "a", 22, func(p Progress) { last = p })
		if err != nil || e != (Exactness{Backend: "a", OnlyThere: 22, Removed: 22}) || last.Changed != 22 {
			t.Errorf("%+v, %v, told %+v", e, err, last)
		}
		lone := map[string]bool{}
		for _, b := range m.look().log {
			for _, row := range b.Rows {
				if row.Gone && lone[row.Key] {
					t.Errorf("the item %s went before its events", row.Key)
				}
				lone[row.Key] = row.Gone && row.Kind == ports.KindItem
			}
		}
		s.catchesUp("a", 2*time.Minute)
		s.equal("a")
		if v := s.verify("local", "a"); !v.Equal() {
			t.Errorf("%+v", v)
		}
		s.does(upsert("later", "Pending"), Done)
		s.catchesUp("a", 2*time.Minute)
		s.equal("a")
	})
}

func TestExactNeverRemovesWhatIsWrittenMeanwhileNorMoreThanWasConfirmed(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) {
		s.follows("a", func(m *mirror) { m.slots = 2 }) // one key after the other
	}, func(t *testing.T, s *stage) {
		s.inPieces(1)
		s.catchesUp("a", 10*time.Second)
		m := s.mirror("a")
		for i, key := range []string{"k1", "k2", "k3", "y1", "y2", "y3", "y4"} {
			m.has(itemRow(key, "", uint64(i)))
		}
		var once sync.Once
		m.suffers(func(b *ports.Batch) (late putFate) {
			if len(b.Rows) > 0 && b.Rows[0].Gone {
				once.Do(func() {
					s.does(upsert("k1", "Pending"), Done) // is on its way out, and comes back
					s.does(upsert("k3", "Pending"), Done) // is not there any more when its turn comes
					for _, key := range []string{"z1", "z2"} {
						row := itemRow(key, "", 9)
						m.disk.put(&row)
					}
					late = putFate{after: time.Second}
				})
			}
			return late
		})
		e, err := s.host.ResyncExact(t.Context(), "a", 7, nil)
		if err != nil || e.OnlyThere != 7 || e.Removed != 7 {
			t.Errorf("%+v, %v", e, err)
		}
		m.suffers(nil)
		if only := s.follower("a", ports.Queue).OnlyThere; *only != 1 {
			t.Errorf("the status says %d", *only)
		}
		s.catchesUp("a", 2*time.Minute)
		m.lacks(itemRow("z2", "", 0))
		s.equal("a")
		if got := len(m.look().rows); got != 2 {
			t.Errorf("%d records left", got)
		}
	})
}

func TestARemovalThatTakesEffectTooLateTakesNothingThatCameSince(t *testing.T) {
	t.Parallel()
	repairing(t, []string{"a"}, func(t *testing.T, s *stage) {
		m := s.mirror("a")
		m.change(func(m *mirror) { m.unfenced = true })
		m.has(itemRow("k", "", 1))
		n := 0
		m.suffers(func(b *ports.Batch) putFate {
			if n++; n == 1 {
				return putFate{kind: putLate, after: 20 * time.Second}
			}
			return putFate{}
		})
		if e, err := s.host.ResyncExact(t.Context(), "a", 1, nil); err != nil || e.Removed != 1 {
			t.Errorf("%+v, %v", e, err)
		}
		s.does(upsert("k", "Pending"), Done)
		s.in(25 * time.Second)
		if _, ok := m.row(ports.KindItem, "k", "", 0); ok {
			t.Error("the late removal had no effect")
		}
		s.in(2 * time.Minute)
		s.equal("a")
	})
}

func TestExactWaitsForWhatTheLocalStoreIsAboutToHave(t *testing.T) {
	t.Parallel()
	repairing(t, []string{"a"}, func(t *testing.T, s *stage) {
		s.store.suffers(func(*ports.CommitBatch) fate { return fate{after: time.Second} })
		s.host.Begin(upsert("w", "Pending"))
		s.mirror("a").has(itemRow("w", "", 1))
		s.in(100 * time.Millisecond)
		if e, err := s.host.ResyncExact(t.Context(), "a", -1, nil); err != nil || e.OnlyThere != 0 {
			t.Errorf("%+v, %v", e, err)
		}
		s.store.suffers(nil)
	})
}

func TestExactUnderWritesTakesNothingForLost(t *testing.T) {
	t.Parallel()
	repairing(t, []string{"a"}, func(t *testing.T, s *stage) {
		s.writes(5)
		s.catchesUp("a", time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				s.host.Do(ctx, upsert(fmt.Sprintf("new-%03d", i), "Pending"))
				<-time.After(3 * time.Millisecond)
			}
		})
		s.mirror("a").change(func(m *mirror) { m.delays = time.Millisecond })
		for range 5 {
			if e, err := s.host.ResyncExact(t.Context(), "a", -1, nil); err != nil || e.OnlyThere != 0 {
				t.Errorf("%+v, %v", e, err)
			}
			s.in(50 * time.Millisecond)
		}
		cancel()
		wg.Wait()
	})
}

func TestAnExactFollowerIsNotDoubtfulAnyMore(t *testing.T) {
	t.Parallel()
	for _, confirm := range []int64{-1, 1} {
		playWith(t, func(s *stage) {
			s.follows("a")
			s.doubtful("a")
		}, func(t *testing.T, s *stage) {
			s.in(2 * time.Second)
			s.mirror("a").has(itemRow("only there", "", 1))
			if _, err := s.host.ResyncExact(t.Context(), "a", confirm, nil); err != nil {
				t.Fatal(err)
			}
			for _, f := range ports.Families {
				if mark, _, _ := s.state.Follower("a", f); mark.Doubtful != (confirm < 0) {
					t.Errorf("confirmed %d, %s: %+v", confirm, f, mark)
				}
			}
		})
	}
}

func TestExactIsRefusedWhereItCouldBeWrong(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) {
		s.follows("a")
		s.follows("keyed", func(m *mirror) { m.keyOnly = true })
		s.follows("behind")
	}, func(t *testing.T, s *stage) {
		s.in(2 * time.Second)
		s.mirror("behind").change(func(m *mirror) { m.probe = ports.Errorf(ports.Unavailable, "", "full of itself") })
		s.in(5 * time.Second)
		cases := []struct {
			name, says string
			code       ports.Code
		}{
			{"local", "local store", ports.Invalid},
			{"nobody", "behind", ports.NotFound},
			{"keyed", "read by key", ports.Unimplemented},
			{"behind", "wait until it has caught up", ports.Conflict},
		}
		for _, c := range cases {
			if _, err := s.host.ResyncExact(t.Context(), c.name, -1, nil); ports.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		s.store.end()
		s.in(time.Second)
		_, err := s.host.ResyncExact(t.Context(), "a", -1, nil)
		expectCode(t, err, ports.Unavailable)
	})
}
