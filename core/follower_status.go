package core

import (
	"fmt"
	"time"

	"holdfast/ports"
)

// What is told of followers. Nothing here asks a backend.

// status tells how far a follower is.
func (w *follower) status(now time.Time) FollowerStatus {
	refused, inDoubt, discarded := w.keys.count()
	committed := w.family.committed.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	s := FollowerStatus{
		Family: w.family.name, State: string(w.cond.mode.public()), Phase: string(w.cond.mode), Detail: w.cond.detail, Remedy: w.cond.remedy,
		Since: w.cond.since.UTC(), Suspect: w.cond.suspect, Position: w.mark.Position.Seqs[w.host.hostID], Copied: w.copied,
		Unsettled: refused, InDoubt: inDoubt, Discarded: discarded, OnlyThere: w.only, Doubtful: w.mark.Doubtful, Pruned: w.pruned,
		LastError: w.lastErr, LastErrorAt: w.lastErrs,
	}
	if w.Retention > 0 {
		s.Retention = w.Retention.String()
	}
	if w.mark.PrunedMs != 0 {
		s.PrunedUntil = time.UnixMilli(w.mark.PrunedMs).UTC()
	}
	if !w.lastErrs.IsZero() {
		s.LastErrorAt = w.lastErrs.UTC()
	}
	if w.cond.mode == modeUnassigned {
		return s
	}
	if w.held > 0 {
		s.Detail = "stands still while a repair writes to it"
	}
	has := max(w.fresh.Seqs[w.host.hostID], s.Position)
	if committed > has {
		s.Behind = committed - has
		s.BehindMs = max(now.Sub(w.had.at).Milliseconds(), 0)
	}
	return s
}

// followerStatuses tells of every backend but the local store.
func (h *Host) followerStatuses(now time.Time) (list []BackendStatus) {
	for _, c := range h.repairs.others {
		b := BackendStatus{Name: c.Name, Kind: c.Kind, StoreID: h.backends[c.Name].claimed()}
		var health Health
		if c.Health != nil {
			health = c.Health()
			b.PID, b.Starts, b.Words = health.PID, health.Starts, health.Words
			b.note(health.Died, health.DiedAt)
		}
		for _, name := range ports.Families {
			if w := h.follower(c.Name, name); w != nil {
				b.Followers = append(b.Followers, w.status(now))
			}
		}
		b.summarize()
		if b.Detail == "" {
			b.Detail = health.Detail
		}
		list = append(list, b)
	}
	return list
}

// urgent orders the public states by how much they matter: a backend is told as the one of its families that matters most.
var urgent = []phase{needsOne, waiting, opening, ready, "unassigned"}

func (b *BackendStatus) summarize() {
	for _, state := range urgent {
		for _, f := range b.Followers {
			if f.State == string(state) {
				b.State, b.Detail, b.Remedy, b.Since = f.State, f.Detail, f.Remedy, f.Since
				return
			}
		}
	}
}

// notices are what a person should look at in one backend.
func (b *BackendStatus) notices() (list []string) {
	for _, f := range b.Followers {
		name := b.Name + ", " + string(f.Family) + ": "
		if f.Remedy != "" {
			list = append(list, name+f.Detail+": "+f.Remedy)
		}
		if f.Unsettled > 0 {
			list = append(list, fmt.Sprintf("%s%d keys are unsettled and answered by the local store; see `holdfast unsettled list --backend %s`", name, f.Unsettled, b.Name))
		}
		if f.Doubtful {
			list = append(list, fmt.Sprintf("%sit may have records that were removed while it was away, and answers no reads; run `holdfast verify local %s`, or `holdfast resync %s --exact`", name, b.Name, b.Name))
		}
	}
	return list
}
