package stock

// How a hub keeps its history: each call goes to the databeacon that was bootstrapped, else to the first beacon that offers
// the family, else into its own store. There is no second choice when the first one fails, and nobody tries twice.

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Fired is a call about history that the hub made.
type Fired struct {
	Action   string
	Settings json.RawMessage // as they were then; a beacon gets them as they are when it is handed the work
	To       string          // "beacon", "meadowproxy", "local", "none"
	Flush    bool
}

// bridge is what a hub knows of its history.
type bridge struct {
	local       *Persistence
	eventIDs    map[string][]int // of the local store, by item
	lastEvent   int
	runs        []members       // in memory, for as long as the hub lives
	afar        map[string]bool // of those, by hash: the disk was not told how the run ended, for another store was
	flushing    map[string]bool
	marks       map[string]string // how far a beacon was flushed, by family and BeaconID
	sweeps      []Sweep
	calls       int
	failures    int
	localWrites int
	proxied     bool // a databeacon was assigned and bootstrapped; nothing takes that back
	fired       []Fired
}

func (b *bridge) init() {
	b.local, b.eventIDs = NewPersistence(), map[string][]int{}
	b.afar, b.flushing, b.marks = map[string]bool{}, map[string]bool{}, map[string]string{}
	b.local.Watch(func(w Write) {
		b.localWrites++
		if w.Action == "QP_AppendEvent" {
			b.lastEvent++
			b.eventIDs[w.Key] = append(b.eventIDs[w.Key], b.lastEvent)
		}
	})
}

// exempt are the capabilities whose works are not written about.
var exempt = []string{QueueFamily, ManifestFamily, "MeadowProxy", "DataBeaconSchema", "DataBeaconManagement"}

func (h *Hub) persist(item *WorkItem, action string, settings map[string]any) {
	if !slices.Contains(exempt, item.Capability) {
		h.write(action, settings)
	}
}

func (h *Hub) patch(item *WorkItem, patch map[string]any) {
	h.persist(item, "QP_UpdateWorkItem", patchOf(item, patch))
}

func (h *Hub) persistEvent(item *WorkItem, kind, from, to string, beacon bool, payload map[string]any) {
	if !slices.Contains(exempt, item.Capability) {
		h.writeEvent(item, kind, from, to, beacon, payload)
	}
}

func (h *Hub) persistAttempt(item *WorkItem) {
	if !slices.Contains(exempt, item.Capability) {
		h.writeAttempt(item)
	}
}

func (h *Hub) persistOutcome(item *WorkItem, patch map[string]any) {
	h.persist(item, "QP_UpdateAttemptOutcome", map[string]any{
		"WorkItemHash": item.WorkItemHash, "AttemptNumber": item.attempt(), "Patch": patch,
	})
}

func (h *Hub) writeEvent(item *WorkItem, kind, from, to string, beacon bool, payload map[string]any) {
	event := map[string]any{
		"WorkItemHash": item.WorkItemHash, "RunID": item.RunID, "EventType": kind, "FromStatus": from, "ToStatus": to,
	}
	if beacon {
		event["BeaconID"] = item.AssignedBeaconID
	}
	if payload != nil {
		event["Payload"] = payload
	}
	h.write("QP_AppendEvent", map[string]any{"Event": event})
}

func (h *Hub) writeAttempt(item *WorkItem) {
	h.write("QP_InsertAttempt", map[string]any{"Attempt": map[string]any{
		"WorkItemHash": item.WorkItemHash, "AttemptNumber": item.AttemptNumber, "BeaconID": item.AssignedBeaconID,
		"DispatchedAt": item.DispatchedAt, "Outcome": "Dispatched",
	}})
}

// write makes a call that nobody waits for.
func (h *Hub) write(action string, settings map[string]any) {
	answer := h.call(action, settings, false)
	h.spawn(func() {
		select {
		case <-answer:
		case <-h.life.Done():
		}
	})
}

// call makes a call. The answer has Available and Success, and what the action gives.
func (h *Hub) call(action string, settings map[string]any, flush bool) <-chan json.RawMessage {
	family, key := QueueFamily, "queue-persistence"
	if strings.HasPrefix(action, "MS_") {
		family, key = ManifestFamily, "manifest-store"
	}
	spec := Spec{Capability: family, Action: action, Settings: settings, AffinityKey: key, TimeoutMs: h.config.BridgeTimeout.Milliseconds()}
	fired := Fired{Action: action, Settings: encode(settings), To: "beacon", Flush: flush}
	answer := make(chan json.RawMessage, 1)
	switch {
	case h.bridge.proxied && !flush:
		fired.To = "meadowproxy"
		spec.Capability, spec.Action = "MeadowProxy", "Request"
		spec.Settings = map[string]any{"Method": "POST", "Path": "/1.0/" + action, "Body": string(fired.Settings), "RemoteUser": "ultravisor-system"}
		h.await(h.dispatch(spec), answer)
	case flush || h.first(family) != nil: // a flush does not look whether its beacon is still there
		if flush {
			spec.TimeoutMs = h.config.FlushTimeout.Milliseconds()
		}
		h.await(h.dispatch(spec), answer)
	case !h.config.NoLocalStore:
		fired.To = "local"
		answer <- available(h.bridge.local.do(action, fired.Settings))
	default:
		fired.To = "none"
		answer <- encode(map[string]any{
			"Available": false, "Success": false, "Reason": "No persistence backend (beacon or local) available",
			"WorkItem": nil, "WorkItems": []any{}, "Events": []any{},
		})
	}
	h.bridge.fired = append(h.bridge.fired, fired)
	return answer
}

// await turns the outcome of a dispatch into the answer of a call.
func (h *Hub) await(outcome <-chan Outcome, answer chan<- json.RawMessage) {
	h.bridge.calls++
	h.spawn(func() {
		var o Outcome
		select {
		case o = <-outcome:
		case <-h.life.Done():
			return
		}
		doc := available(o.Outputs)
		if o.Err != nil {
			doc = encode(map[string]any{"Available": true, "Success": false, "Reason": o.Err.Error()})
		}
		h.mu.Lock()
		h.bridge.calls--
		if string(inside(doc)["Success"]) != "true" {
			h.bridge.failures++
			h.config.Log("history: " + string(doc))
		}
		h.note()
		h.mu.Unlock()
		answer <- doc
	})
}

func available(outputs json.RawMessage) json.RawMessage {
	answer := inside(outputs)
	if answer == nil {
		answer = members{}
	}
	answer["Available"] = json.RawMessage("true")
	return document(answer)
}

// do carries an action out on a store.
func (p *Persistence) do(action string, settings json.RawMessage) json.RawMessage {
	for _, a := range p.Actions() {
		if a.Name == action {
			outputs, err := a.Do(context.Background(), &Work{Item: Item{Settings: settings}})
			if err != nil {
				return encode(refused(err.Error()))
			}
			return encode(outputs)
		}
	}
	return encode(refused("no action " + action))
}

// encode writes what may change once the lock is given back.
func encode(v any) json.RawMessage {
	doc, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null") // only records and maps of them come here
	}
	return doc
}

// Call makes a call about history as the routes and the engine of the hub do, and waits for its answer.
func (h *Hub) Call(action string, settings map[string]any) json.RawMessage {
	h.mu.Lock()
	answer := h.call(action, settings, false)
	h.mu.Unlock()
	select {
	case doc := <-answer:
		return doc
	case <-h.life.Done():
		return nil
	}
}

// UpsertManifest tells of a run as the engine does when it pauses, ends or is abandoned: with everything in it, but for Live.
// The run is remembered for flushes.
func (h *Hub) UpsertManifest(manifest json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remember(manifest)
	h.write("MS_UpsertManifest", map[string]any{"Manifest": manifest})
	h.bridge.afar[text(inside(manifest)["Hash"])] = h.bridge.fired[len(h.bridge.fired)-1].To != "local"
}

// reload is what a new process makes of the runs on its disk: what another store was told of their ends is not there, so they
// seem to be under way, and are taken for failed as of now (wire contract D.6, E.5).
func (b *bridge) reload(now string) {
	for i, run := range b.runs {
		if !b.afar[text(run["Hash"])] {
			continue
		}
		stale := maps.Clone(run)
		delete(stale, "ElapsedMs")
		stale["Status"], stale["StopTime"] = encode("Error"), encode(now)
		b.runs[i] = stale
	}
}

// Bootstrap takes a databeacon for assigned and bootstrapped: from then on every call is a MeadowProxy work, also when nobody
// is there to do it.
func (h *Hub) Bootstrap() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bridge.proxied = true
}

// Fired are the calls about history that were made so far, in order.
func (h *Hub) Fired() []Fired {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.bridge.fired)
}

// Local is what the hub's own store holds.
func (h *Hub) Local() Holdings { return h.bridge.local.Holds() }
