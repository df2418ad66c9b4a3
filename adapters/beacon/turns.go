package beacon

import (
	"sync"

	"holdfast/ports"
)

// turns keep the order of Puts. The host sends one at a time, and gives up one that it has no answer to; that one goes on by itself,
// beside the next one, and must not write what the next one has written already.
type turns struct {
	mu      sync.Mutex
	newest  uint64
	running map[uint64]bool
	last    map[string]uint64 // by key, the newest Put that came to it; thePosition stands for that
}

// thePosition is no key.
const thePosition = ""

var errPassed = ports.Errorf(ports.Unavailable, "beacon: put", "a later Put came to the same key before")

func newTurns() *turns { return &turns{running: map[uint64]bool{}, last: map[string]uint64{}} }

// begin gives a Put its number.
func (t *turns) begin() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.newest++
	t.running[t.newest] = true
	return t.newest
}

// end forgets what no running Put can come too late for.
func (t *turns) end(n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.running, n)
	oldest := t.newest
	for other := range t.running {
		oldest = min(oldest, other)
	}
	for key, by := range t.last {
		if by <= oldest {
			delete(t.last, key)
		}
	}
}

// take says whether a Put may come to a key, which it has locked: no later one has.
func (t *turns) take(n uint64, key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last[key] > n {
		return false
	}
	t.last[key] = n
	return true
}
