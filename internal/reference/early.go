package reference

import (
	"slices"

	"holdfast/ports"
)

// decide decides an entry and, where it leaves an item there, what waited for that.
func (h *half) decide(e *ports.Entry, rules ports.Rules) (d ports.Decision, err error) {
	defer func() { d.Told(len(h.early)) }()
	dropped := len(h.early)
	h.early = slices.DeleteFunc(h.early, func(w ports.Entry) bool { return w.ReceivedMs < ports.TooEarly(e) })
	dropped -= len(h.early)
	effect, err := ports.Decide(e, h, rules)
	if err != nil {
		return ports.Decision{}, err
	}
	h.take(&effect, rules.HostID)
	if effect.Keep {
		h.early = append(h.early, *e)
	}
	d = effect.Decision
	d.Dropped = dropped
	if !effect.Arrives() {
		return d, nil
	}
	waiting, _, _ := h.Early(e.Key) // it never fails
	h.early = slices.DeleteFunc(h.early, func(w ports.Entry) bool { return w.Key == e.Key })
	for _, w := range ports.Release(waiting, e) {
		effect, err := ports.Decide(&w, h, rules)
		if err != nil {
			return d, err
		}
		if effect.Decision.Outcome == ports.Refused {
			d.Dropped++
			continue
		}
		h.take(&effect, rules.HostID)
		d.Applied++
	}
	return d, nil
}

// Early gives what waits for an item; see ports.Look.
func (h *half) Early(key string) (waiting []ports.Entry, inAll int, err error) {
	for _, e := range h.early {
		if e.Key == key {
			waiting = append(waiting, e)
		}
	}
	return waiting, len(h.early), nil
}
