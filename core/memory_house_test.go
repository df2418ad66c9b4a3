package core

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"holdfast/ports"
)

// The data directory in memory: a journal, whose entries are durable at once or on command, and the host's state.

// memoryJournal is a ports.Journal.
type memoryJournal struct {
	mu      sync.Mutex
	entries []ports.Entry
	bounds  ports.Bounds
	lost    []ports.Span
	lazy    bool // entries become durable by sync
	broken  error
	notify  func(uint64)
	waiting []*receipt
	epochs  int
}

type receipt struct {
	last uint64
	done chan struct{}
	err  error
}

func (r *receipt) Wait(ctx context.Context) error {
	select {
	case <-r.done:
		return r.err
	default:
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func newMemoryJournal() *memoryJournal {
	j := &memoryJournal{bounds: ports.Bounds{First: 1, Limit: 1 << 20}}
	j.reopen(0)
	return j
}

// copied is a copy of the journal's files.
func (j *memoryJournal) copied() *memoryJournal {
	j.mu.Lock()
	defer j.mu.Unlock()
	return &memoryJournal{entries: slices.Clone(j.entries), bounds: j.bounds, lost: slices.Clone(j.lost), epochs: j.epochs}
}

// reopen is a new start of the journal: what was not durable is gone.
func (j *memoryJournal) reopen(atLeast uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = slices.DeleteFunc(j.entries, func(e ports.Entry) bool { return e.Seq > j.bounds.Head })
	j.bounds.Appended = max(j.bounds.Head, atLeast)
	j.bounds.Head = j.bounds.Appended
	j.epochs++
	j.bounds.Epoch, j.bounds.EpochFrom = fmt.Sprintf("epoch-%d-%s", j.epochs, rand.Text()[:4]), j.bounds.Appended+1
	j.waiting = nil
	if len(j.entries) == 0 {
		j.bounds.First = j.bounds.Head + 1
	}
}

func (j *memoryJournal) Append(entries []ports.Entry) (ports.Receipt, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.bounds.Full {
		return nil, ports.Errorf(ports.Full, "journal: append", "no room")
	}
	for i := range entries {
		j.bounds.Appended++
		entries[i].Seq = j.bounds.Appended
		kept := entries[i]
		kept.Host = "" // it is the same for all
		j.entries = append(j.entries, kept)
		j.bounds.Bytes += kept.Cost()
	}
	r := &receipt{last: j.bounds.Appended, done: make(chan struct{})}
	j.waiting = append(j.waiting, r)
	if !j.lazy {
		j.sync(nil)
	}
	return r, nil
}

// sync makes everything durable, or fails it.
func (j *memoryJournal) sync(err error) {
	for _, r := range j.waiting {
		r.err = err
		close(r.done)
	}
	j.waiting = nil
	if err == nil {
		j.bounds.Head = j.bounds.Appended
		if j.notify != nil {
			j.notify(j.bounds.Head)
		}
	}
}

// change changes something of the journal.
func (j *memoryJournal) change(edit func(j *memoryJournal)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	edit(j)
}

// lose makes entries unreadable.
func (j *memoryJournal) lose(s ports.Span) {
	j.change(func(j *memoryJournal) {
		j.lost = append(j.lost, s)
		j.entries = slices.DeleteFunc(j.entries, func(e ports.Entry) bool { return e.Seq >= s.From && e.Seq <= s.To })
	})
}

func (j *memoryJournal) Read(after uint64, limit int, maxBytes int64) (ports.Stretch, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := ports.Stretch{Through: after}
	if j.broken != nil {
		return s, j.broken
	}
	if after+1 < j.bounds.First {
		s.Lost, s.Through = append(s.Lost, ports.Span{From: after + 1, To: j.bounds.First - 1}), j.bounds.First-1
	}
	var bytes int64
	for _, e := range j.entries {
		if e.Seq <= after || e.Seq > j.bounds.Head {
			continue
		}
		if len(s.Entries) >= limit || len(s.Entries) > 0 && bytes+e.Cost() > maxBytes {
			return s, nil
		}
		j.tellLost(&s, e.Seq-1)
		s.Entries, s.Through = append(s.Entries, e), e.Seq
		bytes += e.Cost()
	}
	j.tellLost(&s, j.bounds.Head)
	s.Through = max(s.Through, j.bounds.Head)
	return s, nil
}

// tellLost tells what is lost between a stretch and a Seq.
func (j *memoryJournal) tellLost(s *ports.Stretch, through uint64) {
	for _, span := range j.lost {
		if span.From > s.Through && span.To <= through {
			s.Lost = append(s.Lost, span)
			s.Through = span.To
		}
	}
}

func (j *memoryJournal) Bounds() ports.Bounds {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.bounds
}

func (j *memoryJournal) Trim(through uint64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = slices.DeleteFunc(j.entries, func(e ports.Entry) bool {
		if e.Seq <= through {
			j.bounds.Bytes -= e.Cost()
		}
		return e.Seq <= through
	})
	j.bounds.First = max(j.bounds.First, min(through, j.bounds.Head)+1)
	return nil
}

func (j *memoryJournal) Advance(atLeast uint64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if atLeast > j.bounds.Appended {
		j.bounds.Appended, j.bounds.Head = atLeast, atLeast
		if len(j.entries) == 0 {
			j.bounds.First = atLeast + 1
		}
	}
	return nil
}

func (j *memoryJournal) Notify(durable func(uint64)) {
	j.change(func(j *memoryJournal) { j.notify = durable })
}

func (j *memoryJournal) Close() error { return nil }

// memoryState is a ports.State.
type memoryState struct {
	mu      sync.Mutex
	who     ports.HostIdentity
	known   ports.LocalMark
	met     bool
	lost    map[ports.Family][]ports.Span
	asides  map[ports.Family][]ports.Aside
	room    int           // for asides
	keyRoom int           // for the unsettled keys of each follower
	slow    time.Duration // that long a change of the asides takes

	following memoryFollowing
}

func newMemoryState() *memoryState {
	return &memoryState{
		who: ports.HostIdentity{ID: "11111111-2222-3333-4444-555555555555"}, room: ports.MaxAsides, keyRoom: ports.MaxUnsettled,
		lost: map[ports.Family][]ports.Span{}, asides: map[ports.Family][]ports.Aside{},
	}
}

// copied is a copy of the data directory's state.
func (s *memoryState) copied() *memoryState {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := newMemoryState()
	c.who = ports.HostIdentity{ID: s.who.ID, Nonces: slices.Clone(s.who.Nonces)}
	c.known, c.met, c.room, c.keyRoom, c.slow = s.known, s.met, s.room, s.keyRoom, s.slow
	c.following = s.following.copied()
	for _, f := range ports.Families {
		c.lost[f], c.asides[f] = slices.Clone(s.lost[f]), slices.Clone(s.asides[f])
	}
	return c
}

func (s *memoryState) Host() (ports.HostIdentity, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ports.HostIdentity{ID: s.who.ID, Nonces: slices.Clone(s.who.Nonces)}, nil
}

func (s *memoryState) PushNonce(nonce string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.who.Nonces = append([]string{nonce}, s.who.Nonces...)
	return nil
}

func (s *memoryState) Local() (ports.LocalMark, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known, s.met, nil
}

func (s *memoryState) SetLocal(known ports.LocalMark) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known, s.met = known, true
	return nil
}

func (s *memoryState) Lost(f ports.Family) ([]ports.Span, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lost[f]), nil
}

func (s *memoryState) AddLost(f ports.Family, span ports.Span) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost[f] = append(s.lost[f], span)
	return nil
}

func (s *memoryState) SetAside(f ports.Family, entries []ports.Aside) error {
	<-time.After(s.slow)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range entries {
		i, known := slices.BinarySearchFunc(s.asides[f], a.Entry.Seq, func(a ports.Aside, seq uint64) int { return int(a.Entry.Seq) - int(seq) })
		switch {
		case known:
			s.asides[f][i] = a
		case len(s.asides[ports.Queue])+len(s.asides[ports.Manifest]) >= s.room:
			return ports.Errorf(ports.Full, "", "there is room for %d", s.room)
		default:
			s.asides[f] = slices.Insert(s.asides[f], i, a)
		}
	}
	return nil
}

func (s *memoryState) Asides(f ports.Family, after uint64, limit int) ([]ports.Aside, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var page []ports.Aside
	for _, a := range s.asides[f] {
		if a.Entry.Seq > after && len(page) < limit {
			page = append(page, a)
		}
	}
	return page, nil
}

func (s *memoryState) DropAside(f ports.Family, seqs ...uint64) error {
	<-time.After(s.slow)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asides[f] = slices.DeleteFunc(s.asides[f], func(a ports.Aside) bool { return slices.Contains(seqs, a.Entry.Seq) })
	return nil
}

func (s *memoryState) Close() error { return nil }
