package core

import (
	"context"
	"slices"

	"holdfast/ports"
)

// What follows a batch: its decisions are handed out and the position moves, also for a batch whose answer the last connection
// owed; and an entry that ended that connection is set aside, unless the store took it all the same.

// condemned is an entry that ended the store too often. It is set aside at the next connection, when it is known that the
// store has not taken it in spite of that.
type condemned struct {
	entry ports.Entry
	why   *ports.Error
}

// carryOut sets aside what the last connection condemned, unless the store took it.
func (c *committer) carryOut(mark uint64) error {
	if x := c.condemned; x != nil && x.entry.Seq > mark {
		if err := c.setAside(&x.entry, x.why); err != nil {
			return err
		}
	}
	c.condemned = nil
	return nil
}

// settle gets the answers that the last connection owed: what the store has passed of a batch is sent again, as the late twin
// that it is, for its decisions. What the store has not passed takes the ordinary way once more.
func (c *committer) settle(ctx context.Context, store ports.LocalStore, mark uint64) error {
	c.mu.Lock()
	owed := c.unanswered
	c.unanswered = nil
	c.mu.Unlock()
	for i, b := range owed {
		if b.After >= mark {
			break
		}
		b = passed(b, mark)
		pending, err := store.Commit(ctx, b)
		if err == nil {
			var decisions []ports.Decision
			wait, cancel := context.WithTimeout(ctx, deadlineOf(&b))
			decisions, err = pending.Wait(wait)
			cancel()
			if err == nil {
				err = c.settled(&b, decisions)
			}
		}
		if err == nil {
			continue
		}
		c.mu.Lock()
		c.unanswered = owed[i:]
		c.mu.Unlock()
		return ofNoWrite(err)
	}
	return nil
}

// ofNoWrite gives a refusal that speaks against no write a code with which nobody looks for one.
func ofNoWrite(err error) error {
	if !refusesWrite(err) {
		return err
	}
	return &ports.Error{Code: ports.Internal, Op: "commit", Message: "the local store refuses what holds no write: " + err.Error(), Cause: err}
}

// passed is the part of a batch that a store has passed whose position is mark.
func passed(b ports.CommitBatch, mark uint64) ports.CommitBatch {
	if b.Through > mark {
		after := slices.IndexFunc(b.Entries, func(e ports.Entry) bool { return e.Seq > mark })
		if after >= 0 {
			b.Entries = b.Entries[:after]
		}
		b.Through = mark
	}
	return b
}

// settled hands out the decisions of a batch and moves the position.
func (c *committer) settled(b *ports.CommitBatch, decisions []ports.Decision) error {
	if b.Through > c.committed.Load() {
		c.reached(b.Through)
		c.host.link.took()
	}
	for _, d := range decisions {
		c.counts.decided(d)
		if d.Dropped > 0 {
			c.host.log.Warn("dropped writes of a hub whose work item did not come for a day, or that could not take effect when it came",
				"family", c.name, "dropped", d.Dropped, "waiting", d.Waiting)
		}
	}
	for i := range b.Entries {
		if first := b.Entries[i].Again; first != 0 {
			c.overtaken.drop(first)
		}
	}
	alone := c.deliver(decisions, false)
	at := c.host.clock()
	next := 0
	for _, d := range alone {
		if d.Outcome == ports.Stored {
			continue
		}
		for next < len(b.Entries) && b.Entries[next].Seq != d.Seq {
			next++
		}
		if next < len(b.Entries) {
			c.overtook(&b.Entries[next], d, at)
		}
	}
	c.mu.Lock()
	c.doubt.passed(b.Through)
	c.mu.Unlock()
	c.noteOldest(b)
	for i := range b.Entries {
		if b.Entries[i].Again != 0 {
			if err := c.replayed(&b.Entries[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// noteOldest keeps the age of the backlog: what follows a batch came no earlier than its last entry.
func (c *committer) noteOldest(b *ports.CommitBatch) {
	c.family.mu.Lock() // no write comes in between
	defer c.family.mu.Unlock()
	switch n := len(b.Entries); {
	case c.journal.Bounds().Appended <= b.Through:
		c.oldest.Store(0)
	case n > 0:
		c.oldest.Store(b.Entries[n-1].ReceivedMs)
	}
}
