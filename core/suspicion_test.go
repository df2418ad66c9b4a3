package core

import (
	"testing"

	"pgregory.net/rapid"

	"holdfast/ports"
)

// A store that refuses, or dies of, some entries: the loop around a suspicion must set those aside and no others, and get
// through everything in a bounded number of tries.
func TestASuspicionFindsTheGuiltyAndNobodyElse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		total := uint64(rapid.IntRange(1, 1500).Draw(t, "total"))
		guilty := map[uint64]bool{}
		for _, seq := range rapid.SliceOfNDistinct(rapid.Uint64Range(1, total), 0, int(min(total, 4)), rapid.ID).Draw(t, "guilty") {
			guilty[seq] = true
		}
		permanent := rapid.Bool().Draw(t, "permanent")
		unlucky := rapid.IntRange(0, 1).Draw(t, "unlucky") // a death now and then that was nobody's fault
		var s suspicion
		aside := map[uint64]bool{}
		tries := 0
		for mark := uint64(0); mark < total; {
			if tries++; tries > 20_000 {
				t.Fatalf("stuck at %d", mark)
			}
			limit, alone := s.size()
			if limit < 1 || limit > ports.MaxBatchEntries || alone != (s.until != 0) {
				t.Fatalf("a batch of %d, alone: %v", limit, alone)
			}
			through := min(mark+uint64(limit), total)
			n, first, bad := 0, uint64(0), false
			for seq := mark + 1; seq <= through; seq++ {
				if aside[seq] {
					continue
				}
				if n++; first == 0 {
					first = seq
				}
				bad = bad || guilty[seq]
			}
			switch {
			case bad || n > 1 && unlucky > 0 && tries%7 == 0:
				if s.failed(first, n, through, permanent && bad) {
					if !guilty[first] {
						t.Fatalf("%d is set aside without guilt", first)
					}
					aside[first] = true
				}
			default:
				mark = through
				s.passed(through)
			}
		}
		if len(aside) != len(guilty) {
			t.Fatalf("aside are %v, guilty %v", aside, guilty)
		}
		if limit, alone := s.size(); limit != ports.MaxBatchEntries || alone {
			t.Fatalf("in the end batches of %d are sent, alone: %v", limit, alone)
		}
	})
}

func TestHowOftenABatchMayFail(t *testing.T) {
	t.Parallel()
	type step struct {
		first     uint64
		n         int
		permanent bool
		aside     bool
		limit     int // afterwards
	}
	for name, steps := range map[string][]step{
		"a refused batch is halved at once":            {{1, 8, true, false, 4}, {1, 4, true, false, 2}, {1, 2, true, false, 1}, {1, 1, true, true, 1}},
		"a deadly batch is taken apart after two":      {{1, 8, false, false, 8}, {1, 8, false, false, 1}, {1, 1, false, false, 1}, {1, 1, false, false, 1}, {1, 1, false, true, 1}},
		"a deadly entry is set aside after three":      {{1, 1, false, false, 1}, {1, 1, false, false, 1}, {1, 1, false, true, 1}},
		"a death of one is no strike against the next": {{1, 1, false, false, 1}, {1, 1, false, false, 1}, {2, 1, false, false, 1}, {1, 1, false, false, 1}},
		"an odd batch is halved downwards":             {{1, 3, true, false, 1}},
	} {
		var s suspicion
		for i, c := range steps {
			aside := s.failed(c.first, c.n, c.first+uint64(c.n)-1, c.permanent)
			if limit, alone := s.size(); aside != c.aside || limit != c.limit || !alone {
				t.Errorf("%s, step %d: aside %v, batches of %d, alone %v", name, i, aside, limit, alone)
			}
		}
	}
}

func TestOnlyFailuresThatSpeakAgainstABatchCount(t *testing.T) {
	t.Parallel()
	counts := map[ports.Code]bool{
		ports.Invalid: true, ports.TooLarge: true, ports.NotFound: true, ports.Unimplemented: true,
		ports.BackendGone: true, ports.Deadline: true, ports.Internal: true,
	}
	var s suspicion
	for _, code := range ports.Codes {
		if s.counts(code) != counts[code] {
			t.Errorf("%s counts: %v", code, s.counts(code))
		}
	}
}
