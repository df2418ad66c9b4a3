package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"

	"holdfast/ports"
)

// reading is what a walk through a whole state.db found.
type reading struct {
	keep bool // what is whole is kept, in values

	values map[string][]stored // by bucket
	seen   map[string]bool     // buckets
	broken map[string]bool     // buckets of which something cannot be read

	asides int // set-aside entries and their bytes
	bytes  int64

	named  bool   // the host's id is there
	nonces uint64 // how many there ever were, as their bucket says
	nonce  uint64 // the newest that is there

	counted map[follower]tally // of the unsettled keys that are there
	tallies map[follower]tally // as they should be
	doubted map[follower]bool  // whose unsettled keys are not all whole

	problems []error // the first of them
	count    int
}

type stored struct{ key, value []byte }

type follower struct {
	name   string
	family ports.Family
}

// readState goes through a file. What is damaged in it is told by damage of the reading; an error says that it could not
// be looked at.
func readState(file *os.File, keep bool) (*reading, error) {
	r := &reading{
		keep: keep, values: map[string][]stored{}, seen: map[string]bool{}, broken: map[string]bool{},
		counted: map[follower]tally{}, tallies: map[follower]tally{}, doubted: map[follower]bool{},
	}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	p, err := openPages(file, info.Size())
	if err != nil {
		r.problem("", err)
		return r, nil
	}
	w := pageWalk{pages: p, bucket: r.bucket, visit: r.value, problem: r.problem}
	w.run()
	r.compareTallies()
	if r.seen[string(bucketHost)] && !r.named {
		r.problem(string(bucketHost), errors.New("the host's id is not there"))
	}
	if r.nonce != r.nonces {
		r.problem(string(bucketNonces), errors.New("the newest nonce is not there"))
	}
	return r, nil
}

// damage says what is damaged, if anything is.
func (r *reading) damage() error {
	if r.count > len(r.problems) {
		return errors.Join(append(slices.Clone(r.problems), fmt.Errorf("and %d more", r.count-len(r.problems)))...)
	}
	return errors.Join(r.problems...)
}

// whole says that a bucket is there and everything in it can be read.
func (r *reading) whole(bucket []byte) bool {
	return r.seen[string(bucket)] && !r.broken[string(bucket)]
}

func (r *reading) problem(bucket string, err error) {
	r.broken[bucket] = true
	r.count++
	if len(r.problems) < 5 {
		r.problems = append(r.problems, fmt.Errorf("bucket %q: %w", bucket, err))
	}
}

func (r *reading) bucket(name string, sequence uint64) {
	r.seen[name] = true
	if name == string(bucketNonces) {
		r.nonces = sequence
	}
}

var errKey = errors.New("a key is not a number")

// value looks at one value. Set-aside entries and unsettled keys tell of their damage themselves when they are listed, as
// long as the key is known.
func (r *reading) value(bucket string, key, value []byte) {
	var err error
	switch kindOf(bucket) {
	case asideKind:
		if len(key) != 8 {
			err = errKey // it could neither be told nor dropped
			break
		}
		r.asides++
		r.bytes += int64(len(value))
		if r.keep {
			if _, err := unseal(value); err != nil {
				return
			}
		}
	case unsettledKind:
		u, known, broken := decodeUnsettled(key, value)
		if !known {
			err = broken
			break
		}
		at := followerIn(bucket, key)
		t := r.counted[at]
		t.add(u.Key)
		r.counted[at] = t
		if broken != nil {
			r.doubted[at] = true
			if r.keep {
				return
			}
		}
	case tallyKind:
		var t tally
		if t, err = decodeTally(key, value); err == nil {
			r.tallies[follower{string(key), familyIn(bucket)}] = t
		}
	case keyedKind:
		_, err = unsealKeyed(key, value)
	case plainKind:
		_, err = unseal(value)
		r.named = r.named || bucket == string(bucketHost) && string(key) == string(keyID)
		if bucket == string(bucketNonces) {
			if len(key) != 8 {
				err = errKey
				break
			}
			r.nonce = max(r.nonce, binary.BigEndian.Uint64(key))
		}
	}
	if err != nil {
		r.problem(bucket, err)
		return
	}
	if r.keep {
		r.values[bucket] = append(r.values[bucket], stored{slices.Clone(key), slices.Clone(value)})
	}
}

// compareTallies notices unsettled keys that vanished without a trace.
func (r *reading) compareTallies() {
	for at, t := range r.tallies {
		if r.counted[at] != t {
			r.doubt(at)
		}
	}
	for at, t := range r.counted {
		if _, ok := r.tallies[at]; !ok && t != (tally{}) {
			r.doubt(at)
		}
	}
}

func (r *reading) doubt(at follower) {
	r.doubted[at] = true
	r.count++
	if len(r.problems) < 5 {
		r.problems = append(r.problems, fmt.Errorf("the unsettled keys of %s (%s) are not those that were remembered", at.name, at.family))
	}
}

type valueKind int

const (
	plainKind valueKind = iota
	keyedKind
	asideKind
	unsettledKind
	tallyKind
)

// kindOf says how a bucket's values are sealed.
func kindOf(bucket string) valueKind {
	for _, f := range ports.Families {
		switch bucket {
		case string(asideBucket(f)):
			return asideKind
		case string(unsettledBucket(f)):
			return unsettledKind
		case string(tallyBucket(f)):
			return tallyKind
		case string(followerBucket(f)):
			return keyedKind
		}
	}
	switch bucket {
	case string(bucketCopies), string(bucketAssignments), string(bucketMirrors):
		return keyedKind
	}
	return plainKind
}

func familyIn(bucket string) ports.Family {
	for _, f := range ports.Families {
		if bucket == string(unsettledBucket(f)) || bucket == string(tallyBucket(f)) {
			return f
		}
	}
	return ""
}

// followerIn gives whose unsettled key is stored at a place that is whole.
func followerIn(bucket string, at []byte) follower {
	name, _, _ := placed(at)
	return follower{name, familyIn(bucket)}
}
