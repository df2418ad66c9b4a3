package journal

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncFile uses fdatasync: the size is made durable with the content, times are not.
func syncFile(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
		}
		return nil
	}
}
