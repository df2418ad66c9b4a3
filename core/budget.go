package core

import (
	"context"
	"sync"
)

// budget shares a backend's slots among everything that is asked of it: probes before reads before changes at the head before
// catching up, which never takes the last slot. A backend without a limit has no budget: nil.
type budget struct {
	mu    sync.Mutex
	free  int
	slots int
	lines [urgencies][]*turn // who waits, by urgency
}

// urgency is the class of a call.
type urgency int

const (
	ofProbe urgency = iota
	ofRead
	ofHead
	ofCatchUp
	urgencies
)

// turn is a place in a line.
type turn struct{ come chan struct{} }

func newBudget(slots int) *budget {
	if slots <= 0 {
		return nil
	}
	return &budget{free: slots, slots: slots}
}

// take waits for a slot. Whoever gets one gives it back.
func (b *budget) take(ctx context.Context, u urgency) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	t := &turn{come: make(chan struct{})}
	b.lines[u] = append(b.lines[u], t)
	b.serve()
	b.mu.Unlock()
	select {
	case <-t.come:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, waiting := range b.lines[u] {
		if waiting == t {
			b.lines[u] = append(b.lines[u][:i:i], b.lines[u][i+1:]...)
			return ctx.Err()
		}
	}
	b.free++ // it came at the same moment
	b.serve()
	return ctx.Err()
}

func (b *budget) give() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free++
	b.serve()
}

// serve hands free slots to those who wait, the most urgent first.
func (b *budget) serve() {
	for u := range b.lines {
		for len(b.lines[u]) > 0 {
			kept := 0
			if urgency(u) == ofCatchUp && b.slots > 1 {
				kept = 1
			}
			if b.free <= kept {
				return
			}
			t := b.lines[u][0]
			b.lines[u] = b.lines[u][1:]
			b.free--
			close(t.come)
		}
	}
}

// lanes is how many Puts of different keys are worth sending at a time.
func (b *budget) lanes() int {
	if b == nil {
		return 1
	}
	return max(1, b.slots-1)
}
