package mesh

import (
	"bytes"
	"time"

	"holdfast/ports"
)

// deliver is the frame that brings a work to a beacon.
func (h *Hub) deliver(w *work) []byte {
	item := h.itemOf(w)
	return newObject(len(item)+40).str("EventType", "WorkItem").raw("WorkItem", item).done()
}

// itemOf is a work as a beacon gets it, pushed or polled (wire contract A.11): nine members, the settings as they came with
// QueueMetadata behind them.
func (h *Hub) itemOf(w *work) []byte {
	about := newObject(300).str("RunID", "").str("WorkItemHash", w.Hash).at("EnqueuedAt", w.enqueuedAt).at("DispatchedAt", w.sentAt).
		number("QueueWaitMs", w.sentAt.Sub(w.enqueuedAt).Milliseconds()).number("AttemptNumber", 1).str("HubInstanceID", h.name).done()
	return newObject(len(w.Settings)+2*len(about)+300).str("WorkItemHash", w.Hash).str("RunID", "").str("Capability", w.Capability).
		str("Action", w.Action).raw("Settings", withMetadata(w.Settings, about)).str("OperationHash", "").
		number("TimeoutMs", w.timeout.Milliseconds()).number("AttemptNumber", 1).raw("QueueMetadata", about).done()
}

// withMetadata adds QueueMetadata to settings, in place of one that is there.
func withMetadata(settings, about []byte) []byte {
	const name = "QueueMetadata"
	settings = bytes.TrimSpace(settings)
	if bytes.Contains(settings, []byte("QueueMetadata")) || bytes.Contains(settings, []byte(`\u`)) {
		o := newObject(len(settings) + len(about))
		_ = ports.ScanObject(settings, maxFrameDepth, func(quoted, value []byte) error { // they were checked when they came
			if plain, _ := ports.Unquote(quoted); plain != name {
				o.member(quoted, value)
			}
			return nil
		})
		return o.raw(name, about).done()
	}
	out := make([]byte, 0, len(settings)+len(about)+len(name)+8)
	out = append(out, settings[:len(settings)-1]...)
	if len(bytes.TrimSpace(settings[1:len(settings)-1])) > 0 {
		out = append(out, ',')
	}
	out = append(out, `"QueueMetadata":`...)
	out = append(out, about...)
	return append(out, '}')
}

// report takes a beacon's word about a work in. from is "" where the transport does not tell who speaks. It is called in a
// step.
func (h *Hub) report(hash, from string, answer ports.WorkAnswer, now time.Time) verdict {
	v := h.works.report(hash, from, answer, now)
	if v == unknown && h.orphaned(hash, from, outcome{WorkAnswer: answer, at: now}) {
		v = completed
	}
	switch v {
	case late:
		h.counts.late.Add(1)
		h.log.Debug("a late report", "work", printable(hash), "beacon", from)
	case unknown:
		h.counts.unknown.Add(1)
		h.log.Debug("a report about no work", "work", printable(hash), "beacon", from)
	}
	return v
}

// maxProgress is how large a word about progress is kept; a larger one is a sign of life all the same.
const maxProgress = 4 << 10

// progressEvery is how long a work is heard of without a word of it being recorded.
const progressEvery = 5 * time.Second

// progress notes how far a beacon is. It is called in a step.
func (h *Hub) progress(hash, from string, said []byte, now time.Time) bool {
	if len(said) > maxProgress || len(said) > 0 && said[0] != '{' {
		said = nil
	}
	w, known := h.works.progress(hash, from, bytes.Clone(said), now)
	if known {
		if now.Sub(w.heardAt) >= progressEvery {
			h.record.moved(w, now)
		}
		w.heardAt = now
	}
	return known
}
