package mesh

import (
	"context"
	"net/http"
	"time"

	"holdfast/ports"
)

// The works of outside callers: POST /Beacon/Work/Dispatch.

// The bounds of an outside caller's patience.
const (
	usualTimeout = 5 * time.Minute
	maxTimeout   = 24 * time.Hour
)

// dispatch has a work done for an outside caller, who waits for the answer (wire contract A.12).
func (h *Hub) dispatch(c *call) {
	if h.callers.Add(1) > int64(h.limits.Dispatches) {
		defer h.callers.Add(-1)
		refuseDispatch(c.w, ports.Errorf(ports.Full, "", "%d callers wait for works already", h.limits.Dispatches))
		return
	}
	defer h.callers.Add(-1)
	text, done, err := h.body(c, h.limits.Work)
	if err != nil {
		refuseDispatch(c.w, err)
		return
	}
	w, err := h.order(text, c.who)
	done()
	if err != nil {
		refuseDispatch(c.w, err)
		return
	}
	if w.record != nil {
		if err := h.record.room(c.r.Context()); err != nil {
			refuseDispatch(c.w, err)
			return
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), w.timeout)
	defer cancel()
	answer, err := h.carry(ctx, c.r.Context(), w)
	switch {
	case err != nil:
		refuseDispatch(c.w, err)
	case answer.Failure != "":
		send(c.w, http.StatusInternalServerError, newObject(len(answer.Failure)+100).boolean("Success", false).str("Error", answer.Failure).str("WorkItemHash", answer.WorkItemHash).done())
	default:
		send(c.w, http.StatusOK, newObject(len(answer.Outputs)+300).boolean("Success", true).str("WorkItemHash", answer.WorkItemHash).
			raw("Outputs", answer.Outputs).strs("Log", answer.Log).done())
	}
}

// order reads what an outside caller wants done.
func (h *Hub) order(text []byte, who visitor) (*work, error) {
	w, match := &work{patient: true, timeout: usualTimeout}, false
	_ = ports.ScanObject(text, maxFrameDepth, func(name, value []byte) error { // body checked it
		switch string(name) {
		case `"Capability"`:
			w.Capability = textOf(value)
		case `"Action"`:
			w.Action = textOf(value)
		case `"Settings"`:
			w.Settings = value
		case `"AffinityKey"`:
			w.affinity = textOf(value)
		case `"RequireAffinityMatch"`:
			match = string(value) == "true"
		case `"TimeoutMs"`:
			if ms := wholeNumber(value, 0); ms > 0 {
				w.timeout = min(time.Duration(ms)*time.Millisecond, maxTimeout)
			}
		}
		return nil
	})
	if w.Capability == "" {
		return nil, ports.InField(ports.Invalid, "Capability", "is missing")
	}
	w.Class = ports.ClassLive
	if h.record.keeps(w.Capability) {
		w.record = &recording{actor: who.actor, requireMatch: match}
	}
	var err error
	h.look(func() { err = h.address(w, match) })
	return w, err
}

// address finds whom a work is for. An affinity key that is the Name of a beacon means that beacon, if it offers the
// capability: a stock client answers what it cannot do with a success.
func (h *Hub) address(w *work, match bool) error {
	b := h.works.berths[w.affinity]
	switch {
	case len(h.registry.byName) == 0:
		return ports.Errorf(ports.Unavailable, "", "no beacon is registered")
	case w.affinity == "" && match:
		return ports.InField(ports.Invalid, "AffinityKey", "is missing, and RequireAffinityMatch asks for one")
	case b != nil && b.offersCapability(w.Capability):
		w.Beacon = w.affinity
	case match && b == nil:
		w.only = w.affinity // it may come
	case match:
		return ports.InField(ports.Invalid, "AffinityKey", "the beacon %q does not offer the capability %q", printable(w.affinity), printable(w.Capability))
	}
	return nil
}

// refuseDispatch answers a dispatch that has no result, in its envelope.
func refuseDispatch(w http.ResponseWriter, err error) {
	e := ports.AsError(err)
	status := http.StatusInternalServerError
	switch e.Code {
	case ports.Invalid:
		status = http.StatusBadRequest
	case ports.TooLarge:
		status = http.StatusRequestEntityTooLarge
	case ports.Unavailable, ports.Full:
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	}
	send(w, status, newObject(200).boolean("Success", false).str("Error", e.Error()).str("Code", string(e.Code)).done())
}
