package journal

import (
	"errors"
	"io/fs"
	"os"

	"holdfast/ports"
)

// view is what a Read needs to know of one segment, as it was at one moment.
type view struct {
	seg     *segment
	path    string
	base    uint64
	last    uint64
	size    int64
	off     int64      // where to begin
	damaged bool       // known to be damaged
	missing bool       // its file is gone
	lost    ports.Span // Seqs before it that are gone; From 0 for none
}

// viewFrom gives the first segment that holds something from a Seq on; ok is false when there is none up to the head.
func (j *Journal) viewFrom(next uint64) (v view, head uint64, ok bool, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return view{}, 0, false, errClosed("journal: read")
	}
	for i, s := range j.segments {
		if s.last < next || s.empty() && next > s.prev {
			continue
		}
		v = view{
			seg: s, path: s.path, base: s.base, last: s.last, size: s.size,
			off: s.offsetOf(max(next, s.base)), damaged: s.damaged, missing: s.missing,
		}
		if from := next; from <= s.prev {
			if i > 0 && j.segments[i-1].base < s.prevBase {
				from = max(from, s.prevBase) // what came before the missing segment is whole
			}
			v.lost = ports.Span{From: from, To: s.prev}
		}
		return v, j.head, true, nil
	}
	return view{}, j.head, false, nil
}

// page is a Stretch that is being filled.
type page struct {
	ports.Stretch
	limit    int
	maxBytes int64
	bytes    int64
	full     bool // nothing more goes in
}

// add takes an entry unless it would be too much.
func (p *page) add(e *ports.Entry) {
	cost := e.Cost()
	if len(p.Entries) > 0 && (len(p.Entries) >= p.limit || p.bytes+cost > p.maxBytes) {
		p.full = true
		return
	}
	p.Entries = append(p.Entries, *e)
	p.bytes += cost
	p.Through = e.Seq
	p.full = len(p.Entries) >= p.limit || p.bytes >= p.maxBytes
}

func (p *page) lose(from, to uint64) {
	if from > to {
		return
	}
	p.Through = to
	if n := len(p.Lost); n > 0 && p.Lost[n-1].To+1 == from {
		p.Lost[n-1].To = to
		return
	}
	p.Lost = append(p.Lost, ports.Span{From: from, To: to})
}

// Read gives a page of durable entries. It holds one file open at a time.
func (j *Journal) Read(after uint64, limit int, maxBytes int64) (ports.Stretch, error) {
	p := &page{Stretch: ports.Stretch{Through: after}, limit: max(limit, 1), maxBytes: maxBytes}
	for !p.full {
		v, head, ok, err := j.viewFrom(p.Through + 1)
		if err != nil {
			return ports.Stretch{}, err
		}
		if !ok {
			p.Through = max(p.Through, head)
			break
		}
		if v.lost.From != 0 {
			p.lose(v.lost.From, v.lost.To)
		}
		if v.last < v.base {
			continue // nothing is in it yet
		}
		p.Through = max(p.Through, v.base-1)
		if v.missing {
			p.lose(p.Through+1, v.last)
			continue
		}
		err = j.readSegment(p, v)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			j.gone(v.seg, v.path)
		case err != nil && p.Through > after:
			return p.Stretch, nil // the error comes again if it lasts
		case err != nil:
			return ports.Stretch{}, diskError("journal: read", err)
		}
	}
	return p.Stretch, nil
}

// readSegment fills the page from one segment and tells what is missing in it.
func (j *Journal) readSegment(p *page, v view) error {
	if v.last <= p.Through {
		return nil
	}
	file, err := os.Open(v.path)
	if err != nil {
		return err
	}
	defer file.Close()
	src := newSource(file, v.size)
	defer src.release()
	w := &walk{src: src, off: v.off, next: p.Through + 1, last: v.last}
	if p.Entries == nil {
		p.Entries = make([]ports.Entry, 0, min(p.limit, ports.MaxBatchEntries))
	}
	marks := []mark{}
	for {
		var e ports.Entry
		ok, err := w.step(&e)
		if err != nil {
			return err
		}
		if !ok {
			lostSome := p.Through < v.last
			p.lose(p.Through+1, v.last)
			j.readDone(v, marks, mark{v.last + 1, w.off}, w.damaged || lostSome)
			return nil
		}
		if n := len(marks); n == 0 || w.at >= marks[n-1].off+markBytes {
			marks = append(marks, mark{e.Seq, w.at})
		}
		p.lose(p.Through+1, e.Seq-1)
		if p.add(&e); p.full {
			resume := mark{p.Through + 1, w.off}
			if p.Through < e.Seq {
				resume.off = w.at // it did not fit any more
			}
			j.readDone(v, marks, resume, w.damaged)
			return nil
		}
	}
}

// readDone keeps what a read found out about its segment.
func (j *Journal) readDone(v view, marks []mark, resume mark, damaged bool) {
	j.mu.Lock()
	v.seg.resume = resume
	for _, m := range marks {
		v.seg.addMark(m)
	}
	j.mu.Unlock()
	if damaged && !v.damaged {
		j.setAside(v.seg, "it cannot be read to its end")
	}
}
