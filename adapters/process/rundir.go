//go:build unix

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"holdfast/ports"
)

const (
	runDirPrefix = "hf-"
	lockName     = "lock"
	// youngDir is how long a folder without a lock may be one that is just being made.
	youngDir = time.Minute
	// tries is how often a new folder is made: a sweep by another start can take one before it is locked.
	tries = 10
	// socketRoom is what go-plugin puts below the run directory: /plugin-dir and up to 10 digits, /plugin and as many.
	socketRoom = len("/plugin-dir") + 10 + len("/plugin") + 10
)

// maxSocketPath is how long the path of a unix socket may be; the kernel's field also holds a final NUL.
var maxSocketPath = map[bool]int{true: 107, false: 103}[runtime.GOOS == "linux"]

// RunDir is a private folder for the sockets of one host. It is locked as long as the host lives, so that the next one can
// tell what a crash left behind.
type RunDir struct {
	path string
	lock *flock.Flock
}

// OpenRunDir makes a new folder below base, only the user's own, and removes those that dead hosts left there. An empty base
// is the first of $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR and $TMPDIR that is set, else /tmp. It fails with Invalid when sockets
// in it would have too long a path.
func OpenRunDir(base string) (*RunDir, error) {
	const op = "run directory"
	if base == "" {
		base = defaultBase()
	}
	base, err := filepath.Abs(base)
	if err != nil {
		return nil, ports.Wrap(ports.Internal, op, err)
	}
	if err := checkSocketRoom(filepath.Join(base, runDirPrefix+"0123456789")); err != nil {
		return nil, ports.Wrap(ports.Invalid, op, err)
	}
	sweep(base)
	for range tries {
		path, err := os.MkdirTemp(base, runDirPrefix) // 0700
		if err != nil {
			return nil, ports.Wrap(ports.Invalid, op, err)
		}
		lock := flock.New(filepath.Join(path, lockName))
		if held, err := lock.TryLock(); err == nil && held && isThere(lock) {
			return &RunDir{path: path, lock: lock}, nil
		}
		_ = lock.Close()
		_ = os.RemoveAll(path)
	}
	return nil, ports.Errorf(ports.Unavailable, op, "no folder in %s could be locked", base)
}

// Path is what Spec.RunDir takes.
func (d *RunDir) Path() string { return d.path }

// Close removes the folder.
func (d *RunDir) Close() error {
	return errors.Join(os.RemoveAll(d.path), d.lock.Close())
}

func defaultBase() string {
	for _, name := range []string{"RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"} {
		first, _, _ := strings.Cut(os.Getenv(name), ":")
		if info, err := os.Stat(first); err == nil && info.IsDir() {
			return first
		}
	}
	return os.TempDir()
}

// checkSocketRoom refuses a run directory whose sockets would have a longer path than the system allows.
func checkSocketRoom(runDir string) error {
	size := len(runDir) + socketRoom
	if size <= maxSocketPath {
		return nil
	}
	return &ports.Error{
		Code: ports.Invalid, Limit: int64(maxSocketPath), Size: int64(size),
		Message: fmt.Sprintf("a socket below %s would have a path of %d bytes, the system's limit is %d; set TMPDIR to a shorter path", runDir, size, maxSocketPath),
	}
}

// sweep removes the folders of hosts that are gone. What it cannot look at or remove is not ours to mind.
func sweep(base string) {
	found, err := filepath.Glob(filepath.Join(base, runDirPrefix+"*"))
	if err != nil {
		return
	}
	for _, path := range found {
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() || !isMine(info) {
			continue
		}
		if lock, stale := takeStale(path, info); stale {
			KillStrays(path)
			_ = os.RemoveAll(path)
			if lock != nil {
				_ = lock.Close() // not before: whoever makes the folder must not get it while it goes
			}
		}
	}
}

func isMine(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}

// takeStale says whether a folder belongs to nobody, and holds its lock then.
func takeStale(path string, info fs.FileInfo) (lock *flock.Flock, stale bool) {
	name := filepath.Join(path, lockName)
	if _, err := os.Lstat(name); err != nil {
		return nil, errors.Is(err, fs.ErrNotExist) && time.Since(info.ModTime()) > youngDir && isEmpty(path)
	}
	lock = flock.New(name)
	if held, err := lock.TryLock(); err == nil && held {
		return lock, true
	}
	_ = lock.Close()
	return nil, false
}

// isThere says whether a lock's file still is the one that others find.
func isThere(lock *flock.Flock) bool {
	mine, err := lock.Stat()
	if err != nil {
		return false
	}
	found, err := os.Stat(lock.Path())
	return err == nil && os.SameFile(mine, found)
}

// isEmpty keeps the sweep away from folders of others that happen to have such a name.
func isEmpty(path string) bool {
	entries, err := os.ReadDir(path)
	return err == nil && len(entries) == 0
}
