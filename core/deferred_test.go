package core

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestTheRingKeepsTheNewestAndForgetsWhatIsDropped(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var r ring
		var want []uint64 // oldest first
		next := uint64(0)
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			if rapid.IntRange(0, 3).Draw(t, "drop") == 0 {
				seq := uint64(rapid.IntRange(0, int(next)).Draw(t, "seq"))
				r.drop(seq)
				want = slices.DeleteFunc(want, func(s uint64) bool { return s == seq })
			} else {
				for range rapid.SampledFrom([]int{1, 2, 3, maxOvertaken - 5}).Draw(t, "add") {
					next++
					r.add(DeferredWrite{Seq: next})
					want = append(want, next)
				}
				want = want[max(0, len(want)-maxOvertaken):]
			}
		}
		got := r.newest(maxOvertaken + 1)
		if len(got) != len(want) {
			t.Fatalf("%d are kept, want %d", len(got), len(want))
		}
		for i, w := range got {
			if w.Seq != want[len(want)-1-i] {
				t.Fatalf("the newest but %d is %d, want %d", i, w.Seq, want[len(want)-1-i])
			}
		}
		if len(want) > 0 {
			if _, ok := r.find(want[0]); !ok {
				t.Fatalf("%d is not found", want[0])
			}
		}
		if _, ok := r.find(next + 1); ok {
			t.Fatal("what was never added is found")
		}
	})
}
