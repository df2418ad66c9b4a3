package journal

import (
	"os"
	"time"

	"holdfast/ports"
)

// active is the segment that is written to.
type active struct {
	f    *os.File
	seg  *segment
	off  int64  // where the next group goes
	next uint64 // the Seq that it must begin with
}

// run is the journal's goroutine: it writes what waits, one sync for all of it, and tells the head when it is beyond the
// one told before. It has a timer only while something is wrong.
func (j *Journal) run(told uint64) {
	defer close(j.stopped)
	for {
		var retry *time.Timer
		var due <-chan time.Time
		if j.troubled() {
			retry = time.NewTimer(retryEvery)
			due = retry.C
		}
		select {
		case <-j.wake:
		case <-due:
			j.tryAgain()
		}
		if retry != nil {
			retry.Stop()
		}
		j.writing.Lock()
		j.mu.Lock()
		groups, closed := j.takeWaiting(), j.closed
		j.mu.Unlock()
		j.commit(groups)
		j.writing.Unlock()
		j.mu.Lock()
		head, notify := j.head, j.notify
		j.mu.Unlock()
		if notify != nil && head > told {
			told = head
			notify(head)
		}
		if closed {
			return
		}
	}
}

func (j *Journal) troubled() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.fault != nil || j.space.refused
}

// tryAgain looks whether what was wrong has passed.
func (j *Journal) tryAgain() {
	j.lookAtSpace()
	j.mu.Lock()
	j.space.refused = j.space.refused && j.room(usualEntry) != nil
	broken := j.fault != nil
	j.mu.Unlock()
	if broken {
		j.writing.Lock()
		j.reopen()
		j.writing.Unlock()
	}
}

// commit writes groups and syncs, once unless a new segment begins in between. It holds writing.
func (j *Journal) commit(groups []*group) {
	var written []*group
	failed := false
	for _, g := range groups {
		if !j.fits(g) {
			failed = !j.finish(written) || failed
			written = nil
			if err := j.rotate(g.first); err != nil {
				j.fail(err, g)
				failed = true
				continue
			}
		}
		if err := j.write(g); err != nil {
			j.finish(written)
			written = nil
			j.retire()
			j.fail(diskError("journal: write", err), g)
			failed = true
			continue
		}
		written = append(written, g)
	}
	if failed = !j.finish(written) || failed; failed && j.active == nil {
		j.reopen()
	}
}

// fits says whether a group goes into the active segment.
func (j *Journal) fits(g *group) bool {
	if j.active == nil || j.active.next != g.first {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.active.off < j.opts.SegmentBytes && !j.active.seg.damaged
}

// write puts a group behind what is there. After an error nothing of it is left in the file, if the disk allows.
func (j *Journal) write(g *group) error {
	a := j.active
	off, done := a.off, 0
	put := func(b []byte) error {
		n, err := a.f.WriteAt(b, off)
		off += int64(n)
		return err
	}
	all := func() error {
		for _, l := range g.large {
			if err := put(g.buf[done:l.at]); err != nil {
				return err
			}
			done = l.at
			if err := largeFrames(&l.entry, put); err != nil {
				return err
			}
		}
		return put(g.buf[done:])
	}
	if err := all(); err != nil {
		j.cut(a.off)
		return err
	}
	a.off, a.next = off, g.last+1
	return nil
}

// finish syncs and says so to everyone who waits. When the sync fails the segment is closed for good: after a failed fsync
// the kernel holds the lost pages for clean, so that another fsync of the same file would succeed and mean nothing.
func (j *Journal) finish(written []*group) bool {
	if len(written) == 0 {
		return true
	}
	a := j.active
	if err := j.opts.Disk.Sync(a.f); err != nil {
		j.log.Error("a sync failed, the segment is closed and a new one begun", "segment", segmentName(a.seg.base), "error", err)
		j.retire()
		j.fail(diskError("journal: sync", err), written...)
		return false
	}
	j.mu.Lock()
	at := a.seg.size
	for _, g := range written {
		for _, m := range g.marks {
			a.seg.addMark(mark{m.seq, at + m.off})
		}
		at += g.size
		a.seg.last = g.last
		j.settle(g, nil)
	}
	j.bytes += at - a.seg.size
	a.seg.size = at
	j.head = max(j.head, a.seg.last)
	j.mu.Unlock()
	return true
}

// fail tells everyone who waits that his entries must not be acknowledged.
func (j *Journal) fail(err *ports.Error, groups ...*group) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lastErr = err
	for _, g := range groups {
		j.settle(g, err)
	}
}

// retire ends the active segment where it was last synced.
func (j *Journal) retire() {
	if j.active == nil {
		return
	}
	j.cut(j.active.seg.size)
	if err := j.active.f.Close(); err != nil {
		j.log.Warn("a segment did not close", "segment", segmentName(j.active.seg.base), "error", err)
	}
	j.active = nil
}

// cut takes off what stands behind an offset of the active segment. It may fail: the next segment's header says where this
// one ends.
func (j *Journal) cut(off int64) {
	if err := j.active.f.Truncate(off); err != nil {
		j.log.Warn("a segment could not be cut", "segment", segmentName(j.active.seg.base), "error", err)
	}
}
