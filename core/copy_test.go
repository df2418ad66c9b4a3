package core

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/ports"
)

func (s *stage) copies(from, to string) Copied {
	s.t.Helper()
	c, err := s.host.Copy(s.t.Context(), from, to, nil)
	if err != nil {
		s.t.Fatalf("copy %s %s: %v", from, to, err)
	}
	return c
}

// alike expects that a mirror has every record of another, equal.
func (s *stage) alike(from, to string) {
	s.t.Helper()
	there := s.mirror(to).look().rows
	for at, row := range s.mirror(from).look().rows {
		if other, ok := there[at]; !ok || !sameRow(&row, &other) {
			s.t.Errorf("%s has not %+v of %s, but %s", to, at, from, other.Body)
		}
	}
}

func TestACopyBringsEverythingThatTheTargetHasNot(t *testing.T) {
	t.Parallel()
	repairing(t, []string{"a", "b"}, func(t *testing.T, s *stage) {
		s.writes(5)
		s.catchesUp("a", time.Second)
		s.catchesUp("b", time.Second)
		s.mirror("a").has(history(20)...)
		c := s.copies("a", "b")
		if c.Looked != 20+101 || c.Put != 101 || c.Unsettled != 0 || c.Resumed || c.From != "a" || c.To != "b" {
			t.Errorf("%+v", c)
		}
		s.alike("a", "b")
		if again := s.copies("a", "b"); again.Looked != 121 || again.Put != 0 {
			t.Errorf("a second time: %+v", again)
		}
		s.does(upsert("later", "Pending"), Done)
		s.catchesUp("b", 10*time.Second)
		if _, ok := s.mirror("b").row(ports.KindItem, "later", "", 0); !ok {
			t.Error("the target does not follow any more")
		}
	})
}

func TestACopyOfTheLocalStoreFillsAStoreThatLostRecords(t *testing.T) {
	t.Parallel()
	repairing(t, []string{"a"}, func(t *testing.T, s *stage) {
		s.writes(10)
		s.catchesUp("a", time.Second)
		s.mirror("a").lacks(itemRow("live-001", "", 0), eventRow("live-002", "live-002-a", "", 0), attemptRow("live-003", 1, "", 0), manifestRow("run-live-004", "", 0))
		row := s.localRow(place{kind: ports.KindItem, key: "live-005"})
		row.Body = []byte(`{"WorkItemHash":"live-005","Status":"rotten"}`)
		s.mirror("a").has(row)
		if c := s.copies("local", "a"); c.Put != 5 || c.Looked != 40 {
			t.Errorf("%+v", c)
		}
		s.catchesUp("a", 10*time.Second)
		s.equal("a")
	})
}

func TestACopyThatWasInterruptedAnywhereGoesOnAndEndsEqual(t *testing.T) {
	t.Parallel()
	for _, restarts := range []bool{false, true} {
		for _, exports := range []bool{true, false} {
			t.Run(fmt.Sprintf("restarts=%t/exports=%t", restarts, exports), func(t *testing.T) {
				t.Parallel()
				playWith(t, func(s *stage) {
					m := s.follows("a")
					if !exports {
						s.config.Followers[0].Store = lister{m}
					}
					s.follows("b")
				}, func(t *testing.T, s *stage) {
					s.writes(3)
					s.in(2 * time.Second)
					s.mirror("a").has(history(6)...)
					if !exports {
						s.mirror("a").lacks(eventRow("orphan", "orphan-a", "", 0))
					}
					c := s.interrupted(t, "a", "b", restarts)
					if !c.Resumed {
						t.Error("the last one did not go on where the one before it was")
					}
					s.mirror("b").suffers(nil)
					s.alike("a", "b")
					for _, f := range ports.Families {
						if mark, _ := s.state.CopyMark("a", "b", f); mark != nil {
							t.Errorf("%s: the mark stays: %+v", f, mark)
						}
					}
				})
			})
		}
	}
}

// interrupted copies, and is interrupted at each second Put, until a copy comes to its end.
func (s *stage) interrupted(t *testing.T, from, to string, restarts bool) Copied {
	t.Helper()
	for round := range 100 {
		s.inPieces(3)
		ctx, cancel := context.WithCancel(t.Context())
		puts := 0
		s.mirror(to).suffers(func(*ports.Batch) putFate {
			if puts++; puts == 2 {
				cancel()
				return putFate{kind: []putKind{putTakes, putSilent}[round%2]}
			}
			return putFate{}
		})
		c, err := s.host.Copy(ctx, from, to, nil)
		cancel()
		if err == nil {
			if round < 5 {
				t.Errorf("it took %d rounds only", round)
			}
			return c
		}
		expectCode(t, err, ports.Canceled)
		if !strings.Contains(err.Error(), "goes on") {
			t.Errorf("%v", err)
		}
		s.mirror(to).suffers(nil)
		if restarts {
			s.again()
			s.in(2 * time.Second)
		}
	}
	t.Fatal("it never ends")
	return Copied{}
}

func TestACopyNeverMakesTheTargetOlder(t *testing.T) {
	t.Parallel()
	repairing(t, []string{"a", "b"}, func(t *testing.T, s *stage) {
		s.mirror("a").has(
			itemRow("old", `,"Status":"Running"`, 5), itemRow("same", `,"Status":"Running"`, 6),
			itemRow("new", `,"Status":"Complete"`, 8), eventRow("old", "e", `,"EventType":"X"`, 9), manifestRow("old", `,"Status":"Running"`, 5))
		s.mirror("b").has(
			itemRow("old", `,"Status":"Complete"`, 7), itemRow("same", `,"Status":"Running"`, 6),
			itemRow("new", `,"Status":"Running"`, 4), manifestRow("old", `,"Status":"Complete"`, 7))
		if c := s.copies("a", "b"); c.Put != 2 {
			t.Errorf("%+v", c)
		}
		for at, want := range map[place]uint64{
			{kind: ports.KindItem, key: "old"}: 7, {kind: ports.KindItem, key: "same"}: 6, {kind: ports.KindItem, key: "new"}: 8,
			{kind: ports.KindEvent, key: "e"}: 9, {kind: ports.KindManifest, key: "old"}: 7,
		} {
			if got := s.mirror("b").look().rows[at].Change.Seq; got != want {
				t.Errorf("%+v is at %d, want %d", at, got, want)
			}
		}
	})
}

func TestAnOlderStateOfAnotherHostThatACopyBringsDoesNotStay(t *testing.T) {
	t.Parallel()
	repairing(t, []string{"a", "b"}, func(t *testing.T, s *stage) {
		s.does(upsert("k", "Pending"), Done)
		s.catchesUp("a", time.Second)
		s.mirror("a").change(func(m *mirror) { m.probe = ports.Errorf(ports.Unavailable, "", "no writes now") })
		s.in(5 * time.Second)
		s.store.writesAs("other", ports.Entry{Action: ports.UpdateWorkItem, Class: ports.Live, Key: "k", Record: []byte(`{"Status":"Complete"}`)})
		s.does(upsert("later", "Pending"), Done)
		s.in(10 * time.Second)
		s.equal("b")
		if c := s.copies("a", "b"); c.Put != 1 {
			t.Errorf("%+v", c)
		}
		s.in(2 * time.Minute)
		s.equal("b")
	})
}

func TestAPutOfACopyThatTakesEffectTooLateDoesNotStay(t *testing.T) {
	t.Parallel()
	repairing(t, []string{"a", "b"}, func(t *testing.T, s *stage) {
		s.does(upsert("k", "Pending"), Done)
		s.catchesUp("a", time.Second)
		s.catchesUp("b", time.Second)
		s.mirror("b").lacks(itemRow("k", "", 0))
		s.mirror("b").change(func(m *mirror) { m.unfenced = true })
		n := 0
		s.mirror("b").suffers(func(b *ports.Batch) putFate {
			if n++; n == 1 {
				return putFate{kind: putLate, after: 20 * time.Second}
			}
			return putFate{}
		})
		s.copies("a", "b")
		s.does(patch("k", "Complete"), Done)
		s.in(25 * time.Second)
		if row, _ := s.mirror("b").row(ports.KindItem, "k", "", 0); !strings.Contains(string(row.Body), "Pending") {
			t.Errorf("the late Put had no effect: %s", row.Body)
		}
		s.in(2 * time.Minute)
		s.equal("b")
	})
}

func TestACopyIntoAStoreThatSaysThatItIsEmptyLooksNothingUp(t *testing.T) {
	t.Parallel()
	repairing(t, []string{"a", "b"}, func(t *testing.T, s *stage) {
		m := s.mirror("b")
		s.host.repairs.others[1].Store = surveyed{m}
		s.mirror("a").has(history(12)...)
		before := m.looks
		if c := s.copies("a", "b"); c.Put != 61 || m.looks != before {
			t.Errorf("%+v, %d looks", c, m.looks-before)
		}
		if c := s.copies("a", "b"); c.Put != 0 || m.looks == before {
			t.Errorf("%+v, %d looks", c, m.looks-before)
		}
	})
}

// fenced is a mirror whose store refuses a Put for another position than its own.
type fenced struct{ *mirror }

func (s fenced) Put(ctx context.Context, b ports.Batch) (ports.Applied, error) {
	if at := s.look().position(b.Family); b.After != nil && (at.StoreID != b.After.StoreID || !samePlace(at, *b.After)) {
		return ports.Applied{}, &ports.Error{Code: ports.Conflict, Field: ports.FieldPosition, Message: "is another one"}
	}
	return s.mirror.Put(ctx, b)
}

func TestACopyNoticesAStoreThatIsReplacedUnderIt(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		becomes func(d *mirrorDisk)
		ends    bool
	}{
		"another store": {func(d *mirrorDisk) { d.id = "another" }, false},
		"an older copy": {func(d *mirrorDisk) { d.positions[ports.Queue] = ports.Position{} }, false},
		"moved on": {func(d *mirrorDisk) {
			p := d.position(ports.Queue)
			for host := range p.Seqs {
				p.Seqs[host]++
			}
			d.setPosition(ports.Queue, p)
		}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repairing(t, []string{"a", "b"}, func(t *testing.T, s *stage) {
				s.writes(3)
				s.catchesUp("b", time.Second)
				m := s.mirror("b")
				s.host.repairs.others[1].Store = fenced{m}
				s.mirror("a").has(history(12)...)
				n := 0
				m.suffers(func(*ports.Batch) putFate {
					if n++; n == 3 {
						c.becomes(m.disk)
					}
					return putFate{}
				})
				out, err := s.host.Copy(t.Context(), "a", "b", nil)
				if len(out.Refusals) > 0 {
					t.Errorf("keys are blamed: %+v", out.Refusals)
				}
				if c.ends {
					if err != nil || out.Put != 61 {
						t.Errorf("%+v, %v", out, err)
					}
					return
				}
				expectCode(t, err, ports.Conflict)
				if mark, _ := s.state.CopyMark("a", "b", ports.Queue); mark != nil {
					t.Errorf("it would go on: %+v", mark)
				}
			})
		})
	}
}

// surveyed is a mirror that counts what it has.
type surveyed struct{ *mirror }

func (s surveyed) Describe(ctx context.Context) (ports.Description, error) {
	d, err := s.mirror.Describe(ctx)
	d.Powers = append(d.Powers, "Surveyor")
	return d, err
}

func (s surveyed) Survey(context.Context) (ports.Survey, error) {
	survey := ports.Survey{Counts: map[ports.Kind]int64{}}
	for at := range s.look().rows {
		survey.Counts[at.kind]++
	}
	return survey, nil
}

func TestWritesDuringACopyReachTheTargetAfterIt(t *testing.T) {
	t.Parallel()
	repairing(t, []string{"a", "b"}, func(t *testing.T, s *stage) {
		s.writes(10)
		s.catchesUp("a", time.Second)
		s.catchesUp("b", time.Second)
		s.mirror("b").becomes(newMirrorDisk("b-1"))
		n := 0
		s.mirror("a").change(func(m *mirror) { m.delays = 5 * time.Millisecond })
		s.mirror("b").suffers(func(*ports.Batch) putFate { n++; return putFate{after: 20 * time.Millisecond} })
		done := make(chan error, 1)
		go func() {
			_, err := s.host.Copy(t.Context(), "a", "b", nil)
			done <- err
		}()
		for i := range 10 {
			s.does(patch(fmt.Sprintf("live-%03d", i), "Complete"), Done)
			<-time.After(15 * time.Millisecond)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		s.mirror("b").suffers(nil)
		s.catchesUp("b", 2*time.Minute) // what was on its way is in doubt for a while
		s.equal("b")
	})
}

func TestAKeyThatTheTargetRefusesIsListedAndNothingElseStops(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		fate putFate
		kind ports.UnsettledKind
	}{
		"refused": {putFate{kind: putRefuses, err: ports.Errorf(ports.TooLarge, "", "too long")}, ports.RefusedKey},
		"poison":  {putFate{kind: putDies}, ports.PoisonKey},
		"silent":  {putFate{kind: putSilent}, ports.PoisonKey},
		"wrong":   {putFate{kind: putWrong, done: -100}, ports.PoisonKey},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repairing(t, []string{"a", "b"}, func(t *testing.T, s *stage) {
				s.mirror("a").has(history(12)...)
				s.mirror("b").suffers(onPut("item-005", c.fate))
				out := s.copies("a", "b")
				s.mirror("b").suffers(nil)
				if out.Unsettled != 1 || len(out.Refusals) != 1 || out.Refusals[0].Key != "item-005" || out.Refusals[0].Kind != c.kind || out.Refusals[0].Reason == "" {
					t.Errorf("%+v", out)
				}
				if got := len(s.mirror("b").look().rows); got != 61-4 {
					t.Errorf("%d records arrived", got)
				}
			})
		})
	}
}

func TestACopyOutlastsATargetThatIsAwayForMinutes(t *testing.T) {
	t.Parallel()
	repairing(t, []string{"a", "b"}, func(t *testing.T, s *stage) {
		s.mirror("a").has(history(12)...)
		n := 0
		s.mirror("b").suffers(func(*ports.Batch) putFate {
			if n++; n == 3 {
				return putFate{kind: putDies}
			}
			return putFate{}
		})
		s.mirror("b").change(func(m *mirror) { m.back = 5 * time.Minute })
		began := time.Now()
		if c := s.copies("a", "b"); c.Put != 61 || c.Unsettled != 0 {
			t.Errorf("%+v", c)
		}
		if took := time.Since(began); took < 5*time.Minute || took > 6*time.Minute {
			t.Errorf("it took %s", took)
		}
		s.alike("a", "b")
	})
}

func TestATargetThatTellsAWrongCountGetsEverything(t *testing.T) {
	t.Parallel()
	repairing(t, []string{"a", "b"}, func(t *testing.T, s *stage) {
		s.mirror("a").has(history(6)...)
		n := 0
		s.mirror("b").suffers(func(b *ports.Batch) putFate {
			if n++; n%2 == 1 && len(b.Rows) > 1 {
				return putFate{kind: putWrong, done: []int{-1, 1, -100}[n/2%3]}
			}
			return putFate{}
		})
		s.copies("a", "b")
		s.mirror("b").suffers(nil)
		s.alike("a", "b")
	})
}

func TestCopiesThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	repairing(t, []string{"a", "b"}, func(t *testing.T, s *stage) {
		cases := []struct {
			from, to, says string
			code           ports.Code
		}{
			{"a", "local", "holdfast adopt", ports.Invalid},
			{"a", "a", "itself", ports.Invalid},
			{"a", "nobody", "a, b, local", ports.NotFound},
			{"nobody", "a", "a, b, local", ports.NotFound},
		}
		for _, c := range cases {
			if _, err := s.host.Copy(t.Context(), c.from, c.to, nil); ports.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s to %s: %v", c.from, c.to, err)
			}
		}
	})
}

func TestOnlyOneOperationRunsIntoABackendAtATime(t *testing.T) {
	t.Parallel()
	repairing(t, []string{"a", "b", "c"}, func(t *testing.T, s *stage) {
		s.mirror("a").has(history(6)...)
		s.mirror("b").suffers(every(putFate{after: time.Second}))
		done := make(chan error, 1)
		go func() {
			_, err := s.host.Copy(t.Context(), "a", "b", nil)
			done <- err
		}()
		s.in(100 * time.Millisecond)
		_, err := s.host.Copy(t.Context(), "local", "b", nil)
		expectCode(t, err, ports.Conflict)
		_, err = s.host.ResyncExact(t.Context(), "b", -1, nil)
		expectCode(t, err, ports.Conflict)
		s.copies("a", "c")
		if err := <-done; err != nil {
			t.Error(err)
		}
		s.mirror("b").suffers(nil)
		s.copies("a", "b")
	})
}

func TestACopyTellsHowFarItIsAndEndsSoonAfterItsContext(t *testing.T) {
	t.Parallel()
	repairing(t, []string{"a", "b"}, func(t *testing.T, s *stage) {
		s.mirror("a").has(history(12)...)
		s.mirror("b").suffers(every(putFate{after: 50 * time.Millisecond}))
		var told []time.Time
		var last Progress
		_, err := s.host.Copy(t.Context(), "a", "b", func(p Progress) { told, last = append(told, time.Now()), p })
		if err != nil || last != (Progress{Family: ports.Manifest, Looked: 61, Changed: 61}) {
			t.Errorf("%+v, %v", last, err)
		}
		for i, at := range told[:len(told)-1] {
			if i > 0 && at.Sub(told[i-1]) < tellEvery {
				t.Errorf("told twice within %s", at.Sub(told[i-1]))
			}
		}
		if !slices.IsSortedFunc(told, time.Time.Compare) || len(told) < 4 {
			t.Errorf("told %d times", len(told))
		}
		s.mirror("b").becomes(newMirrorDisk("b-1"))
		s.mirror("b").suffers(every(putFate{kind: putSilent}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err = s.host.Copy(ctx, "a", "b", nil)
		expectCode(t, err, ports.Deadline)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %s", took)
		}
		s.mirror("b").suffers(nil)
	})
}
