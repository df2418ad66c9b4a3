package core

import (
	"cmp"
	"context"
	"slices"
	"time"

	"holdfast/ports"
)

// The router: who answers a read. The head of the family is taken once, when the read comes in. The backends of the route are
// asked in their order, each only if it provably has everything up to there, and lists nothing that it has removed by itself; then the local store, which is waited for a
// little; then whoever is reachable and furthest, and the answer says that it may be stale.
const (
	freshWait      = 250 * time.Millisecond  // for the local store's position
	followRead     = 700 * time.Millisecond  // for a backend that has the local store behind it
	readLimit      = 1500 * time.Millisecond // for the last backend to answer,
	readAltogether = 1900 * time.Millisecond // and for all of them,
	othersRead     = 1450 * time.Millisecond // of which those before the local store have this much: any number of them may hang
)

// question is a read, as every backend with the power R can answer it.
type question[R any] func(ctx context.Context, r R, a *Answer) error

// read routes a question about a key, or about the whole family with an empty one.
func read[R any](ctx context.Context, h *Host, name ports.Family, key string, into Answer, ask question[R]) Answer {
	f := h.families[name]
	need := f.need(key)
	ctx, cancel := context.WithTimeout(ctx, readAltogether)
	defer cancel()
	var miss *Answer // of a backend that has everything
	tried := map[*follower]bool{}
	first, enough := context.WithTimeout(ctx, othersRead)
	defer enough()
	for _, backend := range h.route {
		if first.Err() != nil {
			break
		}
		if h.isLocal(backend) {
			if h.hasNow(f, need) {
				break
			}
			continue
		}
		w := h.follower(backend, name)
		if w == nil {
			continue
		}
		store, thin := w.storeCount(), w.isThin()
		if !w.serves(key, need) || thin && into.List {
			continue
		}
		a, ok := askFollower(first, w, store, into, ask)
		tried[w] = true
		if !ok || thin && a.Situation == NotFound {
			continue
		}
		if a.Situation == NotFound {
			miss = &a // the local store has the last word, if it can be had
			break
		}
		return h.flagged(f, key, a)
	}
	if miss != nil && !h.hasNow(f, need) {
		return h.flagged(f, key, *miss)
	}
	fresh := h.awaitPosition(ctx, f, need)
	a := askLocal(ctx, h, into, ask)
	if a.Situation != Unavailable {
		a.Stale = !fresh
		return h.flagged(f, key, a)
	}
	if miss != nil {
		return h.flagged(f, key, *miss)
	}
	for _, w := range h.furthest(name, key) {
		store, thin := w.storeCount(), w.isThin()
		if tried[w] || thin && into.List || !w.isKnown(ctx) {
			continue
		}
		if stale, ok := askFollower(ctx, w, store, into, ask); ok && !(thin && stale.Situation == NotFound) {
			stale.Stale = !w.serves(key, need)
			return h.flagged(f, key, stale)
		}
	}
	return a
}

// flagged says when writes of a key, or of any key of a list, are set aside.
func (h *Host) flagged(f *family, key string, a Answer) Answer {
	if key != "" {
		a.Incomplete = f.committer.asides.holds(key)
	} else {
		a.Incomplete = f.committer.asides.any()
	}
	return a
}

// hasNow says whether the local store is there and has everything up to a Seq.
func (h *Host) hasNow(f *family, need uint64) bool {
	p, _ := h.link.now()
	return p == ready && f.committed.Load() >= need
}

func askLocal[R any](ctx context.Context, h *Host, a Answer, ask question[R]) Answer {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	reader, ok := any(h.link.Store).(R)
	if !ok {
		a.Situation, a.Err = Unavailable, ports.Errorf(ports.Unimplemented, h.link.name, "the local store cannot be asked that")
		return a
	}
	err := ask(ctx, reader, &a)
	switch code := ports.CodeOf(err); {
	case code == ports.NotFound:
		a.Situation = NotFound
	case code.Permanent():
		a.Situation, a.Err = Refused, ports.AsError(err)
		return a
	case err != nil:
		e := *ports.AsError(err)
		e.Code = ports.Unavailable // whatever it was, a caller can only ask again
		if code == ports.Internal {
			h.link.failed(err, h.link.health().Starts)
		}
		a.Situation, a.Err = Unavailable, &e
		return a
	}
	a.Backend = h.link.name
	return a
}

// askFollower asks a backend, and says whether it answered, from the store that was counted. One that cannot be asked that is
// passed over.
func askFollower[R any](ctx context.Context, w *follower, store uint64, a Answer, ask question[R]) (Answer, bool) {
	description, _ := w.description()
	reader, ok := ports.As[R](w.Store, description)
	if !ok {
		return a, false
	}
	ctx, cancel := context.WithTimeout(ctx, followRead)
	defer cancel()
	slots := w.slots()
	if slots.take(ctx, ofRead) != nil {
		return a, false
	}
	defer slots.give()
	err := ask(ctx, reader, &a)
	switch code := ports.CodeOf(err); {
	case code == ports.NotFound:
		a.Situation = NotFound
	case code == ports.BackendGone:
		w.tell(happening{kind: gone, detail: err.Error()})
		return a, false
	case err != nil:
		w.failedRead(err)
		return a, false
	}
	a.Backend = w.Name
	return a, w.same(ctx, store)
}

// failedRead lets the status say that a read was not answered as it should be. The next backend was asked; whether this one is
// still there, its probes tell.
func (w *follower) failedRead(err error) {
	if code := ports.CodeOf(err); code == ports.Canceled || code == ports.Deadline || code == ports.Unimplemented {
		return
	}
	at := w.host.clock()
	w.mu.Lock()
	w.lastErr, w.lastErrs = "a read failed: "+err.Error(), at
	w.mu.Unlock()
	if w.mayTell("read", at) {
		w.host.log.Warn("a backend does not answer a read; the next one was asked", "name", w.Name, "family", w.family.name, "reason", err)
	}
}

// serves says whether a follower provably has everything up to a Seq, of a key or of the whole family.
func (w *follower) serves(key string, need uint64) bool {
	w.mu.Lock()
	has, known := w.host.routeBy(w).Seqs[w.host.hostID]
	is := w.cond.mode == modeReady && !w.cond.suspect && !w.mark.Doubtful && w.fresh.Seqs != nil
	w.mu.Unlock()
	if !is || has < need || !known && need > 0 {
		return false
	}
	if key == "" {
		return !w.keys.any()
	}
	return w.keys.kind(key) == ""
}

// byFresh is what a head is compared with: fresh, and nothing else.
func byFresh(w *follower) ports.Position { return w.fresh }

// furthest gives the followers of a family that can be reached, the one that has most first. One that is known to lack a key
// comes last.
func (h *Host) furthest(name ports.Family, key string) []*follower {
	type candidate struct {
		w     *follower
		lacks int // 1 for one that does
		has   uint64
	}
	var all []candidate
	for _, w := range h.follows {
		w.mu.Lock()
		reachable := w.family.name == name && w.cond.mode.up() && !w.cond.suspect
		has := max(w.fresh.Seqs[h.hostID], w.mark.Position.Seqs[h.hostID])
		w.mu.Unlock()
		if reachable {
			c := candidate{w: w, has: has}
			if w.keys.kind(key) != "" {
				c.lacks = 1
			}
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.lacks, b.lacks), cmp.Compare(b.has, a.has))
	})
	var list []*follower
	for _, c := range all {
		list = append(list, c.w)
	}
	return list
}
