package httpapi

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"
	"time"

	"holdfast/ports"
)

// lineBuffer is what a stream reads ahead. It is small because every open stream has one; a longer line is gathered.
const lineBuffer = 16 << 10

// blank is what a line is trimmed of: JSON's white space, byte by byte, so that a client can tell which lines get no answer.
const blank = " \t\r\n"

// lines cuts a body into lines. Each line it gives is a copy that belongs to the caller, since the journal keeps it.
type lines struct {
	api  *API
	in   *bufio.Reader
	pace *pace
	line int // the number of the last line, from 1
}

var lineBuffers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, lineBuffer) }}

func (a *API) newLines(body io.Reader, pace *pace) *lines {
	l := &lines{api: a, in: lineBuffers.Get().(*bufio.Reader), pace: pace}
	l.in.Reset(body)
	return l
}

func (l *lines) close() {
	l.in.Reset(nil)
	lineBuffers.Put(l.in)
}

// lineError is the fault of one line; the stream goes on behind it.
type lineError struct{ error }

func (e lineError) Unwrap() error { return e.error }

// next gives the next line that is not blank, without its end. held is its part of the budget, which the caller gives back. It
// fails with a lineError, with io.EOF at the end of the body, or with what broke the body off.
func (l *lines) next() (line []byte, held int64, err error) {
	for {
		part, err := l.in.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			l.line++
			return l.gather(part)
		case err != nil && (err != io.EOF || len(part) == 0):
			return nil, 0, err
		}
		l.line++
		if part = bytes.Trim(part, blank); len(part) > 0 {
			return bytes.Clone(part), 0, nil
		}
	}
}

// gather reads the rest of a line that is longer than the buffer. As the line grows it takes a larger part of the budget in
// exchange for the one it has, so that no line holds one part while it waits for another.
func (l *lines) gather(part []byte) (line []byte, held int64, err error) {
	line = append(make([]byte, 0, 2*lineBuffer), part...)
	give := func() { l.api.budget.Release(held); held = 0 }
	defer func() { l.pace.until = time.Time{} }()
	for size := int64(len(line)); ; size = int64(len(line)) {
		if limit := allowance(size); limit > held {
			give()
			if err := l.api.take(l.pace.stop, limit); err != nil {
				return nil, 0, l.skip(size, func(int64) error { return err })
			}
			held = limit
			l.pace.until = time.Now().Add(patience(limit))
		}
		part, end := l.in.ReadSlice('\n')
		if size += int64(len(part)); size > ports.MaxLineBytes+1 { // the line's end is no part of it
			give()
			if end == nil {
				return nil, 0, lineError{tooLong(size)}
			}
			return nil, 0, l.skip(size, tooLong)
		}
		line = append(line, part...)
		switch {
		case errors.Is(end, bufio.ErrBufferFull):
			continue
		case end != nil && end != io.EOF:
			give()
			return nil, 0, end
		}
		if rest := held - int64(len(line)); rest > 0 {
			l.api.budget.Release(rest)
			held -= rest
		}
		return bytes.Trim(line, blank), held, nil
	}
}

// allowance is the part of the budget that a line of a size needs while it may grow.
func allowance(size int64) int64 {
	switch {
	case size < small:
		return 0
	case size < medium:
		return medium
	}
	return ports.MaxLineBytes
}

func tooLong(size int64) error { return ports.OverLimit("line", "bytes", ports.MaxLineBytes, size) }

// skip passes the rest of a line that cannot be taken, so that the lines behind it can. why is told the line's length.
func (l *lines) skip(size int64, why func(size int64) error) error {
	for {
		part, err := l.in.ReadSlice('\n')
		size += int64(len(part))
		if err == nil || err == io.EOF {
			return lineError{why(size)}
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}
