package process

import (
	"bytes"
	"sync"
)

// maxLine is how much of a line is kept; a plugin may print megabytes without a newline.
const maxLine = 64 << 10

// lines cuts what is written to it into lines, without ever blocking the writer or growing beyond maxLine. emit must not
// keep the line; cut is how many bytes of it were dropped.
type lines struct {
	emit func(line []byte, cut int)

	mu   sync.Mutex
	held []byte
	cut  int
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(p)
	for {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			l.hold(p)
			return n, nil
		}
		l.hold(p[:end])
		l.give()
		p = p[end+1:]
	}
}

// flush gives what stands behind the last newline.
func (l *lines) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.held) > 0 {
		l.give()
	}
}

func (l *lines) hold(p []byte) {
	room := min(maxLine-len(l.held), len(p))
	l.held = append(l.held, p[:room]...)
	l.cut += len(p) - room
}

func (l *lines) give() {
	l.emit(bytes.TrimSuffix(l.held, []byte{'\r'}), l.cut)
	l.held, l.cut = l.held[:0], 0
}
