package conformance

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"holdfast/ports"
)

// C is one run of one case: its backend, and what it found wrong.
type C struct {
	Ctx context.Context // ends with the case's limit

	subject  *Subject
	declared *ports.Description
	dir      string
	word     string

	mu      sync.Mutex
	present *recorder // nil before Backend and after Close or Kill
	trace   []Exchange
	wrong   []string
}

// try runs one case, whatever it does.
func try(ctx context.Context, s *Subject, d *ports.Description, k *Case) Result {
	began := time.Now()
	r := Result{Case: k}
	if outcome, why := exempt(s, d, k); outcome != "" {
		r.Outcome, r.Reason = outcome, []string{why}
		return r
	}
	dir, err := os.MkdirTemp("", "hf-suite-")
	if err != nil {
		r.Outcome, r.Reason = Failed, []string{err.Error()}
		return r
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	c := &C{Ctx: ctx, subject: s, declared: d, dir: dir, word: strings.NewReplacer("/", "_", "-", "_").Replace(k.Path())}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				c.Errorf("panic: %v\n%s", p, debug.Stack())
			}
		}()
		defer c.Close()
		k.Run(c)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		select { // every call that heeds its context ends now
		case <-done:
		case <-time.After(5 * time.Second):
		}
		c.Errorf("it was not done within %s: a call did not end with its context", Limit)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Outcome, r.Took = Passed, time.Since(began)
	if len(c.wrong) > 0 {
		r.Outcome, r.Reason, r.Trace = Failed, c.wrong, c.trace
	}
	return r
}

// configuration is what a case's backend is opened with.
func configuration(s *Subject, dir, word string) ports.Configuration {
	options := s.Options
	if options == nil {
		options = []byte("{}")
	}
	return ports.Configuration{Name: "conformance", DataDir: dir, Options: bytes.ReplaceAll(options, []byte("{case}"), []byte(word))}
}

// Describe gives what the backend declares.
func (c *C) Describe() ports.Description { return *c.declared }

// Backend gives the case's backend, opened at the first call and after Close or Kill anew over what it kept.
func (c *C) Backend() ports.Backend {
	c.mu.Lock()
	present := c.present
	c.mu.Unlock()
	if present != nil {
		return present
	}
	b, err := c.subject.Open(c.Ctx, configuration(c.subject, c.dir, c.word))
	if err != nil {
		c.Fatalf("open: %v", err)
	}
	present = &recorder{backend: b}
	c.mu.Lock()
	c.present = present
	c.mu.Unlock()
	return present
}

// Close ends the backend in order.
func (c *C) Close() {
	if present := c.leave(); present != nil {
		if err := present.backend.Close(); err != nil {
			c.Errorf("close: %v", err)
		}
		c.keep(present)
	}
}

// Kill ends the backend at once.
func (c *C) Kill() {
	if present := c.leave(); present != nil {
		c.subject.Kill(present.backend)
		c.keep(present)
	}
}

func (c *C) leave() *recorder {
	c.mu.Lock()
	defer c.mu.Unlock()
	present := c.present
	c.present = nil
	return present
}

// keep takes over what was asked of a backend that ended.
func (c *C) keep(r *recorder) {
	exchanges := r.exchanges()
	if c.subject.Trace != nil {
		exchanges = c.subject.Trace(r.backend)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trace = append(c.trace, exchanges...)
}

// Errorf notes what is wrong; the case goes on.
func (c *C) Errorf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
}

// Fatalf notes what is wrong and ends the case. It is for the case's own goroutine.
func (c *C) Fatalf(format string, args ...any) {
	c.Errorf(format, args...)
	runtime.Goexit()
}

// power gives the backend's power; exempt has seen to it that it is declared.
func power[T any](c *C) T {
	p, has := ports.As[T](c.Backend(), *c.declared)
	if !has {
		c.Fatalf("the case lacks an entry in Needs")
	}
	return p
}
