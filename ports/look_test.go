package ports_test

import (
	"fmt"
	"slices"
	"strings"

	"holdfast/ports"
)

// history is a local store in memory: what Decide looks at, changed only by its effects. Each record that it keeps goes
// through its columns and back, as in a real store.
type history struct {
	held map[string]*ports.Held
	gone map[string]bool

	early map[string][]ports.Entry
}

func newHistory() *history {
	return &history{held: map[string]*ports.Held{}, gone: map[string]bool{}, early: map[string][]ports.Entry{}}
}

func place(k ports.Kind, key string) string { return string(k) + " " + key }

func (h *history) Item(key string) (*ports.Held, error) {
	return h.held[place(ports.KindItem, key)], nil
}
func (h *history) Event(guid string) (*ports.Held, error) {
	return h.held[place(ports.KindEvent, guid)], nil
}
func (h *history) Attempt(key string, number int64) (*ports.Held, error) {
	return h.held[place(ports.KindAttempt, fmt.Sprint(key, " ", number))], nil
}
func (h *history) Manifest(key string) (*ports.Held, error) {
	return h.held[place(ports.KindManifest, key)], nil
}
func (h *history) Gone(k ports.Kind, key string) (bool, error) { return h.gone[place(k, key)], nil }

func (h *history) Early(key string) (waiting []ports.Entry, inAll int, err error) {
	for _, list := range h.early {
		inAll += len(list)
	}
	return h.early[key], inAll, nil
}

// expire drops the early writes that have waited too long when an entry comes.
func (h *history) expire(e *ports.Entry) (dropped int) {
	for key, list := range h.early {
		kept := slices.DeleteFunc(slices.Clone(list), func(w ports.Entry) bool { return w.ReceivedMs < ports.TooEarly(e) })
		dropped += len(list) - len(kept)
		h.early[key] = kept
	}
	return dropped
}

// commitAll decides an entry and, where it brings an item, the early writes that waited for it.
func (h *history) commitAll(t failer, e *ports.Entry, rules ports.Rules) ports.Decision {
	t.Helper()
	dropped := h.expire(e)
	effect := h.commit(t, e, rules)
	d := effect.Decision
	d.Dropped = dropped
	if waiting := h.early[e.Key]; effect.Arrives() && len(waiting) > 0 {
		delete(h.early, e.Key)
		for _, w := range ports.Release(waiting, e) {
			if h.commit(t, &w, rules).Decision.Outcome == ports.Refused {
				d.Dropped++
			} else {
				d.Applied++
			}
		}
	}
	return d
}

// failer is what a test and a property have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// commit decides an entry and applies the effect.
func (h *history) commit(t failer, e *ports.Entry, rules ports.Rules) ports.Effect {
	t.Helper()
	effect, err := ports.Decide(e, h, rules)
	if err != nil {
		t.Fatalf("decide: %v", err)
	}
	at := place(effect.Kind, effect.Key)
	switch effect.Kind {
	case ports.KindEvent:
		at = place(effect.Kind, effect.GUID)
	case ports.KindAttempt:
		at = place(effect.Kind, fmt.Sprint(effect.Key, " ", effect.Number))
	}
	if effect.Present != h.held[at] && (effect.Next != nil || effect.Bury) {
		t.Fatalf("the effect replaces %v, present is %v", effect.Present, h.held[at])
	}
	if effect.Keep {
		h.early[e.Key] = append(h.early[e.Key], *e)
	}
	if effect.Revive {
		delete(h.gone, at)
	}
	switch {
	case effect.Bury:
		delete(h.held, at)
		h.gone[at] = true
	case effect.Next != nil:
		h.held[at] = throughColumns(t, effect.Next)
	}
	if h.held[at] != nil && h.gone[at] {
		t.Fatalf("%s is there and has a tombstone", at)
	}
	return effect
}

// throughColumns gives what a store reads back. A manifest is kept as text.
func throughColumns(t failer, held *ports.Held) *ports.Held {
	t.Helper()
	back := *held
	var err error
	if held.Record.Table == ports.Manifests {
		back.Record, err = ports.ParseRecord(ports.Manifests, held.Record.JSON())
	} else {
		back.Record, err = ports.RestoreRecord(held.Record.Table, held.Record.Project(held.First))
	}
	if err != nil {
		t.Fatalf("read back %s: %v", held.Record.JSON(), err)
	}
	return &back
}

// texts lists what is kept of a kind, in OrderKey order.
func (h *history) texts(k ports.Kind) []string {
	var kept []*ports.Held
	for at, held := range h.held {
		if strings.HasPrefix(at, string(k)+" ") {
			kept = append(kept, held)
		}
	}
	slices.SortFunc(kept, func(a, b *ports.Held) int { return strings.Compare(a.First.OrderKey, b.First.OrderKey) })
	var texts []string
	for _, held := range kept {
		texts = append(texts, string(held.Record.JSON()))
	}
	return texts
}
