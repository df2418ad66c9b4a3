package journal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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

// run is the journal's goroutine: it writes what waits, one sync for all of it. It has a timer only while something is
// wrong.
func (j *Journal) run() {
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
	j.space.refused = j.space.refused && j.room(leastEntry) != nil
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
	head, notify := j.head, j.notify
	j.mu.Unlock()
	if notify != nil {
		notify(head)
	}
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

// reopen begins a segment for whatever comes next.
func (j *Journal) reopen() {
	j.mu.Lock()
	first := j.next
	if len(j.waiting) > 0 {
		first = j.waiting[0].first
	}
	j.mu.Unlock()
	_ = j.rotate(first) // it keeps its error as the fault
}

// rotate begins a new segment with a Seq, durable with its name and its header, and makes it the active one. When it fails
// nothing can be appended until it succeeds; Bounds says why.
func (j *Journal) rotate(first uint64) *ports.Error {
	h := header{base: first, epoch: j.epoch}
	j.mu.Lock()
	if n := len(j.segments); n > 0 {
		newest := j.segments[n-1]
		h.prev, h.prevBase = newest.last, newest.base
		if newest.empty() {
			h.prev, h.prevBase = newest.prev, newest.prevBase
		}
	}
	j.mu.Unlock()
	path := filepath.Join(j.dir, segmentName(first))
	f, err := j.create(path, h)
	if err != nil {
		fault := diskError("journal: new segment", err)
		j.mu.Lock()
		first := j.fault == nil
		j.fault, j.lastErr = fault, fault
		j.mu.Unlock()
		if first {
			j.log.Error("no segment can be opened, nothing is accepted until one can", "error", err)
		}
		return fault
	}
	if j.active != nil {
		_ = j.active.f.Close() // all of it is synced
	}
	s := &segment{header: h, path: path, last: first - 1, size: headerBytes, begin: headerBytes}
	j.active = &active{f: f, seg: s, off: headerBytes, next: first}

	superseded := ""
	j.mu.Lock()
	if n := len(j.segments); n > 0 && j.segments[n-1].empty() {
		superseded = j.segments[n-1].path
		j.bytes -= j.segments[n-1].size
		j.segments = j.segments[:n-1]
	}
	j.segments = append(j.segments, s)
	j.bytes += s.size
	recovered := j.fault != nil
	j.fault = nil
	j.mu.Unlock()
	if recovered {
		j.log.Info("a segment is open again", "segment", path)
	}
	if superseded != "" && superseded != path {
		j.remove(superseded)
	}
	return nil
}

// create makes a segment under another name and gives it its own once its header is durable, so that no file under a
// segment's name ever lacks one.
func (j *Journal) create(path string, h header) (f *os.File, err error) {
	temporary := path[:len(path)-len(segmentSuffix)] + newSuffix
	f, err = os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(h.encode())
	if err == nil {
		err = j.opts.Disk.Sync(f)
	}
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err == nil {
		if err = syncDir(j.dir); err != nil {
			temporary = path
		}
	}
	if err != nil {
		_ = f.Close()
		j.remove(temporary)
		return nil, err
	}
	return f, nil
}

// remove deletes a file; that it is gone already is fine.
func (j *Journal) remove(path string) bool {
	err := os.Remove(path)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return true
	}
	j.log.Warn("a file could not be removed", "file", path, "error", err)
	return false
}
