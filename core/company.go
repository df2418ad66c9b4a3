package core

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// company knows which Puts of a backend are under way at the same time: a death is one key's fault only if it was alone. A Put
// under suspicion is alone for certain, because no other one begins meanwhile.
type company struct {
	once sync.Once
	room *semaphore.Weighted

	mu    sync.Mutex
	here  int    // under way
	begun uint64 // so far
}

const wholeRoom = 1 << 20

// enter waits until a Put may begin. alone tells, before leave, whether no other one was under way since.
func (c *company) enter(ctx context.Context, suspect bool) (alone func() bool, leave func(), err error) {
	c.once.Do(func() { c.room = semaphore.NewWeighted(wholeRoom) })
	weight := int64(1)
	if suspect {
		weight = wholeRoom
	}
	if err := c.room.Acquire(ctx, weight); err != nil {
		return nil, nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.here++
	c.begun++
	began, first := c.begun, c.here == 1
	alone = func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return first && c.begun == began
	}
	return alone, func() {
		c.mu.Lock()
		c.here--
		c.mu.Unlock()
		c.room.Release(weight)
	}, nil
}
