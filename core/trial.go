package core

import (
	"context"
	"sync"

	"holdfast/ports"
)

// trial finds the key that a follower's store cannot survive. Every key of a batch with which the store died or hung gets a
// strike; with the second one it is put alone. A key with which the store dies three times alone is poison.
type trial struct {
	mu      sync.Mutex
	strikes map[string]int // in company
	alone   map[string]int
}

const (
	strikesToAlone  = 2
	strikesToPoison = 3
)

func (t *trial) suspects(key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.strikes[key] >= strikesToAlone
}

// passed clears keys that the store took.
func (t *trial) passed(groups []group) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.strikes) == 0 {
		return
	}
	for _, g := range groups {
		delete(t.strikes, g.key)
		delete(t.alone, g.key)
	}
}

// failed counts a death against keys, and says which one is guilty; "" when that is not clear yet.
func (t *trial) failed(c chunk) (guilty string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.strikes == nil {
		t.strikes, t.alone = map[string]int{}, map[string]int{}
	}
	for _, g := range c.groups {
		t.strikes[g.key]++
	}
	if len(c.groups) != 1 {
		return ""
	}
	key := c.groups[0].key
	t.strikes[key] = max(t.strikes[key], strikesToAlone)
	if t.alone[key]++; t.alone[key] < strikesToPoison {
		return ""
	}
	delete(t.strikes, key)
	delete(t.alone, key)
	return key
}

// judge decides what a Put that failed as a whole says of its keys, and gives the error that ends the session.
func (s *session) judge(ctx context.Context, c chunk, err error) error {
	code := ports.CodeOf(err)
	if ctx.Err() != nil || len(c.groups) == 0 || code != ports.BackendGone && code != ports.Deadline && code != ports.Internal {
		return err
	}
	if code != ports.BackendGone {
		// A store that takes no write at all is not the keys' fault.
		probe, cancel := context.WithTimeout(ctx, probeDeadline)
		defer cancel()
		if s.w.Store.Probe(probe, s.w.family.name) != nil {
			return err
		}
	}
	guilty := s.trial.failed(c)
	if code == ports.Deadline && s.w.Restart != nil {
		s.w.Restart("a Put had no answer, and everything else has")
	}
	if guilty == "" {
		return err
	}
	if refusal := s.refuse(groupOf(c.groups, guilty), ports.PoisonKey, err); refusal != nil {
		return refusal
	}
	return err
}
