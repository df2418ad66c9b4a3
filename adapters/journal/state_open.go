package journal

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"
	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

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
		if s, err = replace(path, s, damage, o); err != nil {
			return nil, err
		}
	}
	if fresh || damage != nil {
		if err := syncDir(dir); err != nil {
			return nil, errors.Join(diskError("state: open", err), s.Close())
		}
	}
	aside, _ := filepath.Glob(path + asideMark + "*") // in order of time
	for i, file := range aside {
		if i < len(aside)-keepAside && os.Remove(file) == nil {
			continue
		}
		s.damaged = append(s.damaged, filepath.Base(file))
	}
	return s, nil
}

// openState opens a file and checks it. Of a damaged file s is what could be opened of it, perhaps nil.
func openState(path string) (s *State, damage, err error) {
	if damage = cutShort(path); damage != nil {
		return nil, damage, nil
	}
	s = &State{}
	damage = guarded(func() error {
		s.db, err = bolt.Open(path, 0o600, &bolt.Options{Timeout: 2 * time.Second, FreelistType: bolt.FreelistMapType})
		if err == nil {
			s.db.AllocSize = 1 << 20 // it must fit on a small disk
		}
		return nil
	})
	var system syscall.Errno
	switch {
	case damage != nil: // what bbolt had opened before it panicked stays open
		return nil, damage, nil
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, nil, ports.Errorf(ports.Conflict, "state: open", "%s is in use by another process", path)
	case errors.As(err, &system) && system != syscall.EIO:
		return nil, nil, diskError("state: open", err)
	case err != nil:
		return nil, err, nil
	}
	if err := s.update("prepare", prepare); err != nil {
		if code := ports.CodeOf(err); code == ports.Full {
			return nil, nil, errors.Join(err, s.db.Close())
		}
		return s, err, nil
	}
	if err := s.check(); err != nil {
		return s, err, nil
	}
	return s, nil, nil
}

// prepare makes what is missing in a new file.
func prepare(tx *bolt.Tx) error {
	names := [][]byte{bucketHost, bucketNonces, bucketLocal, bucketLost}
	for _, f := range ports.Families {
		names = append(names, asideBucket(f))
	}
	for _, name := range names {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	if host := tx.Bucket(bucketHost); host.Get(keyID) == nil {
		return host.Put(keyID, seal([]byte(uuid.NewString())))
	}
	return nil
}

// check goes through every page and every value but the set-aside entries, which are large and tell of their damage
// themselves, and counts those.
func (s *State) check() error {
	return s.view("check", func(tx *bolt.Tx) error {
		err := tx.ForEach(func(name []byte, b *bolt.Bucket) error {
			aside := isAside(name)
			return b.ForEach(func(_, v []byte) error {
				if aside {
					s.asides++
					s.bytes += int64(len(v))
					return nil
				}
				_, err := unseal(v)
				return err
			})
		})
		if err != nil {
			return err
		}
		for problem := range tx.Check() {
			err = errors.Join(err, problem)
		}
		return err
	})
}

func isAside(bucket []byte) bool {
	return slices.ContainsFunc(ports.Families, func(f ports.Family) bool { return string(asideBucket(f)) == string(bucket) })
}

// replace gives a damaged file another name and makes a new one with what can still be read.
func replace(path string, old *State, damage error, o StateOptions) (*State, error) {
	aside := path + asideMark + o.Now().UTC().Format("20060102T150405Z")
	if err := os.Rename(path, aside); err != nil {
		return nil, diskError("state: open", err)
	}
	s, again, err := openState(path)
	if err = errors.Join(err, again); err != nil {
		return nil, ports.Wrap(ports.Internal, "state: open", err)
	}
	kept := 0
	if old != nil {
		kept = s.takeOver(old.db)
		_ = guarded(old.db.Close)
	}
	h, err := s.Host()
	if err != nil {
		return nil, err
	}
	o.Logger.Error("state.db is damaged and was set aside; a new one was made", "file", aside, "why", damage,
		"host id", h.ID, "values taken over", kept)
	return s, nil
}

// takeOver copies what is whole in another file. The identity is taken only with all its nonces: without the newest one
// the local store would take this directory for a copy.
func (s *State) takeOver(old *bolt.DB) (kept int) {
	type value struct{ key, stored []byte }
	whole := map[string][]value{}
	complete := map[string]bool{}
	for _, name := range [][]byte{bucketHost, bucketNonces, bucketLocal, bucketLost, asideBucket(ports.Queue), asideBucket(ports.Manifest)} {
		complete[string(name)] = true
		err := guarded(func() error {
			return old.View(func(tx *bolt.Tx) error {
				return tx.Bucket(name).ForEach(func(k, v []byte) error {
					if _, err := unseal(v); err != nil {
						complete[string(name)] = false
						return nil
					}
					whole[string(name)] = append(whole[string(name)], value{slices.Clone(k), slices.Clone(v)})
					return nil
				})
			})
		})
		complete[string(name)] = complete[string(name)] && err == nil
	}
	if host, nonces := string(bucketHost), string(bucketNonces); !complete[host] || !complete[nonces] || len(whole[host]) == 0 {
		delete(whole, host)
		delete(whole, nonces)
		delete(whole, string(bucketLocal)) // its positions are those of the host that is no more
	}
	for name, values := range whole {
		err := s.update("take over", func(tx *bolt.Tx) error {
			b := tx.Bucket([]byte(name))
			for _, v := range values {
				if err := b.Put(v.key, v.stored); err != nil {
					return err
				}
			}
			if name == string(bucketNonces) && len(values) > 0 {
				return b.SetSequence(binary.BigEndian.Uint64(values[len(values)-1].key)) // new ones come behind
			}
			return nil
		})
		if err != nil {
			continue
		}
		kept += len(values)
		if isAside([]byte(name)) {
			for _, v := range values {
				s.asides++
				s.bytes += int64(len(v.stored))
			}
		}
	}
	return kept
}
