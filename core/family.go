package core

import (
	"sync"
	"sync/atomic"
	"time"

	"holdfast/ports"
)

// family is one half of history on its way in: its journal, the entries that are still in memory, the callers that wait for
// a decision, and how far the local store is.
type family struct {
	name    ports.Family
	journal ports.Journal

	mu      sync.Mutex // the order of appends, and everything below
	lastMs  int64
	tail    tail
	waiters map[uint64]*waiter
	keys    keySeqs

	committed atomic.Uint64
	wake      chan struct{} // the commit loop has something to do
	moved     broadcast     // the local store's position moved
	oldest    atomic.Int64  // when the first entry of the backlog was accepted, in milliseconds; 0 without one
	counts    counters      // of writes
	overtaken ring          // deferred writes that were decided otherwise
	committer *committer
}

// waiter is a caller that waits for the decision of its write.
type waiter struct {
	done     chan struct{}
	decision ports.Decision
	aside    bool
}

func newFamily(name ports.Family, journal ports.Journal) *family {
	f := &family{name: name, journal: journal, waiters: map[uint64]*waiter{}, wake: make(chan struct{}, 1)}
	f.keys.init(journal.Bounds().Appended)
	journal.Notify(func(uint64) { f.signal() })
	return f
}

// resume says how far the local store was when the host ended, and how old what it lacks is.
func (f *family) resume(committed uint64) {
	f.committed.Store(committed)
	if f.head() <= committed {
		return
	}
	// A journal that cannot be read says so where it matters.
	if backlog, err := f.journal.Read(committed, 1, 1); err == nil && len(backlog.Entries) > 0 {
		f.oldest.Store(backlog.Entries[0].ReceivedMs)
	}
}

// signal tells the commit loop to look again.
func (f *family) signal() { notify(f.wake) }

// notify lets whoever waits on a channel of room one go on, now or when it next waits.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// append journals one entry: it fixes its time, gives it its Seq and registers its caller.
func (f *family) append(e ports.Entry, now time.Time, wait bool) (ports.Receipt, *waiter, uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.Again == 0 {
		f.lastMs = max(f.lastMs, now.UnixMilli())
		e.ReceivedMs = f.lastMs
	}
	one := [1]ports.Entry{e}
	receipt, err := f.journal.Append(one[:])
	if err != nil {
		return nil, nil, 0, err
	}
	f.tail.push(one[0])
	f.oldest.CompareAndSwap(0, e.ReceivedMs)
	f.keys.note(e.Key, one[0].Seq)
	var w *waiter
	if wait {
		w = &waiter{done: make(chan struct{})}
		f.waiters[one[0].Seq] = w
	}
	return receipt, w, one[0].Seq, nil
}

// forget takes a caller off that waits no longer. It says false when the decision is there already.
func (f *family) forget(seq uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, waits := f.waiters[seq]
	delete(f.waiters, seq)
	return waits
}

// deliver hands decisions to their callers, and gives back those that nobody waited for.
func (f *family) deliver(decisions []ports.Decision, aside bool) (alone []ports.Decision) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range decisions {
		w := f.waiters[d.Seq]
		if w == nil {
			alone = append(alone, d)
			continue
		}
		delete(f.waiters, d.Seq)
		w.decision, w.aside = d, aside
		close(w.done)
	}
	return alone
}

// reached moves the position of the local store.
func (f *family) reached(seq uint64) {
	f.committed.Store(seq)
	f.moved.all()
}

// head is the last durable Seq.
func (f *family) head() uint64 { return f.journal.Bounds().Head }

// need is the Seq that a read of a key must reflect, or of a list with an empty key.
func (f *family) need(key string) uint64 {
	head := f.head()
	if key == "" {
		return head
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return min(f.keys.last(key), head)
}

// broadcast wakes everyone who waits.
type broadcast struct {
	mu sync.Mutex
	c  chan struct{}
}

// wait gives a channel that is closed at the next all.
func (b *broadcast) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.c == nil {
		b.c = make(chan struct{})
	}
	return b.c
}

func (b *broadcast) all() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.c != nil {
		close(b.c)
		b.c = nil
	}
}

// keySeqs knows the last Seq of the keys written last: two generations, so that it forgets the oldest half at once.
type keySeqs struct {
	now, old map[string]uint64
	floor    uint64 // no forgotten key has a higher one
}

// maxKeySeqs is how many keys are known.
const maxKeySeqs = 100_000

func (k *keySeqs) init(floor uint64) {
	k.now, k.old, k.floor = map[string]uint64{}, nil, floor
}

func (k *keySeqs) note(key string, seq uint64) {
	if len(k.now) >= maxKeySeqs/2 {
		for _, old := range k.old {
			k.floor = max(k.floor, old)
		}
		k.now, k.old = make(map[string]uint64, maxKeySeqs/2), k.now
	}
	k.now[key] = seq
}

func (k *keySeqs) last(key string) uint64 {
	if seq, ok := k.now[key]; ok {
		return seq
	}
	if seq, ok := k.old[key]; ok {
		return seq
	}
	return k.floor
}
