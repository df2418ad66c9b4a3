package core

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"holdfast/internal/traffic"
	"holdfast/ports"
)

// trouble makes a store die, lose replies, hang and answer late at random: one batch in n.
func trouble(random *rand.Rand, n int) func(*ports.CommitBatch) fate {
	return func(*ports.CommitBatch) fate {
		switch random.IntN(n) {
		case 0:
			return fate{kind: dies}
		case 1:
			return fate{kind: loses}
		case 2:
			return fate{kind: refuses, err: ports.Errorf(ports.Unavailable, "memory", "not now")}
		case 3:
			return fate{after: time.Duration(random.IntN(3000)) * time.Millisecond}
		}
		return fate{}
	}
}

// whole is what a disk holds, without what says by which way it came there.
func whole(d *disk) map[place]string {
	texts := map[place]string{}
	for at, held := range d.held {
		texts[at] = fmt.Sprintf("%s %+v", held.Record.JSON(), held.First)
	}
	for at := range d.gone {
		texts[at] += " gone"
	}
	return texts
}

// inOrder applies everything that was journaled to an empty store, one entry after the other.
func inOrder(t *testing.T, s *stage) *disk {
	t.Helper()
	d := newDisk("model")
	for _, f := range ports.Families {
		for _, e := range s.journals[f].entries {
			if e.Again != 0 {
				continue
			}
			e.Host = s.host.shortID()
			b := ports.CommitBatch{Family: f, After: e.Seq - 1, Through: e.Seq, Entries: []ports.Entry{e}}
			d.marks[f] = ports.Mark{Seq: b.After}
			if _, err := d.commit(s.state.who.ID, &b); err != nil {
				t.Fatal(err)
			}
		}
	}
	return d
}

// settle lets the store be well again, replays what was set aside, and waits until nothing is left to commit.
func (s *stage) settle() {
	s.t.Helper()
	s.store.suffers(nil)
	for range 20 {
		s.in(20 * time.Second)
		list, err := s.host.Asides()
		if err != nil {
			s.t.Fatal(err)
		}
		if len(list) == 0 {
			break
		}
		for _, a := range list {
			if _, err := s.host.RetryAside(a.Family, a.Key); err != nil && ports.CodeOf(err) != ports.NotFound {
				s.t.Fatal(err)
			}
		}
	}
	for _, f := range s.host.Status().Families {
		if f.Backlog != 0 || f.SetAside != 0 || len(f.Lost) != 0 {
			s.t.Errorf("in the end %+v", f)
		}
	}
}

// Whatever becomes of the store's process, the history is that of the journal, each entry decided once and in order, and no
// answer contradicts it.
func TestHistoryIsThatOfTheJournalWhateverBecomesOfTheStore(t *testing.T) {
	t.Parallel()
	for seed := range 60 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(uint64(seed), 1))
			acts := rapid.SliceOfN(ofKeys("k1", "k2", "k3", "k4"), 120, 120).Example(seed)
			playWith(t, func(s *stage) { s.store.back = 100 * time.Millisecond }, func(t *testing.T, s *stage) {
				s.store.suffers(trouble(rand.New(rand.NewPCG(uint64(seed), 2)), 12))
				answers := map[*Promise]Answer{}
				for i, a := range acts {
					c := call(ports.Action(a.Action), "%s", a.Settings)
					c.Source.Import = a.Again
					p := s.host.Begin(c)
					if random.IntN(3) > 0 {
						answers[p] = p.Wait(t.Context())
					}
					if random.IntN(10) == 0 {
						s.in(time.Duration(random.IntN(5000)) * time.Millisecond)
					}
					if i%50 == 49 {
						s.again()
					}
				}
				s.settle()
				got := s.store.look()
				if differ := diff(whole(inOrder(t, s)), whole(got)); len(differ) > 0 {
					t.Errorf("history is not that of the journal:\n%s", differ)
				}
				inTurn(t, got)
				for p, a := range answers {
					if d, ok := got.decisions[familyOf(p)][a.Seq]; ok && a.Situation != Deferred && a.Situation != SetAside && decided(p.class, d).Situation != a.Situation {
						t.Errorf("write %d was answered %s and decided %s", a.Seq, a.AppendJSON(nil), d.Outcome)
					}
				}
			})
		})
	}
}

// ofKeys makes writes about some keys. Events of different keys have different GUIDs, or their order would count across keys.
func ofKeys(keys ...string) *rapid.Generator[traffic.Act] {
	var each []*rapid.Generator[traffic.Act]
	for _, key := range keys {
		each = append(each, traffic.Acts([]string{key}, key))
	}
	return rapid.OneOf(each...)
}

func familyOf(p *Promise) ports.Family {
	if p.family == nil {
		return ""
	}
	return p.family.name
}

func diff(want, got map[place]string) (lines []string) {
	for _, at := range slices.SortedFunc(maps.Keys(want), func(a, b place) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) {
		if want[at] != got[at] {
			lines = append(lines, fmt.Sprintf("%v\nwant %s\ngot  %s\n", at, want[at], got[at]))
		}
	}
	for at := range got {
		if want[at] == "" {
			lines = append(lines, fmt.Sprintf("%v is too much: %s\n", at, got[at]))
		}
	}
	return lines
}

// inTurn checks that entries took effect in order of Seq, none twice; a replay stands for its first entry, and may come twice
// in a row when the host died before it could note the first time.
func inTurn(t *testing.T, d *disk) {
	t.Helper()
	for f, applied := range d.applied {
		last, done := uint64(0), map[uint64]bool{}
		ofKey := map[string]uint64{}
		for _, e := range applied {
			first := cmp.Or(e.Again, e.Seq)
			if e.Seq <= last || done[first] && (e.Again == 0 || ofKey[e.Key] != first) {
				t.Errorf("%s: entry %d (again %d) took effect behind %d, before: %v", f, e.Seq, e.Again, last, done[first])
			}
			if first < ofKey[e.Key] {
				t.Errorf("%s: entry %d of %s took effect behind %d", f, first, e.Key, ofKey[e.Key])
			}
			last, done[first], ofKey[e.Key] = e.Seq, true, first
		}
	}
}

func TestManyBatchesAreUnderWayAtATime(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.store.suffers(func(*ports.CommitBatch) fate { return fate{after: 100 * time.Millisecond} })
		for i := range 10 {
			s.host.Begin(upsert(fmt.Sprint("k", i), "Pending"))
			synctest.Wait()
		}
		s.store.mu.Lock()
		sent := s.store.sent
		s.store.mu.Unlock()
		if sent != window {
			t.Errorf("%d batches were sent before the first answer, want %d", sent, window)
		}
		s.in(time.Second)
		s.store.mu.Lock()
		defer s.store.mu.Unlock()
		if s.store.sent > window+2 { // one was formed already while it waited for its turn
			t.Errorf("%d batches were sent; what came while %d were under way belongs into one", s.store.sent, window)
		}
	})
}

func TestWhatWaitsIsCommittedInBatchesWithinTheirLimits(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.store.back = 0
		s.store.kill(nil)
		for i := range 3 * ports.MaxBatchEntries / 2 {
			s.host.Begin(upsert(fmt.Sprint("k", i), "Pending"))
		}
		large := call(ports.UpsertWorkItem, `{"WorkItem":{"WorkItemHash":"large","Result":%q}}`, strings.Repeat("x", ports.MaxBatchBytes/3))
		for range 4 {
			s.host.Begin(large)
		}
		var sizes []int
		s.store.suffers(func(b *ports.CommitBatch) fate {
			bytes := int64(0)
			for _, e := range b.Entries {
				bytes += e.Cost()
			}
			if len(b.Entries) > ports.MaxBatchEntries || bytes > ports.MaxBatchBytes && len(b.Entries) > 1 {
				t.Errorf("a batch has %d entries and %d bytes", len(b.Entries), bytes)
			}
			sizes = append(sizes, len(b.Entries))
			return fate{}
		})
		s.store.start()
		s.in(5 * time.Second)
		s.status("k0", "Pending")
		if want := []int{ports.MaxBatchEntries, ports.MaxBatchEntries/2 + 2, 2}; !slices.Equal(sizes, want) {
			t.Errorf("the batches have %v entries, want %v", sizes, want)
		}
	})
}

// A store that takes longer than the deadline has not lost anything: what it takes in the end is answered as it decided.
func TestWhatAStoreTakesLateIsDecidedOnceAndNotForgotten(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.does(upsert("a", "Pending"), Done)
		first := true
		s.store.suffers(func(*ports.CommitBatch) fate {
			f := fate{}
			if first {
				f.after = 8 * time.Second
			}
			first = false
			return f
		})
		var seqs []uint64
		for i := range 3 {
			p := s.host.Begin(patch(fmt.Sprint("unknown", i), "x"))
			synctest.Wait() // each is a batch of its own
			seqs = append(seqs, p.seq)
			go p.Wait(t.Context())
		}
		s.in(6 * time.Second)
		s.does(upsert("b", "Pending"), Deferred)
		s.in(10 * time.Second)
		s.status("a", "Pending")
		s.status("b", "Pending")
		for _, seq := range seqs {
			if w := s.host.Write(ports.Queue, seq); w.State != "decided" || w.Outcome != "NotFound" {
				t.Errorf("write %d is remembered as %+v", seq, w)
			}
		}
		inTurn(t, s.store.look())
	})
}

func TestWhatTheJournalLostIsToldAndPassedOver(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.store.back = 0
		s.store.kill(nil)
		for i := range 9 {
			s.does(upsert(fmt.Sprint("k", i), "Pending"), Deferred)
		}
		s.end()
		s.journals[ports.Queue].lose(ports.Span{From: 3, To: 4})
		s.journals[ports.Queue].lose(ports.Span{From: 8, To: 9})
		s.store.start()
		s.begin()
		s.in(5 * time.Second)
		f := s.host.Status().Families[0]
		if want := []ports.Span{{From: 3, To: 4}, {From: 8, To: 9}}; f.Committed != 9 || !reflect.DeepEqual(f.Lost, want) {
			t.Errorf("committed %d, lost %v, want 9 and %v", f.Committed, f.Lost, want)
		}
		s.does(upsert("k9", "Pending"), Done)
		if applied := len(s.store.look().applied[ports.Queue]); applied != 6 {
			t.Errorf("%d entries took effect", applied)
		}
	})
}

func TestAJournalThatCannotBeReadIsSaidAndTriedAgain(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.store.back = 0
		s.store.kill(nil)
		s.does(upsert("a", "Pending"), Deferred)
		s.end()
		j := s.journals[ports.Queue]
		j.change(func(j *memoryJournal) { j.broken = ports.Errorf(ports.Unavailable, "journal: read", "the disk fails") })
		s.store.start()
		s.begin()
		s.in(5 * time.Second)
		if text, _ := json.Marshal(s.host.Status().Backends[0]); !slices.Contains([]string{"waiting-for-beacon", "bootstrapping"}, s.host.Status().Backends[0].State) {
			t.Errorf("the status is %s", text)
		}
		j.change(func(j *memoryJournal) { j.broken = nil })
		s.in(5 * time.Second)
		s.status("a", "Pending")
	})
}
