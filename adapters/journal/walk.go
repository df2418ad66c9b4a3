package journal

import "holdfast/ports"

// walk goes through the entries of one segment in order of Seq, from a frame on, past what is damaged.
type walk struct {
	src  *source
	dec  decoder
	off  int64  // where the next frame begins
	next uint64 // entries below are passed over
	last uint64 // the walk ends behind this Seq
	skim bool   // only Seqs are wanted

	at      int64 // where the entry given last began
	whole   int64 // offset behind the last whole entry
	damaged bool  // something was passed over because it could not be read
	inside  bool  // and a whole entry stood behind it
}

// step gives the next entry; ok is false at the end. An error is one of the disk, not of the content.
func (w *walk) step(e *ports.Entry) (ok bool, err error) {
	for w.off < w.src.end {
		f, ok, err := frameAt(w.src, w.off)
		if err != nil {
			return false, err
		}
		if ok && f.kind != kindPart && f.seq > w.last {
			return false, nil // written after the last sync that succeeded, never acknowledged
		}
		if ok {
			ok, err = w.take(f, e)
			if err != nil {
				return false, err
			}
			if ok && e.Seq >= w.next {
				w.next = e.Seq + 1
				return true, nil
			}
			if ok {
				continue
			}
		}
		w.damaged = true
		if w.off, err = nextFrame(w.src, w.off+1, w.next, w.last); err != nil {
			return false, err
		}
	}
	return false, nil
}

// take reads the entry that begins with a frame and moves behind it; ok is false when the entry is not whole. An entry
// below next is passed over without being decoded, only its Seq is set.
func (w *walk) take(f frame, e *ports.Entry) (ok bool, err error) {
	begin, end := w.off, f.end
	passed := w.skim || f.seq < w.next
	e.Seq = f.seq
	switch f.kind {
	case kindEntry:
		if !passed {
			if _, err := w.dec.entry(e, f.body, true); err != nil || len(w.dec.rest) > 0 {
				return false, nil
			}
		}
	case kindLarge:
		size, err := w.dec.entry(e, f.body, false)
		if err != nil || len(w.dec.rest) > 0 {
			return false, nil
		}
		end, ok, err = w.parts(f.end, size, passed, e)
		if err != nil || !ok {
			return false, err
		}
	default:
		return false, nil
	}
	if w.damaged {
		w.inside = true
	}
	w.at, w.whole, w.off = begin, end, end
	return true, nil
}

// parts reads the record of a large entry from the frames behind it.
func (w *walk) parts(off int64, size int, passed bool, e *ports.Entry) (end int64, ok bool, err error) {
	seq := e.Seq
	if !passed {
		e.Record = make([]byte, 0, size)
	}
	for got := 0; got < size; {
		f, ok, err := frameAt(w.src, off)
		if err != nil {
			return 0, false, err
		}
		if !ok || f.kind != kindPart || f.seq != seq || len(f.body) > size-got || len(f.body) == 0 {
			return 0, false, nil
		}
		if !passed {
			e.Record = append(e.Record, f.body...)
		}
		got += len(f.body)
		off = f.end
	}
	return off, true, nil
}
