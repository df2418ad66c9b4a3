package core

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/ports"
)

var soak = os.Getenv("HOLDFAST_SOAK") != ""

// rounds is how often a thing is tried at random: a tenth of what `make soak` does.
func rounds(inSoak int) int {
	if soak {
		return inSoak
	}
	return max(1, inSoak/10)
}

// misbehaviour is what a follower does that it should not.
type misbehaviour struct {
	begin   func(m *mirror)
	shows   func(f FollowerStatus) bool // what its status must say of it,
	within  time.Duration               // so soon after the first sign
	oneKey  bool                        // it is about the key "bad" alone, which ends up unsettled
	settles bool                        // it is over by itself, or once it is begun
}

// sign is how long it takes at most until a probe finds that something is wrong, and shown how soon the status has to say so.
const (
	sign  = probeEvery + probeDeadline
	shows = 2 * time.Second
)

func hasPhase(phases ...mode) func(FollowerStatus) bool {
	return func(f FollowerStatus) bool {
		for _, p := range phases {
			if f.Phase == string(p) {
				return true
			}
		}
		return false
	}
}

func hasDoubt(f FollowerStatus) bool { return f.InDoubt > 0 }

func hasUnsettled(f FollowerStatus) bool { return f.Unsettled == 1 }

func fails(code ports.Code) error { return ports.Errorf(code, "mirror", "it says %s", code) }

var misbehaviours = map[string]misbehaviour{
	"killed for good": {begin: func(m *mirror) { m.end() }, shows: hasPhase(modeDown), within: shows},
	"killed again and again": {
		begin: func(m *mirror) {
			n := 0
			m.suffers(func(b *ports.Batch) putFate {
				if n++; n%3 == 0 {
					return putFate{kind: []putKind{putDies, putLoses}[n%2]}
				}
				return putFate{}
			})
		},
	},
	"frozen": {
		begin: func(m *mirror) { m.change(func(m *mirror) { m.mute = true }) },
		shows: func(f FollowerStatus) bool {
			return f.Suspect || f.Phase == string(modeHung) || f.Phase == string(modeDown)
		}, within: putDeadline + sign + shows, // a store with one slot is waited for as long as a Put may take
	},
	"slow": {
		begin: func(m *mirror) { m.suffers(every(putFate{after: 4500 * time.Millisecond})) },
		shows: hasPhase(modeLagging, modeCopying), within: lagAge + shows,
	},
	"refusing one record for good": {
		begin: func(m *mirror) { m.suffers(onPut("bad", putFate{kind: putRefuses, err: fails(ports.Invalid)})) },
		shows: hasUnsettled, within: shows, oneKey: true,
	},
	"dying on one record": {
		begin: func(m *mirror) { m.suffers(onPut("bad", putFate{kind: putDies})) }, shows: hasUnsettled, within: time.Minute, oneKey: true,
	},
	"hanging on one record": {
		begin: func(m *mirror) { m.suffers(onPut("bad", putFate{kind: putHangs})) }, shows: hasUnsettled, within: 3 * time.Minute, oneKey: true,
	},
	"never answering for one record": {
		begin: func(m *mirror) { m.suffers(onPut("bad", putFate{kind: putSilent})) }, shows: hasUnsettled, within: 3 * time.Minute, oneKey: true,
	},
	"answering late": {
		begin: func(m *mirror) { m.suffers(next(2, putFate{kind: putLate, after: 20 * time.Second})) },
		shows: hasDoubt, within: 2*putDeadline + shows, settles: true,
	},
	"taking effect late and never answering": {
		begin: func(m *mirror) { m.suffers(next(2, putFate{kind: putLost, after: 45 * time.Second})) },
		shows: hasDoubt, within: 2*putDeadline + shows, settles: true,
	},
	"taking effect twice": {
		begin: func(m *mirror) { m.suffers(next(2, putFate{kind: putTwice, after: 45 * time.Second})) },
		shows: hasDoubt, within: 2*putDeadline + shows, settles: true,
	},
	"claiming more than it was given": {
		begin: func(m *mirror) { m.suffers(every(putFate{kind: putWrong, done: 1})) },
		shows: func(f FollowerStatus) bool { return f.LastError != "" }, within: shows,
	},
	"claiming less without saying why": {
		begin: func(m *mirror) { m.suffers(every(putFate{kind: putWrong, done: -1})) },
		shows: func(f FollowerStatus) bool { return f.LastError != "" }, within: shows,
	},
	"full": {
		begin: func(m *mirror) { m.suffers(every(putFate{kind: putRefuses, err: fails(ports.Full)})) },
		shows: hasPhase(modeDown, modeError), within: shows,
	},
	"taking no credentials": {
		begin: func(m *mirror) { m.suffers(every(putFate{kind: putRefuses, err: fails(ports.Unauthorized)})) },
		shows: func(f FollowerStatus) bool { return f.Phase == string(modeError) && f.Remedy != "" }, within: shows,
	},
	"saying that it takes no writes": {
		begin: func(m *mirror) { m.change(func(m *mirror) { m.probe = fails(ports.Unavailable) }) },
		shows: hasPhase(modeDown), within: sign + shows,
	},
	"answering no reads": {
		begin: func(m *mirror) { m.change(func(m *mirror) { m.delays = time.Minute }) },
	},
}

// next gives the next few Puts with rows a fate.
func next(n int, f putFate) func(*ports.Batch) putFate {
	return func(b *ports.Batch) putFate {
		if len(b.Rows) == 0 || n == 0 {
			return putFate{}
		}
		n--
		return f
	}
}

// Whatever one follower does, no caller waits for it, nothing acknowledged is lost, the other follower has everything at once,
// and when it is well again it is equal.
func TestAFollowerThatMisbehavesHarmsNobodyElse(t *testing.T) {
	t.Parallel()
	for name, c := range misbehaviours {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range rounds(100) {
				t.Run(fmt.Sprint(seed), func(t *testing.T) { misbehave(t, c, uint64(seed)) })
			}
		})
	}
}

func misbehave(t *testing.T, c misbehaviour, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 7))
	acts := rapid.SliceOfN(ofKeys("k1", "k2", "k3", "k4", "k5"), 60, 60).Example(int(seed))
	playWith(t, func(s *stage) {
		s.revive = true
		s.follows("m1", func(m *mirror) { m.slots, m.loose = []int{0, 0, 1, 2, 4}[seed%5], seed%2 == 1 })
		s.follows("m2")
		s.config.Route = []string{"m1", "m2", "local"}
	}, func(t *testing.T, s *stage) {
		m := s.mirror("m1")
		for i, a := range acts {
			if i == 10 {
				c.begin(m)
				s.does(upsert("bad", "Pending"), Done)
			}
			call := call(ports.Action(a.Action), "%s", a.Settings)
			call.Source.Import = a.Again
			s.acts(call)
			if i == 12 {
				within := c.within
				if m.slots == 1 {
					within += putDeadline // a Put has the only slot, and no probe can tell before it is given up
				}
				s.seen("m1", c, within)
			}
			if random.IntN(3) == 0 {
				s.in(time.Duration(random.IntN(400)) * time.Millisecond)
			}
			if random.IntN(3) == 0 {
				s.readsNow(fmt.Sprint("k", 1+random.IntN(5)))
			}
		}
		s.does(patch("bad", "Running"), Done)
		s.readsNow("bad")
		s.in(500 * time.Millisecond)
		if list := s.differences("m2"); len(list) > 0 {
			t.Errorf("the other follower waits: %v", list)
		}
		if c.oneKey {
			s.onlyBadIsUnsettled()
		}
		if c.oneKey || c.settles {
			s.until(3*time.Minute, func() bool {
				f := s.follower("m1", ports.Queue)
				return f.InDoubt == 0 && f.Phase == string(modeReady)
			})
			s.answeredBy("k9", "m1")
		}
		m.change(func(m *mirror) {
			m.fate, m.mute, m.probe, m.delays, m.back = nil, false, nil, 0, 20*time.Millisecond
		})
		m.start()
		for _, f := range ports.Families {
			if n, err := s.host.RetryUnsettled("m1", f, ""); c.oneKey && f == ports.Queue && n != 1 || err != nil {
				t.Errorf("%d keys are tried again: %v", n, err)
			}
		}
		s.catchesUp("m1", 3*time.Minute)
		s.equal("m1")
		s.equal("m2")
		s.answeredBy("bad", "m1")
	})
}

// acts carries out a write, which must be answered in time.
func (s *stage) acts(c Call) {
	s.t.Helper()
	began := time.Now()
	a := s.host.Do(s.t.Context(), c)
	if took := time.Since(began); took > 100*time.Millisecond || a.Situation == Deferred {
		s.t.Errorf("%s is answered %s after %s", c.Action, a.AppendJSON(nil), took)
	}
}

// readsNow reads an item, which must be answered in time, and as the local store has it.
func (s *stage) readsNow(key string) {
	s.t.Helper()
	began := time.Now()
	a := s.host.Item(s.t.Context(), key)
	if took := time.Since(began); took > patience {
		s.t.Errorf("item %s is answered after %s", key, took)
	}
	want := ""
	if held, _ := s.store.look().Item(key); held != nil {
		want = string(held.Record.JSON())
	}
	if string(a.Value) != want || a.Stale || a.Incomplete || (want == "") != (a.Situation == NotFound) {
		s.t.Errorf("item %s is answered %s, want %s", key, a.AppendJSON(nil), want)
	}
}

// seen waits until the status of a follower tells what it does.
func (s *stage) seen(name string, c misbehaviour, within time.Duration) {
	s.t.Helper()
	if c.shows != nil && !s.until(within, func() bool {
		return c.shows(s.follower(name, ports.Queue)) || c.settles && c.shows(s.follower(name, ports.Manifest))
	}) {
		s.t.Errorf("%s after it is not told: %+v", within, s.follower(name, ports.Queue))
	}
}

// answeredBy expects that an item is answered by a backend.
func (s *stage) answeredBy(key, name string) {
	s.t.Helper()
	if _, known := s.store.look().held[place{kind: ports.KindItem, key: key}]; !known {
		s.does(upsert(key, "Pending"), Done)
		s.in(time.Second)
	}
	var a Answer
	if !s.until(sign, func() bool {
		a = s.host.Item(s.t.Context(), key)
		return a.Backend == name && a.Situation == Done && !a.Stale && !a.Incomplete
	}) {
		s.t.Errorf("item %s is answered %s, want it from %s, which is %+v", key, a.AppendJSON(nil), name, s.follower(name, ports.Queue))
	}
}

// onlyBadIsUnsettled expects that nothing but the key "bad" is lacking in m1, and that it is read elsewhere.
func (s *stage) onlyBadIsUnsettled() {
	s.t.Helper()
	s.until(3*time.Minute, func() bool {
		f := s.follower("m1", ports.Queue)
		return f.Behind == 0 && f.InDoubt == 0 && f.Phase == string(modeReady)
	})
	list, err := s.host.UnsettledKeys("m1", ports.Queue, "", 10)
	if err != nil || len(list) != 1 || list[0].Key != "bad" || list[0].Reason == "" || list[0].Last < list[0].First {
		s.t.Errorf("unsettled is %+v, %v", list, err)
	}
	for _, row := range s.store.look().rows(ports.Kinds...) {
		if other, ok := s.mirror("m1").look().rows[placeOfRow(&row)]; row.Key != "bad" && (!ok || !sameRow(&row, &other)) {
			s.t.Errorf("m1 has not %s %s", row.Kind, row.Key)
		}
	}
	if a := s.host.Item(s.t.Context(), "bad"); a.Backend == "m1" || a.Stale {
		s.t.Errorf("the key is answered %s", a.AppendJSON(nil))
	}
}
