package journal

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"holdfast/ports"
)

// Disk is what the journal asks of the file system beside plain reads and writes. What is nil is the real thing; tests
// give their own to let a sync fail or a disk be full.
type Disk struct {
	// Sync makes a segment's content and size durable.
	Sync func(f *os.File) error
	// Space gives the free and the whole size, in bytes, of the file system that holds a directory.
	Space func(dir string) (free, total int64, err error)
}

func (d Disk) orReal() Disk {
	if d.Sync == nil {
		d.Sync = syncFile
	}
	if d.Space == nil {
		d.Space = diskSpace
	}
	return d
}

// diskSpace counts as free what is free for everyone, not only for root.
func diskSpace(dir string) (free, total int64, err error) {
	var st unix.Statfs_t
	for {
		err = unix.Statfs(dir, &st)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return 0, 0, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(st.Bavail) * int64(st.Bsize), int64(st.Blocks) * int64(st.Bsize), nil //nolint:unconvert // types differ between systems
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// diskError gives a failed operation on a file its code: Full when there was no room, else Unavailable.
func diskError(op string, err error) *ports.Error {
	code := ports.Unavailable
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		code = ports.Full
	}
	return &ports.Error{Code: code, Op: op, Message: err.Error(), Cause: err}
}
