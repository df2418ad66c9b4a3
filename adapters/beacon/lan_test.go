package beacon

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// A network in memory, for tests whose time is not the wall's: what waits for it waits for channels alone. A connection holds
// as much as the kernel would for one whose other side does not read.

// lan is a network with one listener.
type lan struct {
	calls  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newLAN() *lan { return &lan{calls: make(chan net.Conn), closed: make(chan struct{})} }

// Dial connects to the listener, whatever the address.
func (l *lan) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	there, back := &stream{changed: make(chan struct{})}, &stream{changed: make(chan struct{})}
	select {
	case l.calls <- newWire(there, back):
		return newWire(back, there), nil
	case <-l.closed:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *lan) Accept() (net.Conn, error) {
	select {
	case c := <-l.calls:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *lan) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *lan) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// stream is one direction of a connection.
type stream struct {
	mu      sync.Mutex
	changed chan struct{} // closed at every change
	held    []byte
	ended   bool // nothing more comes, and nobody reads any more
}

// streamHolds is what is written before somebody reads it.
const streamHolds = 256 << 10

func (s *stream) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.change()
}

// take does a step with the lock held until it says that it is done, or the deadline has passed.
func (s *stream) take(by *deadline, step func() bool) error {
	for {
		over := by.over()
		s.mu.Lock()
		done, changed := step(), s.changed
		if done {
			s.change()
		}
		s.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-over:
			return os.ErrDeadlineExceeded
		}
	}
}

// wire is one end of a connection.
type wire struct {
	in, out     *stream
	read, write deadline
	shut        chan struct{}
	once        sync.Once
}

func newWire(in, out *stream) *wire { return &wire{in: in, out: out, shut: make(chan struct{})} }

func (w *wire) Read(p []byte) (n int, err error) {
	late := w.in.take(&w.read, func() bool {
		switch {
		case w.isShut():
			err = net.ErrClosed
		case len(w.in.held) > 0:
			n = copy(p, w.in.held)
			w.in.held = w.in.held[n:]
		case w.in.ended:
			err = io.EOF
		default:
			return false
		}
		return true
	})
	return n, cmp.Or(late, err)
}

func (w *wire) Write(p []byte) (n int, err error) {
	late := w.out.take(&w.write, func() bool {
		switch {
		case w.isShut():
			err = net.ErrClosed
			return true
		case w.out.ended:
			err = io.ErrClosedPipe
			return true
		}
		more := min(len(p)-n, streamHolds-len(w.out.held))
		w.out.held = append(w.out.held, p[n:n+more]...)
		if n += more; more > 0 {
			w.out.change()
		}
		return n == len(p)
	})
	return n, cmp.Or(late, err)
}

func (w *wire) isShut() bool {
	select {
	case <-w.shut:
		return true
	default:
		return false
	}
}

func (w *wire) Close() error {
	w.once.Do(func() {
		close(w.shut)
		w.in.end()
		w.out.end()
	})
	return nil
}

func (w *wire) LocalAddr() net.Addr  { return (&lan{}).Addr() }
func (w *wire) RemoteAddr() net.Addr { return (&lan{}).Addr() }

func (w *wire) SetDeadline(t time.Time) error {
	w.read.set(t)
	w.write.set(t)
	return nil
}

func (w *wire) SetReadDeadline(t time.Time) error {
	w.read.set(t)
	return nil
}

func (w *wire) SetWriteDeadline(t time.Time) error {
	w.write.set(t)
	return nil
}

// deadline is when a read or a write gives up. It may be moved while one waits.
type deadline struct {
	mu     sync.Mutex
	passed chan struct{} // nil: not made yet
	timer  *time.Timer
}

// over gives a channel that is closed when the deadline has passed.
func (d *deadline) over() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.passed == nil {
		d.passed = make(chan struct{})
	}
	return d.passed
}

func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if d.passed == nil || isClosed(d.passed) {
		d.passed = make(chan struct{})
	}
	passed := d.passed
	switch left := time.Until(t); {
	case t.IsZero():
	case left <= 0:
		close(passed)
	default:
		d.timer = time.AfterFunc(left, func() { d.pass(passed) })
	}
}

// pass lets a deadline pass, if it still is the one that was set.
func (d *deadline) pass(passed chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.passed == passed && !isClosed(passed) {
		close(passed)
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
