package journal

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"holdfast/ports"
)

func TestAtItsLimitTheJournalIsFullUntilItIsTrimmed(t *testing.T) {
	t.Parallel()
	o := Options{Dir: t.TempDir(), Family: ports.Queue, Limit: 1 << 20, Reserve: -1}
	j := opened(t, o)
	var err error
	for err == nil {
		var r ports.Receipt
		if r, err = j.Append([]ports.Entry{sample("a")}); err == nil {
			err = r.Wait(t.Context())
		}
	}
	e := ports.AsError(err)
	if e.Code != ports.Full || e.Limit != 1<<20 || e.Size <= e.Limit || e.Size > e.Limit+2000 {
		t.Fatalf("%+v", e)
	}
	b := j.Bounds()
	if !b.Full || b.Bytes > b.Limit || b.Bytes < b.Limit-2000 || b.Head != b.Appended {
		t.Fatalf("%+v", b)
	}
	if err := j.Trim(b.Head / 2); err != nil {
		t.Fatal(err)
	}
	if after := j.Bounds(); after.Full || after.First < b.Head/4 || after.First > b.Head/2+1 || after.Bytes > 3*b.Bytes/4+1 {
		t.Errorf("trimmed by half: %+v", after)
	}
	put(t, j, sample("b"))
	got, lost := readAll(t, j, b.Head/2)
	if !slices.Equal(seqs(got), span(b.Head/2+1, b.Head+1)) || lost != nil {
		t.Errorf("%d entries, lost %v", len(got), lost)
	}
}

func TestTrimForgetsWholeSegmentsAndReadTellsWhatIsGone(t *testing.T) {
	t.Parallel()
	dir, _ := seven(t)
	j := opened(t, roomy(dir))
	if err := j.Trim(50); err != nil {
		t.Fatal(err)
	}
	if b := j.Bounds(); b.First != 43 || b.Head != 131 {
		t.Errorf("%+v", b)
	}
	got, lost := readAll(t, j, 10)
	if !slices.Equal(seqs(got), span(43, 131)) || !slices.Equal(lost, []ports.Span{{From: 11, To: 42}}) {
		t.Errorf("%v, lost %v", seqs(got), lost)
	}
	if err := j.Trim(131); err != nil {
		t.Fatal(err)
	}
	closed(t, j)
	if j = opened(t, roomy(dir)); j.Bounds().Head != 131 {
		t.Errorf("trimming made the journal forget its head: %+v", j.Bounds())
	}
}

func TestOneRecordThatFillsTheJournalCanBeTrimmed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := Options{Dir: dir, Family: ports.Queue, Limit: 8 << 20, Reserve: -1}
	j := opened(t, o)
	put(t, j, sized("large", 6<<20))
	if _, err := j.Append([]ports.Entry{sized("large", 6<<20)}); ports.CodeOf(err) != ports.Full {
		t.Fatalf("%v", err)
	}
	for range 3 {
		if err := j.Trim(j.Bounds().Head); err != nil {
			t.Fatal(err)
		}
		if b := j.Bounds(); b.Bytes > 1000 || b.First != b.Head+1 {
			t.Fatalf("%+v", b)
		}
		put(t, j, sized("large", 6<<20))
	}
	closed(t, j)
	j = opened(t, o)
	if got, lost := readAll(t, j, 3); !slices.Equal(seqs(got), []uint64{4}) || lost != nil {
		t.Errorf("%v, lost %v", seqs(got), lost)
	}
}

func TestAJournalLargerThanItsNewLimitOpensAndDrains(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := opened(t, Options{Dir: dir, Family: ports.Queue, Limit: 64 << 20, Reserve: -1})
	for i := range 20 {
		put(t, j, sized(fmt.Sprint(i), 500<<10))
	}
	closed(t, j)
	j = opened(t, Options{Dir: dir, Family: ports.Queue, Limit: 1 << 20, Reserve: -1})
	if _, err := j.Append([]ports.Entry{sample("a")}); ports.CodeOf(err) != ports.Full || !j.Bounds().Full {
		t.Fatalf("%v, %+v", err, j.Bounds())
	}
	if got, lost := readAll(t, j, 0); len(got) != 20 || lost != nil {
		t.Fatalf("%d entries, lost %v", len(got), lost)
	}
	if err := j.Trim(20); err != nil {
		t.Fatal(err)
	}
	put(t, j, sample("a"))
}

func TestTheLimitsFollowTheDisk(t *testing.T) {
	t.Parallel()
	const mib, gib = 1 << 20, 1 << 30
	tests := []struct {
		name                    string
		free, total, own        int64
		limit, reserve, segment int64
	}{
		{"a large disk", 100 * gib, 200 * gib, 0, gib, 4 * gib, 16 * mib},
		{"a small disk", 2 * gib, 4 * gib, 0, gib / 2, 4 * gib / 50, 16 * mib},
		{"a tiny disk", 32 * mib, 32 * mib, 0, 8 * mib, 8 * mib, mib / 2},
		{"a tiny disk that the journal fills", 24 * mib, 32 * mib, 8 * mib, 8 * mib, 8 * mib, mib / 2},
		{"a full disk", 0, 32 * mib, 4 * mib, mib, mib, mib / 4},
	}
	for _, c := range tests {
		o := Options{Disk: Disk{Space: func(string) (int64, int64, error) { return c.free, c.total, nil }}}.withDefaults(c.own)
		if o.Limit != c.limit || o.Reserve != c.reserve || o.SegmentBytes != c.segment {
			t.Errorf("%s: limit %d, reserve %d, segments %d", c.name, o.Limit, o.Reserve, o.SegmentBytes)
		}
	}
}

func TestOpeningWith300000EntriesBehindIsQuick(t *testing.T) {
	t.Parallel()
	n := rounds(300_000)
	dir := t.TempDir()
	o := Options{Dir: dir, Family: ports.Queue, Limit: 1 << 30, Reserve: -1, SegmentBytes: int64(max(rounds(16<<20), 1))}
	j := opened(t, o)
	for done := 0; done < n; done += 1000 {
		batch := make([]ports.Entry, 1000)
		for i := range batch {
			batch[i] = sample(fmt.Sprint("item-", done+i))
		}
		if _, err := j.Append(batch); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, j)
	start := time.Now()
	j = opened(t, o)
	took := time.Since(start)
	b := j.Bounds()
	t.Logf("%d entries, %d MiB in %d segments open in %v", b.Head, b.Bytes>>20, len(segmentFiles(t, dir)), took)
	if b.Head != uint64(n) || took > 300*time.Millisecond {
		t.Errorf("head %d after %v", b.Head, took)
	}
	s, err := j.Read(uint64(n/2), 10, 1<<20)
	if err != nil || len(s.Entries) != 10 || !bytes.Equal(s.Entries[0].Record, body(s.Entries[0].Key, 600)) {
		t.Errorf("reading from the middle: %d entries, %v", len(s.Entries), err)
	}
}
