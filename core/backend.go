package core

import (
	"sync"
	"time"

	"holdfast/ports"
)

// What is known of a backend, for all that use it.

// backend is what the followers of one backend share.
type backend struct {
	company company

	mu       sync.Mutex
	known    bool
	powers   ports.Description
	budget   *budget
	storeIDs map[ports.Family]string
	heard    time.Time // when a Put, or the first question of a session, was last answered
}

// answers notes that a Put was answered.
func (b *backend) answers(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heard = at
}

// isBusy says whether Puts are answered, one after the other, so that a probe which got no slot says nothing.
func (b *backend) isBusy(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return now.Sub(b.heard) <= putDeadline+probeDeadline
}

// contained says whether nothing of a call outlives the process.
func (b *backend) contained() bool {
	d, _ := b.description()
	return d.Contained
}

// slots is what the backend takes at a time; nil: no limit.
func (b *backend) slots() *budget {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.budget
}

// relearn has the backend asked again what it is: another process may be another version.
func (b *backend) relearn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known = false
}

// description is what the backend said of itself; ok is false before it did.
func (b *backend) description() (d ports.Description, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.powers, b.known
}
