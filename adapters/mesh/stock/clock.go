package stock

// The time by which a stand-in waits: the wall's, a hurried one, or one that a test moves by hand.

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Clock is the time of a stand-in.
type Clock interface {
	Now() time.Time
	// After gives a channel that gets the time when d has passed, and a function that ends the wait before.
	After(d time.Duration) (arrived <-chan time.Time, forget func())
}

// Wall is the time of day.
func Wall() Clock { return Hurry(1) }

// Hurry is the time of day, but every wait takes only the given part of its time: with 100, 10 s pass in 100 ms.
func Hurry(times int) Clock { return hurried(times) }

type hurried int

func (hurried) Now() time.Time { return time.Now() }

func (h hurried) After(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d / time.Duration(h))
	return t.C, func() { t.Stop() }
}

// HandClock is a time that only Advance moves.
type HandClock struct {
	mu    sync.Mutex
	now   time.Time
	waits []*handWait
	asked chan struct{} // closed when somebody begins to wait
}

type handWait struct {
	length time.Duration
	due    time.Time
	c      chan time.Time
}

// NewHandClock starts at the time given.
func NewHandClock(now time.Time) *HandClock {
	return &HandClock{now: now, asked: make(chan struct{})}
}

// Now is the time to which the clock was moved.
func (h *HandClock) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// After waits until Advance has passed d.
func (h *HandClock) After(d time.Duration) (<-chan time.Time, func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := &handWait{length: d, due: h.now.Add(d), c: make(chan time.Time, 1)}
	h.waits = append(h.waits, w)
	close(h.asked)
	h.asked = make(chan struct{})
	return w.c, func() { h.forget(w) }
}

func (h *HandClock) forget(w *handWait) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waits = slices.DeleteFunc(h.waits, func(other *handWait) bool { return other == w })
}

// Advance moves the time on and ends the waits that are over then.
func (h *HandClock) Advance(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
	h.waits = slices.DeleteFunc(h.waits, func(w *handWait) bool {
		if w.due.After(h.now) {
			return false
		}
		w.c <- h.now
		return true
	})
}

// Await returns when somebody waits for just d, or with the error of ctx.
func (h *HandClock) Await(ctx context.Context, d time.Duration) error {
	for {
		h.mu.Lock()
		there := slices.ContainsFunc(h.waits, func(w *handWait) bool { return w.length == d })
		asked := h.asked
		h.mu.Unlock()
		if there {
			return nil
		}
		select {
		case <-asked:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// pause waits for d by the clock; false says that ctx ended first.
func pause(ctx context.Context, clock Clock, d time.Duration) bool {
	arrived, forget := clock.After(d)
	defer forget()
	select {
	case <-arrived:
		return true
	case <-ctx.Done():
		return false
	}
}

// iso writes a time as the stock software does: UTC with milliseconds.
func iso(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
