package journal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"
	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"

	"holdfast/ports"
)

const stateName = "state.db"

// StateOptions are what OpenState needs beside the directory; the zero value will do.
type StateOptions struct {
	Logger hclog.Logger     // nil logs nothing
	Now    func() time.Time // nil is time.Now
}

// OpenState opens or creates the host's state in a data directory, which must be locked (see Lock). A file that is damaged
// is set aside and a new one takes over what can still be read; Damaged names it.
func OpenState(dir string, o StateOptions) (*State, error) {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, diskError("state: open", err)
	}
	path := filepath.Join(dir, stateName)
	_, err := os.Stat(path)
	fresh := errors.Is(err, fs.ErrNotExist)
	s, damage, err := openState(path)
	if err != nil {
		return nil, err
	}
	if damage != nil {
		if s, err = replace(path, damage, o); err != nil {
			return nil, err
		}
	}
	if fresh || damage != nil {
		if err := syncDir(dir); err != nil {
			return nil, errors.Join(diskError("state: open", err), s.db.Close())
		}
	}
	s.log, s.now = o.Logger, o.Now
	if err := s.openMirrors(dir); err != nil {
		return nil, errors.Join(err, s.db.Close())
	}
	s.damaged = asideFiles(dir, stateName, positionsName, assignmentsName)
	return s, nil
}

// openState looks through a file and opens it. It is never opened when it is damaged.
func openState(path string) (s *State, damage, err error) {
	found, err := look(path)
	if err != nil {
		return nil, nil, err
	}
	if damage = found.damage(); damage != nil {
		return nil, damage, nil
	}
	s = &State{asides: found.asides, bytes: found.bytes}
	damage = guarded(func() error {
		s.db, err = bolt.Open(path, 0o600, &bolt.Options{Timeout: lockWait, FreelistType: bolt.FreelistMapType})
		if err == nil {
			s.db.AllocSize = 1 << 20 // it must fit on a small disk
		}
		return nil
	})
	switch {
	case damage != nil: // what bbolt had opened before it panicked stays open
		return nil, damage, nil
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, nil, inUse(path)
	case err != nil:
		return nil, nil, diskError("state: open", err)
	}
	if err := s.update("prepare", prepare); err != nil {
		return nil, nil, errors.Join(err, s.db.Close())
	}
	return s, nil, nil
}

// lockWait is how long another process may hold the file.
const lockWait = 2 * time.Second

func inUse(path string) error {
	return ports.Errorf(ports.Conflict, "state: open", "%s is in use by another process", path)
}

// look goes through a file under the lock that bbolt itself takes. One that is not there, or has nothing in it, is bbolt's
// to make.
func look(path string) (*reading, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &reading{}, nil
	}
	if err != nil {
		return nil, diskError("state: open", err)
	}
	defer file.Close() // and with it the lock
	for begun := time.Now(); ; time.Sleep(lockWait / 40) {
		if err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, diskError("state: open", err)
		}
		if time.Since(begun) > lockWait {
			return nil, inUse(path)
		}
	}
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		return &reading{}, nil
	}
	found, err := readState(file, false)
	if err != nil {
		return nil, diskError("state: open", err)
	}
	return found, nil
}

func allBuckets() [][]byte {
	names := [][]byte{bucketHost, bucketNonces, bucketLocal, bucketLost, bucketCopies, bucketAssignments, bucketMirrors}
	for _, f := range ports.Families {
		names = append(names, asideBucket(f), followerBucket(f), unsettledBucket(f), tallyBucket(f))
	}
	return names
}

// prepare makes what is missing in a file.
func prepare(tx *bolt.Tx) error {
	for _, name := range allBuckets() {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	if host := tx.Bucket(bucketHost); host.Get(keyID) == nil {
		return host.Put(keyID, seal([]byte(uuid.NewString())))
	}
	return nil
}
