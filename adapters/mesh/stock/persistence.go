package stock

// A beacon that keeps history, in memory: items and their events and attempts (QueuePersistence), and manifests
// (ManifestStore). It does what the stock stores do: an upsert lays members over those that are there, a patch of an unknown
// item or attempt is swallowed, events are appended, also those that are there already.

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// The two families.
const (
	QueueFamily    = "QueuePersistence"
	ManifestFamily = "ManifestStore"
)

// Persistence is what such a beacon holds. It outlives the beacons that serve it.
type Persistence struct {
	mu        sync.Mutex
	strict    bool
	refuse    func(action, key string) string
	watch     func(Write)
	writes    int
	items     table
	manifests table
	attempts  table
	events    map[string][]json.RawMessage
}

// Write is one write that was applied.
type Write struct {
	Action string
	Key    string          // the WorkItemHash or the Hash
	Record json.RawMessage // the row as it is now, or the event
}

// Holdings are what a Persistence holds, each record by its key.
type Holdings struct {
	Items     map[string]json.RawMessage
	Events    map[string][]json.RawMessage // in the order of their arrival
	Attempts  map[string][]json.RawMessage // in the order of their numbers
	Manifests map[string]json.RawMessage
}

// members are a record.
type members = map[string]json.RawMessage

// table has rows in the order of their arrival.
type table struct {
	rows map[string]members
	keys []string
}

// NewPersistence is empty.
func NewPersistence() *Persistence {
	p := &Persistence{}
	p.wipe()
	return p
}

// Strict has patches of what is unknown answered with Success false, as the recorded beacon did, not swallowed.
func (p *Persistence) Strict() *Persistence {
	p.strict = true
	return p
}

// Refuse has writes refused for which why gives a reason; key is the WorkItemHash or the Hash. Nil is none.
func (p *Persistence) Refuse(why func(action, key string) string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = why
}

// RefuseKey has all writes of one key refused.
func (p *Persistence) RefuseKey(key, reason string) {
	p.Refuse(func(_, k string) string {
		if k == key {
			return reason
		}
		return ""
	})
}

// Watch has see called with each write as it is applied, in order, while nothing else can be.
func (p *Persistence) Watch(see func(Write)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watch = see
}

// Wipe forgets everything.
func (p *Persistence) Wipe() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
}

func (p *Persistence) wipe() {
	p.items, p.manifests, p.attempts = newTable(), newTable(), newTable()
	p.events = map[string][]json.RawMessage{}
}

// Writes counts the writes that were applied.
func (p *Persistence) Writes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.writes
}

// Holds is a copy of all that is held.
func (p *Persistence) Holds() Holdings {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := Holdings{
		Items: p.items.documents(), Manifests: p.manifests.documents(),
		Events: map[string][]json.RawMessage{}, Attempts: map[string][]json.RawMessage{},
	}
	for key, events := range p.events {
		h.Events[key] = slices.Clone(events)
	}
	for _, key := range p.attempts.keys {
		row := p.attempts.rows[key]
		hash := text(row["WorkItemHash"])
		h.Attempts[hash] = append(h.Attempts[hash], document(row))
	}
	for _, list := range h.Attempts {
		slices.SortStableFunc(list, func(a, b json.RawMessage) int { return attemptOf(a) - attemptOf(b) })
	}
	return h
}

func attemptOf(doc json.RawMessage) int {
	var a struct{ AttemptNumber int }
	_ = json.Unmarshal(doc, &a) // what was written by document
	return a.AttemptNumber
}

// Beacon is a beacon that serves this store: both families, or those named. The rest of the configuration is the caller's.
func (p *Persistence) Beacon(config BeaconConfig, families ...string) *Beacon {
	config.Actions = append(config.Actions, p.Actions(families...)...)
	orDefault(&config.Name, "persist")
	orDefault(&config.MaxConcurrent, 8)
	return NewBeacon(config)
}

// Actions are those of both families, or of those named.
func (p *Persistence) Actions(families ...string) []Action {
	list := []struct {
		family, name string
		do           func(settings members) any
	}{
		{QueueFamily, "QP_UpsertWorkItem", p.upsertItem},
		{QueueFamily, "QP_UpdateWorkItem", p.updateItem},
		{QueueFamily, "QP_AppendEvent", p.appendEvent},
		{QueueFamily, "QP_InsertAttempt", p.insertAttempt},
		{QueueFamily, "QP_UpdateAttemptOutcome", p.updateAttempt},
		{QueueFamily, "QP_GetWorkItemByHash", p.item},
		{QueueFamily, "QP_ListWorkItems", p.listItems},
		{QueueFamily, "QP_GetEvents", p.eventsOf},
		{ManifestFamily, "MS_UpsertManifest", p.upsertManifest},
		{ManifestFamily, "MS_RemoveManifest", p.removeManifest},
		{ManifestFamily, "MS_GetManifest", p.manifest},
		{ManifestFamily, "MS_ListManifests", p.listManifests},
	}
	var actions []Action
	for _, a := range list {
		if len(families) > 0 && !slices.Contains(families, a.family) {
			continue
		}
		actions = append(actions, Action{Capability: a.family, Name: a.name, InOrder: true, Do: func(_ context.Context, w *Work) (any, error) {
			var settings members
			if err := json.Unmarshal(w.Settings, &settings); err != nil {
				return nil, fmt.Errorf("settings of %s: %w", a.name, err)
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			return a.do(settings), nil
		}})
	}
	return actions
}

func newTable() table { return table{rows: map[string]members{}} }

// lay puts members over those of the row, which is made when there is none.
func (t *table) lay(key string, over members) members {
	row, ok := t.rows[key]
	if !ok {
		row = members{}
		t.rows[key] = row
		t.keys = append(t.keys, key)
	}
	maps.Copy(row, over)
	return row
}

func (t *table) remove(key string) {
	if _, ok := t.rows[key]; ok {
		delete(t.rows, key)
		t.keys = slices.DeleteFunc(t.keys, func(k string) bool { return k == key })
	}
}

func (t *table) documents() map[string]json.RawMessage {
	all := make(map[string]json.RawMessage, len(t.rows))
	for key, row := range t.rows {
		all[key] = document(row)
	}
	return all
}

// document writes a record; the order of its members is that of their names.
func document(row members) json.RawMessage {
	doc, err := json.Marshal(row)
	if err != nil {
		return json.RawMessage("null") // members that came as JSON always go as JSON
	}
	return doc
}

// text is a JSON string, "" when it is none.
func text(doc json.RawMessage) string {
	var s string
	if json.Unmarshal(doc, &s) != nil {
		return ""
	}
	return s
}
