package core

import (
	"time"

	"holdfast/ports"
)

// pace decides how large a follower's pages are, and how long it rests between two of them: callers come first, and yet a
// follower that catches up must gain on them.
type pace struct {
	limit     int    // rows of the next page
	committed uint64 // what the local store had of this host's writes at the last page,
	at        uint64 // and what the follower had
	busy      bool   // callers wrote since
	gains     bool   // and the follower came closer by as much again
}

const (
	firstLimit   = 64
	busyLimit    = 256                    // rows while callers write: a page holds the processors that they need
	headTime     = 50 * time.Millisecond  // of a page at the head, or while callers write,
	behindTime   = time.Second            // and of one far behind
	longestYield = 250 * time.Millisecond // between two pages
	headGap      = 10 * time.Millisecond  // between two pages at the head: with a page for each write, writes become slower
)

// look takes in how things stand before a page is put.
func (p *pace) look(committed, at uint64) {
	written, copied := committed-min(p.committed, committed), at-min(p.at, at)
	p.busy = written > 0
	p.gains = copied >= 2*written
	p.committed, p.at = committed, at
}

// yields says whether callers come first: they write, and the follower gains on them all the same.
func (p *pace) yields() bool { return p.busy && p.gains }

// rest is how long to wait behind a page that took so long: two thirds of the time are the callers'.
func (p *pace) rest(took time.Duration) time.Duration {
	if !p.yields() {
		return 0
	}
	return min(2*took, longestYield)
}

// rows is the limit of the next page.
func (p *pace) rows() int {
	if p.yields() {
		return min(p.limit, busyLimit)
	}
	return p.limit
}

// took makes the next page as large as the store takes in the time that a page may have.
func (p *pace) took(rows int, took time.Duration, head bool) {
	target, least := behindTime, 1
	if head || p.yields() { // where a Put takes long whatever it has, smaller ones are no help
		target, least = headTime, firstLimit
	}
	switch {
	case took > target:
		p.limit = max(min(least, p.limit), p.limit/2)
	case rows >= p.rows() && took < target/2:
		p.limit = min(2*p.limit, ports.MaxBatchEntries)
	}
}
