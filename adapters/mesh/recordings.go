package mesh

import (
	"strconv"
	"time"

	"holdfast/ports"
)

// recording is what a work's history needs beside the work. Its works are those of outside callers, and never of an exempt
// capability.
type recording struct {
	actor        string
	requireMatch bool
	startedOn    string // the BeaconID; "" before the start
	startPath    string
}

// enqueued records a work that was taken in: the item and its first event.
func (r *recorder) enqueued(w *work) {
	if w.record == nil {
		return
	}
	item := func(settings []byte) func() []byte {
		return func() []byte { return newObject(len(settings)+900).raw("WorkItem", w.item(settings, r.start)).done() }
	}
	r.write(w, ports.UpsertWorkItem, int64(len(w.Settings)), item(w.Settings), item(omitted(len(w.Settings))))
	payload := newObject(200).str("Capability", w.Capability).str("Action", w.Action).number("Priority", 0).str("AffinityKey", w.affinity).done()
	r.event(w, w.enqueuedAt, "enqueued", "", w.firstStatus(), payload)
}

// firstStatus is an item's status before it starts.
func (w *work) firstStatus() string {
	if w.Beacon != "" {
		return "Assigned"
	}
	return "Pending"
}

// item is the whole work item of the wire contract, D.1, as it is before it starts. HubStart is ours, see orphans.go.
func (w *work) item(settings []byte, start string) []byte {
	at := isoTime(w.enqueuedAt)
	o := newObject(len(settings)+900).str("WorkItemHash", w.Hash).str("RunHash", "").str("RunID", "").str("NodeHash", "").str("OperationHash", "").
		str("Capability", w.Capability).str("Action", w.Action).raw("Settings", settings).str("AffinityKey", w.affinity).
		boolean("RequireAffinityMatch", w.record.requireMatch).raw("AssignedBeaconID", nil).str("Status", w.firstStatus()).
		number("TimeoutMs", w.timeout.Milliseconds()).str("CreatedAt", at).str("EnqueuedAt", at)
	for _, name := range []string{"AssignedAt", "DispatchedAt", "StartedAt", "ClaimedAt", "CompletedAt", "CanceledAt"} {
		o.raw(name, nil)
	}
	return o.boolean("CancelRequested", false).str("CancelReason", "").str("LastEventAt", at).number("QueueWaitMs", 0).number("Priority", 0).
		raw("Health", nil).str("HealthLabel", "Unknown").str("HealthReason", "").raw("HealthComputedAt", nil).raw("Result", nil).
		number("AttemptNumber", 0).number("MaxAttempts", 1).number("RetryBackoffMs", 5000).raw("RetryAfter", nil).raw("LastError", nil).
		str("HubStart", start).done()
}

// started records that a work went out.
func (r *recorder) started(w *work, b *beacon) {
	if w.record == nil || b == nil {
		return
	}
	w.record.startedOn, w.record.startPath = b.id, "push"
	if w.conn == 0 {
		w.record.startPath = "poll"
	}
	at, waited := isoTime(w.sentAt), w.sentAt.Sub(w.enqueuedAt).Milliseconds()
	patch := newObject(400).str("Status", "Running").str("AssignedBeaconID", b.id)
	for _, name := range []string{"AssignedAt", "ClaimedAt", "DispatchedAt", "StartedAt", "LastEventAt"} {
		patch.str(name, at)
	}
	r.patch(w, patch.number("QueueWaitMs", waited).number("AttemptNumber", 1).done())
	r.event(w, w.sentAt, "dispatched", w.firstStatus(), "Running", newObject(60).number("QueueWaitMs", waited).str("Path", w.record.startPath).done())
	r.attempted(w)
}

// attempted records that a beacon was given the work. A second time changes nothing.
func (r *recorder) attempted(w *work) {
	at := isoTime(w.sentAt)
	attempt := newObject(300).str("WorkItemHash", w.Hash).number("AttemptNumber", 1).str("BeaconID", w.record.startedOn).str("DispatchedAt", at).
		str("StartedAt", at).str("Outcome", "Dispatched").done()
	r.plain(w, ports.InsertAttempt, newObject(len(attempt)).raw("Attempt", attempt).done())
}

// moved records that a beacon was heard of about a work.
func (r *recorder) moved(w *work, now time.Time) {
	if w.record != nil {
		r.patch(w, newObject(60).str("LastEventAt", isoTime(now)).done())
	}
}

// finished records how a work ended.
func (r *recorder) finished(w *work) {
	if w.record == nil {
		return
	}
	o := &w.answer
	at, from, took := isoTime(o.at), w.firstStatus(), time.Duration(0)
	if w.record.startedOn != "" {
		from, took = "Running", o.at.Sub(w.sentAt)
	}
	code, problem := ports.CodeOf(o.err), o.Failure
	if o.err != nil {
		problem = o.err.Error()
	}
	switch {
	case code == ports.Canceled && w.record.startedOn == "":
		r.patch(w, newObject(300).str("Status", "Canceled").str("CanceledAt", at).str("CancelReason", problem).str("LastEventAt", at).done())
		r.event(w, o.at, "canceled", from, "Canceled", newObject(100).str("Reason", problem).done())
		return
	case problem == "":
		r.ended(w, "Complete", at, "", func() []byte {
			return newObject(len(o.Outputs)+100).raw("Outputs", o.Outputs).strs("Log", o.Log).done()
		})
		r.event(w, o.at, "completed", from, "Complete", newObject(40).number("DurationMs", took.Milliseconds()).done())
		r.outcome(w, "Complete", at, took, "")
		return
	}
	status := "Error"
	if code == ports.Deadline {
		status = "Timeout"
	}
	r.ended(w, status, at, problem, func() []byte {
		return newObject(len(problem)+100).str("Error", problem).strs("Log", o.Log).done()
	})
	r.event(w, o.at, "failed", from, status, newObject(len(problem)+60).str("Error", problem).number("DurationMs", took.Milliseconds()).done())
	r.outcome(w, status, at, took, problem)
}

// ended records the end of an item.
func (r *recorder) ended(w *work, status, at, problem string, result func() []byte) {
	patch := func(result func() []byte) func() []byte {
		return func() []byte {
			text := result()
			o := newObject(len(text)+300).str("Status", status).str("CompletedAt", at).str("LastEventAt", at)
			if problem != "" {
				o.str("LastError", problem)
			}
			return newObject(len(text)+500).str("WorkItemHash", w.Hash).raw("Patch", o.raw("Result", text).done()).done()
		}
	}
	r.write(w, ports.UpdateWorkItem, int64(len(w.answer.Outputs)), patch(result), patch(func() []byte { return omitted(len(result())) }))
}

// omitted stands for what a caller or a beacon said and the history cannot hold.
func omitted(size int) []byte {
	return newObject(80).str("Omitted", strconv.Itoa(size)+" bytes that the history cannot hold").done()
}

// outcome records how the attempt ended, which there is only when the work had started.
func (r *recorder) outcome(w *work, outcome, at string, took time.Duration, problem string) {
	if w.record.startedOn == "" {
		return
	}
	o := newObject(300).str("CompletedAt", at).str("EndedAt", at).str("Outcome", outcome).number("DurationMs", took.Milliseconds())
	if problem != "" {
		o.str("ErrorMessage", problem).str("Error", problem)
	}
	patch := o.done()
	r.plain(w, ports.UpdateAttemptOutcome, newObject(len(patch)+200).str("WorkItemHash", w.Hash).number("AttemptNumber", 1).raw("Patch", patch).done())
}

// patch records a change of a work's item.
func (r *recorder) patch(w *work, patch []byte) {
	r.plain(w, ports.UpdateWorkItem, newObject(len(patch)+200).str("WorkItemHash", w.Hash).raw("Patch", patch).done())
}

// event records an event of a work. It has its GUID from here, so that it is known again when it is handed over twice.
func (r *recorder) event(w *work, at time.Time, kind, from, to string, payload []byte) {
	o := newObject(len(payload)+400).str("EventGUID", newGUID()).str("WorkItemHash", w.Hash).str("RunID", "").str("EventType", kind).
		str("EmittedAt", isoTime(at)).str("FromStatus", from).str("ToStatus", to)
	if w.record.startedOn != "" {
		o.str("BeaconID", w.record.startedOn)
	}
	event := o.raw("Payload", payload).done()
	r.plain(w, ports.AppendEvent, newObject(len(event)).raw("Event", event).done())
}

// plain records a write that is small and written already.
func (r *recorder) plain(w *work, action ports.Action, settings []byte) {
	r.write(w, action, int64(len(settings)), func() []byte { return settings }, nil)
}

func (r *recorder) write(w *work, action ports.Action, size int64, build, without func() []byte) {
	r.put(record{hash: w.Hash, action: action, build: build, without: without, actor: w.record.actor, size: size + 200})
}
