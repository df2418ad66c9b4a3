package journal

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"
	bolt "go.etcd.io/bbolt"

	"holdfast/ports"
)

// State is a ports.State in a bbolt file. Every value carries a checksum, because bbolt keeps none for its data pages.
//
//	host   id                  UUID text
//	nonces counter (8 bytes)   text, the highest counter is the newest
//	local  mark                JSON of ports.LocalMark
//	lost   Queue, Manifest     JSON of spans, ascending
//	aside-FAMILY   Seq (8 bytes)   see state_aside.go
//	follower-FAMILY, copy          see state_follower.go
//	unsettled-FAMILY, tally-FAMILY see state_unsettled.go
//	assignment, mirror             see state_assignment.go, mirror.go
type State struct {
	db      *bolt.DB
	log     hclog.Logger
	now     func() time.Time
	damaged []string
	broken  atomic.Pointer[ports.Error] // see state_tx.go

	positions   positionsMirror
	assignments assignmentsMirror

	mu     sync.Mutex // held over every change, so that the two figures stay right
	asides int
	bytes  int64
}

var _ ports.State = (*State)(nil)

var (
	bucketHost   = []byte("host")
	bucketNonces = []byte("nonces")
	bucketLocal  = []byte("local")
	bucketLost   = []byte("lost")
	keyID        = []byte("id")
	keyMark      = []byte("mark")
)

// keptNonces is how many nonces are remembered.
const keptNonces = 1000

// Damaged names the files in the data directory that were set aside because they could not be read.
func (s *State) Damaged() []string { return slices.Clone(s.damaged) }

// Host gives the identity of the data directory.
func (s *State) Host() (h ports.HostIdentity, err error) {
	err = s.view("host", func(tx *bolt.Tx) error {
		id, err := unseal(tx.Bucket(bucketHost).Get(keyID))
		if err != nil {
			return err
		}
		h.ID = string(id)
		c := tx.Bucket(bucketNonces).Cursor()
		for k, v := c.Last(); k != nil; k, v = c.Prev() {
			nonce, err := unseal(v)
			if err != nil {
				return err
			}
			h.Nonces = append(h.Nonces, string(nonce))
		}
		return nil
	})
	return h, err
}

// PushNonce remembers a nonce as the newest and forgets what lies far back.
func (s *State) PushNonce(nonce string) error {
	return s.update("push nonce", func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketNonces)
		n, err := b.NextSequence()
		if err != nil {
			return err
		}
		if n > keptNonces {
			if err := b.Delete(number(n - keptNonces)); err != nil {
				return err
			}
		}
		return b.Put(number(n), seal([]byte(nonce)))
	})
}

// NewHostID makes the directory another host's: a new id and no nonces. It is for a data directory that was copied from one
// that goes on living; what that one had committed is remembered, so that it is not committed again.
func (s *State) NewHostID() error {
	return s.update("new host id", func(tx *bolt.Tx) error {
		if err := tx.DeleteBucket(bucketNonces); err != nil {
			return err
		}
		if _, err := tx.CreateBucket(bucketNonces); err != nil {
			return err
		}
		var known ports.LocalMark
		if met, err := getJSON(tx.Bucket(bucketLocal), keyMark, &known); err != nil {
			return err
		} else if met {
			known.Renamed = true
			if err := putJSON(tx.Bucket(bucketLocal), keyMark, known); err != nil {
				return err
			}
		}
		return tx.Bucket(bucketHost).Put(keyID, seal([]byte(uuid.NewString())))
	})
}

// Local gives the local store as it was last known.
func (s *State) Local() (known ports.LocalMark, ok bool, err error) {
	err = s.view("local", func(tx *bolt.Tx) error {
		ok, err = getJSON(tx.Bucket(bucketLocal), keyMark, &known)
		return err
	})
	return known, ok, err
}

// SetLocal remembers the local store.
func (s *State) SetLocal(known ports.LocalMark) error {
	return s.update("set local", func(tx *bolt.Tx) error {
		return putJSON(tx.Bucket(bucketLocal), keyMark, known)
	})
}

// Lost gives the Seqs that are gone, ascending.
func (s *State) Lost(f ports.Family) (spans []ports.Span, err error) {
	err = s.view("lost", func(tx *bolt.Tx) error {
		_, err := getJSON(tx.Bucket(bucketLost), []byte(f), &spans)
		return err
	})
	return spans, err
}

// AddLost adds a range; what overlaps or touches becomes one.
func (s *State) AddLost(f ports.Family, span ports.Span) error {
	return s.update("add lost", func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketLost)
		var spans []ports.Span
		if _, err := getJSON(b, []byte(f), &spans); err != nil {
			return err
		}
		return putJSON(b, []byte(f), withSpan(spans, span))
	})
}

// Close writes the mirror that may still be behind, and closes the file.
func (s *State) Close() error {
	s.closeMirrors()
	if why := s.broken.Load(); why != nil {
		return ports.Wrap(ports.Internal, "state: close", why) // bbolt would wait for the lock that nobody holds
	}
	if err := s.db.Close(); err != nil {
		return diskError("state: close", err)
	}
	return nil
}

func withSpan(spans []ports.Span, add ports.Span) []ports.Span {
	all := append(slices.Clone(spans), add)
	slices.SortFunc(all, func(a, b ports.Span) int {
		if a.From < b.From {
			return -1
		}
		return 1
	})
	merged := all[:1]
	for _, s := range all[1:] {
		last := &merged[len(merged)-1]
		if s.From <= last.To || s.From-last.To == 1 {
			last.To = max(last.To, s.To)
			continue
		}
		merged = append(merged, s)
	}
	return merged
}

// seal puts the checksum before a value; unseal takes it off again.
func seal(value []byte) []byte {
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(value)), crc32.Checksum(value, castagnoli))
	return append(b, value...)
}

func unseal(b []byte) ([]byte, error) {
	if len(b) < 4 || crc32.Checksum(b[4:], castagnoli) != binary.LittleEndian.Uint32(b) {
		return nil, errValue
	}
	return b[4:], nil
}

var errValue = ports.Errorf(ports.Internal, "", "a value in state.db is damaged")

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func getJSON(b *bolt.Bucket, key []byte, into any) (ok bool, err error) {
	stored := b.Get(key)
	if stored == nil {
		return false, nil
	}
	text, err := unseal(stored)
	if err != nil {
		return false, err
	}
	return true, json.Unmarshal(text, into)
}

func putJSON(b *bolt.Bucket, key []byte, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return b.Put(key, seal(text))
}
