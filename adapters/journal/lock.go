package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/gofrs/flock"

	"holdfast/ports"
)

const lockName = "holdfast.lock"

// Lock takes a directory for this process and creates it if need be. It never waits: when another process has it, the
// error is Conflict and names that process. The file stays when release was called; only the lock counts.
func Lock(dir string) (release func(), err error) {
	op := "lock " + dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, unusable(dir, err)
	}
	path := filepath.Join(dir, lockName)
	l := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	got, err := l.TryLock()
	if err != nil {
		return nil, unusable(dir, err)
	}
	if !got {
		return nil, ports.Errorf(ports.Conflict, op, "it is in use by %s; stop that one or choose another directory", holder(path))
	}
	// On a full disk the name cannot be written; the lock holds all the same.
	host, _ := os.Hostname()
	_ = os.WriteFile(path, fmt.Appendf(nil, "%d %s\n", os.Getpid(), host), 0o600)
	return sync.OnceFunc(func() {
		_ = os.Truncate(path, 0) // so that nobody is named who is gone
		_ = l.Close()
	}), nil
}

// holder says in words who wrote the lock file.
func holder(path string) string {
	text, err := os.ReadFile(path)
	words := strings.Fields(string(text))
	switch {
	case err != nil || len(words) == 0:
		return "another process"
	case len(words) == 1:
		return "process " + words[0]
	}
	return fmt.Sprintf("process %s on %s", words[0], words[1])
}

// unusable is the error of a directory that cannot be made or written.
func unusable(dir string, err error) error {
	e := *ports.AsError(diskError("data directory "+dir, err))
	e.Message += "; make it writable for this user, or choose another one"
	return &e
}
