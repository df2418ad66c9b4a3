package stock

// The works of a hub: how they come in, who gets them, how they are waited for.

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"
)

// WorkItem is a work as the hub knows it. Members that only some works have are left out when they are empty.
type WorkItem struct {
	WorkItemHash         string
	RunHash              string
	RunID                string
	NodeHash             string
	OperationHash        string
	Capability           string
	Action               string
	Settings             map[string]any
	AffinityKey          string
	RequireAffinityMatch bool
	AssignedBeaconID     *string
	Status               string
	TimeoutMs            int64
	CreatedAt            string
	EnqueuedAt           string
	AssignedAt           *string
	DispatchedAt         *string
	StartedAt            *string
	ClaimedAt            *string
	CompletedAt          *string
	CanceledAt           *string
	CancelRequested      bool
	CancelReason         string
	LastEventAt          string
	QueueWaitMs          int64
	Priority             int
	Health               *float64
	HealthLabel          string
	HealthReason         string
	HealthComputedAt     *string
	Result               any
	AttemptNumber        int
	MaxAttempts          int
	RetryBackoffMs       int64
	RetryAfter           *int64
	LastError            *string

	Progress       map[string]any `json:",omitempty"`
	AccumulatedLog []string       `json:",omitempty"`
	StalledAt      string         `json:",omitempty"`
	StalledSinceMs int64          `json:",omitempty"`
	PriorStatus    string         `json:"PriorStatusBeforeStall,omitempty"`

	stalled bool // its stall was final
	inPlace bool // QueueMetadata was put into its Settings
}

// Spec is a work that somebody asks for.
type Spec struct {
	Capability           string // Shell
	Action               string // Execute
	Settings             map[string]any
	RunHash              string
	RunID                string
	NodeHash             string
	OperationHash        string
	AffinityKey          string
	RequireAffinityMatch bool
	TimeoutMs            int64 // 300000
	Priority             *int
}

// Outcome is what became of a dispatched work.
type Outcome struct {
	WorkItemHash string
	Outputs      json.RawMessage
	Log          json.RawMessage
	Err          error // the beacon's message, or that no answer came in time
}

// waiter is somebody who waits for the outcome of a work.
type waiter struct {
	answer  chan Outcome
	settled chan struct{} // closed with the outcome, when it came in time
}

// Binding ties an affinity key to a beacon.
type Binding struct {
	AffinityKey string
	BeaconID    string
	RunHash     string
	CreatedAt   string
	ExpiresAt   string
}

// Enqueue takes a work in and hands it out when a beacon can take it now. It gives the work's hash.
func (h *Hub) Enqueue(spec Spec) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.enqueue(spec).WorkItemHash
}

// Dispatch has a work done and waits for its answer, its failure, or the end of its time, which begins now.
func (h *Hub) Dispatch(spec Spec) Outcome {
	h.mu.Lock()
	answer := h.dispatch(spec)
	h.mu.Unlock()
	select {
	case o := <-answer:
		return o
	case <-h.life.Done():
		return Outcome{Err: errors.New("the hub was closed")}
	}
}

// dispatch is Dispatch, but the answer comes later.
func (h *Hub) dispatch(spec Spec) <-chan Outcome {
	spec.RunHash, spec.NodeHash, spec.OperationHash = "", "", ""
	item := h.enqueue(spec)
	w := &waiter{answer: make(chan Outcome, 1), settled: make(chan struct{})}
	h.waiters[item.WorkItemHash] = w
	after := time.Duration(item.TimeoutMs) * time.Millisecond
	due, forget := h.config.Clock.After(after)
	h.spawn(func() {
		defer forget()
		select {
		case <-due:
			h.giveUp(item, after)
		case <-w.settled:
		case <-h.life.Done():
		}
	})
	return w.answer
}

// giveUp ends a dispatch whose time is over: no trace of it remains, and nothing is written.
func (h *Hub) giveUp(item *WorkItem, after time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.waiters[item.WorkItemHash]
	if w == nil {
		return
	}
	delete(h.waiters, item.WorkItemHash)
	h.release(item.AssignedBeaconID, item.WorkItemHash) // which may well push this very work
	h.remove(item)
	//nolint:revive,staticcheck // the text is the stock hub's
	w.answer <- Outcome{WorkItemHash: item.WorkItemHash, Err: fmt.Errorf("Direct dispatch timed out after %dms.", after.Milliseconds())}
}

// settle answers who waits for a work; it says whether anybody did.
func (h *Hub) settle(hash string, o Outcome) bool {
	w, ok := h.waiters[hash]
	if ok {
		delete(h.waiters, hash)
		o.WorkItemHash = hash
		w.answer <- o
		close(w.settled)
	}
	return ok
}

func (h *Hub) enqueue(spec Spec) *WorkItem {
	h.counter++
	now := h.now()
	orDefault(&spec.Capability, "Shell")
	orDefault(&spec.Action, "Execute")
	orDefault(&spec.TimeoutMs, 300_000)
	run, node := spec.RunHash, spec.NodeHash
	orDefault(&run, "unknown")
	orDefault(&node, "unknown")
	if spec.Settings == nil {
		spec.Settings = map[string]any{}
	}
	item := &WorkItem{
		WorkItemHash: fmt.Sprintf("wi-%s-%s-%d-%d", run, node, now.UnixMilli(), h.counter), RunHash: spec.RunHash,
		RunID: spec.RunID, NodeHash: spec.NodeHash, OperationHash: spec.OperationHash, Capability: spec.Capability,
		Action: spec.Action, Settings: spec.Settings, AffinityKey: spec.AffinityKey,
		RequireAffinityMatch: spec.RequireAffinityMatch, Status: "Pending", TimeoutMs: spec.TimeoutMs, CreatedAt: iso(now),
		EnqueuedAt: iso(now), LastEventAt: iso(now), HealthLabel: "Unknown", Priority: asked(spec.Settings, "priority", 0),
		MaxAttempts: asked(spec.Settings, "maxRetries", 1), RetryBackoffMs: int64(asked(spec.Settings, "retryBackoffMs", 5000)),
	}
	if spec.Priority != nil {
		item.Priority = *spec.Priority
	}
	h.assign(item)
	h.byHash[item.WorkItemHash] = h.queue.PushBack(item)
	h.persist(item, "QP_UpsertWorkItem", map[string]any{"WorkItem": item})
	h.persistEvent(item, "enqueued", "", item.Status, false, map[string]any{
		"Capability": item.Capability, "Action": item.Action, "Priority": item.Priority, "AffinityKey": item.AffinityKey,
	})
	switch item.Status {
	case "Pending":
		h.pushFree(item)
	case "Assigned":
		h.pushAssigned(item)
	}
	h.note()
	return item
}

// asked reads a number from the settings, whatever it is written as; 0 counts as none.
func asked(settings map[string]any, name string, fallback int) int {
	var n int
	switch v := settings[name].(type) {
	case json.RawMessage:
		n = number(v)
	case int:
		n = v
	case float64:
		n = int(v)
	case string:
		n, _ = strconv.Atoi(v)
	}
	orDefault(&n, fallback)
	return n
}

func (h *Hub) item(hash string) *WorkItem {
	if e := h.byHash[hash]; e != nil {
		return e.Value.(*WorkItem)
	}
	return nil
}

func (h *Hub) remove(item *WorkItem) {
	if e := h.byHash[item.WorkItemHash]; e != nil {
		h.queue.Remove(e)
		delete(h.byHash, item.WorkItemHash)
		h.note()
	}
}

// items are the works in the order of their arrival; a work may be removed meanwhile.
func (h *Hub) items() iter.Seq[*WorkItem] {
	return func(yield func(*WorkItem) bool) {
		for e := h.queue.Front(); e != nil; {
			next := e.Next()
			if !yield(e.Value.(*WorkItem)) {
				return
			}
			e = next
		}
	}
}

// delivery is a work as a beacon gets it. Settings come with QueueMetadata put in, once and for good.
func (h *Hub) delivery(item *WorkItem) any {
	if !item.inPlace {
		h.describe(item, item.attempt())
	}
	return map[string]any{
		"WorkItemHash": item.WorkItemHash, "RunID": item.RunID, "Capability": item.Capability, "Action": item.Action,
		"Settings": item.Settings, "OperationHash": item.OperationHash, "TimeoutMs": item.TimeoutMs,
		"AttemptNumber": item.attempt(), "QueueMetadata": item.Settings["QueueMetadata"],
	}
}

func (w *WorkItem) attempt() int { return max(w.AttemptNumber, 1) }

func (h *Hub) describe(item *WorkItem, attempt int) {
	now := h.now()
	dispatched := iso(now)
	if item.DispatchedAt != nil {
		dispatched = *item.DispatchedAt
	}
	wait := item.QueueWaitMs
	orDefault(&wait, since(item.EnqueuedAt, now))
	item.inPlace = true
	item.Settings["QueueMetadata"] = map[string]any{
		"RunID": item.RunID, "WorkItemHash": item.WorkItemHash, "EnqueuedAt": item.EnqueuedAt, "DispatchedAt": dispatched,
		"QueueWaitMs": wait, "AttemptNumber": attempt, "HubInstanceID": h.config.Name,
	}
}

// since is how many milliseconds have passed.
func since(stamp string, now time.Time) int64 {
	t, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return 0
	}
	return max(0, now.Sub(t).Milliseconds())
}
