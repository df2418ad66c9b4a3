package journal

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"holdfast/ports"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("JOURNAL_TEST_APPEND_TO"); dir != "" {
		appendUntilKilled(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

// soak says whether heavy rounds run whole.
var soak = os.Getenv("HOLDFAST_SOAK") != ""

func rounds(n int) int {
	if soak {
		return n
	}
	return max(n/10, 1)
}

// opened opens a journal that is closed at the end of the test.
func opened(t testing.TB, o Options) *Journal {
	t.Helper()
	j, err := Open(o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func closed(t testing.TB, j *Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}

// roomy are options under which no limit is met.
func roomy(dir string) Options {
	return Options{Dir: dir, Family: ports.Queue, Limit: 1 << 30, Reserve: -1, SegmentBytes: 64 << 10}
}

// sample is an entry whose record can be told from its key, about 700 bytes in all.
func sample(key string) ports.Entry {
	return sized(key, 600)
}

func sized(key string, n int) ports.Entry {
	return ports.Entry{
		Action: ports.UpsertWorkItem, Class: ports.Live, Key: key, Record: body(key, n),
		ReceivedMs: 1767225600000, Host: "0123abcd", Actor: "token:ops", Origin: ports.OriginHTTP,
	}
}

func body(key string, n int) []byte {
	b := bytes.Repeat([]byte(`{"k":"`+key+`"},`), n/(len(key)+9)+1)
	return b[:n]
}

func put(t testing.TB, j *Journal, entries ...ports.Entry) []ports.Entry {
	t.Helper()
	r, err := j.Append(entries)
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	if err := r.Wait(t.Context()); err != nil {
		t.Fatalf("wait: %v", err)
	}
	return entries
}

// fill appends n samples, each batch of ten synced, and gives the Seq of the last.
func fill(t testing.TB, j *Journal, n int) uint64 {
	t.Helper()
	for done := 0; done < n; {
		batch := make([]ports.Entry, min(10, n-done))
		for i := range batch {
			batch[i] = sample(fmt.Sprintf("item-%d", done+i))
		}
		put(t, j, batch...)
		done += len(batch)
	}
	return j.Bounds().Head
}

// readAll reads everything behind a Seq, page by page.
func readAll(t testing.TB, j *Journal, after uint64) (all []ports.Entry, lost []ports.Span) {
	t.Helper()
	for {
		s, err := j.Read(after, 100, 1<<20)
		if err != nil {
			t.Fatalf("read after %d: %v", after, err)
		}
		if head := j.Bounds().Head; s.Through > max(head, after) {
			t.Fatalf("read through %d, the head is %d", s.Through, head)
		}
		all = append(all, s.Entries...)
		lost = append(lost, s.Lost...)
		if s.Through == after {
			return all, joined(lost)
		}
		after = s.Through
	}
}

// joined puts spans together that two pages told in parts.
func joined(spans []ports.Span) (all []ports.Span) {
	for _, s := range spans {
		if n := len(all); n > 0 && all[n-1].To+1 == s.From {
			all[n-1].To = s.To
			continue
		}
		all = append(all, s)
	}
	return all
}

func seqs(entries []ports.Entry) (all []uint64) {
	for _, e := range entries {
		all = append(all, e.Seq)
	}
	return all
}

// span gives the Seqs from a to b.
func span(a, b uint64) (all []uint64) {
	for s := a; s <= b; s++ {
		all = append(all, s)
	}
	return all
}

func segmentFiles(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "journal", "queue", "*.seg*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// eventually waits for a condition, at most five seconds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(5 * time.Second); time.Now().Before(until); <-tick.C {
		if holds() {
			return
		}
	}
	t.Fatalf("after five seconds still not: %s", what)
}

func TestEntriesComeBackAsTheyWereInOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := opened(t, roomy(dir))
	var want []ports.Entry
	for i := range 300 {
		e := sample(fmt.Sprintf("item-%d", i))
		switch i % 4 {
		case 1:
			e.Action, e.Class, e.EventGUID, e.GUIDGiven = ports.AppendEvent, ports.Reflush, "guid", true
		case 2:
			e.Action, e.Number, e.Again = ports.InsertAttempt, 3, 17
		case 3:
			e.Action, e.Record = ports.RemoveManifest, nil
		}
		want = append(want, put(t, j, e)...)
	}
	for _, when := range []string{"while open", "after a restart"} {
		got, lost := readAll(t, j, 0)
		if len(got) != 300 || len(lost) != 0 {
			t.Fatalf("%s: %d entries and lost %v", when, len(got), lost)
		}
		for i := range got {
			if fmt.Sprint(got[i]) != fmt.Sprint(want[i]) || (got[i].Record == nil) != (want[i].Record == nil) {
				t.Fatalf("%s: entry %d is %+v, want %+v", when, i, got[i], want[i])
			}
		}
		closed(t, j)
		j = opened(t, roomy(dir))
	}
}

func TestAPageIsCutAtItsLimitsAndGoesOnWhereItEnded(t *testing.T) {
	t.Parallel()
	j := opened(t, roomy(t.TempDir()))
	fill(t, j, 250)
	tests := []struct {
		name     string
		after    uint64
		limit    int
		maxBytes int64
		want     []uint64
	}{
		{"by count", 0, 7, 1 << 30, span(1, 7)},
		{"by bytes", 100, 1000, 3 * 770, span(101, 103)},
		{"one entry though it is too large", 200, 1000, 1, span(201, 201)},
		{"the rest", 245, 1000, 1 << 30, span(246, 250)},
		{"at the head", 250, 10, 1 << 30, nil},
		{"beyond the head", 999, 10, 1 << 30, nil},
	}
	for _, c := range tests {
		s, err := j.Read(c.after, c.limit, c.maxBytes)
		if err != nil || !slices.Equal(seqs(s.Entries), c.want) || len(s.Lost) != 0 {
			t.Errorf("%s: %v, lost %v, %v; want %v", c.name, seqs(s.Entries), s.Lost, err, c.want)
		}
		if want := max(c.after, c.after+uint64(len(c.want))); s.Through != want {
			t.Errorf("%s: goes on at %d, want %d", c.name, s.Through, want)
		}
	}
}

func TestEachStartIsAnEpochAndSeqsGoOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	epochs := map[string]bool{}
	for start := range uint64(5) {
		j := opened(t, roomy(dir))
		b := j.Bounds()
		if b.EpochFrom != start*20+1 || b.Head != start*20 || epochs[b.Epoch] {
			t.Fatalf("start %d: %+v", start, b)
		}
		epochs[b.Epoch] = true
		fill(t, j, 20)
		closed(t, j)
	}
	j := opened(t, roomy(dir))
	got, lost := readAll(t, j, 0)
	if !slices.Equal(seqs(got), span(1, 100)) || lost != nil {
		t.Fatalf("%v, lost %v", seqs(got), lost)
	}
}

func TestSeqsThatNeverWereAreNotLost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := opened(t, roomy(dir))
	fill(t, j, 10)
	closed(t, j)

	o := roomy(dir)
	o.AtLeast = 1000
	j = opened(t, o)
	if b := j.Bounds(); b.EpochFrom != 1001 || b.Head != 1000 || b.First != 1 {
		t.Fatalf("after a start at least at 1000: %+v", b)
	}
	fill(t, j, 10)
	if err := j.Advance(500); err != nil || j.Bounds().Appended != 1010 {
		t.Fatalf("advance below the head: %v, %+v", err, j.Bounds())
	}
	if err := j.Advance(2000); err != nil {
		t.Fatal(err)
	}
	if b := j.Bounds(); b.Head != 2000 || b.EpochFrom != 1001 {
		t.Fatalf("after advancing: %+v", b)
	}
	fill(t, j, 5)
	want := slices.Concat(span(1, 10), span(1001, 1010), span(2001, 2005))
	for _, when := range []string{"while open", "after a restart"} {
		got, lost := readAll(t, j, 0)
		if !slices.Equal(seqs(got), want) || lost != nil {
			t.Fatalf("%s: %v, lost %v", when, seqs(got), lost)
		}
		closed(t, j)
		j = opened(t, roomy(dir))
	}
}

func TestASeqBeyondReasonIsNotCarriedOn(t *testing.T) {
	t.Parallel()
	o := roomy(t.TempDir())
	j := opened(t, o)
	put(t, j, sample("a"))
	if err := j.Advance(1 << 63); ports.CodeOf(err) != ports.Invalid || j.Bounds().Head != 1 {
		t.Errorf("%v, %+v", err, j.Bounds())
	}
	closed(t, j)
	o.AtLeast = 1 << 63
	if _, err := Open(o); ports.CodeOf(err) != ports.Invalid {
		t.Errorf("%v", err)
	}
	opened(t, roomy(o.Dir)) // the directory was left free
}

func TestAdvanceBeforeTheFirstEntryMovesTheEpoch(t *testing.T) {
	t.Parallel()
	j := opened(t, roomy(t.TempDir()))
	if err := j.Advance(41); err != nil {
		t.Fatal(err)
	}
	if e := put(t, j, sample("a")); e[0].Seq != 42 || j.Bounds().EpochFrom != 42 {
		t.Fatalf("Seq %d, %+v", e[0].Seq, j.Bounds())
	}
}

func TestAdvanceWhileOthersAppendLosesNothing(t *testing.T) {
	t.Parallel()
	j := opened(t, roomy(t.TempDir()))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 50 {
				put(t, j, sample(fmt.Sprint(i)))
			}
		})
	}
	for step := range uint64(10) {
		if err := j.Advance(step * 1000); err != nil {
			t.Fatal(err)
		}
		s, err := j.Read(0, 1<<20, 1<<30)
		if err != nil || s.Lost != nil {
			t.Fatalf("lost %v, %v", s.Lost, err)
		}
	}
	wg.Wait()
	if got, lost := readAll(t, j, 0); len(got) != 400 || lost != nil {
		t.Fatalf("%d entries, lost %v", len(got), lost)
	}
}
