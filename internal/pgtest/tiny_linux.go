package pgtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Tiny is a disk of its own for databases, which fills up.
type Tiny struct {
	dir string
}

// TinyDisk has all databases that are made from now on lie on a disk of some mebibytes, of which an empty database takes about eight.
// It skips where a disk cannot be mounted, which takes root.
func (s *Server) TinyDisk(t testing.TB, mebibytes int) *Tiny {
	t.Helper()
	d := &Tiny{dir: filepath.Join(s.dir, "tiny")}
	if err := os.Mkdir(d.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", d.dir, "tmpfs", 0, fmt.Sprintf("size=%dm", mebibytes)); err != nil {
		t.Skipf("a tmpfs cannot be mounted here (it needs root): %v", err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Stop(Immediate), unix.Unmount(d.dir, unix.MNT_DETACH)); err != nil {
			t.Error(err)
		}
	})
	err := errors.Join(s.keeper.own(d.dir), s.Exec("CREATE TABLESPACE tiny LOCATION '"+d.dir+"'", "GRANT CREATE ON TABLESPACE tiny TO "+role))
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.place = " TABLESPACE tiny"
	s.mu.Unlock()
	return d
}

// Fill leaves no free byte on the disk.
func (d *Tiny) Fill() error {
	f, err := os.OpenFile(d.ballast(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	piece := make([]byte, 64<<10)
	for err == nil {
		_, err = f.Write(piece)
	}
	if errors.Is(err, unix.ENOSPC) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// Free gives back what Fill took.
func (d *Tiny) Free() error { return os.Remove(d.ballast()) }

func (d *Tiny) ballast() string { return filepath.Join(d.dir, "ballast") }
