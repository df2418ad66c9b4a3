package core

import (
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"holdfast/ports"
)

// Where a follower goes on: the rules alone, and what comes of them.

func pos(store, epoch string, seqs ...uint64) ports.Position {
	p := ports.Position{StoreID: store, Epoch: epoch}
	for i, seq := range seqs {
		if p.Seqs == nil {
			p.Seqs = map[string]uint64{}
		}
		p.Seqs[string(rune('a'+i))] = seq
	}
	return p
}

func TestASessionBeginsWhereBothItsStoreAndTheHostAre(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		known    ports.FollowerMark
		unknown  bool
		store    ports.Position
		from     ports.Position
		toldWhy  bool
		doubtful bool
	}{
		"a new store of a new follower": {unknown: true, store: pos("s", ""), from: pos("s", "")},
		"a store that the host knows nothing of": {
			unknown: true, store: pos("s", "e", 7), from: pos("s", ""), toldWhy: true, doubtful: true,
		},
		"both are equal":             {known: ports.FollowerMark{Position: pos("s", "e", 7)}, store: pos("s", "e", 7), from: pos("s", "e", 7)},
		"the host is behind":         {known: ports.FollowerMark{Position: pos("s", "e", 5)}, store: pos("s", "f", 7), from: pos("s", "e", 5)},
		"the store is an older copy": {known: ports.FollowerMark{Position: pos("s", "f", 7)}, store: pos("s", "e", 5), from: pos("s", "e", 5)},
		"the store is an older copy, from after the last repair": {
			known: ports.FollowerMark{Position: pos("s", "e", 7), Repaired: pos("", "", 4).Seqs}, store: pos("s", "e", 5), from: pos("s", "e", 5),
		},
		"the store is an older copy, from before the last repair": {
			known: ports.FollowerMark{Position: pos("s", "e", 7), Repaired: pos("", "", 6).Seqs}, store: pos("s", "e", 5), from: pos("s", ""), toldWhy: true,
		},
		"the store is an older copy, from about the last repair": {
			known: ports.FollowerMark{Position: pos("s", "e", 7), Repaired: pos("", "", 5).Seqs}, store: pos("s", "e", 5), from: pos("s", ""), toldWhy: true,
		},
		"one is behind for each host": {
			known: ports.FollowerMark{Position: pos("s", "e", 7, 1)}, store: pos("s", "e", 5, 3), from: pos("s", "e", 5, 1),
		},
		"another store":                            {known: ports.FollowerMark{Position: pos("s", "e", 7)}, store: pos("r", "e", 9), from: pos("r", ""), toldWhy: true},
		"a store that lost its position":           {known: ports.FollowerMark{Position: pos("s", "e", 7)}, store: pos("s", ""), from: pos("s", "")},
		"a store that lost its host's position":    {known: ports.FollowerMark{Position: pos("s", "e", 7)}, store: pos("s", "e", 0), from: pos("s", "")},
		"a family in which nothing was written":    {known: ports.FollowerMark{Position: pos("s", "e", 0)}, store: pos("s", ""), from: pos("s", "")},
		"everything is copied, and was broken off": {known: ports.FollowerMark{Position: pos("s", "")}, store: pos("s", "e", 7), from: pos("s", "")},
		"a store that holds no position":           {known: ports.FollowerMark{Position: pos("", "e", 7)}, store: pos("", ""), from: pos("", "e", 7)},
		"a host that ended while it put": {
			known: ports.FollowerMark{Position: pos("s", "e", 7), Putting: true}, store: pos("s", "e", 7), from: pos("s", "e", 7), doubtful: true,
		},
	} {
		got := startOf(c.known, !c.unknown, c.store)
		same := got.from.StoreID == c.from.StoreID && isZero(got.from) == isZero(c.from) &&
			(isZero(c.from) || got.from.Epoch == c.from.Epoch && maps.Equal(got.from.Seqs, c.from.Seqs))
		if !same || (got.why != "") != c.toldWhy || got.doubtful != c.doubtful {
			t.Errorf("%s: it begins at %+v (%s), doubtful %v; want %+v, %v", name, got.from, got.why, got.doubtful, c.from, c.doubtful)
		}
	}
}

func TestNoSessionBeginsBeyondItsStoreOrTheHost(t *testing.T) {
	t.Parallel()
	draw := func(t *rapid.T, name string) ports.Position {
		p := ports.Position{StoreID: rapid.SampledFrom([]string{"", "s", "s", "s", "r"}).Draw(t, name+" store"), Epoch: rapid.SampledFrom([]string{"", "e", "f"}).Draw(t, name+" epoch")}
		p.Seqs = rapid.MapOf(rapid.SampledFrom([]string{"a", "b", "c"}), rapid.Uint64Range(0, 5)).Draw(t, name)
		return p
	}
	rapid.Check(t, func(t *rapid.T) {
		known := ports.FollowerMark{Position: draw(t, "known"), Putting: rapid.Bool().Draw(t, "putting"), Repaired: draw(t, "repaired").Seqs}
		store := draw(t, "store")
		met := rapid.Bool().Draw(t, "met")
		s := startOf(known, met, store)
		if store.StoreID != "" && !store.Covers(s.from) {
			t.Fatalf("it begins at %v, beyond its store", s.from)
		}
		if met && store.StoreID == known.Position.StoreID && !known.Position.Covers(s.from) {
			t.Fatalf("it begins at %v, beyond what the host knows", s.from)
		}
		if (!met || store.StoreID != "" && store.StoreID != known.Position.StoreID) && !isZero(s.from) {
			t.Fatalf("it begins at %v of a store that it does not know", s.from)
		}
		if s.from.StoreID != store.StoreID {
			t.Fatalf("it begins at a position of %q", s.from.StoreID)
		}
		low := lower(known.Position, store)
		if !known.Position.Covers(low) || !store.Covers(low) {
			t.Fatalf("the lower position is %v", low)
		}
		if other := lower(store, known.Position); !maps.Equal(low.Seqs, other.Seqs) {
			t.Fatalf("the lower position is %v or %v", low, other)
		}
	})
}

func TestAReconnectPutsNothingInDoubt(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) { s.follows("mirror") }, func(t *testing.T, s *stage) {
		s.does(upsert("a", "Running"), Done)
		s.catchesUp("mirror", 5*time.Second)
		m := s.mirror("mirror")
		m.change(func(m *mirror) { m.back = time.Second })
		m.kill(nil)
		s.does(upsert("a", "Complete"), Done)
		s.does(upsert("b", "Running"), Done)
		s.in(5 * time.Second)
		if f := s.follower("mirror", ports.Queue); f.InDoubt != 0 || f.Phase != string(modeReady) {
			t.Errorf("after a reconnect it is %+v", f)
		}
		s.equal("mirror")
	})
}

func TestAfterAHostThatWasKilledItsLastKeysAreInDoubtForAMinute(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) { s.follows("mirror") }, func(t *testing.T, s *stage) {
		s.catchesUp("mirror", 5*time.Second)
		s.does(upsert("z", "Running"), Done)
		s.in(3 * keepEvery)
		m := s.mirror("mirror")
		m.suffers(oneByOne("a", putFate{kind: putLost, after: 40 * time.Second}))
		s.does(upsert("a", "Running"), Done)
		s.in(time.Second)
		s.dies()
		s.in(2 * time.Second)
		if f := s.follower("mirror", ports.Queue); f.InDoubt != 1 {
			t.Errorf("after the start it is %+v", f)
		}
		s.does(patch("a", "Complete"), Done)
		s.in(2 * time.Minute)
		s.catchesUp("mirror", time.Second)
		s.equal("mirror")
		if f := s.follower("mirror", ports.Queue); f.Copied > 6 {
			t.Errorf("%d rows were copied", f.Copied)
		}
	})
}

func TestAFollowerWhoseStoreIsNotWhatItWasMissesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		prepare func(m *mirror)
		with    func(before, now *mirrorDisk) *mirrorDisk
		least   uint64 // rows that are copied again
		most    uint64
	}{
		"it is the same":             {with: func(_, now *mirrorDisk) *mirrorDisk { return now }, most: 0},
		"it is an older copy":        {with: func(before, _ *mirrorDisk) *mirrorDisk { return before }, least: 5, most: 5},
		"it is empty, and new":       {with: func(_, _ *mirrorDisk) *mirrorDisk { return newMirrorDisk("mirror-2") }, least: 15, most: 15},
		"it is empty, with its name": {with: func(_, now *mirrorDisk) *mirrorDisk { return newMirrorDisk(now.id) }, least: 15, most: 15},
		"it lost its position": {with: func(_, now *mirrorDisk) *mirrorDisk {
			d := now.copied()
			d.positions = map[ports.Family]ports.Position{}
			return d
		}, least: 15, most: 15},
		"it holds no position": {
			prepare: func(m *mirror) { m.noPosition = true }, with: func(_, now *mirrorDisk) *mirrorDisk { return now }, most: 0,
		},
	} {
		for _, dies := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				playWith(t, func(s *stage) {
					m := s.follows("mirror")
					if c.prepare != nil {
						c.prepare(m)
					}
				}, func(t *testing.T, s *stage) {
					m := s.mirror("mirror")
					s.writes(10)
					s.catchesUp("mirror", 5*time.Second)
					before := m.look()
					for i := range 5 {
						s.does(upsert(string(rune('p'+i)), "Running"), Done)
					}
					s.catchesUp("mirror", 5*time.Second)
					copied := s.follower("mirror", ports.Queue).Copied
					if dies {
						m.kill(func(d *mirrorDisk) *mirrorDisk { return c.with(before, d) })
					} else {
						m.becomes(c.with(before, m.look()))
					}
					s.in(10 * time.Second)
					s.catchesUp("mirror", time.Second)
					s.equal("mirror")
					if again := s.follower("mirror", ports.Queue).Copied - copied; name != "it is the same" && (again < c.least || again > 3*c.most+20) {
						t.Errorf("%d rows were copied again", again)
					}
				})
			})
		}
	}
}

func TestAnOlderCopyFromBeforeAKeyWasRepairedIsCopiedWhole(t *testing.T) {
	t.Parallel()
	for name, moves := range map[string]bool{"at an earlier position": true, "at the same position": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			playWith(t, func(s *stage) { s.follows("mirror") }, func(t *testing.T, s *stage) {
				m := s.mirror("mirror")
				m.suffers(onPut("k", putFate{kind: putRefuses, err: ports.Errorf(ports.Invalid, "mirror", "no")}))
				s.does(upsert("k", "Running"), Done)
				s.does(upsert("a", "Running"), Done)
				s.in(2 * time.Second)
				before := m.look()
				if moves {
					s.does(upsert("b", "Running"), Done)
					s.in(2 * time.Second)
				}
				m.suffers(nil)
				if _, err := s.host.RetryUnsettled("mirror", ports.Queue, "k"); err != nil {
					t.Fatal(err)
				}
				s.catchesUp("mirror", 5*time.Second)
				s.does(upsert("c", "Running"), Done)
				s.catchesUp("mirror", 5*time.Second)
				m.kill(func(*mirrorDisk) *mirrorDisk { return before })
				s.in(5 * time.Second)
				s.catchesUp("mirror", 5*time.Second)
				s.equal("mirror")
			})
		})
	}
}

// dies is a host that is killed, and another start on what it left.
func (s *stage) dies() {
	s.t.Helper()
	left := s.state.copied()
	s.end()
	s.state = left // the end wrote nothing
	for _, j := range s.journals {
		j.reopen(0)
	}
	s.begin()
	synctest.Wait()
}

func TestALatePutOfAKilledHostDoesNotOverwriteWhatChangedSince(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		slots      int
		noPosition bool
	}{{0, false}, {3, false}, {0, true}, {3, true}} {
		playWith(t, func(s *stage) {
			s.follows("mirror", func(m *mirror) { m.slots, m.noPosition = c.slots, c.noPosition })
		}, func(t *testing.T, s *stage) {
			m := s.mirror("mirror")
			s.does(upsert("z", "Running"), Done)
			s.catchesUp("mirror", 5*time.Second)
			s.in(3 * keepEvery)
			m.suffers(oneByOne("k", putFate{kind: putLost, after: 40 * time.Second}))
			s.does(upsert("k", "Running"), Done)
			s.in(time.Second)
			m.change(func(m *mirror) { m.probe = errBusy })
			s.dies()
			for i := range 500 { // the key is far behind the first page then
				s.does(upsert(fmt.Sprint("a", i), "Running"), Done)
			}
			s.does(patch("k", "Complete"), Done)
			m.change(func(m *mirror) { m.probe = nil })
			s.in(3 * time.Minute)
			s.catchesUp("mirror", time.Second)
			for _, d := range s.differences("mirror") {
				t.Errorf("%+v: %s", c, d)
			}
		})
	}
}
