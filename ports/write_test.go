package ports_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"holdfast/ports"
)

func TestOrderKeysSortAsTheirEntriesCame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		earlier := ports.Entry{Seq: rapid.Uint64Range(1, 1e15).Draw(t, "seq"), ReceivedMs: rapid.Int64Range(0, 9e13).Draw(t, "ms"), Host: "ffffffff"}
		later := ports.Entry{Seq: earlier.Seq + rapid.Uint64Range(1, 1e6).Draw(t, "more"), ReceivedMs: earlier.ReceivedMs + rapid.Int64Range(0, 1e6).Draw(t, "later"), Host: "00000000"}
		if strings.Compare(earlier.OrderKey(), later.OrderKey()) >= 0 {
			t.Fatalf("%s is not before %s", earlier.OrderKey(), later.OrderKey())
		}
		if a, b := len(earlier.OrderKey()), len(later.OrderKey()); a != b || a > 64 {
			t.Fatalf("the lengths are %d and %d", a, b)
		}
	})
}

func TestAReplayedEntryKeepsItsPlace(t *testing.T) {
	t.Parallel()
	first := ports.Entry{Seq: 7, ReceivedMs: 1796004734801, Host: "abcdef01"}
	replayed := first
	replayed.Seq, replayed.Again = 99, 7
	if replayed.OrderKey() != first.OrderKey() {
		t.Errorf("%s became %s", first.OrderKey(), replayed.OrderKey())
	}
	if at := first.ReceivedAt(); at != "2026-11-30T02:12:14.801Z" {
		t.Errorf("it was received at %s", at)
	}
}
