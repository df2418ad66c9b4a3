package core

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"holdfast/ports"
)

func (s *stage) adopts(name string) Adopted {
	s.t.Helper()
	a, err := s.host.Adopt(s.t.Context(), name, nil)
	if err != nil {
		s.t.Fatalf("adopt %s: %v", name, err)
	}
	return a
}

func TestAStoreOfOtherHistoryIsAdoptedWhole(t *testing.T) {
	t.Parallel()
	for _, ack := range []Ack{AckLocal, AckJournaled} {
		playWith(t, func(s *stage) {
			s.config.Ack = ack
			s.follows("a")
			s.follows("b")
		}, func(t *testing.T, s *stage) {
			s.inPieces(3)
			s.mirror("a").has(history(20)...)
			var last Progress
			a, err := s.host.Adopt(t.Context(), "a", func(p Progress) { last = p })
			if want := (Adopted{Backend: "a", Looked: 101, Taken: 100, Expired: 1}); err != nil || a != want {
				t.Errorf("%+v, %v, want %+v", a, err, want)
			}
			if want := (Progress{Family: ports.Manifest, Looked: 101, Changed: 100}); last != want {
				t.Errorf("told %+v", last)
			}
			d := s.store.look()
			for _, row := range history(20)[:100] {
				held := d.held[placeOfRow(&row)]
				if held == nil {
					t.Errorf("%s %s is not there", row.Kind, row.Key)
				} else if held.First.Actor != "adopt:a" || held.First.Origin != ports.OriginImport || held.First.EmittedAt != "" {
					t.Errorf("%s %s is stamped %+v", row.Kind, row.Key, held.First)
				}
			}
			if again := s.adopts("a"); again.Equal != 100 || again.Taken != 0 || again.Expired != 1 {
				t.Errorf("a second time: %+v", again)
			}
			s.catchesUp("b", 10*time.Second)
			if v := s.verify("local", "b"); !v.Equal() || v.Compared != 100 {
				t.Errorf("the other follower: %+v", v)
			}
		})
	}
}

func TestAdoptionFollowsTheDecisionTable(t *testing.T) {
	t.Parallel()
	const early, late = `"LastEventAt":"2026-01-01T00:00:01Z"`, `"LastEventAt":"2026-01-01T00:00:02Z"`
	cases := map[string]struct {
		here, there, want string
		taken             int64
	}{
		"absent":                       {"", `"Status":"Running"`, `"Status":"Running"`, 1},
		"equal":                        {`"Status":"Running"`, `"Status":"Running"`, `"Status":"Running"`, 0},
		"later":                        {`"Status":"Running","RunID":"r",` + early, `"Status":"Failed",` + late, `"Status":"Failed","RunID":"r",` + late, 1},
		"earlier fills":                {`"Status":"Running","RunID":"",` + late, `"Status":"Pending","RunID":"r","Mine":1,` + early, `"Status":"Running","RunID":"r","Mine":1,` + late, 1},
		"at the same time fills":       {`"Status":"Running",` + late, `"Status":"Failed","RunID":"r",` + late, `"Status":"Running","RunID":"r",` + late, 1},
		"without a time fills":         {`"Status":"Running"`, `"Status":"Failed","RunID":"r"`, `"Status":"Running","RunID":"r"`, 1},
		"never back from its end":      {`"Status":"Complete",` + early, `"Status":"Running","RunID":"r",` + late, `"Status":"Complete","RunID":"r",` + early, 1},
		"from one end to another":      {`"Status":"Failed",` + early, `"Status":"Complete",` + late, `"Status":"Complete",` + late, 1},
		"only the order of members":    {`"Status":"Running","RunID":"r"`, `"RunID":"r","Status":"Running"`, `"Status":"Running","RunID":"r"`, 0},
		"members of no column":         {"", `"Status":"Running","X":{"b":1,"a":2}`, `"Status":"Running","X":{"b":1,"a":2}`, 1},
		"a member that a hub's own is": {"", `"Status":"Running","CreateDate":"mine"`, `"Status":"Running","CreateDate":"mine"`, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repairing(t, []string{"a"}, func(t *testing.T, s *stage) {
				if c.here != "" {
					s.does(call(ports.UpsertWorkItem, `{"WorkItem":{"WorkItemHash":"w",%s}}`, c.here), Done)
					s.catchesUp("a", time.Second)
				}
				s.mirror("a").has(itemRow("w", ","+c.there, 1))
				if a := s.adopts("a"); a.Taken != c.taken || a.Equal != 1-c.taken || a.Refused != 0 {
					t.Errorf("%+v", a)
				}
				s.holds(t, `{"WorkItemHash":"w",`+c.want+`}`)
			})
		})
	}
}

// holds expects an item of the local store's disk, whatever the order of its members.
func (s *stage) holds(t *testing.T, want string) {
	t.Helper()
	row := s.localRow(place{kind: ports.KindItem, key: "w"})
	var got, wanted map[string]any
	_ = json.Unmarshal(row.Body, &got)
	_ = json.Unmarshal([]byte(want), &wanted)
	if !reflect.DeepEqual(got, wanted) {
		t.Errorf("the item is %s, want %s", row.Body, want)
	}
}

func TestAdoptedEventsAndAttemptsComeWithTheirItemOrNotAtAll(t *testing.T) {
	t.Parallel()
	repairing(t, []string{"a"}, func(t *testing.T, s *stage) {
		s.does(upsert("here", "Running"), Done)
		s.does(call(ports.AppendEvent, `{"Event":{"WorkItemHash":"here","EventGUID":"same","EventType":"Ours"}}`), Done)
		s.does(call(ports.InsertAttempt, `{"Attempt":{"WorkItemHash":"here","AttemptNumber":1,"BeaconID":"b1","Outcome":"Failed"}}`), Done)
		s.catchesUp("a", time.Second)
		s.mirror("a").lacks(itemRow("here", "", 0))
		s.mirror("a").has(
			eventRow("here", "theirs", `,"EventType":"X"`, 1), eventRow("here", "same", `,"EventType":"Theirs"`, 2),
			attemptRow("here", 1, `,"BeaconID":"b1","Outcome":"Complete","Error":"boom"`, 3),
			eventRow("nowhere", "lost", "", 4), attemptRow("nowhere", 1, "", 5),
			itemRow("both", "", 6), eventRow("both", "with it", "", 7), attemptRow("both", 2, "", 8))
		want := Adopted{Backend: "a", Looked: 8, Taken: 6, Expired: 2}
		if a := s.adopts("a"); a != want {
			t.Errorf("%+v, want %+v", a, want)
		}
		d := s.store.look()
		for _, guid := range []string{"theirs", "with it"} {
			if held := d.held[placeOf(ports.KindEvent, "", guid, 0)]; held == nil {
				t.Errorf("the event %s is not there", guid)
			}
		}
		if held := d.held[placeOf(ports.KindEvent, "", "same", 0)]; held.Record.Text("EventType") != "Ours" {
			t.Errorf("an event was changed: %s", held.Record.JSON())
		}
		if r := d.held[placeOf(ports.KindAttempt, "here", "", 1)].Record; r.Text("Outcome") != "Failed" || r.Text("Error") != "boom" {
			t.Errorf("the attempt is %s", r.JSON())
		}
	})
}

func TestWhatWasRemovedStaysSo(t *testing.T) {
	t.Parallel()
	repairing(t, []string{"a"}, func(t *testing.T, s *stage) {
		s.does(call(ports.UpsertManifest, `{"Manifest":{"Hash":"m","Status":"Complete"}}`), Done)
		s.does(call(ports.RemoveManifest, `{"RunHash":"m"}`), Done)
		s.catchesUp("a", time.Second)
		s.mirror("a").has(manifestRow("m", `,"Status":"Complete"`, 1))
		if a := s.adopts("a"); a.Expired != 1 || a.Taken != 0 {
			t.Errorf("%+v", a)
		}
		if len(s.store.look().rows(ports.KindManifest)) != 0 {
			t.Error("it is there again")
		}
	})
}

func TestWhatCannotBeTakenIsCountedAndNothingElseStops(t *testing.T) {
	t.Parallel()
	repairing(t, []string{"a"}, func(t *testing.T, s *stage) {
		s.mirror("a").has(
			itemRow("a", "", 1), itemRow("b", `,"Capability":"QueuePersistence"`, 2), eventRow("b", "of b", "", 3),
			itemRow("c", `,"Status":1,"Status":2`, 4), itemRow(strings.Repeat("k", 600), "", 5), itemRow("e", "", 6), itemRow("f", "", 7))
		s.store.suffers(on("f", fate{kind: dies}))
		want := Adopted{Backend: "a", Looked: 7, Taken: 2, Ignored: 2, Refused: 3}
		if a := s.adopts("a"); a != want {
			t.Errorf("%+v, want %+v", a, want)
		}
		s.store.suffers(nil)
	})
}

func TestAdoptionOutlastsALocalStoreThatIsAway(t *testing.T) {
	t.Parallel()
	repairing(t, []string{"a"}, func(t *testing.T, s *stage) {
		s.mirror("a").has(history(30)...)
		n := 0
		s.store.suffers(func(*ports.CommitBatch) fate {
			if n++; n%5 == 0 {
				return fate{kind: loses}
			}
			return fate{}
		})
		s.store.back = 5 * time.Second
		if a := s.adopts("a"); a.Taken != 150 || a.Expired != 1 {
			t.Errorf("%+v", a)
		}
		s.store.suffers(nil)
		if got := len(s.store.look().held); got != 150 {
			t.Errorf("%d records arrived", got)
		}
	})
}

func TestAdoptionKeepsLittleInFlight(t *testing.T) {
	t.Parallel()
	repairing(t, []string{"a"}, func(t *testing.T, s *stage) {
		s.inPieces(0)
		for i := range 700 {
			s.mirror("a").has(itemRow(fmt.Sprintf("w-%03d", i), "", uint64(i)))
		}
		s.store.suffers(func(*ports.CommitBatch) fate {
			if waits := s.queue().head() - s.queue().committed.Load(); waits > 256 {
				t.Errorf("%d are in flight", waits)
			}
			return fate{after: 10 * time.Millisecond}
		})
		if a := s.adopts("a"); a.Taken != 700 {
			t.Errorf("%+v", a)
		}
		s.store.suffers(nil)
	})
}

func TestAdoptionsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) {
		s.follows("a")
		s.follows("doubtful")
		s.doubtful("doubtful")
		s.follows("keyed", func(m *mirror) { m.keyOnly = true })
	}, func(t *testing.T, s *stage) {
		s.in(2 * time.Second)
		cases := []struct {
			name, says string
			code       ports.Code
		}{
			{"local", "local store", ports.Invalid},
			{"nobody", "doubtful", ports.NotFound},
			{"doubtful", "resync doubtful --exact", ports.Conflict},
			{"keyed", "read by key", ports.Unimplemented},
		}
		for _, c := range cases {
			if _, err := s.host.Adopt(t.Context(), c.name, nil); ports.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		s.store.end()
		s.in(time.Second)
		_, err := s.host.Adopt(t.Context(), "a", nil)
		expectCode(t, err, ports.Unavailable)
	})
}

func TestAnInterruptedAdoptionIsSimplyRunAgain(t *testing.T) {
	t.Parallel()
	repairing(t, []string{"a"}, func(t *testing.T, s *stage) {
		s.mirror("a").has(history(30)...)
		s.store.suffers(func(*ports.CommitBatch) fate { return fate{after: 1500 * time.Millisecond} })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := s.host.Adopt(ctx, "a", nil)
		expectCode(t, err, ports.Deadline)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %s", took)
		}
		s.store.suffers(nil)
		s.in(10 * time.Second)
		if len(s.queue().waiters)+len(s.host.families[ports.Manifest].waiters) > 0 {
			t.Error("somebody still waits")
		}
		if a := s.adopts("a"); a.Taken+a.Equal != 150 {
			t.Errorf("%+v", a)
		}
		if got := len(s.store.look().held); got != 150 {
			t.Errorf("%d records arrived", got)
		}
	})
}
