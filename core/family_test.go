package core

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// A read waits for too much rather than for too little: what is told of a key is never below its last Seq.
func TestTheLastSeqOfAKeyIsNeverToldTooLow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var k keySeqs
		start := uint64(rapid.IntRange(0, 9).Draw(t, "start"))
		k.init(start)
		last := map[string]uint64{}
		turns := rapid.SampledFrom([]int{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2}).Draw(t, "turns")
		newest := start
		for range rapid.IntRange(0, 100).Draw(t, "writes") {
			key := fmt.Sprint(rapid.IntRange(0, 30).Draw(t, "key"))
			newest++
			k.note(key, newest)
			last[key] = newest
			if turns > 0 && rapid.IntRange(0, 9).Draw(t, "turn") == 0 {
				turns--
				for range maxKeySeqs / 2 { // others push it out
					newest++
					k.note(fmt.Sprint("other", newest), newest)
				}
			}
		}
		for key := range 31 {
			want := max(last[fmt.Sprint(key)], start)
			if got := k.last(fmt.Sprint(key)); got < want || got > newest {
				t.Fatalf("key %d: %d, want at least %d and at most %d", key, got, want, newest)
			}
		}
		if n := len(k.now) + len(k.old); n > maxKeySeqs {
			t.Fatalf("%d keys are known", n)
		}
	})
}

func TestAKeyThatIsKnownIsToldExactlyAndAnUnknownOneByTheStart(t *testing.T) {
	t.Parallel()
	var k keySeqs
	k.init(10)
	k.note("a", 11)
	k.note("b", 12)
	k.note("a", 13)
	for key, want := range map[string]uint64{"a": 13, "b": 12, "c": 10} {
		if got := k.last(key); got != want {
			t.Errorf("%s: %d, want %d", key, got, want)
		}
	}
}
