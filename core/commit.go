package core

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"holdfast/ports"
)

// committer carries one family's entries from the journal to the local store, in order, a few batches ahead. It lives as
// long as the Host; run lasts as long as one connection to the store.
type committer struct {
	*family
	host   *Host
	asides asides
	asked  atomic.Int64 // since when the oldest batch in flight is waited for, in milliseconds; 0: none is

	mu         sync.Mutex
	doubt      suspicion
	condemned  *condemned
	unanswered []ports.CommitBatch // sent over the connection that broke, oldest first
}

const (
	window         = 4 // batches in flight
	commitDeadline = 5 * time.Second
)

// sent is a batch in flight.
type sent struct {
	batch   ports.CommitBatch
	pending ports.Pending
	weight  int64
	err     error // it could not even be sent
}

// run commits what comes until the connection breaks or ctx ends. mark is the store's position.
func (c *committer) run(ctx context.Context, store ports.LocalStore, epoch string, mark uint64) error {
	if err := c.settle(ctx, store, mark); err != nil {
		return err
	}
	if err := c.carryOut(mark); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	slots := semaphore.NewWeighted(window)
	flight := make(chan sent, window)
	var submitErr error
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(flight)
		submitErr = c.submit(ctx, store, epoch, mark, slots, flight)
	})
	var failed error
	for s := range flight {
		if failed == nil {
			failed = c.collect(ctx, store, s)
			if failed != nil {
				cancel()
			}
		}
		if failed != nil {
			c.mu.Lock()
			c.unanswered = append(c.unanswered, s.batch)
			c.mu.Unlock()
		}
		slots.Release(s.weight)
	}
	wg.Wait()
	return firstOf(failed, submitErr)
}

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// submit forms batches and sends them in order.
func (c *committer) submit(ctx context.Context, store ports.LocalStore, epoch string, after uint64, slots *semaphore.Weighted, flight chan<- sent) error {
	for {
		if err := c.awaitEntries(ctx, after); err != nil {
			return err
		}
		if err := slots.Acquire(ctx, 1); err != nil { // first, so that a batch takes in what comes while all are in flight
			return err
		}
		c.mu.Lock()
		limit, alone := c.doubt.size()
		c.mu.Unlock()
		batch, replay, err := c.next(ctx, after, limit)
		if err != nil {
			return err
		}
		batch.Epoch = epoch
		weight := int64(1)
		if alone || replay {
			weight = window
			if err := slots.Acquire(ctx, window-1); err != nil {
				return err
			}
		}
		pending, err := store.Commit(ctx, batch)
		flight <- sent{batch: batch, pending: pending, weight: weight, err: err}
		if err != nil {
			return err
		}
		after = batch.Through
		if replay { // its outcome decides what may follow
			if err := slots.Acquire(ctx, window); err != nil {
				return err
			}
			slots.Release(window)
		}
	}
}

// awaitEntries waits until the journal has something durable after a Seq.
func (c *committer) awaitEntries(ctx context.Context, after uint64) error {
	for c.head() <= after {
		select {
		case <-c.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// collect waits for the oldest batch's decisions and hands them out.
func (c *committer) collect(ctx context.Context, store ports.LocalStore, s sent) error {
	if s.err != nil && !ports.CodeOf(s.err).Permanent() {
		return s.err // the batch never reached the store, which has ended without its doing
	}
	err := s.err
	var decisions []ports.Decision
	if err == nil {
		c.asked.Store(c.host.clock().UnixMilli())
		defer c.asked.Store(0)
		wait, cancel := context.WithTimeout(ctx, deadlineOf(&s.batch))
		decisions, err = s.pending.Wait(wait)
		cancel()
	}
	if err != nil {
		return c.judge(ctx, store, &s, err)
	}
	return c.settled(&s.batch, decisions)
}

// deadlineOf gives large batches the time that they take.
func deadlineOf(b *ports.CommitBatch) time.Duration {
	var bytes int64
	for i := range b.Entries {
		bytes += b.Entries[i].Cost()
	}
	return commitDeadline + ports.TimeFor(bytes)
}

// judge decides what a failed batch means. It gives the error with which the connection is to be begun anew.
func (c *committer) judge(ctx context.Context, store ports.LocalStore, s *sent, err error) error {
	b, code := &s.batch, ports.CodeOf(err)
	if ctx.Err() != nil || len(b.Entries) == 0 || !c.doubt.counts(code) {
		return ofNoWrite(err)
	}
	if code == ports.Deadline || code == ports.Internal {
		// A store that can take no write at all is not the batch's fault.
		probe, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if blocked := store.Probe(probe, c.name); blocked != nil {
			if code == ports.Deadline && ports.CodeOf(blocked) == ports.Deadline && ctx.Err() == nil {
				c.host.link.restart("neither a batch nor a probe is answered")
			}
			return err
		}
		if code == ports.Deadline {
			if decisions, still := s.pending.Wait(probe); still == nil {
				return c.settled(b, decisions) // it was only slow
			}
			c.host.link.restart(fmt.Sprintf("a batch had no answer for %s", deadlineOf(b)))
		}
	}
	c.mu.Lock()
	first := &b.Entries[0]
	aside := c.doubt.failed(first.Seq, len(b.Entries), b.Through, code.Permanent())
	c.mu.Unlock()
	switch {
	case !aside:
	case code.Permanent(): // nothing of it took effect
		return firstOf(c.setAside(first, ports.AsError(err)), err)
	default:
		c.condemned = &condemned{entry: *first, why: ports.AsError(err)}
	}
	return err
}

// next forms the batch that follows a Seq. replay says that it is one entry that was set aside before.
func (c *committer) next(ctx context.Context, after uint64, limit int) (b ports.CommitBatch, replay bool, err error) {
	b = ports.CommitBatch{Family: c.name, After: after, Through: after}
	entries, through, err := c.read(after, limit)
	if err != nil {
		return b, false, err
	}
	for i := range entries {
		e := &entries[i]
		switch {
		case e.Again != 0 && len(b.Entries) > 0:
			return b, false, nil // it goes alone, the next time
		case e.Again != 0:
			if c.asides.mayReplay(e) {
				b.Entries, b.Through = entries[i:i+1], e.Seq
				return b, true, nil
			}
			c.asides.replays(e.Again, false) // not its turn, or no longer needed
		case c.asides.has(e.Key, e.Seq):
			// set aside already, by the failure that ended the last connection
		case c.asides.holds(e.Key):
			if err := c.setAside(e, nil); err != nil {
				return b, false, err
			}
		default:
			b.Entries = append(b.Entries, *e)
		}
		b.Through = e.Seq
	}
	b.Through = max(b.Through, through)
	return b, false, ctx.Err()
}

// read gives durable entries after a Seq, from memory where it can.
func (c *committer) read(after uint64, limit int) ([]ports.Entry, uint64, error) {
	head := c.head()
	c.family.mu.Lock()
	entries, known := c.tail.take(after, head, limit, ports.MaxBatchBytes)
	c.family.mu.Unlock()
	if known {
		return entries, entries[len(entries)-1].Seq, nil
	}
	stretch, err := c.journal.Read(after, limit, ports.MaxBatchBytes)
	if err != nil {
		return nil, 0, ports.Wrap(ports.Internal, "read journal", err)
	}
	for _, lost := range stretch.Lost {
		if err := c.host.lose(c.name, lost); err != nil {
			return nil, 0, err
		}
	}
	for i := range stretch.Entries {
		stretch.Entries[i].Host = c.host.shortID()
	}
	if stretch.Through <= after {
		return nil, 0, errors.New("the journal says that it has entries and gives none")
	}
	return stretch.Entries, stretch.Through, nil
}
