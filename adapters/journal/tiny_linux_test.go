package journal

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite"

	"holdfast/ports"
)

// tiny mounts a tmpfs of 32 MiB, or skips.
func tiny(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=32m"); err != nil {
		t.Skipf("a tmpfs cannot be mounted here (it needs root): %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

func TestTwoJournalsAStateAndASQLiteFileFitOnThirtyTwoMebibytes(t *testing.T) {
	t.Parallel()
	dir := tiny(t)
	s, err := OpenState(dir, StateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	queue := opened(t, Options{Dir: dir, Family: ports.Queue})
	manifest := opened(t, Options{Dir: dir, Family: ports.Manifest})
	db, err := sql.Open("sqlite", filepath.Join(dir, "history.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("PRAGMA journal_mode = WAL; CREATE TABLE T (B)"); err != nil {
		t.Fatal(err)
	}
	until := func(j *Journal) uint64 {
		for {
			r, err := j.Append([]ports.Entry{sized("x", 20<<10)})
			if err == nil {
				err = r.Wait(t.Context())
			}
			if err != nil {
				if ports.CodeOf(err) != ports.Full {
					t.Fatal(err)
				}
				return j.Bounds().Head
			}
		}
	}
	for round := range 3 {
		for _, j := range []*Journal{queue, manifest} {
			head := until(j)
			// The reserve is for this: commit, and then trim.
			if _, err := db.Exec("INSERT INTO T VALUES (zeroblob(1000000))"); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			if err := s.SetLocal(ports.LocalMark{Name: "local", Marks: map[ports.Family]ports.Mark{ports.Queue: {Seq: head}}}); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			if err := j.Trim(head); err != nil {
				t.Fatal(err)
			}
			put(t, j, sized("x", 20<<10))
		}
	}
}

func TestOnADiskFilledByOthersTheJournalGoesOnOnceThereIsSpace(t *testing.T) {
	t.Parallel()
	dir := tiny(t)
	o := Options{Dir: dir, Family: ports.Queue, Limit: 30 << 20, Reserve: -1}
	j := opened(t, o)
	acknowledged := map[uint64]bool{}
	try := func(n int) error {
		entries := []ports.Entry{sized("x", n)}
		r, err := j.Append(entries)
		if err == nil {
			err = r.Wait(t.Context())
		}
		if err == nil {
			acknowledged[entries[0].Seq] = true
		}
		return err
	}
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 10<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	for err == nil {
		err = try(300 << 10)
	}
	if ports.CodeOf(err) != ports.Full || !strings.Contains(err.Error(), dir) {
		t.Fatalf("the full disk gave %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "rest"), make([]byte, 32<<20), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	if err := try(300 << 10); ports.CodeOf(err) != ports.Full {
		t.Fatalf("not a byte free: %v", err)
	}
	if got, lost := readAll(t, j, 0); len(got) != len(acknowledged) || lost != nil {
		t.Fatalf("%d entries of %d, lost %v", len(got), len(acknowledged), lost)
	}
	if err := j.Trim(20); err != nil {
		t.Fatalf("trim on a full disk: %v", err)
	}
	if err := errors.Join(os.Remove(ballast), os.Remove(filepath.Join(dir, "rest"))); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it goes on without being opened again", func() bool { return try(300<<10) == nil })
	closed(t, j)
	j = opened(t, o)
	got, lost := readAll(t, j, 20)
	if lost != nil || len(j.Bounds().Damaged) > 0 {
		t.Errorf("lost %v, damaged %v", lost, j.Bounds().Damaged)
	}
	for seq := range acknowledged {
		if seq > 20 && !slices.Contains(seqs(got), seq) {
			t.Errorf("acknowledged entry %d is gone", seq)
		}
	}
}
