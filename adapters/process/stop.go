//go:build unix

package process

import (
	"context"
	"time"
)

// stop lets a child finish what it began, and ends it: Drain, go-plugin's Kill, then the whole process group. Each step has a
// limit, so that no plugin can hold the host; ctx can only shorten them. A child that does not even answer a health check
// finishes nothing and is killed at once.
func (c *child) stop(ctx context.Context, t *timing) {
	if !c.answers(ctx, 2*t.answer) {
		if !c.program.dead() && ctx.Err() == nil {
			c.log.Warn("the plugin does not answer and is killed", "pid", c.pid())
		}
		c.discard(t)
		return
	}
	drain, cancel := context.WithTimeout(ctx, t.drain)
	err := c.client.Drain(drain)
	cancel()
	switch {
	case err == nil:
		c.rest(ctx, t.answer)
	case !c.program.dead():
		c.log.Warn("drain", "error", err)
	}
	_ = c.client.Close()
	c.end(ctx, t.end, t)
}

// rest waits for the answers of what was under way: a drained plugin has done it all, but go-plugin's Kill cuts off what it has
// not said yet.
func (c *child) rest(ctx context.Context, limit time.Duration) {
	answered := make(chan struct{})
	go func() {
		c.calls.Wait()
		close(answered)
	}()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case <-answered:
	case <-c.program.exited:
	case <-ctx.Done():
	}
}

// discard ends a child at once and clears up after it.
func (c *child) discard(t *timing) {
	c.program.kill()
	if c.client != nil {
		_ = c.client.Close()
	}
	c.end(context.Background(), t.end, t)
}

// end waits for the child to follow go-plugin's Kill, which asks it to exit and has no limit of its own.
func (c *child) end(ctx context.Context, grace time.Duration, t *timing) {
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		c.host.Kill()
	}()
	patience := time.NewTimer(grace)
	defer patience.Stop()
	select {
	case <-killed:
	case <-patience.C:
	case <-ctx.Done():
	}
	c.program.kill()
	last := time.NewTimer(t.end)
	defer last.Stop()
	select {
	case <-killed:
	case <-last.C:
		c.log.Error("a killed plugin is still there; the kernel holds it", "pid", c.pid())
	}
	if left := KillStrays(c.socketDir); len(left) > 0 {
		c.log.Warn("processes of the plugin had left its group and were killed", "count", len(left), "first", left[0])
	}
	c.removeSocketDir()
}

// settle gives a program that just broke off a moment to die, so that the reason can be told.
func (c *child) settle(ctx context.Context) {
	moment := time.NewTimer(200 * time.Millisecond)
	defer moment.Stop()
	select {
	case <-c.program.exited:
	case <-moment.C:
	}
	if ctx.Err() != nil { // killed by the limit
		select {
		case <-c.program.exited:
		case <-time.After(time.Second):
		}
	}
}
