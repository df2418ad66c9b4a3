package journal

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"

	bolt "go.etcd.io/bbolt"

	"holdfast/ports"
)

// How far followers are, and where a copy goes on. A value is sealed together with its key here, because a position that
// turned up under another backend's name would be a hole in that backend.

var (
	bucketCopies      = []byte("copy")
	bucketAssignments = []byte("assignment")
	bucketMirrors     = []byte("mirror")
)

func followerBucket(f ports.Family) []byte { return []byte("follower-" + string(f)) }

// following is what is stored of a follower.
type following struct {
	Mark  ports.FollowerMark
	SetMs int64 // when, for the mirror
}

// Follower gives how far a follower is; ok is false for one that is to be copied from zero.
func (s *State) Follower(name string, f ports.Family) (mark ports.FollowerMark, ok bool, err error) {
	err = s.view("follower", func(tx *bolt.Tx) error {
		var stored following
		ok, err = getKeyed(tx.Bucket(followerBucket(f)), []byte(name), &stored)
		mark = stored.Mark
		return err
	})
	return mark, ok && err == nil, err
}

// SetFollower remembers how far a follower is, and has the mirror follow.
func (s *State) SetFollower(name string, f ports.Family, mark ports.FollowerMark) error {
	if name == "" {
		return ports.Errorf(ports.Invalid, "state: set follower", "a follower needs a name")
	}
	stored := following{Mark: mark, SetMs: s.now().UnixMilli()}
	err := s.update("set follower", func(tx *bolt.Tx) error {
		tx.OnCommit(func() { s.positions.note(f, name, stored) }) // still in the order of changes
		return putKeyed(tx.Bucket(followerBucket(f)), []byte(name), stored)
	})
	if err == nil {
		s.writePositions(false)
	}
	return err
}

// CopyMark gives where a copy was interrupted; nil when none was.
func (s *State) CopyMark(from, to string, f ports.Family) (mark *ports.CopyMark, err error) {
	err = s.view("copy mark", func(tx *bolt.Tx) error {
		_, err := getKeyed(tx.Bucket(bucketCopies), copyKey(from, to, f), &mark)
		return err
	})
	if err != nil {
		return nil, err
	}
	return mark, nil
}

// SetCopyMark remembers where a copy is; nil forgets it.
func (s *State) SetCopyMark(from, to string, f ports.Family, mark *ports.CopyMark) error {
	return s.update("set copy mark", func(tx *bolt.Tx) error {
		b, key := tx.Bucket(bucketCopies), copyKey(from, to, f)
		if mark == nil {
			return b.Delete(key)
		}
		return putKeyed(b, key, mark)
	})
}

func copyKey(from, to string, f ports.Family) []byte {
	return append(appendText(appendText(nil, from), to), f...)
}

// sealKeyed is seal with the key under the checksum too; unsealKeyed takes it off again.
func sealKeyed(key, value []byte) []byte {
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(value)), keyedSum(key, value))
	return append(b, value...)
}

func unsealKeyed(key, stored []byte) ([]byte, error) {
	if len(stored) < 4 || keyedSum(key, stored[4:]) != binary.LittleEndian.Uint32(stored) {
		return nil, errValue
	}
	return stored[4:], nil
}

func keyedSum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}

func getKeyed(b *bolt.Bucket, key []byte, into any) (ok bool, err error) {
	stored := b.Get(key)
	if stored == nil {
		return false, nil
	}
	text, err := unsealKeyed(key, stored)
	if err != nil {
		return false, err
	}
	return true, json.Unmarshal(text, into)
}

func putKeyed(b *bolt.Bucket, key []byte, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return b.Put(key, sealKeyed(key, text))
}
