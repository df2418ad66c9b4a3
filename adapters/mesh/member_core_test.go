package mesh

import (
	"context"
	"slices"
	"sync"

	"holdfast/core"
	"holdfast/ports"
)

// slowCore takes calls in at once and answers them when it is let.
type slowCore struct {
	mu    sync.Mutex
	calls []core.Call
	let   chan struct{}
}

func newSlowCore() *slowCore { return &slowCore{let: make(chan struct{})} }

func (c *slowCore) Begin(call core.Call) Promise {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, call)
	return slowPromise(c.let)
}

func (c *slowCore) begun() []core.Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
}

type slowPromise chan struct{}

func (p slowPromise) Wait(ctx context.Context) core.Answer {
	select {
	case <-p:
		return core.Answer{}
	case <-ctx.Done():
		return core.Refusal(ports.Errorf(ports.Unavailable, "", "it takes too long"))
	}
}

// quickCore answers everything at once.
func quickCore() *slowCore {
	c := newSlowCore()
	close(c.let)
	return c
}

type unreadyCore struct {
	mu    sync.Mutex
	ready bool
}

func (c *unreadyCore) set(ready bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ready = ready
}

func (c *unreadyCore) Begin(core.Call) Promise {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ready {
		return settled{core.Answer{}}
	}
	return settled{core.Refusal(ports.Errorf(ports.Full, "journal", "it is full"))}
}
