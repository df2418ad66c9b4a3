package core

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/ports"
)

// maxOvertaken is how many deferred writes that were decided otherwise a family remembers.
const maxOvertaken = 10_000

// ring keeps the newest deferred writes that were not simply stored.
type ring struct {
	mu    sync.Mutex
	items []DeferredWrite
	next  int
}

func (r *ring) add(w DeferredWrite) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.items) < maxOvertaken {
		r.items = append(r.items, w)
		return
	}
	r.items[r.next] = w
	r.next = (r.next + 1) % maxOvertaken
}

// drop forgets a write: what became of it in the end is another thing.
func (r *ring) drop(seq uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.IndexFunc(r.items, func(w DeferredWrite) bool { return w.Seq == seq }); i >= 0 {
		r.items = slices.Concat(r.items[r.next:], r.items[:r.next])
		i = (i - r.next + len(r.items)) % len(r.items)
		r.items, r.next = slices.Delete(r.items, i, i+1), 0
	}
}

// newest gives some of them, the newest first.
func (r *ring) newest(limit int) []DeferredWrite {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []DeferredWrite
	for i := range min(limit, len(r.items)) {
		out = append(out, r.items[(r.next+len(r.items)-1-i)%len(r.items)])
	}
	return out
}

func (r *ring) find(seq uint64) (DeferredWrite, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.IndexFunc(r.items, func(w DeferredWrite) bool { return w.Seq == seq }); i >= 0 {
		return r.items[i], true
	}
	return DeferredWrite{}, false
}

// counters count what became of writes.
type counters struct {
	accepted, stored, present, absent, missing, expired, refused, late, early, ignored, aside, deferred, overtaken, foreign atomic.Uint64

	waiting, applied, dropped atomic.Uint64 // early writes
}

func (c *counters) decided(d ports.Decision) {
	switch d.Outcome {
	case ports.Stored:
		c.stored.Add(1)
	case ports.AlreadyPresent:
		c.present.Add(1)
	case ports.AlreadyAbsent:
		c.absent.Add(1)
	case ports.Missing:
		c.missing.Add(1)
	case ports.Expired:
		c.expired.Add(1)
	case ports.Refused:
		c.refused.Add(1)
	case ports.Late:
		c.late.Add(1)
	case ports.Early:
		c.early.Add(1)
	}
	if d.Foreign {
		c.foreign.Add(1)
	}
	if d.Outcome == ports.Early || d.Applied > 0 || d.Dropped > 0 {
		c.waiting.Store(uint64(max(d.Waiting, 0)))
		c.applied.Add(uint64(max(d.Applied, 0)))
		c.dropped.Add(uint64(max(d.Dropped, 0)))
	}
}

func (c *counters) read() WriteCounts {
	return WriteCounts{
		Accepted: c.accepted.Load(), Stored: c.stored.Load(), AlreadyPresent: c.present.Load(), AlreadyAbsent: c.absent.Load(),
		NotFound: c.missing.Load(), Expired: c.expired.Load(), Refused: c.refused.Load(), Late: c.late.Load(), Early: c.early.Load(), Ignored: c.ignored.Load(),
		SetAside: c.aside.Load(), Deferred: c.deferred.Load(), Overtaken: c.overtaken.Load(), Foreign: c.foreign.Load(),
		EarlyWaiting: c.waiting.Load(), EarlyApplied: c.applied.Load(), EarlyDropped: c.dropped.Load(),
	}
}

// overtook records a decision that nobody waited for and that was not simply stored. A replay's stands for its first entry.
func (f *family) overtook(e *ports.Entry, d ports.Decision, at time.Time) {
	a := decided(e.Class, d)
	w := DeferredWrite{Seq: cmp.Or(e.Again, e.Seq), Action: e.Action, Key: e.Key, Outcome: situations[a.Situation].flag, At: at}
	if a.Situation == Early {
		w.Outcome = "Early"
	}
	if a.Err != nil {
		w.Outcome, w.Reason = string(a.Err.Code), a.Err.Error()
	}
	f.counts.overtaken.Add(1)
	f.overtaken.add(w)
}
