package core

import (
	"testing"

	"pgregory.net/rapid"

	"holdfast/ports"
)

// Whatever is pushed and taken, in whatever order, a tail gives what follows a Seq without a gap, or says that it cannot.
func TestATailGivesAStretchWithoutAGapOrNothing(t *testing.T) {
	t.Parallel()
	room := make([]byte, 20<<20)
	rapid.Check(t, func(t *rapid.T) {
		var l tail
		pushed := map[uint64]int{}
		next := uint64(1)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if rapid.IntRange(0, 4).Draw(t, "push") > 0 {
				next += uint64(rapid.SampledFrom([]int{0, 0, 0, 0, 3}).Draw(t, "jump"))
				size := rapid.SampledFrom([]int{0, 100, 3 << 20, 3 << 20, 20 << 20}).Draw(t, "size")
				l.push(ports.Entry{Seq: next, Record: room[:size]})
				pushed[next] = size
				next++
			} else {
				after := uint64(rapid.IntRange(0, int(next)).Draw(t, "after"))
				if len(l.entries) > 0 && rapid.IntRange(0, 3).Draw(t, "as usual") > 0 {
					after = l.entries[0].Seq - 1
				}
				head := next - uint64(rapid.IntRange(0, int(min(next, 3))).Draw(t, "head"))
				limit := rapid.IntRange(1, 5).Draw(t, "limit")
				taken, known := l.take(after, head, limit, ports.MaxBatchBytes)
				if known != (len(taken) > 0) || len(taken) > limit {
					t.Fatalf("%d entries of at most %d, known: %v", len(taken), limit, known)
				}
				bytes := int64(0)
				for i, e := range taken {
					bytes += e.Cost()
					if size, ok := pushed[e.Seq]; e.Seq != after+1+uint64(i) || e.Seq > head || !ok || size != len(e.Record) {
						t.Fatalf("after %d, up to %d: entry %d is %d", after, head, i, e.Seq)
					}
				}
				if bytes > ports.MaxBatchBytes && len(taken) > 1 {
					t.Fatalf("%d bytes in %d entries", bytes, len(taken))
				}
			}
			if l.bytes > maxTailBytes {
				t.Fatalf("%d bytes are kept", l.bytes)
			}
			sum := int64(0)
			for _, e := range l.entries {
				sum += e.Cost()
			}
			if sum != l.bytes {
				t.Fatalf("%d bytes are kept, it says %d", sum, l.bytes)
			}
		}
	})
}

func TestATailThatWasTooFullBeginsAgainWhereTheJournalIsRead(t *testing.T) {
	t.Parallel()
	var l tail
	big := make([]byte, 20<<20)
	for seq := range uint64(4) {
		l.push(ports.Entry{Seq: seq + 1, Record: big}) // only the first finds room
	}
	if taken, known := l.take(0, 4, 10, 1<<30); !known || len(taken) != 1 {
		t.Fatalf("%d entries: %v", len(taken), known)
	}
	if _, known := l.take(1, 4, 10, 1<<30); known {
		t.Error("it gives what it does not have")
	}
	l.push(ports.Entry{Seq: 5, Record: big})
	if _, known := l.take(1, 5, 10, 1<<30); known {
		t.Error("it leaves out entries")
	}
	if taken, known := l.take(4, 5, 10, 1<<30); !known || taken[0].Seq != 5 {
		t.Error("it does not go on")
	}
}
