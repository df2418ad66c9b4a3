package beacon

import (
	"context"
	"sync"
	"testing"
	"time"

	"holdfast/adapters/mesh"
	"holdfast/core"
	"holdfast/ports"
)

// When the status told what was known of a beacon.

// described declares the powers, as the wire does for a plugin, and tells how calls end.
type described struct {
	*Backend
	asked func(f ports.Family, began time.Time, err error)
}

func (d *described) Describe(ctx context.Context) (ports.Description, error) {
	description, err := d.Backend.Describe(ctx)
	description.Powers = ports.PowersOf(d.Backend)
	return description, err
}

func (d *described) Probe(ctx context.Context, f ports.Family) error {
	began := time.Now()
	err := d.Backend.Probe(ctx, f)
	if d.asked != nil {
		d.asked(f, began, err)
	}
	return err
}

func (d *described) Put(ctx context.Context, b ports.Batch) (ports.Applied, error) {
	began := time.Now()
	applied, err := d.Backend.Put(ctx, b)
	if d.asked != nil {
		d.asked(b.Family, began, err)
	}
	return applied, err
}

// lookout watches what the status tells of a follower beside what is known of its beacon.
type lookout struct {
	t    testing.TB
	hub  *mesh.Hub
	host func() *core.Host

	mu       sync.Mutex
	evidence map[ports.Family]*sign     // that is not told yet
	well     map[ports.Family]time.Time // when the last call that went well began
	latest   time.Duration              // that something was told after it was known
	told     int
}

// sign is something that says that a beacon cannot be worked with.
type sign struct {
	what string
	at   time.Time
}

// promptness is how soon the status tells what is known.
const promptness = 2 * time.Second

// asked takes in how a call of the backend ended. One that was overtaken by a later one, which went well, says nothing any more.
func (l *lookout) asked(f ports.Family, began time.Time, err error) {
	if code := ports.CodeOf(err); code.Permanent() || code == ports.Canceled {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		if !began.Before(l.well[f]) {
			l.know(f, err.Error())
		}
		return
	}
	if began.After(l.well[f]) {
		l.well[f] = began
	}
	if known := l.evidence[f]; known != nil && known.what != "offline" {
		delete(l.evidence, f) // it is well again before anybody looked
	}
}

// know notes a sign, unless there is one already.
func (l *lookout) know(f ports.Family, what string) {
	if l.evidence[f] == nil {
		l.evidence[f] = &sign{what, time.Now()}
	}
}

// watch compares until ctx ends.
func (l *lookout) watch(ctx context.Context) {
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	offline := false
	for {
		known, err := l.hub.Watch(ctx, 0)
		if err != nil {
			return
		}
		b := find(known.List, "archive")
		l.mu.Lock()
		if off := b == nil || !b.Online; off != offline {
			offline = off
			for _, f := range ports.Families {
				if known := l.evidence[f]; known != nil && known.what == "offline" {
					delete(l.evidence, f) // it passed
				}
				if off {
					l.know(f, "offline")
				}
			}
		}
		l.mu.Unlock()
		l.compare()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// compare looks whether the status tells what is known.
func (l *lookout) compare() {
	for _, b := range l.host().Status().Backends {
		for _, w := range b.Followers {
			if b.Name != "beacon" {
				continue
			}
			tells := w.Suspect || w.State == "waiting-for-beacon"
			l.mu.Lock()
			if s := l.evidence[w.Family]; s != nil {
				late := time.Since(s.at)
				switch {
				case tells:
					l.latest = max(l.latest, late)
					l.told++
					delete(l.evidence, w.Family)
				case late > promptness:
					l.t.Errorf("%s: the status says %s (%s) %s after it was known that %s", w.Family, w.State, w.Phase, late, s.what)
					delete(l.evidence, w.Family)
				}
			}
			l.mu.Unlock()
		}
	}
}
