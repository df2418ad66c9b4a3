package mesh

import (
	"context"
	"errors"
	"time"

	"holdfast/ports"
)

var _ ports.Mesh = (*Hub)(nil)

// Dispatch is ports.Mesh's.
func (h *Hub) Dispatch(ctx context.Context, w ports.Work) (ports.WorkAnswer, error) {
	if w.Beacon == "" && w.Capability == "" {
		return ports.WorkAnswer{}, ports.InField(ports.Invalid, "Capability", "is missing")
	}
	a, err := h.carry(ctx, ctx, &work{Work: w})
	return onlyObject(a), err
}

// carry has a work done: it is enqueued, and answered once, at the latest when ctx ends. When asked ends, its caller has gone
// away: what has not gone out then is taken back, what has is waited for, so that its end is known.
func (h *Hub) carry(ctx, asked context.Context, w *work) (ports.WorkAnswer, error) {
	deadline, bound := ctx.Deadline()
	if !bound {
		return ports.WorkAnswer{}, ports.Errorf(ports.Invalid, "mesh", "a work needs a deadline")
	}
	if err := h.check(w); err != nil {
		return ports.WorkAnswer{}, err
	}
	if err := context.Cause(asked); err != nil {
		return ports.WorkAnswer{}, ports.Wrap(ports.CodeOf(err), "mesh", err)
	}
	if w.answered = make(chan struct{}); w.timeout == 0 {
		w.timeout = time.Until(deadline).Round(time.Millisecond)
	}
	var err error
	h.step(func(now time.Time) {
		if h.closed {
			err = errStopping
			return
		}
		err = h.enqueue(w, now)
	})
	if err != nil {
		return ports.WorkAnswer{}, err
	}
	select {
	case <-w.answered:
	case <-ctx.Done():
		h.giveUp(ctx, w, sent)
	case <-asked.Done():
		h.giveUp(asked, w, handed)
		select {
		case <-w.answered:
		case <-ctx.Done():
			h.giveUp(ctx, w, sent)
		}
	}
	<-w.answered
	return w.answer.WorkAnswer, w.answer.err
}

// giveUp ends a work for its caller, if it has come no further than a state.
func (h *Hub) giveUp(why context.Context, w *work, most state) {
	h.step(func(now time.Time) {
		if w.state <= most {
			h.works.giveUp(w, h.tooLate(why, w), now)
		}
	})
}

// enqueue takes a work in; its enqueuing is recorded before anything else of it. It is called in a step.
func (h *Hub) enqueue(w *work, now time.Time) error {
	if err := h.works.admit(w, now); err != nil {
		return err
	}
	h.record.enqueued(w)
	h.works.enter(w)
	return nil
}

// check says what is wrong with a work.
func (h *Hub) check(w *work) error {
	if w.Class < ports.ClassProbe || w.Class > ports.ClassCatchUp {
		return ports.InField(ports.Invalid, "Class", "%d is no class of work", w.Class)
	}
	if w.Action == "" {
		w.Action = "Execute"
	}
	if w.Capability == "" || len(w.Capability) > maxName || len(w.Action) > maxName {
		return ports.InField(ports.Invalid, "Capability", "is missing, or it or the Action is longer than %d bytes", maxName)
	}
	if len(w.Settings) == 0 || string(w.Settings) == "null" {
		w.Settings = []byte("{}")
	}
	if int64(len(w.Settings)) > h.limits.Work {
		return ports.OverLimit("Settings", "bytes", h.limits.Work, int64(len(w.Settings)))
	}
	if err := ports.ScanObject(w.Settings, maxFrameDepth, nil); err != nil {
		e := *ports.AsError(err)
		e.Field = "Settings"
		return &e
	}
	return nil
}

// tooLate says why a caller waits no longer. It is called in a step.
func (h *Hub) tooLate(ctx context.Context, w *work) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ports.Errorf(ports.Canceled, "mesh", "the caller went away")
	}
	after := w.timeout.Milliseconds()
	switch {
	case w.state == sent:
		return ports.Errorf(ports.Deadline, "mesh", "the beacon %q did not report within %d ms; the outcome is unknown", w.berth.name, after)
	case w.berth != nil && w.berth.muted:
		return ports.Errorf(ports.Deadline, "mesh", "the beacon %q did not answer within %d ms, and may be busy; it was not sent the work", w.berth.name, after)
	case w.berth.lingering() > 0:
		return ports.Errorf(ports.Deadline, "mesh", "the beacon %q is still busy with %d earlier works that nobody waits for any more, and had no slot free within %d ms; it was not sent the work",
			w.berth.name, w.berth.lingering(), after)
	case w.berth != nil:
		return ports.Errorf(ports.Deadline, "mesh", "the beacon %q had no slot free within %d ms; it was not sent the work", w.berth.name, after)
	}
	if w.only != "" {
		return ports.Errorf(ports.Deadline, "mesh", "no beacon with the name %q that offers %q came within %d ms", printable(w.only), w.Capability, after)
	}
	busy := 0
	for _, b := range h.works.offers[w.Capability] {
		busy += b.lingering()
	}
	if busy > 0 {
		return ports.Errorf(ports.Deadline, "mesh", "the beacons that offer %q are still busy with %d earlier works that nobody waits for any more, and had no slot free within %d ms; none of them was sent the work",
			w.Capability, busy, after)
	}
	return ports.Errorf(ports.Deadline, "mesh", "no beacon that offers %q took the work within %d ms", w.Capability, after)
}
