package journal

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"slices"

	bolt "go.etcd.io/bbolt"

	"holdfast/ports"
)

// replace makes a new file of what can still be read of a damaged one, which gets another name. The new one takes its
// place when it is complete: when that cannot be, for want of space or because the host dies, all is as it was.
func replace(path string, damage error, o StateOptions) (*State, error) {
	kept, err := rebuild(path, path+".new")
	if err != nil {
		return nil, err
	}
	aside := asideName(path, o.Now())
	if os.Link(path, aside) != nil { // the rename below then takes the place at once
		if err := os.Rename(path, aside); err != nil {
			return nil, diskError("state: open", err)
		}
	}
	if err := os.Rename(path+".new", path); err != nil {
		return nil, diskError("state: open", err)
	}
	s, again, err := openState(path)
	if err = errors.Join(err, again); err != nil {
		return nil, ports.Wrap(ports.Internal, "state: open", err)
	}
	h, err := s.Host()
	if err != nil {
		return nil, errors.Join(err, s.db.Close())
	}
	o.Logger.Error("state.db is damaged and was set aside; a new one was made", "file", aside, "why", damage,
		"host id", h.ID, "values taken over", kept)
	return s, nil
}

// rebuild makes a new file of what is whole in an old one.
func rebuild(from, to string) (kept int, err error) {
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, diskError("state: open", err)
	}
	file, err := os.Open(from)
	if err != nil {
		return 0, diskError("state: open", err)
	}
	defer file.Close()
	old, err := readState(file, true)
	if err != nil {
		return 0, diskError("state: open", err)
	}
	s, damage, err := openState(to)
	if err = errors.Join(err, damage); err != nil {
		return 0, ports.Wrap(ports.Internal, "state: open", err)
	}
	kept, err = s.takeOver(old)
	return kept, errors.Join(err, s.db.Close())
}

// takeOver takes what is whole out of another file.
//
// The identity is taken only with all its nonces: without the newest one the local store would take this directory for a
// copy. The position of a follower is taken only with the identity, when all positions of its family are whole, and when
// none of its unsettled keys is damaged or lost: else it would pass for having what it lacks. Nor is it taken when it is not
// known what the mirror showed, because then nobody can tell what a person took out of that. Without a position everything is
// copied again, which settles every key.
func (s *State) takeOver(old *reading) (kept int, err error) {
	identity := old.whole(bucketHost) && old.whole(bucketNonces) && len(old.values[string(bucketHost)]) > 0
	if !identity {
		for _, name := range [][]byte{bucketHost, bucketNonces, bucketLocal, bucketCopies} {
			delete(old.values, string(name)) // the local store's position is that of the host that is no more
		}
	}
	shown := old.whole(bucketMirrors) || slices.ContainsFunc(old.values[string(bucketMirrors)], func(v stored) bool { return string(v.key) == positionsName })
	for _, f := range ports.Families {
		positions := string(followerBucket(f))
		if !identity || !shown || !old.whole(followerBucket(f)) || !old.whole(unsettledBucket(f)) || !old.whole(tallyBucket(f)) {
			delete(old.values, positions)
		}
		old.values[positions] = slices.DeleteFunc(old.values[positions], func(v stored) bool { return old.doubted[follower{string(v.key), f}] })
		delete(old.values, string(tallyBucket(f))) // it is made again
	}
	err = s.update("take over", func(tx *bolt.Tx) error {
		for _, name := range allBuckets() {
			if err := takeBucket(tx, name, old.values[string(name)]); err != nil {
				return err
			}
			kept += len(old.values[string(name)])
		}
		return nil
	})
	return kept, err
}

func takeBucket(tx *bolt.Tx, name []byte, values []stored) error {
	b := tx.Bucket(name)
	tallies := map[string]tally{}
	for _, v := range values {
		known := b.Get(v.key) != nil // in a damaged file something may stand twice
		if err := b.Put(v.key, v.value); err != nil {
			return err
		}
		if !known && kindOf(string(name)) == unsettledKind {
			of, key, _ := placed(v.key)
			t := tallies[of]
			t.add(key)
			tallies[of] = t
		}
	}
	for of, t := range tallies {
		if err := tx.Bucket(tallyBucket(familyIn(string(name)))).Put([]byte(of), encodeTally([]byte(of), t)); err != nil {
			return err
		}
	}
	if string(name) == string(bucketNonces) && len(values) > 0 {
		return b.SetSequence(binary.BigEndian.Uint64(values[len(values)-1].key)) // new ones come behind
	}
	return nil
}
