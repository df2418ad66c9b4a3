package journal

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"holdfast/ports"
)

// Trim removes the segments that hold nothing above a Seq, oldest first, which needs no space. The newest stays, because
// the next Seq follows from it; when all of it is trimmed and it is large, a new one is begun first.
func (j *Journal) Trim(through uint64) error {
	j.mu.Lock()
	closed, begin := j.closed, j.spent(through)
	j.mu.Unlock()
	if closed {
		return errClosed("journal: trim")
	}
	if begin {
		j.writing.Lock()
		j.mu.Lock()
		begin = !j.closed && j.spent(through)
		j.mu.Unlock()
		if begin {
			j.reopen()
		}
		j.writing.Unlock()
	}

	j.naming.Lock()
	defer j.naming.Unlock()
	for {
		s := j.takeOldest(through)
		if s == nil {
			return nil
		}
		if s.damaged {
			j.keepAside(s)
			continue
		}
		if !j.remove(s.path) {
			j.mu.Lock()
			j.segments = slices.Insert(j.segments, 0, s)
			j.bytes += s.size
			j.mu.Unlock()
			return ports.Errorf(ports.Unavailable, "journal: trim", "%s could not be removed", s.path)
		}
	}
}

// spent says whether the newest segment is trimmed whole and worth replacing by an empty one.
func (j *Journal) spent(through uint64) bool {
	n := len(j.segments)
	if n == 0 || j.fault != nil {
		return false
	}
	newest := j.segments[n-1]
	return !newest.empty() && newest.last <= through && newest.size >= j.opts.SegmentBytes/2
}

// takeOldest takes the oldest segment off the list when it is trimmed whole; nil when it is not, or the newest.
func (j *Journal) takeOldest(through uint64) *segment {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.segments) < 2 || j.segments[0].last > through {
		return nil
	}
	s := j.segments[0]
	j.segments = slices.Delete(j.segments, 0, 1)
	j.bytes -= s.size
	return s
}

// keepAside leaves a damaged segment's file for a person to look at, and removes the oldest of those when there are many.
func (j *Journal) keepAside(s *segment) {
	if s.missing {
		return
	}
	kept := strings.Replace(s.path, segmentSuffix+asideMark, asideMark, 1)
	if err := os.Rename(s.path, kept); err != nil {
		j.log.Warn("a damaged segment keeps its name", "file", s.path, "error", err)
		kept = s.path
	}
	j.tellDamaged(s.path, kept)
	j.kept = append(j.kept, kept)
	for len(j.kept) > keepAside {
		if j.remove(j.kept[0]) {
			j.tellDamaged(j.kept[0], "")
		}
		j.kept = j.kept[1:]
	}
}

// tellDamaged replaces a file in the list of damaged ones; "" takes it off.
func (j *Journal) tellDamaged(before, now string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	at := slices.Index(j.damaged, filepath.Base(before))
	switch {
	case at < 0:
	case now == "":
		j.damaged = slices.Delete(j.damaged, at, at+1)
	default:
		j.damaged[at] = filepath.Base(now)
	}
}
