package journal

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"holdfast/ports"
)

// seven makes a journal of seven segments with 21 entries each but for the last, which has 5, and closes it.
func seven(t *testing.T) (dir string, files []string) {
	t.Helper()
	dir = t.TempDir()
	e := sample("item-001")
	o := roomy(dir)
	o.SegmentBytes = headerBytes + 41*int64(len(appendFrame(nil, &e)))/2 // reached by the 21st
	j := opened(t, o)
	for i := range 131 {
		put(t, j, sample(fmt.Sprintf("item-%03d", i+1)))
	}
	closed(t, j)
	files = segmentFiles(t, dir)
	if len(files) != 7 {
		t.Fatalf("%d segments", len(files))
	}
	return dir, files
}

// rewrite changes a file's content.
func rewrite(t *testing.T, file string, change func(b []byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, change(b), 0o600); err != nil {
		t.Fatal(err)
	}
}

// frameOf gives the offset of the n-th frame, counted from 0.
func frameOf(b []byte, n int) int {
	at := 0
	for range n + 1 {
		at += 1 + bytes.Index(b[at:], frameMagic)
	}
	return at - 1
}

func TestDamageCostsOnlyWhatIsDamaged(t *testing.T) {
	t.Parallel()
	per := func(i int) (first, last uint64) { return uint64(i*21 + 1), uint64(min(i*21+21, 131)) }
	tests := []struct {
		name    string
		segment int
		change  func(b []byte) []byte // nil removes the file
		lost    func(first, last uint64) []ports.Span
		aside   bool
	}{
		{"a byte of a record flipped in a middle segment", 3, func(b []byte) []byte {
			b[frameOf(b, 10)+200] ^= 1
			return b
		}, func(first, _ uint64) []ports.Span { return []ports.Span{{From: first + 10, To: first + 10}} }, true},
		{"a byte of a length flipped in a middle segment", 3, func(b []byte) []byte {
			b[frameOf(b, 10)+5] ^= 1
			return b
		}, func(first, _ uint64) []ports.Span { return []ports.Span{{From: first + 10, To: first + 10}} }, true},
		{"a length that reaches beyond everything", 3, func(b []byte) []byte {
			b[frameOf(b, 10)+7] = 0x7f
			return b
		}, func(first, _ uint64) []ports.Span { return []ports.Span{{From: first + 10, To: first + 10}} }, true},
		{"three entries overwritten in the first segment", 0, func(b []byte) []byte {
			clear(b[frameOf(b, 4):frameOf(b, 7)])
			return b
		}, func(first, _ uint64) []ports.Span { return []ports.Span{{From: first + 4, To: first + 6}} }, true},
		{"the header of a middle segment overwritten", 3, func(b []byte) []byte {
			clear(b[:headerBytes])
			return b
		}, nil, true},
		{"a middle segment cut in the middle of an entry", 3, func(b []byte) []byte { return b[:frameOf(b, 10)+100] },
			func(first, last uint64) []ports.Span { return []ports.Span{{From: first + 10, To: last}} }, true},
		{"a middle segment cut between two entries", 3, func(b []byte) []byte { return b[:frameOf(b, 10)] },
			func(first, last uint64) []ports.Span { return []ports.Span{{From: first + 10, To: last}} }, true},
		{"a middle segment cut to nothing", 3, func(b []byte) []byte { return nil },
			func(first, last uint64) []ports.Span { return []ports.Span{{From: first, To: last}} }, true},
		{"a middle segment full of zeros", 3, func(b []byte) []byte { return make([]byte, len(b)) },
			func(first, last uint64) []ports.Span { return []ports.Span{{From: first, To: last}} }, true},
		{"a middle segment of a megabyte of zeros", 3, func(b []byte) []byte { return make([]byte, 1<<20) },
			func(first, last uint64) []ports.Span { return []ports.Span{{From: first, To: last}} }, true},
		{"garbage in the middle of the newest segment", 6, func(b []byte) []byte {
			copy(b[frameOf(b, 2)+50:], "garbage")
			return b
		}, func(first, _ uint64) []ports.Span { return []ports.Span{{From: first + 2, To: first + 2}} }, true},
		{"the newest segment full of zeros", 6, func(b []byte) []byte { return make([]byte, len(b)) },
			func(first, _ uint64) []ports.Span { return []ports.Span{{From: first, To: first}} }, true},
		{"garbage behind the newest segment", 6, func(b []byte) []byte { return append(b, "\xff\xff\xff\x01garbage"...) }, nil, false},
		{"zeros behind the newest segment", 6, func(b []byte) []byte { return append(b, make([]byte, 4096)...) }, nil, false},
		{"the newest segment cut in the middle of its last entry", 6, func(b []byte) []byte { return b[:len(b)-9] }, nil, false},
		{"the first segment gone", 0, nil,
			func(first, last uint64) []ports.Span { return []ports.Span{{From: first, To: last}} }, false},
		{"a middle segment gone", 3, nil,
			func(first, last uint64) []ports.Span { return []ports.Span{{From: first, To: last}} }, true},
		{"the newest segment gone", 6, nil, nil, false},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, files := seven(t)
			if c.change == nil {
				if err := os.Remove(files[c.segment]); err != nil {
					t.Fatal(err)
				}
			} else {
				rewrite(t, files[c.segment], c.change)
			}
			first, last := per(c.segment)
			var want []ports.Span
			if c.lost != nil {
				want = c.lost(first, last)
			}
			gone := func(seq uint64) bool {
				return slices.ContainsFunc(want, func(s ports.Span) bool { return seq >= s.From && seq <= s.To })
			}
			o := roomy(dir)
			o.AtLeast = 131 // as the local store would say
			for _, when := range []string{"first", "after a restart"} {
				j := opened(t, o)
				if b := j.Bounds(); b.EpochFrom < 132 || b.Fault != "" {
					t.Errorf("%s: %+v", when, b)
				}
				put(t, j, sample("after"))
				got, lost := readAll(t, j, 0)
				if !slices.Equal(lost, want) {
					t.Errorf("%s: lost %v, want %v", when, lost, want)
				}
				for seq := uint64(1); seq <= 125; seq++ {
					i := slices.IndexFunc(got, func(e ports.Entry) bool { return e.Seq == seq })
					if (i < 0) != gone(seq) {
						t.Errorf("%s: entry %d is there: %v", when, seq, i >= 0)
					}
					if i >= 0 && (got[i].Key != fmt.Sprintf("item-%03d", seq) || !bytes.Equal(got[i].Record, body(got[i].Key, 600))) {
						t.Errorf("%s: entry %d came back as another", when, seq)
					}
				}
				if got[len(got)-1].Key != "after" {
					t.Errorf("%s: what was written afterwards is not there", when)
				}
				damaged := j.Bounds().Damaged
				name := strings.TrimSuffix(filepath.Base(files[c.segment]), ".seg")
				if c.aside && (len(damaged) != 1 || !strings.HasPrefix(damaged[0], name)) || !c.aside && len(damaged) > 0 {
					t.Errorf("%s: damaged %v", when, damaged)
				}
				if c.aside && c.change != nil {
					if aside, _ := filepath.Glob(files[c.segment] + asideMark + "*"); len(aside) != 1 {
						t.Errorf("%s: set aside as %v", when, aside)
					}
				}
				closed(t, j)
			}
		})
	}
}

func TestASegmentThatVanishesWhileTheJournalIsOpenIsLost(t *testing.T) {
	t.Parallel()
	dir, files := seven(t)
	j := opened(t, roomy(dir))
	if err := os.Remove(files[2]); err != nil {
		t.Fatal(err)
	}
	_, lost := readAll(t, j, 0)
	if want := []ports.Span{{From: 43, To: 63}}; !slices.Equal(lost, want) || len(j.Bounds().Damaged) != 1 {
		t.Errorf("lost %v, damaged %v", lost, j.Bounds().Damaged)
	}
}

func TestDamageInTheSegmentThatIsWrittenToBeginsANewOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := roomy(dir)
	o.SegmentBytes = 1 << 20
	j := opened(t, o)
	fill(t, j, 20)
	file := segmentFiles(t, dir)[0]
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("garbage"), 5000); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	_, lost := readAll(t, j, 0)
	if len(lost) != 1 || lost[0].From != lost[0].To || len(j.Bounds().Damaged) != 1 {
		t.Fatalf("lost %v, damaged %v", lost, j.Bounds().Damaged)
	}
	put(t, j, sample("after"))
	if files := segmentFiles(t, dir); len(files) != 2 || !strings.Contains(files[0], asideMark) {
		t.Errorf("%v", files)
	}
	for _, when := range []string{"while open", "after a restart"} {
		got, again := readAll(t, j, 0)
		if len(got) != 20 || got[19].Seq != 21 || !slices.Equal(again, lost) {
			t.Errorf("%s: %v, lost %v", when, seqs(got), again)
		}
		closed(t, j)
		j = opened(t, o)
	}
}

func TestAPartOfALargeEntryThatIsDamagedCostsThatEntry(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := opened(t, roomy(dir))
	put(t, j, sample("before"), sized("large", 5<<20), sample("behind"))
	closed(t, j)
	rewrite(t, segmentFiles(t, dir)[0], func(b []byte) []byte {
		b[3<<20] ^= 1
		return b
	})
	j = opened(t, roomy(dir))
	got, lost := readAll(t, j, 0)
	if !slices.Equal(seqs(got), []uint64{1, 3}) || !slices.Equal(lost, []ports.Span{{From: 2, To: 2}}) {
		t.Errorf("%v, lost %v", seqs(got), lost)
	}
}

func TestSetAsideFilesAreReadUntilTrimmedAndTheNewestFourAreKept(t *testing.T) {
	t.Parallel()
	dir, files := seven(t)
	for _, file := range files {
		rewrite(t, file, func(b []byte) []byte {
			b[frameOf(b, 1)+100] ^= 1
			return b
		})
	}
	j := opened(t, roomy(dir))
	got, lost := readAll(t, j, 0)
	if len(got) != 131-7 || len(lost) != 7 || len(j.Bounds().Damaged) != 7 {
		t.Fatalf("%d entries, lost %v, damaged %v", len(got), lost, j.Bounds().Damaged)
	}
	put(t, j, sample("after"))
	if err := j.Trim(131); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"while open", "after a restart"} {
		kept, _ := filepath.Glob(filepath.Join(dir, "journal", "queue", "*"+asideMark+"*"))
		b := j.Bounds()
		if len(b.Damaged) != keepAside || len(kept) != keepAside || len(segmentFiles(t, dir)) != 1 || b.First != 132 {
			t.Errorf("%s: %+v, kept %v, segments %v", when, b, kept, segmentFiles(t, dir))
		}
		for _, file := range kept {
			if !slices.Contains(b.Damaged, filepath.Base(file)) {
				t.Errorf("%s: %s is not among the damaged %v", when, file, b.Damaged)
			}
		}
		closed(t, j)
		j = opened(t, roomy(dir))
	}
}

func TestASegmentOfANewerVersionRefusesToOpenAndStaysAsItIs(t *testing.T) {
	t.Parallel()
	dir, files := seven(t)
	rewrite(t, files[2], func(b []byte) []byte {
		h, err := decodeHeader(b)
		if err != nil {
			t.Fatal(err)
		}
		newer := h.encodeVersion(formatVersion + 1)
		return append(newer, b[headerBytes:]...)
	})
	if _, err := Open(roomy(dir)); ports.CodeOf(err) != ports.Invalid || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("%v", err)
	}
	if !slices.Equal(segmentFiles(t, dir), files) {
		t.Error("the files were touched")
	}
}

// badSector is a file of which one page cannot be read.
type badSector struct {
	io.ReaderAt
	page int64
}

func (b badSector) ReadAt(p []byte, off int64) (int, error) {
	if from := b.page * pageBytes; off < from+pageBytes && off+int64(len(p)) > from {
		return 0, &os.PathError{Op: "read", Path: "segment", Err: syscall.EIO}
	}
	return b.ReaderAt.ReadAt(p, off)
}

func TestAnUnreadablePlaceOfTheDiskCostsTheEntriesInIt(t *testing.T) {
	t.Parallel()
	content := header{base: 1}.encode()
	for i := range uint64(100) {
		e := sample(fmt.Sprint(i))
		e.Seq = i + 1
		content = appendFrame(content, &e)
	}
	src := newSource(badSector{bytes.NewReader(content), 7}, int64(len(content)))
	defer src.release()
	w := &walk{src: src, off: headerBytes, next: 1, last: 100}
	var got []uint64
	for {
		var e ports.Entry
		ok, err := w.step(&e)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		got = append(got, e.Seq)
	}
	if n := 100 - len(got); n < 4 || n > 8 || !w.damaged || got[len(got)-1] != 100 {
		t.Errorf("%d entries of 680 bytes lost on a page of 4 KiB", n)
	}
}
