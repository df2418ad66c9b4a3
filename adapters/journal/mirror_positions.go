package journal

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"

	"holdfast/ports"
)

// persistence-bridge-hwm.json shows how far each follower is:
//
//	{"Queue": {"NAME": {"StoreID": "...", "Epoch": "...", "Seqs": {"HOST": 4711}, "At": "2026-01-01T00:00:00Z"}}, "Manifest": {}}
//
// An entry that a person takes out while the host is down means "copy everything again". Nothing else in it counts: it
// never moves a position.

type positionEntry struct {
	StoreID string
	Epoch   string
	Seqs    map[string]uint64
	At      string
}

// positionsEvery is how often the file is written at most. What is left out is made up by a later change, or by Close.
const positionsEvery = time.Second

type positionsMirror struct {
	mirror

	mu      sync.Mutex
	entries byFamily[map[string]*positionEntry] // of all followers; an entry is replaced, never changed
	behind  bool                                // the file is
	tried   time.Time                           // when it was last written, or could not be
	known   byFamily[[]string]                  // whose entries the file has had, as state.db says
}

func entryOf(stored following) *positionEntry {
	p := stored.Mark.Position
	return &positionEntry{StoreID: p.StoreID, Epoch: p.Epoch, Seqs: maps.Clone(p.Seqs), At: time.UnixMilli(stored.SetMs).UTC().Format(time.RFC3339)}
}

// note takes over what state.db has.
func (m *positionsMirror) note(f ports.Family, name string, stored following) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.entries.of(f)
	if *of == nil {
		*of = map[string]*positionEntry{}
	}
	(*of)[name] = entryOf(stored)
	m.behind = true
}

// due gives what is to be written now, if anything.
func (m *positionsMirror) due(now time.Time, whatever bool) (content byFamily[map[string]*positionEntry], ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	age := now.Sub(m.tried)
	if !m.behind || !whatever && age >= 0 && age < positionsEvery {
		return content, false
	}
	m.behind, m.tried = false, now
	return m.copied(), true
}

func (m *positionsMirror) copied() (content byFamily[map[string]*positionEntry]) {
	for _, f := range ports.Families {
		if *content.of(f) = maps.Clone(*m.entries.of(f)); *content.of(f) == nil {
			*content.of(f) = map[string]*positionEntry{}
		}
	}
	return content
}

// writePositions writes the file when it is time, or whatever the time is. While another one writes there is nothing to do:
// what came since is made up later.
func (s *State) writePositions(whatever bool) {
	m := &s.positions
	if whatever {
		m.writing.Lock()
	} else if !m.writing.TryLock() {
		return
	}
	defer m.writing.Unlock()
	content, ok := m.due(s.now(), whatever)
	if !ok || m.closed {
		return
	}
	err := m.write(content)
	if err == nil {
		err = s.rememberPositions(content)
	}
	if m.say(err); err != nil {
		m.mu.Lock()
		m.behind = true
		m.mu.Unlock()
	}
}

// rememberPositions remembers whose entries the file has, if they are others than before.
func (s *State) rememberPositions(content byFamily[map[string]*positionEntry]) error {
	m := &s.positions
	var known byFamily[[]string]
	for _, f := range ports.Families {
		*known.of(f) = slices.Sorted(maps.Keys(*content.of(f)))
	}
	if slices.Equal(known.Queue, m.known.Queue) && slices.Equal(known.Manifest, m.known.Manifest) {
		return nil
	}
	if err := s.rememberMirror(positionsName, known); err != nil {
		return err
	}
	m.known = known
	return nil
}

func (s *State) rememberMirror(name string, content any) error {
	return s.update("remember mirror", func(tx *bolt.Tx) error {
		return putKeyed(tx.Bucket(bucketMirrors), []byte(name), content)
	})
}

// meetPositions reads the file at the start and forgets the followers that a person took out of it. Only one that the file
// has had can have been taken out.
func (s *State) meetPositions() error {
	m := &s.positions
	var file byFamily[map[string]*positionEntry]
	text, found, damage := m.read(&file)
	if damage != nil {
		m.setAsideDamaged(damage, s.now())
	}
	var out byFamily[[]string]
	err := s.view("read mirror", func(tx *bolt.Tx) error {
		met, err := getKeyed(tx.Bucket(bucketMirrors), []byte(positionsName), &m.known)
		found = found || met
		for _, f := range ports.Families {
			if err == nil {
				*out.of(f), err = m.meet(tx.Bucket(followerBucket(f)), f, *file.of(f), damage == nil)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := s.forgetFollowers(out); err != nil || !found && !m.behind {
		return err
	}
	now, err := render(m.copied())
	if m.behind = err != nil || !bytes.Equal(now, text); m.behind {
		s.writePositions(true)
	}
	return nil
}

// meet takes over what state.db has of a family and gives the followers that were taken out of the file.
func (m *positionsMirror) meet(b *bolt.Bucket, f ports.Family, file map[string]*positionEntry, readable bool) (out []string, err error) {
	return out, b.ForEach(func(k, v []byte) error {
		text, err := unsealKeyed(k, v)
		if err != nil {
			return err
		}
		var stored following
		if err := json.Unmarshal(text, &stored); err != nil {
			return err
		}
		name := string(k)
		if slices.Contains(*m.known.of(f), name) && readable && file[name] == nil {
			out = append(out, name)
			return nil
		}
		m.note(f, name, stored)
		return nil
	})
}

// forgetFollowers forgets positions, and with them that the file has had them.
func (s *State) forgetFollowers(out byFamily[[]string]) error {
	if len(out.Queue)+len(out.Manifest) == 0 {
		return nil
	}
	known := s.positions.known
	err := s.update("forget followers", func(tx *bolt.Tx) error {
		for _, f := range ports.Families {
			for _, name := range *out.of(f) {
				if err := tx.Bucket(followerBucket(f)).Delete([]byte(name)); err != nil {
					return err
				}
			}
			*known.of(f) = slices.DeleteFunc(slices.Clone(*known.of(f)), func(name string) bool { return slices.Contains(*out.of(f), name) })
		}
		return putKeyed(tx.Bucket(bucketMirrors), []byte(positionsName), known)
	})
	if err != nil {
		return err
	}
	s.positions.known = known
	for _, f := range ports.Families {
		for _, name := range *out.of(f) {
			s.log.Info("its entry was taken out of "+positionsName+": everything is copied to it again", "backend", name, "family", f)
		}
	}
	return nil
}
