package core

import (
	"slices"
	"sync"

	"holdfast/ports"
)

// opSetAside is the operation of an error that says that nothing more can be set aside.
const opSetAside = "set aside"

// asides knows which entries of a family are set aside, by key, oldest first. The entries themselves are in the host's state.
type asides struct {
	mu     sync.Mutex
	byKey  map[string][]uint64
	failed map[uint64]bool // replays, by their own Seq, that the local store did not take either
	again  map[uint64]bool // entries whose replay is on its way
}

func (a *asides) add(key string, seq uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byKey == nil {
		a.byKey = map[string][]uint64{}
	}
	// Not always the newest: those of the batches behind a refused one are met again at the next connection.
	if i, known := slices.BinarySearch(a.byKey[key], seq); !known {
		a.byKey[key] = slices.Insert(a.byKey[key], i, seq)
	}
}

func (a *asides) drop(key string, seq uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.again, seq)
	a.byKey[key] = slices.DeleteFunc(a.byKey[key], func(s uint64) bool { return s == seq })
	if len(a.byKey[key]) == 0 {
		delete(a.byKey, key)
	}
}

// holds says whether later entries of the key must wait.
func (a *asides) holds(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.byKey[key]) > 0
}

func (a *asides) any() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.byKey) > 0
}

// mayReplay says whether a replay is still due, and its turn: it stands for the oldest entry of its key.
func (a *asides) mayReplay(e *ports.Entry) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	waiting := a.byKey[e.Key]
	return len(waiting) > 0 && waiting[0] == e.Again && !a.failed[e.Seq]
}

// has says whether this very entry is set aside.
func (a *asides) has(key string, seq uint64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Contains(a.byKey[key], seq)
}

// fail notes that a replay failed; those behind it are passed over too.
func (a *asides) fail(key string, replay uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failed == nil {
		a.failed = map[uint64]bool{}
	}
	a.failed[replay] = true
	for _, seq := range a.byKey[key] {
		delete(a.again, seq)
	}
}

// replays notes whether the replay of an entry is on its way.
func (a *asides) replays(seq uint64, underWay bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.again == nil {
		a.again = map[uint64]bool{}
	}
	if a.again[seq] = underWay; !underWay {
		delete(a.again, seq)
	}
}

// left gives the oldest entry of a key, unless its replay is on its way.
func (a *asides) left(key string) (seq uint64, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if waiting := a.byKey[key]; len(waiting) > 0 && !a.again[waiting[0]] {
		return waiting[0], true
	}
	return 0, false
}

// count is how many entries are set aside.
func (a *asides) count() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, seqs := range a.byKey {
		n += len(seqs)
	}
	return n
}

// load reads the family's set-aside entries at the start.
func (c *committer) load() error {
	return c.eachAside(func(a ports.Aside) { c.asides.add(a.Entry.Key, a.Entry.Seq) })
}

func (c *committer) eachAside(do func(ports.Aside)) error {
	var after uint64
	for {
		page, err := c.host.state.Asides(c.name, after, 100)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, a := range page {
			do(a)
			after = a.Entry.Seq
		}
	}
}

// setAside keeps an entry beside the history: why is nil for one that only waits behind another of its key. A replay that
// fails again stays where it was.
func (c *committer) setAside(e *ports.Entry, why *ports.Error) error {
	kept := *e
	if e.Again != 0 {
		kept.Seq, kept.Again = e.Again, 0
	}
	a := ports.Aside{Entry: kept, AtMs: c.host.clock().UnixMilli()}
	decision := ports.Decision{Seq: e.Seq, Outcome: ports.Refused, Err: why}
	if why != nil {
		a.Code, a.Reason = why.Code, why.Error()
	} else {
		decision.Err = ports.InField(ports.Conflict, "Key", "has writes that are set aside; this one waits behind them, see `holdfast unsettled list`")
	}
	if err := c.host.state.SetAside(c.name, []ports.Aside{a}); err != nil {
		return ports.Wrap(ports.Full, opSetAside, err)
	}
	c.asides.add(kept.Key, kept.Seq)
	if e.Again != 0 {
		c.asides.fail(e.Key, e.Seq)
		c.overtaken.drop(e.Again)
	}
	c.counts.aside.Add(1)
	if why != nil {
		c.host.log.Warn("set aside a write that the local store does not take", "family", c.name, "seq", e.Seq, "action", e.Action, "code", why.Code, "reason", why.Message)
	}
	for _, d := range c.deliver([]ports.Decision{decision}, true) {
		c.overtook(e, d, c.host.clock())
	}
	return nil
}

// replay journals a set-aside entry again.
func (c *committer) replay(e ports.Entry) (ports.Receipt, error) {
	e.Again, e.Seq = e.Seq, 0
	c.asides.replays(e.Again, true)
	receipt, _, _, err := c.append(e, c.host.clock(), false)
	if err != nil {
		c.asides.replays(e.Again, false)
	}
	return receipt, err
}

// replayed ends the replay of a set-aside entry that the local store decided. What came behind it while it waited, too late
// for the retry, follows by itself.
func (c *committer) replayed(e *ports.Entry) error {
	if err := c.host.state.DropAside(c.name, e.Again); err != nil {
		return err
	}
	c.asides.drop(e.Key, e.Again)
	seq, ok := c.asides.left(e.Key)
	if !ok {
		return nil
	}
	page, err := c.host.state.Asides(c.name, seq-1, 1)
	if err != nil || len(page) == 0 || page[0].Entry.Seq != seq || page[0].Code != "" {
		return err
	}
	if _, err := c.replay(page[0].Entry); err != nil {
		c.host.log.Warn("a write stays set aside although nothing is before it any more", "family", c.name, "seq", seq, "error", err)
	}
	return nil
}
