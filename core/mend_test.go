package core

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"holdfast/ports"
)

// A local store that went back to before its journal begins, and followers that hold what it lacks.

// records are what the local store has.
func (s *stage) records() map[place]ports.Row {
	rows := map[place]ports.Row{}
	for _, row := range s.store.look().rows(ports.Kinds...) {
		rows[placeOfRow(&row)] = row
	}
	return rows
}

// has again expects the local store to have what it had, but for some keys.
func (s *stage) hasAgain(before map[place]ports.Row, but ...string) {
	s.t.Helper()
	now := s.records()
	for at, row := range before {
		got, there := now[at]
		if slices.Contains(but, row.Key) {
			continue
		}
		if !there {
			s.t.Errorf("the local store lacks %s %s of %+v", row.Kind, row.Key, row.Change)
		} else if !sameRow(&row, &got) {
			s.t.Errorf("the local store has %s %s\n%s %+v %+v, not\n%s %+v %+v", row.Kind, row.Key, got.Body, got.First, got.Change, row.Body, row.First, row.Change)
		}
	}
	for at, row := range now {
		if _, known := before[at]; !known && !slices.Contains(but, row.Key) {
			s.t.Errorf("the local store has %s %s of %+v, which it never had", row.Kind, row.Key, row.Change)
		}
	}
}

// forgets has the journals begin behind a Seq.
func (s *stage) forgets(queue, manifest uint64) {
	s.t.Helper()
	for f, through := range map[ports.Family]uint64{ports.Queue: queue, ports.Manifest: manifest} {
		if err := s.journals[f].Trim(through); err != nil {
			s.t.Fatal(err)
		}
	}
}

// lost gives what is told as lost of a family.
func (s *stage) lost(f ports.Family) []ports.Span {
	for _, status := range s.host.Status().Families {
		if status.Family == f {
			return status.Lost
		}
	}
	return nil
}

func (s *stage) losesNothing() {
	s.t.Helper()
	for _, f := range ports.Families {
		if lost := s.lost(f); len(lost) > 0 {
			s.t.Errorf("%v of %s are told as lost", lost, f)
		}
	}
}

func (s *stage) local() BackendStatus { return s.host.Status().Backends[0] }

func (s *stage) isReady(limit time.Duration) {
	s.t.Helper()
	if !s.until(limit, func() bool { return s.local().State == string(ready) && s.queue().committed.Load() == s.queue().head() }) {
		s.t.Errorf("after %s the local store is %+v", limit, s.local())
	}
}

func wiped(*disk) *disk { return newDisk("store-2") }

func TestALocalStoreThatWentBackIsMendedFromAFollower(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		older, restarts bool
		queue, manifest uint64 // the journals begin behind them: of 30 and 10
	}{
		"it is empty, and the journal has nothing":                           {queue: 30, manifest: 10},
		"it is empty, and the journal has the second half":                   {queue: 15, manifest: 5},
		"it is empty, and one journal has everything":                        {queue: 0, manifest: 10},
		"it is an older copy, and the journal has nothing":                   {older: true, queue: 30, manifest: 10},
		"it is an older copy, and the journal has the last third":            {older: true, queue: 20, manifest: 8},
		"it is empty at a start, and the journal has nothing":                {restarts: true, queue: 30, manifest: 10},
		"it is an older copy at a start, and the journal has the last third": {older: true, restarts: true, queue: 20, manifest: 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			playWith(t, func(s *stage) { s.follows("mirror") }, func(t *testing.T, s *stage) {
				s.writes(5)
				backup := s.store.look()
				for i := range 5 {
					key := fmt.Sprintf("live-%03d", i)
					s.does(patch(key, "Complete"), Done)
					s.does(upsert("late-"+key, "Running"), Done)
					s.does(call(ports.AppendEvent, `{"Event":{"WorkItemHash":%q,"EventGUID":"%s-b","EventType":"Ended"}}`, key, key), Done)
					s.does(call(ports.UpsertManifest, `{"Manifest":{"Hash":"run-%s","Status":"Complete"}}`, key), Done)
				}
				s.catchesUp("mirror", 5*time.Second)
				before := s.records()
				with := wiped
				if c.older {
					with = func(*disk) *disk { return backup }
				}
				if c.restarts {
					s.end()
				}
				s.forgets(c.queue, c.manifest)
				s.store.kill(with)
				if c.restarts {
					for _, j := range s.journals {
						j.reopen(0)
					}
					s.in(time.Second)
					s.begin()
				}
				s.in(5 * time.Second)
				s.isReady(10 * time.Second)
				s.hasAgain(before)
				s.losesNothing()
				s.catchesUp("mirror", 10*time.Second)
				s.equal("mirror")
				s.does(patch("live-001", "Error"), Done)
				s.status("live-001", "Error")
				s.catchesUp("mirror", 10*time.Second)
				s.equal("mirror")
			})
		})
	}
}

func TestWhatNobodyHasIsToldAsLostAndNothingElse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		happens func(s *stage, m *mirror) // before the last ten writes
		trim    uint64
		lost    []ports.Span
		but     []string
	}{
		"the follower has everything": {trim: 20},
		"the follower was away for the last ten": {func(_ *stage, m *mirror) {
			m.change(func(m *mirror) { m.back = 0 })
			m.kill(nil)
		}, 20, []ports.Span{{From: 11, To: 20}}, []string{"b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8", "b9"}},
		"the follower was away, and the journal has half of it": {func(_ *stage, m *mirror) {
			m.change(func(m *mirror) { m.back = 0 })
			m.kill(nil)
		}, 15, []ports.Span{{From: 11, To: 15}}, []string{"b0", "b1", "b2", "b3", "b4"}},
		"the follower was away, and the journal has it": {func(_ *stage, m *mirror) {
			m.change(func(m *mirror) { m.back = 0 })
			m.kill(nil)
		}, 10, nil, nil},
		"the follower refused one": {func(_ *stage, m *mirror) {
			m.suffers(onPut("b3", putFate{kind: putRefuses, err: ports.Errorf(ports.Invalid, "mirror", "no")}))
		}, 20, []ports.Span{{From: 14, To: 20}}, []string{"b3"}},
		"the follower refused one that the journal has": {func(_ *stage, m *mirror) {
			m.suffers(onPut("b9", putFate{kind: putRefuses, err: ports.Errorf(ports.Invalid, "mirror", "no")}))
		}, 19, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			playWith(t, func(s *stage) { s.follows("mirror") }, func(t *testing.T, s *stage) {
				m := s.mirror("mirror")
				for i := range 10 {
					s.does(upsert(fmt.Sprint("a", i), "Running"), Done)
				}
				s.catchesUp("mirror", 5*time.Second)
				s.in(3 * keepEvery)
				if c.happens != nil {
					c.happens(s, m)
				}
				for i := range 10 {
					s.does(upsert(fmt.Sprint("b", i), "Running"), Done)
					s.in(100 * time.Millisecond)
				}
				s.in(5 * time.Second)
				before := s.records()
				s.forgets(c.trim, 0)
				m.suffers(nil)
				m.change(func(m *mirror) { m.back = 20 * time.Millisecond })
				m.start()
				s.store.kill(wiped)
				s.in(5 * time.Second)
				s.isReady(10 * time.Second)
				s.hasAgain(before, c.but...)
				if lost := s.lost(ports.Queue); !slices.Equal(lost, c.lost) {
					t.Errorf("%v are told as lost, want %v", lost, c.lost)
				}
				if _, err := s.host.RetryUnsettled("mirror", ports.Queue, ""); err != nil {
					t.Error(err)
				}
				s.in(5 * time.Second)
				s.equal("mirror")
			})
		})
	}
}

// slowly makes a mending take a while: a record every three seconds.
func TestAfterAMendingTheJournalDecidesAsItDidBefore(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) { s.follows("mirror") }, func(t *testing.T, s *stage) {
		s.writes(2)
		// From here on the journal has it: what was decided when a record was not there yet.
		s.does(call(ports.UpdateWorkItem, `{"WorkItemHash":"late","Patch":{"LastError":"before it was there"}}`), NotFound)
		s.does(upsert("late", "Running"), Done)
		s.does(call(ports.UpsertWorkItem, `{"WorkItem":{"WorkItemHash":"live-001","Status":"Running","LastError":"x"}}`), Done)
		s.does(call(ports.UpsertWorkItem, `{"WorkItem":{"WorkItemHash":"live-001","Status":"Complete","LastError":null}}`), Done)
		s.catchesUp("mirror", 5*time.Second)
		before := s.records()
		s.forgets(6, 2)
		s.store.kill(wiped)
		s.in(5 * time.Second)
		s.isReady(10 * time.Second)
		s.hasAgain(before)
		s.losesNothing()
		s.catchesUp("mirror", 5*time.Second)
		s.equal("mirror")
	})
}

func TestAFollowerThatHoldsNoPositionGivesBackWhatItHas(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) { s.follows("mirror", func(m *mirror) { m.noPosition = true }) }, func(t *testing.T, s *stage) {
		s.writes(3)
		s.catchesUp("mirror", 5*time.Second)
		before := s.records()
		s.forgets(9, 3)
		s.store.kill(wiped)
		s.in(5 * time.Second)
		s.isReady(10 * time.Second)
		s.hasAgain(before)
		s.losesNothing()
	})
}

func TestNobodyIsAskedWhileTheJournalHasEverything(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) { s.follows("mirror") }, func(t *testing.T, s *stage) {
		s.writes(3)
		s.catchesUp("mirror", 5*time.Second)
		before := s.records()
		m := s.mirror("mirror")
		m.change(func(m *mirror) { m.back, m.looks = 0, 0 })
		m.kill(nil)
		s.store.kill(wiped)
		s.in(time.Second)
		s.isReady(time.Second)
		s.hasAgain(before)
		s.losesNothing()
		m.start()
		s.catchesUp("mirror", 10*time.Second)
		s.equal("mirror")
		if m.change(func(*mirror) {}); cmp.Compare(m.looks, 0) != 0 {
			t.Errorf("the follower was read %d times", m.looks)
		}
	})
}
