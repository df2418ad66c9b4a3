package journal

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"holdfast/ports"
)

// appendUntilKilled is the body of a helper process: eight appenders, one line on stdout for each acknowledged entry.
func appendUntilKilled(dir string) {
	j, err := Open(Options{Dir: dir, Family: ports.Queue, Limit: 1 << 30, Reserve: -1, SegmentBytes: 32 << 10})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	var out sync.Mutex
	var wg sync.WaitGroup
	for a := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				entries := []ports.Entry{sample(fmt.Sprintf("%d-%d-%d", os.Getpid(), a, i))}
				r, err := j.Append(entries)
				if err == nil {
					err = r.Wait(context.Background())
				}
				if err != nil {
					fmt.Println("error", err)
					os.Exit(1)
				}
				out.Lock()
				fmt.Println(entries[0].Seq, entries[0].Key)
				out.Unlock()
			}
		})
	}
	wg.Wait()
}

func TestNothingAcknowledgedIsLostWhenTheProcessIsKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	acknowledged := map[uint64]string{}
	for round := range rounds(200) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "JOURNAL_TEST_APPEND_TO="+dir)
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(stdout)
		for enough := 1 + rand.IntN(300); lines.Scan(); enough-- {
			if enough == 0 {
				_ = cmd.Process.Kill()
			}
			seq, key, _ := strings.Cut(lines.Text(), " ")
			n, err := strconv.ParseUint(seq, 10, 64)
			if err != nil {
				t.Fatalf("round %d: the helper said %q", round, lines.Text())
			}
			if before, twice := acknowledged[n]; twice {
				t.Fatalf("round %d: Seq %d was given twice, to %s and %s", round, n, before, key)
			}
			acknowledged[n] = key
		}
		_ = cmd.Wait() // it was killed
	}
	j := opened(t, roomy(dir))
	got, lost := readAll(t, j, 0)
	if lost != nil || len(j.Bounds().Damaged) > 0 {
		t.Errorf("lost %v, damaged %v", lost, j.Bounds().Damaged)
	}
	for _, e := range got {
		if want, ok := acknowledged[e.Seq]; ok && want != e.Key {
			t.Fatalf("Seq %d is %s, acknowledged as %s", e.Seq, e.Key, want)
		}
		delete(acknowledged, e.Seq)
	}
	if len(acknowledged) > 0 {
		t.Fatalf("%d acknowledged entries are gone: %v", len(acknowledged), acknowledged)
	}
}

// A crash leaves the newest segment cut or garbled behind what was last synced. Whatever it leaves, what was acknowledged
// is there and no Seq is given twice.
func TestWhateverACrashLeavesBehindTheLastSyncTheAcknowledgedIsThere(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			r.Fatal(err)
		}
		o := roomy(dir)
		o.SegmentBytes = int64(rapid.IntRange(2<<10, 40<<10).Draw(r, "segment"))
		var want []ports.Entry
		given := map[uint64]bool{}
		for range rapid.IntRange(1, 4).Draw(r, "crashes") {
			j, err := Open(o)
			if err != nil {
				r.Fatal(err)
			}
			for range rapid.IntRange(0, 12).Draw(r, "appends") {
				var batch []ports.Entry
				for range rapid.IntRange(1, 9).Draw(r, "entries") {
					batch = append(batch, sized(fmt.Sprint(rapid.Uint16().Draw(r, "key")), rapid.IntRange(0, 3000).Draw(r, "bytes")))
				}
				want = append(want, put(t, j, batch...)...)
			}
			closed(t, j)
			crash(t, r, dir)
		}
		j, err := Open(o)
		if err != nil {
			r.Fatal(err)
		}
		defer j.Close()
		got, lost := readAll(t, j, 0)
		if lost != nil || len(j.Bounds().Damaged) > 0 {
			r.Fatalf("lost %v, damaged %v", lost, j.Bounds().Damaged)
		}
		for _, e := range got {
			if given[e.Seq] {
				r.Fatalf("Seq %d is there twice", e.Seq)
			}
			given[e.Seq] = true
		}
		for _, w := range want {
			i := slices.IndexFunc(got, func(e ports.Entry) bool { return e.Seq == w.Seq })
			if i < 0 || got[i].Key != w.Key || !bytes.Equal(got[i].Record, w.Record) {
				r.Fatalf("the acknowledged entry %d is not there as it was", w.Seq)
			}
		}
	})
}

// crash appends to the newest segment what an interrupted write may leave: a part of a frame, garbage, or zeros.
func crash(t *testing.T, r *rapid.T, dir string) {
	files := segmentFiles(t, dir)
	if len(files) == 0 {
		return
	}
	e := sized("torn", rapid.IntRange(0, 3000).Draw(r, "torn bytes"))
	e.Seq = 1 << 40
	tail := appendFrame(nil, &e)
	tail = tail[:rapid.IntRange(0, len(tail)-1).Draw(r, "cut")]
	switch rapid.IntRange(0, 2).Draw(r, "kind") {
	case 1:
		for i := range tail {
			tail[i] ^= byte(rapid.IntRange(0, 255).Draw(r, "garbage") | 1)
			if i == 40 {
				break
			}
		}
	case 2:
		clear(tail)
	}
	f, err := os.OpenFile(files[len(files)-1], os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(tail); err != nil {
		t.Fatal(err)
	}
}

// The tail is cut or garbled at a random byte, also within what was acknowledged. What stood before that byte is there;
// what is not there is told as lost or was the end.
func TestATailCutOrGarbledAnywhereLeavesWhatStoodBefore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			r.Fatal(err)
		}
		o := roomy(dir)
		o.SegmentBytes = 16 << 10
		j, err := Open(o)
		if err != nil {
			r.Fatal(err)
		}
		n := uint64(rapid.IntRange(1, 80).Draw(r, "entries"))
		for i := range n {
			put(t, j, sample(fmt.Sprint("item-", i+1)))
		}
		closed(t, j)

		files := segmentFiles(t, dir)
		newest := files[len(files)-1]
		content, err := os.ReadFile(newest)
		if err != nil {
			r.Fatal(err)
		}
		at := rapid.IntRange(headerBytes, len(content)-1).Draw(r, "at")
		base, _, _ := parseName(newest[strings.LastIndexByte(newest, '/')+1:])
		before := base - 1 + uint64(bytes.Count(content[:at], frameMagic)) // whole ones, and the one that at is in
		if frames := bytes.Count(content[:at], frameMagic); frames > 0 {
			before--
		}
		if rapid.Bool().Draw(r, "cut") {
			content = content[:at]
		} else {
			for i := at; i < min(len(content), at+rapid.IntRange(1, 200).Draw(r, "length")); i++ {
				content[i] ^= 0xff
			}
		}
		if err := os.WriteFile(newest, content, 0o600); err != nil {
			r.Fatal(err)
		}

		j, err = Open(o)
		if err != nil {
			r.Fatal(err)
		}
		defer j.Close()
		put(t, j, sample("after"))
		got, lost := readAll(t, j, 0)
		told := map[uint64]bool{}
		for _, s := range lost {
			for _, seq := range span(s.From, s.To) {
				told[seq] = true
			}
		}
		for _, e := range got[:len(got)-1] {
			if told[e.Seq] || e.Key != fmt.Sprint("item-", e.Seq) {
				r.Fatalf("Seq %d is %s, lost %v", e.Seq, e.Key, lost)
			}
			told[e.Seq] = true
		}
		for seq := range before {
			if !slices.Contains(seqs(got), seq+1) {
				r.Fatalf("%d stood whole before the damage and is gone; lost %v, got %v", seq+1, lost, seqs(got))
			}
		}
		for seq := uint64(1); seq < got[len(got)-1].Seq; seq++ {
			if !told[seq] {
				r.Fatalf("%d is neither there nor told as lost", seq)
			}
		}
	})
}
