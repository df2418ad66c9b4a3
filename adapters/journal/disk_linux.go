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
		if err == nil {
			err = stillThere(f)
		}
		if err != nil {
			return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
		}
		return nil
	}
}

// stillThere fails when the file's name is gone: what is synced into it then is kept by nothing.
func stillThere(f *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	if st.Nlink == 0 {
		return errors.New("somebody removed the file")
	}
	return nil
}
