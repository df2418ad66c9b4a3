package journal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"holdfast/ports"
)

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
