package core

import (
	"context"
	"maps"
	"time"

	"holdfast/ports"
)

// How the host keeps itself small: what the local store has had for a while leaves the journal, and finished history leaves
// the local store.
const (
	houseTick  = 5 * time.Second
	keepFor    = 10 * time.Minute // entries stay in the journal after the local store has them
	pruneEvery = time.Hour
	pruneLimit = time.Minute // of one round; what is left then follows after the rest of the house
)

// sample is the position at a moment.
type sample struct {
	at  time.Time
	seq uint64
}

func (h *Host) keepHouse(ctx context.Context) {
	tick := time.NewTicker(houseTick)
	defer tick.Stop()
	samples := map[ports.Family][]sample{}
	nextPrune := h.clock().Add(time.Minute)
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if err := h.remember(); err != nil {
			h.log.Error("remember positions", "error", err)
			continue
		}
		for name, f := range h.families {
			samples[name] = h.trim(f, samples[name])
		}
		if h.retention > 0 && h.clock().After(nextPrune) {
			if !h.pruneRound(ctx) {
				nextPrune = h.clock().Add(pruneEvery)
			}
		}
	}
}

// pruneRound prunes for a while, and says whether more is left.
func (h *Host) pruneRound(ctx context.Context) bool {
	limited, cancel := context.WithTimeout(ctx, pruneLimit)
	defer cancel()
	pruned, err := h.Prune(limited, h.clock().Add(-h.retention))
	if err != nil && ctx.Err() == nil {
		h.log.Warn("prune by retention", "error", err)
	}
	return pruned.More
}

// trim forgets journal entries that the local store has had for long enough; all that it has when the journal is three
// quarters full.
func (h *Host) trim(f *family, samples []sample) []sample {
	now, committed := h.clock(), f.committed.Load()
	if n := len(samples); n == 0 || samples[n-1].seq != committed {
		samples = append(samples, sample{now, committed})
	}
	through := uint64(0)
	for len(samples) > 0 && now.Sub(samples[0].at) >= keepFor {
		through, samples = samples[0].seq, samples[1:]
	}
	through = min(through, committed) // a store that went back needs what it had once more
	if through > 0 {
		h.trimTo(f, through)
	}
	if b := f.journal.Bounds(); b.Full || b.Bytes > b.Limit/4*3 {
		h.makeRoom(f)
	}
	return samples
}

// makeRoom forgets everything that the local store has, before anybody is refused for want of room, and says whether it could.
// A store that is away may come back as an older copy that needs it once more.
func (h *Host) makeRoom(f *family) bool {
	p, _ := h.link.now()
	return p == ready && h.trimTo(f, f.committed.Load())
}

func (h *Host) trimTo(f *family, through uint64) bool {
	err := f.journal.Trim(through)
	if err != nil {
		h.log.Warn("trim the journal", "family", f.name, "error", err)
	}
	return err == nil
}

// remember keeps the local store's positions in the host's state.
func (h *Host) remember() error {
	h.link.mu.Lock()
	storeID := h.link.storeID
	h.link.mu.Unlock()
	if storeID == "" {
		return nil
	}
	known, _, err := h.state.Local()
	if err != nil {
		return err
	}
	marks := map[ports.Family]ports.Mark{}
	for name, f := range h.families {
		marks[name] = ports.Mark{Epoch: f.journal.Bounds().Epoch, Seq: f.committed.Load()}
	}
	if known.StoreID == storeID && maps.Equal(known.Marks, marks) {
		return nil
	}
	return h.state.SetLocal(ports.LocalMark{Name: h.link.name, StoreID: storeID, Marks: marks})
}
