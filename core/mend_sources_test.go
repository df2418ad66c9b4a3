package core

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"holdfast/ports"
)

// Mendings that wait, are interrupted, or take from several followers.

func TestALocalStoreWaitsForAFollowerThatHasWhatItLacks(t *testing.T) {
	t.Parallel()
	for _, mute := range []bool{false, true} {
		for _, accept := range []bool{false, true} {
			t.Run(fmt.Sprintf("mute %v, accept %v", mute, accept), func(t *testing.T) {
				t.Parallel()
				playWith(t, func(s *stage) { s.follows("mirror") }, func(t *testing.T, s *stage) {
					m := s.mirror("mirror")
					s.writes(5)
					s.catchesUp("mirror", 5*time.Second)
					s.in(3 * keepEvery)
					before := s.records()
					kept := m.look().rows
					s.forgets(15, 5)
					m.change(func(m *mirror) { m.mute, m.back = mute, 0 })
					if !mute {
						m.kill(nil)
					}
					s.store.kill(wiped)
					s.in(10 * time.Second)
					if l := s.local(); l.State != string(needsOne) || l.Detail == "" || l.Remedy == "" {
						t.Errorf("the local store is %+v", l)
					}
					s.does(upsert("new", "Running"), Deferred)
					if rows := s.records(); len(rows) != 0 {
						t.Errorf("%d records are in the local store", len(rows))
					}
					if accept {
						accepted := s.until(10*time.Second, func() bool { return s.host.AcceptLocal(false) == nil })
						if !accepted {
							t.Error("nobody can accept it")
						}
						s.isReady(15 * time.Second)
						if lost := s.lost(ports.Queue); !slices.Equal(lost, []ports.Span{{From: 1, To: 15}}) {
							t.Errorf("%v are told as lost", lost)
						}
						s.status("new", "Running")
					}
					m.change(func(m *mirror) { m.mute, m.back = false, 20*time.Millisecond })
					m.start()
					s.in(15 * time.Second)
					s.isReady(10 * time.Second)
					s.catchesUp("mirror", 10*time.Second)
					if !accept {
						s.losesNothing()
						s.hasAgain(before, "new")
						s.status("new", "Running")
						s.equal("mirror")
					}
					for at, row := range kept {
						if got, there := m.look().rows[at]; !there {
							t.Errorf("the follower lost %s %s", row.Kind, row.Key)
						} else if !accept && !sameRow(&row, &got) {
							t.Errorf("the follower has another %s %s", row.Kind, row.Key)
						}
					}
				})
			})
		}
	}
}

func (s *stage) slowly(m *mirror) {
	s.inPieces(1)
	m.change(func(m *mirror) { m.delays = 3 * time.Second })
}

func TestAMendingThatIsInterruptedIsBegunAgain(t *testing.T) {
	t.Parallel()
	for name, interrupt := range map[string]func(s *stage, m *mirror){
		"the host is killed":      func(s *stage, _ *mirror) { s.dies() },
		"the host ends":           func(s *stage, _ *mirror) { s.again() },
		"the local store dies":    func(s *stage, _ *mirror) { s.store.kill(nil) },
		"the local store is mute": func(s *stage, _ *mirror) { s.mutes(true); s.in(time.Minute); s.mutes(false) },
		"the follower dies":       func(_ *stage, m *mirror) { m.kill(nil) },
		"the follower is long away": func(s *stage, m *mirror) {
			m.change(func(m *mirror) { m.mute = true })
			s.in(2 * time.Minute)
			m.change(func(m *mirror) { m.mute = false })
		},
		"the follower fails for long": func(s *stage, m *mirror) {
			m.change(func(m *mirror) { m.stale = true })
			s.in(2 * time.Minute)
			m.change(func(m *mirror) { m.stale = false })
		},
	} {
		for _, older := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", older ", older), func(t *testing.T) {
				t.Parallel()
				playWith(t, func(s *stage) { s.follows("mirror") }, func(t *testing.T, s *stage) {
					m := s.mirror("mirror")
					s.writes(2)
					backup := s.store.look()
					for i := range 5 {
						s.does(upsert(fmt.Sprint("k", i), "Running"), Done)
						s.does(patch("live-001", fmt.Sprint("Running", i)), Done)
					}
					s.catchesUp("mirror", 5*time.Second)
					s.in(3 * keepEvery)
					before := s.records()
					s.forgets(s.journals[ports.Queue].bounds.Head, s.journals[ports.Manifest].bounds.Head)
					s.slowly(m)
					with := wiped
					if older {
						with = func(*disk) *disk { return backup }
					}
					s.store.kill(with)
					s.in(14 * time.Second)
					if n := len(s.records()); n == len(before) || !older && n == 0 {
						t.Errorf("%d of %d records are there; the mending is not under way", n, len(before))
					}
					interrupt(s, m)
					s.slowly(m)
					s.in(2 * time.Minute)
					s.isReady(3 * time.Minute)
					s.hasAgain(before)
					s.losesNothing()
					m.change(func(m *mirror) { m.delays = 0 })
					s.in(time.Minute)
					s.catchesUp("mirror", time.Minute)
					s.equal("mirror")
				})
			})
		}
	}
}

func (s *stage) mutes(is bool) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.store.mute = is
}

func TestWhatOneFollowerLacksIsTakenFromAnother(t *testing.T) {
	t.Parallel()
	refuses := onPut("b3", putFate{kind: putRefuses, err: ports.Errorf(ports.Invalid, "mirror", "no")})
	away := func(m *mirror) {
		m.change(func(m *mirror) { m.back = 0 })
		m.kill(nil)
	}
	for name, c := range map[string]struct {
		happens func(first, second *mirror) // before b0 to b9
		after   func(first, second *mirror) // before c0 to c9
		lost    []ports.Span
		but     []string
	}{
		"one has more":                             {happens: func(_, second *mirror) { away(second) }},
		"the other has more":                       {happens: func(first, _ *mirror) { away(first) }},
		"one refused a key":                        {happens: func(first, _ *mirror) { first.suffers(refuses) }},
		"the other refused a key":                  {happens: func(_, second *mirror) { second.suffers(refuses) }},
		"the one that has more refused a key":      {happens: func(first, _ *mirror) { first.suffers(refuses) }, after: func(_, second *mirror) { away(second) }},
		"both refused it":                          {happens: func(first, second *mirror) { first.suffers(refuses); second.suffers(refuses) }, lost: []ports.Span{{From: 14, To: 30}}, but: []string{"b3"}},
		"each was away for a while, one came back": {happens: func(_, second *mirror) { away(second) }, after: func(first, second *mirror) { second.start() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			playWith(t, func(s *stage) { s.follows("first"); s.follows("second") }, func(t *testing.T, s *stage) {
				first, second := s.mirror("first"), s.mirror("second")
				write := func(group string, status string) {
					for i := range 10 {
						s.does(upsert(fmt.Sprint(group, i), status), Done)
						s.in(20 * time.Millisecond)
					}
				}
				write("a", "Running")
				s.in(3 * keepEvery)
				c.happens(first, second)
				write("b", "Running")
				s.in(3 * keepEvery)
				if c.after != nil {
					c.after(first, second)
				}
				write("c", "Running")
				s.in(3 * keepEvery)
				before := s.records()
				s.forgets(30, 0)
				for _, m := range []*mirror{first, second} {
					m.suffers(nil)
					m.change(func(m *mirror) { m.back = 20 * time.Millisecond })
					m.start()
				}
				s.store.kill(wiped)
				s.in(5 * time.Second)
				s.isReady(10 * time.Second)
				s.hasAgain(before, c.but...)
				if lost := s.lost(ports.Queue); !slices.Equal(lost, c.lost) {
					t.Errorf("%v are told as lost, want %v", lost, c.lost)
				}
				for _, name := range []string{"first", "second"} {
					if _, err := s.host.RetryUnsettled(name, ports.Queue, ""); err != nil {
						t.Error(err)
					}
					s.catchesUp(name, 2*time.Minute)
					s.equal(name)
				}
			})
		})
	}
}
