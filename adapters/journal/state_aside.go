package journal

import (
	"encoding/binary"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"holdfast/ports"
)

// A set-aside entry is stored under its Seq as code, reason (texts), time (zigzag varint) and the entry's binary form.

func asideBucket(f ports.Family) []byte { return []byte("aside-" + string(f)) }

func encodeAside(a *ports.Aside) []byte {
	b := appendText(nil, string(a.Code))
	b = appendText(b, a.Reason)
	b = binary.AppendVarint(b, a.AtMs)
	return seal(appendEntry(b, &a.Entry, true))
}

func decodeAside(seq uint64, stored []byte) ports.Aside {
	a := ports.Aside{Entry: ports.Entry{Seq: seq}}
	b, err := unseal(stored)
	if err == nil {
		d := decoder{rest: b}
		a.Code, a.Reason, a.AtMs = ports.Code(d.text("")), d.text(""), d.varint()
		if _, err = d.entry(&a.Entry, d.rest, true); err == nil {
			return a
		}
	}
	// It is told, so that somebody can drop it, rather than hiding all the others behind an error.
	return ports.Aside{Entry: ports.Entry{Seq: seq}, Code: ports.Internal, Reason: fmt.Sprintf("what was kept of it in state.db is damaged: %s", err)}
}

// SetAside keeps entries, all or none. It fails with Full when there would be too many or too much.
func (s *State) SetAside(f ports.Family, entries []ports.Aside) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	count, bytes := s.asides, s.bytes
	err := s.change(func(tx *bolt.Tx) error {
		b := tx.Bucket(asideBucket(f))
		for i := range entries {
			key, value := number(entries[i].Entry.Seq), encodeAside(&entries[i])
			if before := b.Get(key); before != nil {
				count--
				bytes -= int64(len(before))
			}
			count++
			bytes += int64(len(value))
			if err := asideRoom(count, bytes); err != nil {
				return err
			}
			if err := b.Put(key, value); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		s.asides, s.bytes = count, bytes
	}
	return stateError("set aside", err)
}

func asideRoom(count int, bytes int64) error {
	switch {
	case count > ports.MaxAsides:
		return &ports.Error{Code: ports.Full, Limit: ports.MaxAsides, Size: int64(count),
			Message: fmt.Sprintf("%d entries would be set aside, the limit is %d; retry or discard some", count, ports.MaxAsides)}
	case bytes > ports.MaxAsideBytes:
		return &ports.Error{Code: ports.Full, Limit: ports.MaxAsideBytes, Size: bytes,
			Message: fmt.Sprintf("%d bytes would be set aside, the limit is %d; retry or discard some", bytes, int64(ports.MaxAsideBytes))}
	}
	return nil
}

// Asides lists a family's set-aside entries behind a Seq. An entry that cannot be read back is listed with the code
// Internal and nothing but its Seq.
func (s *State) Asides(f ports.Family, after uint64, limit int) (list []ports.Aside, err error) {
	err = s.view("asides", func(tx *bolt.Tx) error {
		c := tx.Bucket(asideBucket(f)).Cursor()
		for k, v := c.Seek(number(after + 1)); k != nil && len(list) < limit; k, v = c.Next() {
			list = append(list, decodeAside(binary.BigEndian.Uint64(k), v))
		}
		return nil
	})
	return list, err
}

// DropAside forgets entries; those that are not there are passed over.
func (s *State) DropAside(f ports.Family, seqs ...uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	count, bytes := s.asides, s.bytes
	err := s.change(func(tx *bolt.Tx) error {
		b := tx.Bucket(asideBucket(f))
		for _, seq := range seqs {
			before := b.Get(number(seq))
			if before == nil {
				continue
			}
			count--
			bytes -= int64(len(before))
			if err := b.Delete(number(seq)); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		s.asides, s.bytes = count, bytes
	}
	return stateError("drop aside", err)
}
