package beacon

import (
	"sync"

	"holdfast/ports"
)

// turns keep the order of Puts. The host sends one at a time, and gives up one that it has no answer to; that one goes on by itself,
// beside the next one, and must not write what the next one has written already. It is as if it had come before.
type turns struct {
	mu      sync.Mutex
	newest  uint64
	running map[uint64]bool
	last    map[place]turn
}

// place is a record that is replaced whole, or the position. Events never are: they are looked for before they are sent.
type place struct {
	kind   ports.Kind // "" for the position
	key    string
	number int64
}

// turn is the newest Put that came to a place.
type turn struct {
	of   uint64
	done bool // it is in; otherwise nobody knows
}

func newTurns() *turns { return &turns{running: map[uint64]bool{}, last: map[place]turn{}} }

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
	for at, by := range t.last {
		if by.of <= oldest {
			delete(t.last, at)
		}
	}
}

// passed says whether a later Put came to a place before this one, which has it locked, and whether that one is in.
func (t *turns) passed(n uint64, at place) (is, done bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	by := t.last[at]
	return by.of > n, by.done
}

// came notes that a Put came to a place, and whether it is in.
func (t *turns) came(n uint64, at place, done bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last[at] = turn{n, done}
}

var errPassed = ports.Errorf(ports.Unavailable, "beacon: put", "a later Put came to the same record, and what became of that is not known")

// inTurn puts a row, unless a later Put did.
func (p *putting) inTurn(row *ports.Row, put func() error) error {
	if row.Kind == ports.KindEvent {
		return put()
	}
	at := place{row.Kind, row.Key, row.Number}
	switch passed, done := p.turns.passed(p.turn, at); {
	case passed && done:
		return nil
	case passed:
		return errPassed
	}
	err := put()
	p.turns.came(p.turn, at, err == nil)
	return err
}
