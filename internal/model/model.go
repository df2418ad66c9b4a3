package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Options set what a model cannot know by itself.
type Options struct {
	Retention time.Duration    // finished records older than this are Expired when sent again; 0 keeps for ever
	Now       func() time.Time // nil is time.Now
	MaxRecord int              // bytes; 0 is 64 MiB
}

// Answer is what a caller must be told.
type Answer struct {
	Success bool
	Code    string // why not: invalid, too_large, conflict; "" with NotFound
	Refused string // the code of a re-flush that was refused: Success stays true, or a hub's sweep would end
	Reason  string

	NotFound, AlreadyPresent, AlreadyAbsent, Ignored, Expired, Late, Early bool

	EventID string // of an event: the identity by which the model knows it
}

// Kind is the kind of a record.
type Kind string

const (
	KindItem     Kind = "WorkItem"
	KindEvent    Kind = "Event"
	KindAttempt  Kind = "Attempt"
	KindManifest Kind = "Manifest"
)

// Counts says how many records there are.
type Counts struct{ Items, Events, Attempts, Manifests int }

type event struct {
	id       string
	record   Object
	accepted int // its place among all writes
}

// Model is history as it must be. It is not safe for use from many goroutines.
type Model struct {
	options   Options
	items     map[string]Object
	events    map[string][]*event // by work item, in the order of acceptance
	byID      map[string]*event
	attempts  map[string]map[int64]Object
	manifests map[string]Object
	order     []string        // of manifests, by first acceptance
	removed   map[string]bool // manifests
	ignored   map[string]bool
	unnamed   int
	accepted  int

	marks map[string]map[string]mark // by row and member: which write of a hub set it
	early map[string][]waiting       // by work item, in the order of acceptance

	Applied, Dropped int // early writes whose item came, and those that were given up
}

// New makes an empty history.
func New(options Options) *Model {
	if options.Now == nil {
		options.Now = time.Now
	}
	options.MaxRecord = cmp.Or(options.MaxRecord, 64<<20)
	return &Model{
		options: options, items: map[string]Object{}, events: map[string][]*event{}, byID: map[string]*event{},
		attempts: map[string]map[int64]Object{}, manifests: map[string]Object{},
		removed: map[string]bool{}, ignored: map[string]bool{}, marks: map[string]map[string]mark{}, early: map[string][]waiting{},
	}
}

// Apply takes one action, live or as a hub's re-flush by the members that tell one.
func (m *Model) Apply(action string, settings json.RawMessage) Answer {
	return m.apply(action, settings, false, "")
}

// Again takes one action as an import or an adoption: by the rules of a re-flush whatever its members are.
func (m *Model) Again(action string, settings json.RawMessage) Answer {
	return m.apply(action, settings, true, "")
}

// apply goes the way of a write: checked, ignored, then decided.
func (m *Model) apply(action string, settings json.RawMessage, again bool, origin string) Answer {
	return m.applyAs(action, settings, again, origin, nil)
}

// applyAs is apply; sent is when a hub that holdfast joined sent the write, nil for all others.
func (m *Model) applyAs(action string, settings json.RawMessage, again bool, origin string, sent *Sent) Answer {
	m.expire()
	w, problem := read(action, settings, m.options.MaxRecord)
	m.accepted++
	w.again, w.sent, w.accepted = w.again || again, sent, m.accepted
	if problem != nil {
		if w.again {
			return Answer{Success: true, Refused: problem.code, Reason: problem.reason}
		}
		return Answer{Code: problem.code, Reason: problem.reason}
	}
	if m.ignores(w) {
		return Answer{Success: true, Ignored: true}
	}
	a := m.decide(w, origin)
	if a.Code != "" && w.again {
		a = Answer{Success: true, Refused: a.Code, Reason: a.Reason}
	}
	if strings.HasSuffix(action, "WorkItem") && m.items[w.key] != nil {
		m.arrived(w.key)
	}
	return a
}

// decide is what a write that was checked does.
func (m *Model) decide(w write, origin string) (a Answer) {
	switch w.action {
	case "QP_UpsertWorkItem":
		a = m.upsertItem(w)
	case "QP_UpdateWorkItem":
		a = m.updateItem(w)
	case "QP_AppendEvent":
		a = m.appendEvent(w, origin)
	case "QP_InsertAttempt":
		a = m.insertAttempt(w)
	case "QP_UpdateAttemptOutcome":
		a = m.updateAttempt(w)
	case "MS_UpsertManifest":
		a = m.upsertManifest(w)
	case "MS_RemoveManifest":
		a = m.removeManifest(w)
	case "QP_GetWorkItemByHash":
		a = found(m.items[w.key] != nil)
	case "MS_GetManifest":
		a = found(m.manifests[w.key] != nil)
	default:
		a = success
	}
	return a
}

var (
	success = Answer{Success: true}
	expired = Answer{Success: true, Expired: true}
)

func found(is bool) Answer { return Answer{Success: is, NotFound: !is} }

func (m *Model) upsertItem(w write) Answer {
	present := m.items[w.key]
	switch {
	case present == nil && w.again && m.outlived(w.record, TerminalItems, "LastEventAt", "CompletedAt", "EnqueuedAt"):
		return expired
	case present == nil:
		m.items[w.key] = w.record
		m.marked("item "+w.key, w, "LastEventAt")
		return success
	case w.again && !replaces(present, w.record, "LastEventAt", TerminalItems):
		return m.store(w.key, fill(present, w.record, append(m.unfilled("item "+w.key, w), "WorkItemHash", "EnqueuedAt")...))
	case w.sent != nil:
		return m.patchItemFromHub(present, w)
	}
	return m.store(w.key, overwrite(present, w.record, "WorkItemHash", "EnqueuedAt"))
}

func (m *Model) updateItem(w write) Answer {
	present := m.items[w.key]
	switch {
	case present == nil && w.live():
		return m.keepEarly(w)
	case present == nil:
		return Answer{NotFound: true}
	case w.sent != nil:
		return m.patchItemFromHub(present, w)
	}
	merged := overwrite(present, w.record, "WorkItemHash", "EnqueuedAt")
	if merged.Without("HealthComputedAt").Same(present.Without("HealthComputedAt")) {
		return success
	}
	return m.store(w.key, merged)
}

func (m *Model) patchItemFromHub(present Object, w write) Answer {
	return m.patchFromHub("item "+w.key, present, w, func(merged Object) Answer { return m.store(w.key, merged) }, "WorkItemHash", "EnqueuedAt")
}

func (m *Model) store(key string, record Object) Answer {
	if size := len(record.JSON()); size > m.options.MaxRecord {
		return Answer{Code: tooLarge, Reason: fmt.Sprintf("the merged row has %d bytes", size)}
	}
	m.items[key] = record
	return success
}

func (m *Model) appendEvent(w write, origin string) Answer {
	given := w.record.Text("EventGUID")
	id := given
	switch {
	case id != "":
	case w.sent != nil && w.rowID == "":
		id = hubEvent(w)
	case w.rowID != "":
		id = "row " + w.rowID + " " + content(w.record)
	case origin != "":
		id = origin
	default:
		m.unnamed++
		id = fmt.Sprintf("unnamed %d", m.unnamed)
	}
	if present := m.byID[id]; present != nil {
		if given != "" && !w.again && !present.record.Without("EventGUID").Same(w.record.Without("EventGUID")) {
			return Answer{Code: conflict, Reason: "another event has this EventGUID", EventID: id}
		}
		return Answer{Success: true, AlreadyPresent: true, EventID: id}
	}
	if w.eventID = id; w.live() && m.items[w.key] == nil {
		return m.keepEarly(w)
	}
	if w.again && m.items[w.key] == nil {
		return Answer{Success: true, Expired: true, EventID: id}
	}
	e := &event{id: id, record: w.record, accepted: w.accepted}
	m.byID[id] = e
	m.events[w.key] = append(m.events[w.key], e)
	slices.SortStableFunc(m.events[w.key], func(a, b *event) int { return cmp.Compare(a.accepted, b.accepted) })
	return Answer{Success: true, EventID: id}
}

// content is what a name for an event ends in, so that only equal content can merge.
func content(e Object) string {
	return fmt.Sprintf("%s %s %s %s %s %s", e.Get("WorkItemHash"), e.Get("EventType"), e.Get("FromStatus"), e.Get("ToStatus"),
		e.Get("BeaconID"), e.Get("Payload"))
}

func (m *Model) insertAttempt(w write) Answer {
	present := m.attempts[w.key][w.number]
	if present == nil {
		switch {
		case m.items[w.key] != nil:
		case w.live():
			return m.keepEarly(w)
		case w.again:
			return expired
		}
		m.setAttempt(w, w.record)
		return success
	}
	merged := fill(present, w.record, append(m.unfilled(w.attempt(), w), "WorkItemHash", "AttemptNumber")...)
	if other := w.record.Get("BeaconID"); !blank(other) && !blank(merged.Get("BeaconID")) && string(other) != string(merged.Get("BeaconID")) {
		merged = addToList(merged, "OtherBeaconIDs", other)
	}
	if merged.Same(present) {
		return Answer{Success: true, AlreadyPresent: true}
	}
	m.setAttempt(w, merged)
	return success
}

func (m *Model) updateAttempt(w write) Answer {
	present := m.attempts[w.key][w.number]
	switch {
	case present != nil && w.sent != nil:
		return m.patchFromHub(w.attempt(), present, w, func(merged Object) Answer {
			m.setAttempt(w, merged)
			return success
		}, "WorkItemHash", "AttemptNumber")
	case present != nil:
		m.setAttempt(w, overwrite(present, w.record, "WorkItemHash", "AttemptNumber"))
	case m.items[w.key] != nil:
		m.setAttempt(w, w.record)
		m.marked(w.attempt(), w, "")
	case w.live():
		return m.keepEarly(w)
	default:
		return Answer{NotFound: true}
	}
	return success
}

func (m *Model) setAttempt(w write, record Object) {
	if m.attempts[w.key] == nil {
		m.attempts[w.key] = map[int64]Object{}
	}
	key, _ := json.Marshal(w.key)
	if record.Get("WorkItemHash") == nil {
		record = record.With("WorkItemHash", key)
	}
	m.attempts[w.key][w.number] = record.With("AttemptNumber", fmt.Append(nil, w.number))
}

func (m *Model) upsertManifest(w write) Answer {
	present := m.manifests[w.key]
	if present != nil && w.sent != nil {
		if a, done := m.manifestFromHub(present, w); done {
			return a
		}
	}
	if present == nil {
		delete(m.marks, "manifest "+w.key)
	}
	switch {
	case present == nil && w.again && (m.removed[w.key] || m.outlived(w.record, TerminalManifests, "StopTime", "StartTime")):
		return expired
	case present == nil:
		delete(m.removed, w.key)
		m.order = append(m.order, w.key)
		m.manifests[w.key] = w.record
		m.markManifest(w)
	case !w.again:
		m.manifests[w.key] = w.record
		m.markManifest(w)
	case replacesManifest(present, w.record):
		m.markManifest(w)
		m.manifests[w.key] = overwrite(present, w.record.full(present), "Hash")
	default:
		m.manifests[w.key] = fill(present, w.record, "Hash")
	}
	return success
}

func (m *Model) removeManifest(w write) Answer {
	if m.manifests[w.key] == nil {
		return Answer{Success: true, AlreadyAbsent: true}
	}
	if held, marked := m.marks["manifest "+w.key]["*"]; marked && w.sent != nil &&
		(held.until == 0 && w.sent.before(held.sent) || held.until != 0 && w.sent.Ms < held.until) {
		return Answer{Success: true, Late: true}
	}
	delete(m.manifests, w.key)
	m.order = slices.DeleteFunc(m.order, func(hash string) bool { return hash == w.key })
	m.removed[w.key] = true
	return success
}

// Item gives a work item, nil when there is none.
func (m *Model) Item(hash string) Object { return m.items[hash] }

// Items lists the hashes of all work items, sorted.
func (m *Model) Items() []string { return slices.Sorted(maps.Keys(m.items)) }

// Keys lists the hashes that have a work item, an event or an attempt, sorted.
func (m *Model) Keys() []string {
	keys := map[string]bool{}
	for key := range m.items {
		keys[key] = true
	}
	for key := range m.events {
		keys[key] = true
	}
	for key := range m.attempts {
		keys[key] = true
	}
	return slices.Sorted(maps.Keys(keys))
}

// Events gives the events of an item in the order of their acceptance.
func (m *Model) Events(hash string) []Object {
	var records []Object
	for _, e := range m.events[hash] {
		records = append(records, e.record)
	}
	return records
}

// Attempts gives the attempts of an item by number.
func (m *Model) Attempts(hash string) []Object {
	var records []Object
	for _, number := range slices.Sorted(maps.Keys(m.attempts[hash])) {
		records = append(records, m.attempts[hash][number])
	}
	return records
}

// Manifest gives a manifest, nil when there is none.
func (m *Model) Manifest(hash string) Object { return m.manifests[hash] }

// Manifests lists the hashes of all manifests in the order of their first acceptance.
func (m *Model) Manifests() []string { return slices.Clone(m.order) }

// Counts counts the records.
func (m *Model) Counts() Counts {
	c := Counts{Items: len(m.items), Events: len(m.byID), Manifests: len(m.manifests)}
	for _, numbers := range m.attempts {
		c.Attempts += len(numbers)
	}
	return c
}
