package core

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/ports"
)

func (s *stage) verify(a, b string) Verification {
	s.t.Helper()
	v, err := s.host.Verify(s.t.Context(), a, b, nil)
	if err != nil {
		s.t.Fatalf("verify %s %s: %v", a, b, err)
	}
	return v
}

func TestAFollowerThatHasEverythingIsEqual(t *testing.T) {
	t.Parallel()
	repairing(t, []string{"a", "b"}, func(t *testing.T, s *stage) {
		s.writes(10)
		s.catchesUp("a", time.Second)
		s.catchesUp("b", time.Second)
		for _, sides := range [][2]string{{"local", "a"}, {"a", "local"}, {"a", "b"}} {
			if v := s.verify(sides[0], sides[1]); !v.Equal() || v.Compared != 40 || v.OneWay || v.A != sides[0] || v.B != sides[1] {
				t.Errorf("%v: %+v", sides, v)
			}
		}
	})
}

func TestEveryKindOfDifferenceIsFoundAndNamed(t *testing.T) {
	t.Parallel()
	repairing(t, []string{"a"}, func(t *testing.T, s *stage) {
		s.writes(10)
		s.catchesUp("a", time.Second)
		m := s.mirror("a")
		m.lacks(itemRow("live-001", "", 0), eventRow("live-002", "live-002-a", "", 0), manifestRow("run-live-003", "", 0))
		m.has(history(1)...)
		edit := func(at place, change func(r *ports.Row)) {
			row := m.look().rows[at]
			change(&row)
			m.has(row)
		}
		edit(place{kind: ports.KindItem, key: "live-004"}, func(r *ports.Row) {
			r.Body = []byte(`{"Status":"Failed","WorkItemHash":"live-004","Mine":1}`)
		})
		edit(place{kind: ports.KindItem, key: "live-005"}, func(r *ports.Row) { r.Body = []byte(`{"Status":"Running","WorkItemHash":"live-005"}`) })
		edit(place{kind: ports.KindEvent, key: "live-006-a"}, func(r *ports.Row) { r.First.OrderKey = "0" })
		edit(place{kind: ports.KindAttempt, key: "live-007", number: 1}, func(r *ports.Row) { r.Change = ports.Change{Host: "other", Seq: 1} })
		edit(place{kind: ports.KindManifest, key: "run-live-008"}, func(r *ports.Row) { r.Body = []byte(`{"Status":"Running","Hash":"run-live-008"}`) })

		v := s.verify("local", "a")
		if v.OnlyA != 3 || v.OnlyB != 6 || v.Different != 3 || v.Compared != 37 {
			t.Errorf("%+v", v)
		}
		got := map[string]string{}
		for _, d := range v.Differences {
			got[fmt.Sprintf("%s %s %s%d", d.Kind, d.Key, d.GUID, d.Number)] = d.Only + strings.Join(d.Members, ",")
		}
		want := map[string]string{
			"WorkItem live-001 0": "local", "Event live-002 live-002-a0": "local", "Manifest run-live-003 0": "local",
			"WorkItem item-000 0": "a", "Event item-000 item-000-a0": "a", "Event item-000 item-000-b0": "a", "Attempt item-000 1": "a",
			"Manifest run-000 0": "a", "Event orphan orphan-a0": "a",
			"WorkItem live-004 0": "Status,Mine", "Event live-006 live-006-a0": "OrderKey", "Manifest run-live-008 0": "ManifestJSON",
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %v\nwant %v", got, want)
		}
		if back := s.verify("a", "local"); back.OnlyA != 6 || back.OnlyB != 3 || back.Different != 3 {
			t.Errorf("the other way round: %+v", back)
		}
	})
}

func TestWritesThatAreOnTheirWayAreNoDifferences(t *testing.T) {
	t.Parallel()
	repairing(t, []string{"a", "b"}, func(t *testing.T, s *stage) {
		s.writes(30)
		m := s.mirror("b")
		m.suffers(every(putFate{after: 30 * time.Millisecond}))
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				s.host.Do(ctx, patch(fmt.Sprintf("live-%03d", i%30), fmt.Sprintf("Status %d", i)))
				s.host.Do(ctx, upsert(fmt.Sprintf("new-%03d", i), "Pending"))
				<-time.After(20 * time.Millisecond)
			}
		})
		m.change(func(m *mirror) { m.delays = time.Millisecond })
		for range 2 {
			if v := s.verify("local", "b"); !v.Equal() || v.Compared < 120 {
				t.Errorf("%+v", v)
			}
		}
	})
}

func TestALastingDifferenceIsFoundUnderWritesToo(t *testing.T) {
	t.Parallel()
	repairing(t, []string{"a"}, func(t *testing.T, s *stage) {
		s.writes(5)
		s.catchesUp("a", time.Second)
		s.mirror("a").lacks(itemRow("live-003", "", 0))
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				s.host.Do(ctx, patch("live-002", fmt.Sprintf("Status %d", i)))
				<-time.After(10 * time.Millisecond)
			}
		})
		if v := s.verify("local", "a"); v.OnlyA != 1 || v.OnlyB+v.Different != 0 || v.Differences[0].Key != "live-003" {
			t.Errorf("%+v", v)
		}
	})
}

func TestSidesThatCannotBeComparedAreRefused(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) {
		s.follows("a")
		s.follows("keyed", func(m *mirror) { m.keyOnly = true })
		s.follows("keyed too", func(m *mirror) { m.keyOnly = true })
		s.follows("away", func(m *mirror) { m.end() })
		s.follows("other", func(m *mirror) { m.families = []ports.Family{ports.Manifest} })
		s.follows("another", func(m *mirror) { m.families = []ports.Family{ports.Queue} })
	}, func(t *testing.T, s *stage) {
		s.writes(4)
		s.in(5 * time.Second)
		cases := []struct {
			a, b, says string
			code       ports.Code
		}{
			{"local", "nobody", "local", ports.NotFound},
			{"nobody", "a", "keyed", ports.NotFound},
			{"a", "a", "the same", ports.Invalid},
			{"a", "away", "away", ports.BackendGone},
			{"keyed", "keyed too", "read by key", ports.Unimplemented},
			{"other", "another", "same family", ports.Unimplemented},
		}
		for _, c := range cases {
			if _, err := s.host.Verify(t.Context(), c.a, c.b, nil); ports.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s with %s: %v", c.a, c.b, err)
			}
		}
		s.mirror("keyed").has(history(1)...)
		for _, sides := range [][2]string{{"local", "keyed"}, {"keyed", "local"}} {
			if v := s.verify(sides[0], sides[1]); !v.OneWay || v.A != "local" || v.B != "keyed" || v.Compared != 16 || !v.Equal() {
				t.Errorf("%v: %+v", sides, v)
			}
		}
		if v := s.verify("local", "other"); !v.Equal() || v.Compared != 4 {
			t.Errorf("of the family that both keep: %+v", v)
		}
		s.store.end()
		s.in(time.Second)
		_, err := s.host.Verify(t.Context(), "local", "a", nil)
		expectCode(t, err, ports.Unavailable)
	})
}

func TestADoubtfulFollowerIsTrustedAgainOnceItIsFoundEqual(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		wrong   func(s *stage)
		trusted bool
	}{
		"equal":     {func(*stage) {}, true},
		"different": {func(s *stage) { s.mirror("a").has(itemRow("only there", "", 1)) }, false},
		"unsettled": {func(s *stage) {
			s.mirror("a").suffers(onPut("bad", putFate{kind: putRefuses, err: ports.Errorf(ports.Invalid, "", "no")}))
			s.does(upsert("bad", "Pending"), Done)
			s.in(time.Second)
			s.mirror("a").has(s.localRow(place{kind: ports.KindItem, key: "bad"}))
		}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			playWith(t, func(s *stage) {
				s.follows("a")
				s.doubtful("a")
			}, func(t *testing.T, s *stage) {
				s.writes(3)
				s.in(2 * time.Second)
				c.wrong(s)
				s.verify("local", "a")
				mark, _, _ := s.state.Follower("a", ports.Queue)
				if mark.Doubtful == c.trusted {
					t.Errorf("the mark is %+v", mark)
				}
				if only := s.follower("a", ports.Queue).OnlyThere; only == nil || (*only == 1) != (name == "different") {
					t.Errorf("only there: %v", only)
				}
			})
		})
	}
}

// doubtful makes a follower one that may hold removed records; call it before the Host begins.
func (s *stage) doubtful(name string) {
	for _, f := range ports.Families {
		_ = s.state.SetFollower(name, f, ports.FollowerMark{Doubtful: true})
	}
}

func (s *stage) localRow(at place) ports.Row {
	d := s.store.look()
	return d.row(at, d.held[at])
}

func TestAVerifyOfMoreDifferencesThanItListsCountsAll(t *testing.T) {
	t.Parallel()
	repairing(t, []string{"a", "b"}, func(t *testing.T, s *stage) {
		s.inPieces(0)
		s.host.repairs.suspects, s.host.repairs.listed = 10, 30
		m := s.mirror("b")
		for i := range 45 {
			m.has(itemRow(fmt.Sprintf("only-%05d", i), "", uint64(i)))
		}
		var told []Progress
		v, err := s.host.Verify(t.Context(), "local", "b", func(p Progress) { told = append(told, p) })
		if err != nil || v.OnlyB != 45 || len(v.Differences) != 30 {
			t.Errorf("%d only there, %d listed, %v", v.OnlyB, len(v.Differences), err)
		}
		if n := len(told); n == 0 || told[n-1].Looked != 45 {
			t.Errorf("told %+v", told)
		}
	})
}

func TestAVerifyEndsSoonAfterItsContext(t *testing.T) {
	t.Parallel()
	repairing(t, []string{"a"}, func(t *testing.T, s *stage) {
		s.writes(10)
		s.catchesUp("a", time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s.mirror("a").change(func(m *mirror) { m.delays = 300 * time.Millisecond })
		began := time.Now()
		_, err := s.host.Verify(ctx, "local", "a", nil)
		expectCode(t, err, ports.Deadline)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}
