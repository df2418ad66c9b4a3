package process

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

func shortDir(t *testing.T) string {
	t.Helper()
	base, err := os.MkdirTemp("", "b")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	return base
}

func TestARunDirectoryIsTheUsersOwnAndGoesAway(t *testing.T) {
	t.Parallel()
	dir, err := OpenRunDir(shortDir(t))
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dir.Path())
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir.Path()); !os.IsNotExist(err) {
		t.Errorf("after Close: %v", err)
	}
}

func TestASweepTakesWhatIsDeadAndNothingElse(t *testing.T) {
	t.Parallel()
	base := shortDir(t)
	live, err := OpenRunDir(base)
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	folder := func(name string, old bool, files ...string) string {
		path := filepath.Join(base, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if err := os.WriteFile(filepath.Join(path, f), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if old {
			at := time.Now().Add(-2 * youngDir)
			if err := os.Chtimes(path, at, at); err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
	gone := []string{folder("hf-dead", false, lockName, "socket"), folder("hf-old", true)}
	kept := []string{live.Path(), folder("hf-young", false), folder("hf-foreign", true, "letters"), folder("other", true)}
	second, err := OpenRunDir(base)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	for _, path := range gone {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is still there", path)
		}
	}
	for _, path := range kept {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%s was taken: %v", path, err)
		}
	}
}

func TestStartsAtTheSameMomentDoNotSweepEachOthersFoldersAway(t *testing.T) {
	t.Parallel()
	base := shortDir(t)
	for range 100 {
		dirs := make([]*RunDir, 8)
		var wg sync.WaitGroup
		for i := range dirs {
			wg.Go(func() {
				var err error
				if dirs[i], err = OpenRunDir(base); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, dir := range dirs {
			if dir == nil {
				continue
			}
			if !isThere(dir.lock) {
				t.Errorf("%s was swept away under its owner", dir.Path())
			}
			if err := dir.Close(); err != nil {
				t.Error(err)
			}
		}
		if t.Failed() {
			return
		}
	}
}
