package journal

import (
	"errors"
	"io"
	"sync"
	"syscall"
)

// readWindow is how much of a segment is read at once.
const readWindow = 64 << 10

// pageBytes is the unit in which an unreadable place of the disk is passed over.
const pageBytes = 4 << 10

var windows = sync.Pool{New: func() any { b := make([]byte, readWindow); return &b }}

// source is a window on a segment file, up to end. What bytes gives is valid until the next call.
type source struct {
	r      io.ReaderAt
	end    int64
	pooled *[]byte
	buf    []byte // what was read, from offset at on
	at     int64
}

func newSource(r io.ReaderAt, end int64) *source {
	return &source{r: r, end: end, pooled: windows.Get().(*[]byte)}
}

func (s *source) release() {
	windows.Put(s.pooled)
	s.pooled, s.buf = nil, nil
}

// bytes gives n bytes from an offset on, fewer only at the end.
func (s *source) bytes(off int64, n int) ([]byte, error) {
	n = int(min(int64(n), s.end-off))
	if n <= 0 {
		return nil, nil
	}
	if from := off - s.at; from >= 0 && from+int64(n) <= int64(len(s.buf)) {
		return s.buf[from : from+int64(n)], nil
	}
	want := int(min(max(int64(n), readWindow), s.end-off))
	room := (*s.pooled)[:0]
	if want > cap(room) {
		room = make([]byte, 0, want)
	}
	room = room[:want]
	s.at, s.buf = off, room[:0]
	got, err := s.r.ReadAt(room, off)
	if errors.Is(err, syscall.EIO) {
		got, err = s.readPages(room, off)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	s.buf = room[:got]
	return s.buf[:min(n, got)], nil
}

// readPages reads page by page and leaves zeros where the disk gives an error: a broken place costs the entries in it and
// not the rest of the segment.
func (s *source) readPages(room []byte, off int64) (int, error) {
	clear(room)
	for done := 0; done < len(room); {
		step := min(pageBytes-int((off+int64(done))%pageBytes), len(room)-done)
		_, err := s.r.ReadAt(room[done:done+step], off+int64(done))
		switch {
		case errors.Is(err, syscall.EIO):
			clear(room[done : done+step])
		case errors.Is(err, io.EOF):
			return done, nil
		case err != nil:
			return done, err
		}
		done += step
	}
	return len(room), nil
}
