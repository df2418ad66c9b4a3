package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/ports"
)

// C is one run of one case: its backends, and what it found wrong.
type C struct {
	Ctx context.Context // ends with the case's limit

	suite    suite
	subject  *Subject
	declared *ports.Description
	patience time.Duration // of one call
	places   [2]place
	seq      uint64 // of the row made last

	hung atomic.Bool // a call had no answer

	mu    sync.Mutex
	trace []exchange
	told  []Exchange // of the subject's own Trace
	wrong []string
}

// place is where one backend of the case keeps what it has, and the backend while it is open.
type place struct {
	dir     string
	word    string
	present *recorder // nil before its first use, and after Close or Kill
}

// try runs one case, whatever it does.
func (all suite) try(ctx context.Context, s *Subject, d *ports.Description, k *Case) Result {
	began := time.Now()
	r := Result{Case: k}
	if outcome, why := exempt(s, d, k); outcome != "" {
		r.Outcome, r.Reason = outcome, []string{why}
		return r
	}
	root, err := os.MkdirTemp("", "hf-suite-")
	if err != nil {
		r.Outcome, r.Reason = Failed, []string{err.Error()}
		return r
	}
	defer os.RemoveAll(root)
	limit := s.limit(k)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c := newC(ctx, s, d, k, root)
	c.suite = all
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer c.finish()
		defer func() {
			if p := recover(); p != nil {
				c.Errorf("the case panicked: %v\n%s", p, debug.Stack())
			}
		}()
		k.Run(c)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		select { // every call ends soon, or is given up
		case <-done:
		case <-time.After(3 * c.patience):
		}
		c.Errorf("it was not done within %s", limit)
	}
	r.Took = time.Since(began)
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Outcome, r.hung = Passed, c.hung.Load()
	if len(c.wrong) > 0 {
		r.Outcome, r.Reason, r.Trace = Failed, c.wrong, c.told
		for _, e := range c.trace {
			r.Trace = append(r.Trace, e.shown())
		}
	}
	return r
}

func newC(ctx context.Context, s *Subject, d *ports.Description, k *Case, root string) *C {
	c := &C{Ctx: ctx, subject: s, declared: d, patience: s.patience()}
	if k.Large {
		c.patience *= 6
	}
	word := strings.NewReplacer("/", "_", "-", "_").Replace(k.Path())
	c.places[0] = place{dir: filepath.Join(root, "a"), word: word}
	c.places[1] = place{dir: filepath.Join(root, "b"), word: word + "_b"}
	return c
}

// Describe gives what the backend declares.
func (c *C) Describe() ports.Description { return *c.declared }

// Backend gives the case's backend, opened at the first call, and after Close or Kill anew over what it kept.
func (c *C) Backend() ports.Backend { return c.open(0) }

// Another gives a second backend, with nothing in it.
func (c *C) Another() ports.Backend { return c.open(1) }

func (c *C) open(at int) ports.Backend {
	p := &c.places[at]
	if p.present != nil {
		return p.present
	}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		c.Fatalf("%v", err)
	}
	b, err := within(c.Ctx, 3*c.patience, c.patience/5, func(ctx context.Context) (ports.Backend, error) {
		return c.subject.Open(ctx, configuration(c.subject, p.dir, p.word))
	})
	if err != nil {
		c.Fatalf("open: %s", faultText(err))
	}
	p.present = newRecorder(c, b)
	if at > 0 {
		p.present.name = "second backend: "
	}
	return p.present
}

// Close ends the first backend in order.
func (c *C) Close() { c.close(0) }

// Kill ends the first backend at once.
func (c *C) Kill() {
	if gone := c.leave(0); gone != nil {
		c.subject.Kill(gone.backend)
		c.keep(gone)
	}
}

func (c *C) close(at int) {
	gone := c.leave(at)
	if gone == nil {
		return
	}
	ctx := context.WithoutCancel(c.Ctx)
	_, err := within(ctx, c.patience, c.patience/5, func(context.Context) (struct{}, error) { return struct{}{}, gone.backend.Close() })
	if err != nil {
		c.Errorf("close: %s", faultText(err))
	}
	c.keep(gone)
}

// finish ends what the case left open.
func (c *C) finish() {
	for at := range c.places {
		c.close(at)
	}
}

func (c *C) leave(at int) *recorder {
	gone := c.places[at].present
	c.places[at].present = nil
	return gone
}

// keep takes over what was asked of a backend that ended.
func (c *C) keep(r *recorder) {
	exchanges := r.exchanges()
	var told []Exchange
	if c.subject.Trace != nil {
		told, exchanges = c.subject.Trace(r.backend), nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.trace = append(c.trace, exchanges...); len(c.trace) > 2*keptExchanges {
		c.trace = c.trace[len(c.trace)-2*keptExchanges:]
	}
	c.told = append(c.told, told...)
	if how := c.subject.ended(r.backend); how != "" { // before all that comes of it
		c.wrong = slices.Insert(c.wrong, 0, r.name+how)
	}
}

// Errorf notes what is wrong; the case goes on. Any goroutine may use it.
func (c *C) Errorf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch len(c.wrong) {
	case keptComplaints:
	case keptComplaints - 1:
		c.wrong = append(c.wrong, "and more of it")
	default:
		c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
	}
}

// keptComplaints is how much of what is wrong is told.
const keptComplaints = 20

func (c *C) failed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.wrong) > 0
}

// Fatalf notes what is wrong and ends the case. It is for the case's own goroutine.
func (c *C) Fatalf(format string, args ...any) {
	c.Errorf(format, args...)
	runtime.Goexit()
}

// power gives the backend's power; exempt has seen to it that it is declared.
func power[T any](c *C) T { return powerOf[T](c, c.Backend()) }

func powerOf[T any](c *C, b ports.Backend) T {
	p, has := ports.As[T](b, *c.declared)
	if !has {
		c.Fatalf("the case lacks an entry in Needs")
	}
	return p
}

// configuration is what a case's backend is opened with.
func configuration(s *Subject, dir, word string) ports.Configuration {
	options := s.Options
	if options == nil {
		options = []byte("{}")
	}
	return ports.Configuration{Name: "conformance", DataDir: dir, Options: bytes.ReplaceAll(options, []byte("{case}"), []byte(word))}
}

// describe asks the backend what it is, with nothing in it.
func describe(ctx context.Context, s *Subject) (ports.Description, error) {
	dir, err := os.MkdirTemp("", "hf-suite-")
	if err != nil {
		return ports.Description{}, ports.Wrap(ports.Internal, "conformance", err)
	}
	defer os.RemoveAll(dir)
	return within(ctx, 3*s.patience(), s.patience()/5, func(ctx context.Context) (d ports.Description, err error) {
		b, err := s.Open(ctx, configuration(s, dir, "describe"))
		if err != nil {
			return d, fmt.Errorf("open the backend: %w", err)
		}
		defer func() { err = errors.Join(err, b.Close()) }()
		if d, err = b.Describe(ctx); err == nil && d.Powers == nil {
			d.Powers = ports.PowersOf(b)
		}
		return d, err
	})
}
