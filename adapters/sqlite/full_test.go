package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/ports"
)

// smallDisk gives a folder on a disk of 32 MiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=32m"); err != nil {
		t.Skipf("a small disk cannot be mounted here (%v): run as root to see what a full disk does", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

func TestAFullDiskIsToldAndPrunedAndWorksAgain(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t)
	s := openStore(t, filepath.Join(dir, "history.db"))
	admit(t, s, "")
	body := strings.Repeat("x", 20_000)
	seq := uint64(0)
	old := time.Now().Add(-48 * time.Hour).UTC().Format(time.RFC3339)
	next := func() error {
		seq++
		key := fmt.Sprint("k", seq)
		_, err := tryCommit(s, batchOf([]ports.Entry{upsert(seq, key, fmt.Sprintf(`{"WorkItemHash":%q,"Status":"Complete","LastEventAt":%q,"Result":%q}`, key, old, body))}))
		if err != nil {
			seq--
		}
		return err
	}
	var err error
	for err == nil && seq < 5000 {
		err = next()
	}
	if e := ports.AsError(err); e == nil || e.Code != ports.Full || !strings.Contains(err.Error(), s.conf.path) {
		t.Fatalf("after %d items: %v, want full and the path", seq, err)
	}
	if err := s.Probe(t.Context(), ports.Queue); ports.CodeOf(err) != ports.Full {
		t.Errorf("probe: %v, want full", err)
	}
	if seq < 600 {
		t.Errorf("full after %d items of 20 kB on 32 MiB", seq)
	}
	mark := seq
	for _, key := range []string{"k1", fmt.Sprint("k", mark)} {
		if _, err := s.Item(t.Context(), key); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	// Somebody else takes nearly all of the rest.
	filler := filepath.Join(dir, "filler")
	leave(t, filler, s.file.free()-1<<20)
	removed := int64(0)
	for {
		pruned, err := s.Prune(t.Context(), ports.PruneQuery{Before: time.Now().Add(-24 * time.Hour), Limit: 100})
		if err != nil {
			t.Fatalf("prune after %d: %v", removed, err)
		}
		removed += pruned.Items
		if !pruned.More {
			break
		}
	}
	if removed != int64(mark) {
		t.Errorf("%d removed, want %d", removed, mark)
	}
	if free := s.file.free(); free < 10<<20 {
		t.Errorf("%d bytes are free after pruning: the file did not shrink (%d)", free, s.file.bytes())
	}
	if err := next(); err != nil {
		t.Errorf("a write after pruning: %v", err)
	}
	standing, err := s.Stand(t.Context(), host)
	if err != nil || standing.Marks[ports.Queue].Seq != seq {
		t.Errorf("%+v, %v; want %d", standing, err, seq)
	}
}

// The engine's own refusal, in the middle of a transaction, leaves nothing of it and everything before it.
func TestADiskThatFillsInTheMiddleOfAWriteLeavesNoPart(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t)
	s := openStore(t, filepath.Join(dir, "history.db"))
	admit(t, s, "")
	commit(t, s, upsert(1, "a", `{"WorkItemHash":"a","Status":"Pending"}`))
	w := s.work
	leave(t, filepath.Join(dir, "filler"), s.file.free()-64<<10)
	big := fmt.Sprintf(`{"WorkItemHash":"big","Result":%q}`, strings.Repeat("y", 10<<20))
	err := w.do(t.Context(), false, func() error { // past the check that refuses first
		return w.transact("sqlite: commit", func() error {
			w.fold.begin(clock())
			e := upsert(2, "big", big)
			if _, err := w.fold.decide(&e, w.rules); err != nil {
				return err
			}
			return w.fold.flush()
		}, nil)
	})
	if e := ports.AsError(err); e == nil || e.Code != ports.Full || !strings.Contains(err.Error(), s.conf.path) {
		t.Errorf("got %v, want full and the path", err)
	}
	if _, err := s.Item(t.Context(), "big"); ports.CodeOf(err) != ports.NotFound {
		t.Errorf("big: %v", err)
	}
	if _, err := s.Item(t.Context(), "a"); err != nil {
		t.Errorf("a: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "filler")); err != nil {
		t.Fatal(err)
	}
	commit(t, s, patch(2, "a", `{"Status":"Running"}`))
}

// leave writes a file of a size, or as much of it as there is room for.
func leave(t *testing.T, path string, size int64) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	chunk := make([]byte, 64<<10)
	for ; size > 0; size -= int64(len(chunk)) {
		if _, err := f.Write(chunk[:min(size, int64(len(chunk)))]); errors.Is(err, syscall.ENOSPC) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
