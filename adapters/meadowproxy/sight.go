package meadowproxy

import (
	"slices"

	"holdfast/ports"
)

// What the host last saw of a store, and whether what is there now is the same one. A position does not say that: an older copy of the
// database may be at the same one. The last step does; see steps.go.

// sight is a position, and the steps of which one is the last one: what was read or written last, and what was sent since without an
// answer.
type sight struct {
	at    ports.Position
	steps []string
}

func sightOf(l *ledger, f ports.Family) sight { return sight{l.position(f), []string{l.last[f].Step}} }

// has says whether a ledger is that of a database which was seen so, or goes on from there.
func (s sight) has(l *ledger, f ports.Family) bool { return slices.Contains(s.steps, l.last[f].Step) }

// estrange takes in that another database is there, and has the host begin again.
func (h *half) estrange(is sight) {
	h.lineage++
	h.sight, h.begun = is, false
	if !h.strange {
		h.strange, h.announced, h.heard = true, false, false
	}
}

// learn takes in what is about to be answered of the store. Where the host hears nothing new, and no Probe or Put has failed, it would
// go on.
func (h *half) learn(at *hold, l *ledger) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.bound != at.bound {
		return
	}
	is, known := sightOf(l, h.family), h.has(l, h.family)
	if !known || !same(is.at, h.at) {
		at.forget() // an older copy may have other rows under the same identities
	}
	if !known {
		h.estrange(is)
	}
	if h.strange && !h.heard && same(is.at, h.told) {
		return
	}
	h.sight, h.told, h.begun, h.loose, h.strange = is, is.at, false, h.putting > 0, false
}

// glance is what a Probe compares the ledger with. It is quiet when no Put is under way.
func (h *half) glance() (was sight, puts uint64, quiet bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return sight{h.at, slices.Clone(h.steps)}, h.puts, h.putting == 0
}

// compare finds a store strange that is elsewhere than it was at a glance, when it was quiet then and is quiet since.
func (h *half) compare(at *hold, l *ledger, was sight, puts uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	is := sightOf(l, h.family)
	if h.bound == at.bound && h.putting == 0 && h.puts == puts && !(same(is.at, was.at) && was.has(l, h.family)) {
		at.forget()
		h.estrange(is)
	}
}

// line is which database the host believes to be there.
func (h *half) line() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lineage
}

// meets says whether a ledger is that of the database which a Put was meant for. One that does not say after which position it
// goes on takes what is there.
func (h *half) meets(at *hold, l *ledger, b *ports.Batch, line uint64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.has(l, h.family)
	switch {
	case h.bound != at.bound:
		return errOver
	case b.After != nil && known && h.lineage == line:
	case b.After != nil:
		at.forget()
		if !known {
			h.estrange(sightOf(l, h.family))
		}
		return errElsewhere
	case !known:
		at.forget()
		h.lineage++
		h.begun = false
	}
	h.steps = []string{l.last[h.family].Step}
	return nil
}

// sends notes that a step is sent: until it is known what became of it, it may be the last one.
func (h *half) sends(s step) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.loose = true
	h.steps = append(h.steps, s.Step)
}

// sent notes that a step is the last one: that before the rows of a batch, or that with a position.
func (h *half) sent(b *binding, s step, begun bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.bound != b {
		return
	}
	h.sight, h.begun = sight{s.Position, []string{s.Step}}, begun
	if !begun {
		h.told, h.loose = s.Position, h.putting > 1
	}
}

// opened says whether the last step stands before the rows of a batch.
func (h *half) opened() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.begun
}
