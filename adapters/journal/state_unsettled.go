package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"strings"

	bolt "go.etcd.io/bbolt"

	"holdfast/ports"
)

// The unsettled keys of followers. An unsettled key that got lost would let an old state pass for the present one, so
// nothing about them may vanish unseen. Each is stored under its follower's name and itself; the value begins with the
// checksum of that, so that a damaged key can be told from a damaged value. A tally for each follower, in a bucket of its
// own, has the number of keys and the sum of their hashes: with it a page that lost some of its entries is noticed too.
//
//	unsettled-FAMILY   name (text), key    checksum of the key, checksum of what follows it, kind, code, reason, ...
//	tally-FAMILY       name                count, sum (8 bytes each)

func unsettledBucket(f ports.Family) []byte { return []byte("unsettled-" + string(f)) }
func tallyBucket(f ports.Family) []byte     { return []byte("tally-" + string(f)) }

// maxReason is how much of what a store said is kept, in bytes.
const maxReason = 2 << 10

// tally is what is known of a follower's unsettled keys together.
type tally struct{ count, sum uint64 }

func encodeTally(name []byte, t tally) []byte {
	return sealKeyed(name, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, t.count), t.sum))
}

func decodeTally(name, stored []byte) (t tally, err error) {
	b, err := unsealKeyed(name, stored)
	if err != nil || len(b) != 16 {
		return tally{}, errValue
	}
	return tally{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}, nil
}

func (t *tally) add(key string)  { t.count++; t.sum += hashOf(key) }
func (t *tally) drop(key string) { t.count--; t.sum -= hashOf(key) }

func hashOf(key string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	return h.Sum64()
}

// place is where an unsettled key of a follower is stored.
func place(name, key string) []byte { return append(appendText(nil, name), key...) }

// placed takes a place apart.
func placed(at []byte) (name, key string, ok bool) {
	d := decoder{rest: at}
	name = d.text("")
	return name, string(d.rest), !d.failed && len(d.rest) > 0
}

func encodeUnsettled(at []byte, u *ports.Unsettled) []byte {
	b := appendText(nil, string(u.Kind))
	b = appendText(b, string(u.Code))
	b = appendText(b, reasonOf(u.Reason))
	b = binary.AppendUvarint(b, u.First)
	b = binary.AppendUvarint(b, u.Last)
	b = seal(binary.AppendVarint(b, u.AtMs))
	sum := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(b)), crc32.Checksum(at, castagnoli))
	return append(sum, b...)
}

// decodeUnsettled reads a value. The key is the key it was stored under when whole is true; else nothing can be said.
func decodeUnsettled(at, stored []byte) (u ports.Unsettled, whole bool, err error) {
	if len(stored) < 4 || crc32.Checksum(at, castagnoli) != binary.LittleEndian.Uint32(stored) {
		return ports.Unsettled{}, false, errValue
	}
	_, key, ok := placed(at)
	if !ok {
		return ports.Unsettled{}, false, errValue
	}
	u.Key = key
	b, err := unseal(stored[4:])
	if err != nil {
		return u, true, err
	}
	d := decoder{rest: b}
	u.Kind, u.Code, u.Reason = ports.UnsettledKind(d.text("")), ports.Code(d.text("")), d.text("")
	u.First, u.Last, u.AtMs = d.uvarint(), d.uvarint(), d.varint()
	if d.failed {
		return ports.Unsettled{Key: key}, true, errValue
	}
	return u, true, nil
}

// reasonOf cuts what a store said to what is kept of it.
func reasonOf(said string) string {
	said = strings.ToValidUTF8(said, "\uFFFD")
	if len(said) <= maxReason {
		return said
	}
	return strings.ToValidUTF8(said[:maxReason], "") // the cut may have gone through a character
}

// Unsettled lists a follower's unsettled keys behind a key. Of one that cannot be read back only the key is told, as in
// doubt, so that it is copied again.
func (s *State) Unsettled(name string, f ports.Family, after string, limit int) (list []ports.Unsettled, err error) {
	err = s.view("unsettled", func(tx *bolt.Tx) error {
		c := tx.Bucket(unsettledBucket(f)).Cursor()
		mine, from := appendText(nil, name), place(name, after)
		k, v := c.Seek(from)
		if bytes.Equal(k, from) {
			k, v = c.Next()
		}
		for ; bytes.HasPrefix(k, mine) && len(list) < limit; k, v = c.Next() {
			u, whole, err := decodeUnsettled(k, v)
			switch {
			case !whole:
				return err
			case err != nil:
				u = ports.Unsettled{Key: u.Key, Kind: ports.InDoubt, Code: ports.Internal,
					Reason: "what was kept of it in state.db is damaged; it is copied again"}
			}
			list = append(list, u)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// SetUnsettled remembers keys, all or none. It fails with Full when the follower would have too many.
func (s *State) SetUnsettled(name string, f ports.Family, keys []ports.Unsettled) error {
	for i := range keys {
		if keys[i].Key == "" || name == "" {
			return ports.Errorf(ports.Invalid, "state: set unsettled", "an unsettled key needs a name and a follower")
		}
	}
	return s.changeUnsettled("set unsettled", name, f, len(keys), func(b *bolt.Bucket, t *tally) error {
		for i := range keys {
			at := place(name, keys[i].Key)
			if b.Get(at) == nil {
				t.add(keys[i].Key)
			}
			if t.count > ports.MaxUnsettled {
				return &ports.Error{Code: ports.Full, Limit: ports.MaxUnsettled, Size: int64(t.count),
					Message: fmt.Sprintf("%s would have %d unsettled keys, the limit is %d; retry or discard some, or copy everything again",
						name, t.count, ports.MaxUnsettled)}
			}
			if err := b.Put(at, encodeUnsettled(at, &keys[i])); err != nil {
				return err
			}
		}
		return nil
	})
}

// DropUnsettled forgets keys; those that are not there are passed over.
func (s *State) DropUnsettled(name string, f ports.Family, keys ...string) error {
	return s.changeUnsettled("drop unsettled", name, f, len(keys), func(b *bolt.Bucket, t *tally) error {
		for _, key := range keys {
			at := place(name, key)
			if b.Get(at) == nil {
				continue
			}
			t.drop(key)
			if err := b.Delete(at); err != nil {
				return err
			}
		}
		return nil
	})
}

// changeUnsettled changes a follower's unsettled keys and their tally together.
func (s *State) changeUnsettled(what, name string, f ports.Family, n int, change func(b *bolt.Bucket, t *tally) error) error {
	if n == 0 {
		return nil
	}
	return s.update(what, func(tx *bolt.Tx) error {
		b, key := tx.Bucket(tallyBucket(f)), []byte(name)
		var t tally
		if stored := b.Get(key); stored != nil {
			var err error
			if t, err = decodeTally(key, stored); err != nil {
				return err
			}
		}
		if err := change(tx.Bucket(unsettledBucket(f)), &t); err != nil {
			return err
		}
		if t.count == 0 {
			return b.Delete(key)
		}
		return b.Put(key, encodeTally(key, t))
	})
}
