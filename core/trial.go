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
	hangs   int // Puts without an answer, one after the other
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
	t.hangs = 0
	if len(t.strikes) == 0 {
		return
	}
	for _, g := range groups {
		if !g.more {
			delete(t.strikes, g.key)
			delete(t.alone, g.key)
		}
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
	if !c.alone {
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

// hung says whether a Put without an answer is a reason to replace the process: what comes behind it may hang of it as well. The
// first one is given the time to answer late.
func (t *trial) hung(suspect bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hangs++; t.hangs < 2 && !suspect {
		return false
	}
	t.hangs = 0
	return true
}

// judge decides what a Put that failed as a whole says of its keys, and gives the error that ends the session. suspect says
// that it was sent alone on purpose.
func (s *session) judge(ctx context.Context, c chunk, suspect bool, err error) error {
	if s.life.Err() != nil || len(c.groups) == 0 || !s.blames(ctx, err) {
		return err
	}
	if ports.CodeOf(err) == ports.Deadline && ctx.Err() == nil && s.w.trial.hung(suspect) && s.w.Restart != nil {
		s.w.Restart("a Put has no answer, and a probe has")
	}
	guilty := s.w.trial.failed(c)
	if guilty == "" {
		return err
	}
	if refusal := s.refuse(groupOf(c.groups, guilty), ports.PoisonKey, err); refusal != nil {
		return refusal
	}
	return err
}

// blames says whether a failed Put speaks against its keys: the store died or hung of it, alone or with everything else.
func (s *session) blames(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return s.w.wentMute()
	}
	switch ports.CodeOf(err) {
	case ports.BackendGone:
		return true
	case ports.Deadline, ports.Internal:
	default:
		return false
	}
	// A store that takes no write at all is not the keys' fault.
	probe, cancel := context.WithTimeout(ctx, probeDeadline)
	defer cancel()
	slots := s.w.slots()
	if slots.take(probe, ofProbe) != nil {
		return ctx.Err() == nil // every slot is held by a call that hangs
	}
	defer slots.give()
	if s.w.Store.Probe(probe, s.w.family.name) != nil {
		return ctx.Err() != nil && s.w.wentMute()
	}
	return true
}

// wentMute says whether the backend went away without a word.
func (w *follower) wentMute() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.cond.mode.up() && w.cond.mute
}
