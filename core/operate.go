package core

import (
	"context"
	"time"

	"holdfast/ports"
)

// What an operator can ask for and do.

// WriteStatus is what became of one write.
type WriteStatus struct {
	Family  ports.Family
	Seq     uint64
	State   string // unknown, pending, decided or set_aside
	Outcome string `json:",omitempty"` // of a decided one that was not simply stored
	Reason  string `json:",omitempty"`
}

// Write tells what became of a write.
func (h *Host) Write(name ports.Family, seq uint64) WriteStatus {
	f := h.families[name]
	s := WriteStatus{Family: name, Seq: seq, State: "unknown"}
	if seq == 0 || seq > f.head() {
		return s
	}
	if page, err := h.state.Asides(name, seq-1, 1); err == nil && len(page) == 1 && page[0].Entry.Seq == seq {
		s.State, s.Outcome, s.Reason = "set_aside", string(page[0].Code), page[0].Reason
		return s
	}
	if seq > f.committed.Load() {
		s.State = "pending"
		return s
	}
	s.State = "decided"
	if w, ok := f.overtaken.find(seq); ok {
		s.Outcome, s.Reason = w.Outcome, w.Reason
	}
	return s
}

// Asides lists the entries that are set aside, oldest first.
func (h *Host) Asides() ([]AsideStatus, error) {
	list := []AsideStatus{}
	for _, name := range ports.Families {
		err := h.families[name].committer.eachAside(func(a ports.Aside) { list = append(list, asideStatus(name, a)) })
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

func asideStatus(name ports.Family, a ports.Aside) AsideStatus {
	return AsideStatus{
		Family: name, Seq: a.Entry.Seq, Action: a.Entry.Action, Key: a.Entry.Key, Code: a.Code, Reason: a.Reason,
		At: time.UnixMilli(a.AtMs).UTC(), Bytes: len(a.Entry.Record),
	}
}

// ofKey gives the set-aside entries of a key, oldest first.
func (h *Host) ofKey(name ports.Family, key string) (list []ports.Aside, err error) {
	err = h.families[name].committer.eachAside(func(a ports.Aside) {
		if a.Entry.Key == key {
			list = append(list, a)
		}
	})
	if err == nil && len(list) == 0 {
		err = ports.InField(ports.NotFound, "Key", "has nothing set aside; `holdfast unsettled list` shows what is")
	}
	return list, err
}

// RetryAside journals the set-aside entries of a key again, in order, and says how many. The commit loop takes each off when
// the local store has decided it; one that fails again stays, with those behind it.
func (h *Host) RetryAside(name ports.Family, key string) (int, error) {
	h.retry.Lock()
	defer h.retry.Unlock()
	list, err := h.ofKey(name, key)
	if err != nil {
		return 0, err
	}
	var last ports.Receipt
	for _, a := range list {
		if last, err = h.families[name].committer.replay(a.Entry); err != nil {
			return 0, err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return len(list), last.Wait(ctx)
}

// DiscardAside gives up the oldest set-aside entry of a key.
func (h *Host) DiscardAside(name ports.Family, key string) (AsideStatus, error) {
	h.retry.Lock()
	defer h.retry.Unlock()
	list, err := h.ofKey(name, key)
	if err != nil {
		return AsideStatus{}, err
	}
	first := list[0]
	if err := h.state.DropAside(name, first.Entry.Seq); err != nil {
		return AsideStatus{}, err
	}
	h.families[name].committer.asides.drop(key, first.Entry.Seq)
	h.log.Warn("discarded a set-aside write", "family", name, "seq", first.Entry.Seq, "action", first.Entry.Action)
	return asideStatus(name, first), nil
}

// AcceptLocal goes on with a local store that holds other history; adopt also brings it what the journal still has.
func (h *Host) AcceptLocal(adopt bool) error {
	k := h.link
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.phase != needsOne || !k.choice {
		help := ""
		if k.phase == needsOne {
			help = " for another reason; `holdfast status` says what helps"
		}
		return ports.Errorf(ports.Conflict, "local accept", "the local store does not wait to be accepted; it is %s%s", k.phase, help)
	}
	k.accept = accepted
	if adopt {
		k.accept = adopted
	}
	notify(k.poke)
	return nil
}

// power gives an optional power of the local store.
func power[T any](h *Host, what string) (T, error) {
	h.link.mu.Lock()
	description := h.link.powers
	h.link.mu.Unlock()
	p, ok := ports.As[T](h.link.Store, description)
	if !ok {
		return p, ports.Errorf(ports.Unimplemented, what, "the local store %s does not offer it, or was not reached yet", h.link.name)
	}
	return p, nil
}

// Export gives a page of a family in the order of natural keys.
func (h *Host) Export(ctx context.Context, q ports.ExportQuery) (ports.Page, error) {
	exporter, err := power[ports.Exporter](h, "export")
	if err != nil {
		return ports.Page{}, err
	}
	f := h.families[q.Family]
	if q.After == nil && !h.awaitPosition(ctx, f, f.head()) {
		return ports.Page{}, ports.Errorf(ports.Unavailable, "export", "the local store is behind the journal; see `holdfast status`")
	}
	return exporter.Export(ctx, q)
}

// Prune removes finished history older than a time, in short steps, until nothing is left or ctx ends.
func (h *Host) Prune(ctx context.Context, before time.Time) (ports.Pruned, error) {
	var sum ports.Pruned
	pruner, err := power[ports.Pruner](h, "prune")
	for err == nil {
		var step ports.Pruned
		if step, err = pruner.Prune(ctx, ports.PruneQuery{Before: before}); err != nil {
			break // More stays what the step before said
		}
		sum.Items += step.Items
		sum.Events += step.Events
		sum.Attempts += step.Attempts
		sum.Manifests += step.Manifests
		if sum.More = step.More; !step.More {
			break
		}
		if ctx.Err() != nil {
			return sum, nil // the steps that were made stand; More says that there are others
		}
	}
	return sum, err
}

// Survey counts what the local store holds.
func (h *Host) Survey(ctx context.Context) (ports.Survey, error) {
	surveyor, err := power[ports.Surveyor](h, "survey")
	if err != nil {
		return ports.Survey{}, err
	}
	return surveyor.Survey(ctx)
}
