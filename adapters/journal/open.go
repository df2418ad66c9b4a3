package journal

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"holdfast/ports"
)

// found is what a directory holds, before any file was opened.
type found struct {
	segments []*segment // ascending; with base, path, size, damaged
	aside    []string   // names of everything that was set aside
	kept     []string   // paths of those among them that were trimmed
	bytes    int64
}

// findSegments lists a journal's directory. Files that were never finished are removed, foreign ones are left alone.
func findSegments(dir string) (found, error) {
	var f found
	files, err := os.ReadDir(dir)
	if err != nil {
		return f, diskError("journal: open", err)
	}
	for _, file := range files {
		name, path := file.Name(), filepath.Join(dir, file.Name())
		if strings.HasSuffix(name, newSuffix) {
			_ = os.Remove(path) // if not now, then at the next start
			continue
		}
		if strings.Contains(name, asideMark) {
			f.aside = append(f.aside, name)
		}
		base, aside, ok := parseName(name)
		if aside && !ok {
			f.kept = append(f.kept, path)
		}
		info, err := file.Info()
		if !ok || err != nil || !info.Mode().IsRegular() {
			continue
		}
		s := &segment{header: header{base: base}, path: path, size: info.Size(), begin: headerBytes, damaged: aside}
		if n := len(f.segments); n > 0 && f.segments[n-1].base == base {
			if aside { // "N.seg" sorts before "N.seg.corrupt-TIME": the whole one counts
				continue
			}
			f.segments[n-1] = s
			continue
		}
		f.segments = append(f.segments, s)
	}
	for _, s := range f.segments {
		f.bytes += s.size
	}
	return f, nil
}

// adopt takes over what was found: it reads the headers, works out from them where each segment ends, and goes through the
// newest one.
func (j *Journal) adopt(f found) error {
	j.damaged, j.kept = f.aside, f.kept
	if len(f.aside) > 0 {
		j.log.Warn("the journal has segments that were set aside as damaged", "files", f.aside)
	}
	for _, s := range f.segments {
		if err := j.readHeader(s); err != nil {
			return err
		}
	}
	for i, s := range f.segments {
		if err := j.findLast(s, f.segments[i+1:]); err != nil {
			return err
		}
		newest := i == len(f.segments)-1
		if s.empty() && !newest {
			// Begun, and left again before anything in it was durable.
			if !s.damaged {
				j.remove(s.path)
			}
			continue
		}
		j.segments = append(j.segments, s)
		j.bytes += s.size
		j.head = s.last
	}
	return nil
}

// readHeader reads a segment's header. One that is not readable makes the segment a damaged one, whose frames are searched
// for.
func (j *Journal) readHeader(s *segment) error {
	file, err := os.Open(s.path)
	if err != nil {
		return diskError("journal: open", err)
	}
	defer file.Close()
	head := make([]byte, headerBytes)
	if _, err := file.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, syscall.EIO) {
		return diskError("journal: open", err)
	}
	h, err := decodeHeader(head)
	switch {
	case errors.Is(err, errNewer):
		return ports.Errorf(ports.Invalid, "journal: open", "%s: %s; start that version", s.path, err)
	case err == nil && h.base == s.base:
		s.header = h
		return nil
	}
	s.header.prev = s.base - 1
	s.begin = 0
	j.setAside(s, "its header is not readable")
	return nil
}

// findLast works out the last Seq of a segment. Where a later one follows its header says so; only a segment whose
// successor cannot say, and the newest, is gone through.
func (j *Journal) findLast(s *segment, later []*segment) error {
	if len(later) == 0 {
		return j.scanNewest(s)
	}
	next := later[0]
	highest := next.base - 1
	if next.begin > 0 {
		highest = min(highest, next.prev)
	}
	s.last = highest
	gap := next.prevBase > s.base
	if gap {
		name := segmentName(next.prevBase) + " (missing)"
		j.damaged = append(j.damaged, name)
		j.log.Error("a segment of the journal is missing", "file", name, "entries up to", next.prev)
	}
	if !gap && next.begin > 0 {
		return nil
	}
	w, err := j.scan(s, highest)
	if err != nil {
		return err
	}
	s.last = max(w.next-1, s.base-1)
	return nil
}

// scanNewest goes through the newest segment. What stands behind its last whole entry was never acknowledged and is cut
// off; something unreadable with whole entries behind it is damage.
func (j *Journal) scanNewest(s *segment) error {
	w, err := j.scan(s, 2*maxSeq)
	if err != nil {
		return err
	}
	s.last = w.next - 1
	if s.begin == 0 {
		s.last = max(s.last, s.base) // an entry may have been acknowledged; its Seq must not be given again
	}
	switch {
	case w.inside:
		j.setAside(s, "it cannot be read in between")
	case w.damaged && !s.damaged:
		whole := max(w.whole, s.begin)
		j.log.Warn("the end of the journal was not whole and is cut off", "file", s.path, "bytes", s.size-whole, "last", s.last)
		if err := j.cutFile(s.path, whole); err != nil {
			j.log.Warn("the end could not be cut off, it is passed over", "file", s.path, "error", err)
		}
		s.size = whole
	}
	return nil
}

// scan goes through a whole segment and gives the walk at its end. Its marks are kept.
func (j *Journal) scan(s *segment, highest uint64) (*walk, error) {
	file, err := os.Open(s.path)
	if err != nil {
		return nil, diskError("journal: open", err)
	}
	defer file.Close()
	src := newSource(file, s.size)
	defer src.release()
	w := &walk{src: src, off: s.begin, next: s.base, last: highest, skim: true}
	for {
		var e ports.Entry
		ok, err := w.step(&e)
		if err != nil {
			return nil, diskError("journal: open", err)
		}
		if !ok {
			return w, nil
		}
		s.addMark(mark{e.Seq, w.at})
	}
}

// cutFile shortens a file for good.
func (j *Journal) cutFile(path string, size int64) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	err = file.Truncate(size)
	if err == nil {
		err = j.opts.Disk.Sync(file)
	}
	return errors.Join(err, file.Close())
}

// keepAside is how many set-aside files stay in the directory after they were trimmed.
const keepAside = 4

// setAside gives a damaged segment a name that says so. What is whole in it stays readable.
func (j *Journal) setAside(s *segment, why string) {
	j.naming.Lock()
	defer j.naming.Unlock()
	j.mu.Lock()
	known, path := s.damaged, s.path
	s.damaged = true
	j.mu.Unlock()
	if known {
		return
	}
	aside := path + asideMark + j.opts.Now().UTC().Format("20060102T150405Z")
	if err := os.Rename(path, aside); err != nil {
		j.log.Warn("a damaged segment keeps its name", "file", path, "error", err)
		aside = path
	}
	j.log.Error("a segment of the journal is damaged and was set aside; what is whole in it stays readable",
		"file", aside, "why", why)
	j.mu.Lock()
	s.path = aside
	j.damaged = append(j.damaged, filepath.Base(aside))
	j.mu.Unlock()
}

// gone notes that a segment's file is not there any more, unless it only got another name or was trimmed meanwhile.
func (j *Journal) gone(s *segment, path string) {
	j.naming.Lock()
	defer j.naming.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	if s.missing || s.path != path || !slices.Contains(j.segments, s) {
		return
	}
	s.missing, s.damaged = true, true
	j.damaged = append(j.damaged, filepath.Base(path)+" (missing)")
	j.log.Error("a segment of the journal is missing", "file", path)
}
