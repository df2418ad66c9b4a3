package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"holdfast/ports"
)

func TestAnEntryTheJournalCannotKeepIsTooLarge(t *testing.T) {
	t.Parallel()
	j := opened(t, roomy(t.TempDir()))
	for _, e := range []ports.Entry{
		{Record: make([]byte, ports.MaxRecordBytes+1)},
		{Actor: strings.Repeat("a", maxEnvelope+1)},
	} {
		if _, err := j.Append([]ports.Entry{e}); ports.CodeOf(err) != ports.TooLarge || ports.AsError(err).Limit == 0 {
			t.Errorf("%v", err)
		}
	}
	if b := j.Bounds(); b.Appended != 0 {
		t.Errorf("a Seq was given: %+v", b)
	}
}

func TestTheLargestRecordsComeBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := opened(t, roomy(dir))
	sizes := []int{0, 1, partBytes - 1, partBytes, partBytes + 1, 8<<20 + 1, ports.MaxRecordBytes}
	for i, n := range sizes {
		put(t, j, sized(fmt.Sprint("large-", i), n), sample("small"))
	}
	for _, when := range []string{"while open", "after a restart"} {
		for i, n := range sizes {
			s, err := j.Read(uint64(2*i), 2, 1<<30)
			if err != nil || len(s.Entries) != 2 {
				t.Fatalf("%s: %d bytes: %d entries, %v", when, n, len(s.Entries), err)
			}
			if e := s.Entries[0]; !bytes.Equal(e.Record, body(e.Key, n)) || e.Record == nil || s.Entries[1].Key != "small" {
				t.Fatalf("%s: %d bytes came back as %d", when, n, len(e.Record))
			}
		}
		closed(t, j)
		j = opened(t, roomy(dir))
	}
}

func TestNotifyTellsTheHeadAfterEachSync(t *testing.T) {
	t.Parallel()
	j := opened(t, roomy(t.TempDir()))
	told := make(chan uint64, 10)
	j.Notify(func(head uint64) { told <- head })
	put(t, j, sample("a"), sample("b"))
	put(t, j, sample("c"))
	if a, b := <-told, <-told; a != 2 || b != 3 {
		t.Fatalf("told %d and %d", a, b)
	}
}

func TestAClosedJournalTakesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := opened(t, roomy(dir))
	r, err := j.Append([]ports.Entry{sample("a")})
	if err != nil {
		t.Fatal(err)
	}
	closed(t, j)
	closed(t, j)
	if err := r.Wait(context.Background()); err != nil {
		t.Errorf("what was appended before is not durable: %v", err)
	}
	_, appending := j.Append([]ports.Entry{sample("b")})
	_, reading := j.Read(0, 1, 1)
	for _, err := range []error{appending, reading, j.Trim(1), j.Advance(9)} {
		if ports.CodeOf(err) != ports.Unavailable {
			t.Errorf("%v", err)
		}
	}
	if j = opened(t, roomy(dir)); j.Bounds().Head != 1 {
		t.Errorf("%+v", j.Bounds())
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	o := roomy(t.TempDir())
	o.Disk.Sync = func(f *os.File) error { <-hold; return nil }
	j := opened(t, o)
	r, err := j.Append([]ports.Entry{sample("a")})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	close(hold)
	if err := r.Wait(t.Context()); err != nil {
		t.Errorf("after the disk went on: %v", err)
	}
}
