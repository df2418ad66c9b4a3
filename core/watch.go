package core

import (
	"context"
	"slices"
	"time"

	"holdfast/ports"
)

// How a follower is watched: by probes, by the health of its process, and by how long it has lacked something.

// watch probes.
func (w *follower) watch(ctx context.Context) {
	tick := time.NewTicker(watchTick)
	defer tick.Stop()
	next, life := w.host.clock(), -1
	for {
		health := w.health()
		now := w.host.clock()
		switch {
		case !health.Running && health.Starts == 0 && health.Detail == "": // it starts for the first time
		case !health.Running && health.GivenUp:
			w.tell(happening{kind: givenUp, detail: health.Detail})
		case !health.Running:
			w.tell(happening{kind: gone, detail: health.Detail})
			next = now
		case life >= 0 && health.Starts != life:
			w.backend.relearn()
			w.tell(happening{kind: gone, detail: "its process was started again"})
			next = now
		case !now.Before(next):
			w.probe(ctx)
			if next = now.Add(probeEvery); w.isEager(now) {
				next = now.Add(probeAway)
			}
		}
		if health.Running {
			life = health.Starts
		}
		w.age()
		select {
		case <-tick.C:
		case <-w.now:
			next = w.host.clock()
		case <-ctx.Done():
			return
		}
	}
}

// isEager says whether the next probe may tell something new: what is away may be back, and what was assigned just now may be known.
func (w *follower) isEager(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.cond.mode.up() || now.Before(w.eager)
}

func (w *follower) health() Health {
	if w.Health == nil {
		return Health{Running: true}
	}
	return w.Health()
}

// probe asks whether the backend could take a write, and whether it still is the store that it was.
func (w *follower) probe(ctx context.Context) {
	if !w.describe(ctx) {
		return
	}
	slots := w.slots()
	waiting, enough := context.WithTimeout(ctx, probeDeadline)
	err := slots.take(waiting, ofProbe)
	enough()
	limited, cancel := context.WithTimeout(ctx, probeDeadline) // its own time, however late its turn came
	defer cancel()
	if err != nil {
		if ctx.Err() == nil && w.isBusy(w.host.clock()) {
			w.tell(happening{kind: busy})
			return
		}
		w.sayProbe(ctx, err)
		return
	}
	defer slots.give()
	err = w.Store.Probe(limited, w.family.name)
	w.sayProbe(ctx, err)
	if err == nil && w.mode().takes() {
		w.checkStore(limited)
	}
}

// sayProbe tells the machine how a probe ended; ctx is that of the host.
func (w *follower) sayProbe(ctx context.Context, err error) {
	switch code := ports.CodeOf(err); {
	case err == nil:
		w.tell(happening{kind: answered})
	case ctx.Err() != nil: // the host stops
	case code == ports.Deadline || code == ports.Canceled:
		w.tell(happening{kind: missed})
	case code == ports.BackendGone:
		w.tell(happening{kind: gone, detail: err.Error()})
	default:
		w.tell(happening{kind: declined, err: err})
	}
}

// checkStore ends the session when another store stands where the follower's was, or one that has less. A store that became
// another one answers reads from this question on, so that those which are answered meanwhile wait for what it finds; see same.
func (w *follower) checkStore(ctx context.Context) {
	look := make(chan struct{})
	w.mu.Lock()
	stored := w.stored
	w.look = look
	w.mu.Unlock()
	at, err := w.Store.Position(ctx, w.family.name)
	changed := err == nil && stored.StoreID != "" && (at.StoreID != stored.StoreID || !at.Covers(stored))
	w.mu.Lock()
	if w.look = nil; changed {
		w.stores++
	}
	w.mu.Unlock()
	close(look)
	if changed {
		w.tell(happening{kind: gone, detail: "another store stands in its place, or an older copy of it"})
	}
}

// describe learns what the backend is; it says false while nobody knows, or when it does not keep the family.
func (w *follower) describe(ctx context.Context) bool {
	description, known := w.description()
	if !known {
		limited, cancel := context.WithTimeout(ctx, probeDeadline)
		defer cancel()
		var err error
		if description, err = w.Store.Describe(limited); err != nil {
			w.sayProbe(ctx, err)
			return false
		}
		w.backend.mu.Lock()
		if !w.known {
			if w.powers.Slots != description.Slots {
				w.budget = newBudget(description.Slots)
			}
			w.powers, w.known = description, true
		}
		w.backend.mu.Unlock()
	}
	if slices.Contains(description.Families, w.family.name) {
		return true
	}
	w.tell(happening{kind: notKept})
	return false
}

// age keeps the time since which the follower has not had everything, and says when that is too long.
func (w *follower) age() {
	now, committed := w.host.clock(), w.family.committed.Load()
	w.mu.Lock()
	has := w.fresh.Seqs[w.host.hostID]
	if has >= w.had.seq && w.cond.mode.takes() && w.fresh.Seqs != nil {
		w.had = sample{now, committed}
	}
	old := now.Sub(w.had.at)
	behind := committed > has && (committed-has > lagSeqs || old > lagAge)
	w.mu.Unlock()
	if behind {
		w.tell(happening{kind: fellBehind, detail: "behind the local store"})
	}
}
