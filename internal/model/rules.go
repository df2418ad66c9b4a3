package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// The codes of refusal that the model gives.
const (
	invalid  = "invalid"
	tooLarge = "too_large"
	conflict = "conflict"
)

const (
	maxKey   = 512
	maxDepth = 400
)

// The statuses in which a record is finished, and the capabilities about which nothing is recorded.
var (
	TerminalItems     = []string{"Complete", "Completed", "Error", "Failed", "Timeout", "Canceled", "Stalled"}
	TerminalManifests = []string{"Complete", "Completed", "Error", "Failed", "Stalled", "Abandoned"}
	Exempt            = []string{"QueuePersistence", "ManifestStore", "MeadowProxy", "DataBeaconSchema", "DataBeaconManagement", "Authentication"}
)

// engine are the members of a hub's own tables that a re-flush carries and that are no part of history.
var engine = []string{"IDBeaconWorkItem", "IDBeaconWorkItemEvent", "Live", "GUIDBeaconWorkItem",
	"CreateDate", "CreatingIDUser", "UpdateDate", "UpdatingIDUser", "Deleted", "DeleteDate", "DeletingIDUser"}

// write is one action taken apart.
type write struct {
	action string
	key    string
	number int64
	record Object
	again  bool
	rowID  string // of a re-flushed event
	sent   *Sent  // of a hub that holdfast joined; nil for all others

	accepted int    // its place among all writes
	eventID  string // of an event: by what it is known
}

// attempt names the row of the attempt that a write is about.
func (w *write) attempt() string { return fmt.Sprint("attempt ", w.key, " ", w.number) }

type problem struct{ code, reason string }

func refuse(code, format string, args ...any) *problem {
	return &problem{code: code, reason: fmt.Sprintf(format, args...)}
}

// places says where each action has its record, its key (with the record's own, or beside it) and what tells a re-flush.
var places = map[string]struct{ record, key, mark string }{
	"QP_UpsertWorkItem":       {record: "WorkItem", key: "WorkItemHash", mark: "IDBeaconWorkItem"},
	"QP_UpdateWorkItem":       {record: "Patch", key: "WorkItemHash"},
	"QP_AppendEvent":          {record: "Event", key: "WorkItemHash", mark: "IDBeaconWorkItemEvent"},
	"QP_InsertAttempt":        {record: "Attempt", key: "WorkItemHash"},
	"QP_UpdateAttemptOutcome": {record: "Patch", key: "WorkItemHash"},
	"MS_UpsertManifest":       {record: "Manifest", key: "Hash", mark: "Live"},
	"MS_RemoveManifest":       {key: "RunHash"},
	"QP_GetWorkItemByHash":    {key: "WorkItemHash"},
	"QP_GetEvents":            {key: "WorkItemHash"},
	"QP_ListAttempts":         {key: "WorkItemHash"},
	"MS_GetManifest":          {key: "RunHash"},
	"QP_ListWorkItems":        {},
	"MS_ListManifests":        {},
}

func read(action string, text json.RawMessage, maxRecord int) (write, *problem) {
	w := write{action: action}
	place, known := places[action]
	if !known {
		return w, refuse(invalid, "there is no action %q", action)
	}
	settings, err := ParseObject(text)
	if err != nil {
		return w, refuse(invalid, "the settings: %v", err)
	}
	holder, numbered := settings, settings
	if place.record != "" {
		raw := settings.Get(place.record)
		if w.record, err = ParseObject(raw); err != nil {
			return w, refuse(invalid, "%s: %v", place.record, err)
		}
		if place.record != "Patch" {
			holder, numbered = w.record, w.record
		}
		if place.mark != "" && w.record.Get(place.mark) != nil {
			w.again = true
			w.rowID = string(w.record.Get("IDBeaconWorkItemEvent"))
			w.record = w.record.Without(engine...)
		}
		switch {
		case len(raw) > maxRecord:
			return w, refuse(tooLarge, "%s has %d bytes", place.record, len(raw))
		case depthOf(raw) > maxDepth:
			return w, refuse(invalid, "%s is nested deeper than %d", place.record, maxDepth)
		}
	}
	if place.key == "" {
		return w, nil
	}
	raw := holder.Get(place.key)
	w.key = holder.Text(place.key)
	switch {
	case w.key == "" || strings.ContainsRune(w.key, 0) || loneSurrogate(raw):
		return w, refuse(invalid, "%s is %s", place.key, raw)
	case utf8.RuneCountInString(w.key) > maxKey:
		return w, refuse(tooLarge, "%s has %d characters", place.key, utf8.RuneCountInString(w.key))
	}
	if named := w.record.Get("WorkItemHash"); named != nil && place.record == "Patch" && w.record.Text("WorkItemHash") != w.key {
		return w, refuse(invalid, "the patch has another WorkItemHash")
	}
	w.number = 1
	if raw := numbered.Get("AttemptNumber"); raw != nil && strings.Contains(action, "Attempt") {
		if err := json.Unmarshal(raw, &w.number); err != nil {
			return w, refuse(invalid, "AttemptNumber is %s", raw)
		}
		w.number = max(w.number, 1)
	}
	return w, nil
}

// ignores says whether a write is about persistence itself: by what it names, or because an earlier write of its key was.
func (m *Model) ignores(w write) bool {
	var named []string
	switch w.action {
	case "QP_UpsertWorkItem":
		named = []string{w.record.Text("Capability")}
	case "QP_UpdateWorkItem":
		named = []string{w.record.Text("Capability"), w.record.Object("Settings").Text("Capability")}
	case "QP_AppendEvent":
		named = []string{w.record.Object("Payload").Text("Capability")}
	case "QP_InsertAttempt", "QP_UpdateAttemptOutcome":
	default:
		return false
	}
	if slices.ContainsFunc(named, func(name string) bool { return slices.Contains(Exempt, name) }) {
		m.ignored[w.key] = true
	}
	return m.ignored[w.key]
}

// overwrite lays the given members over the present ones, but for the fixed.
func overwrite(present, given Object, fixed ...string) Object {
	for _, g := range given {
		if !slices.Contains(fixed, g.Name) {
			present = present.With(g.Name, g.Value)
		}
	}
	return present
}

// fill adds the given members that are missing, and gives the present ones that are blank a value where there is one, but
// for the fixed.
func fill(present, given Object, fixed ...string) Object {
	for _, g := range given {
		if !slices.Contains(fixed, g.Name) && (present.Get(g.Name) == nil || blank(present.Get(g.Name)) && !blank(g.Value)) {
			present = present.With(g.Name, g.Value)
		}
	}
	return present
}

// replaces says whether what is sent again is newer than what is there and does not undo its end. A record without a time
// is older than every one that has a time: it has not ended.
func replaces(present, given Object, timeOf string, terminal []string) bool {
	late, ok := given.time(timeOf)
	if !ok {
		return false
	}
	if old, ok := present.time(timeOf); ok && !late.After(old) {
		return false
	}
	ends := given.Get("Status") == nil || slices.Contains(terminal, given.Text("Status"))
	return ends || !slices.Contains(terminal, present.Text("Status"))
}

// replacesManifest is replaces for manifests: to have failed while the hub was down undoes no end.
func replacesManifest(present, given Object) bool {
	ended := slices.Contains(TerminalManifests, present.Text("Status"))
	return replaces(present, given, "StopTime", TerminalManifests) && !(ended && given.Text("Status") == "Error")
}

// full leaves out what would empty members of a present manifest, but for what it waits for.
func (o Object) full(present Object) Object {
	return slices.DeleteFunc(slices.Clone(o), func(g Member) bool {
		return g.Name != "WaitingTasks" && blank(g.Value) && !blank(present.Get(g.Name))
	})
}

func (o Object) time(name string) (at time.Time, ok bool) {
	at, err := time.Parse(time.RFC3339, o.Text(name))
	return at, err == nil
}

// outlived says whether a record ended before the time that is kept; the first of the members that has a time tells when.
func (m *Model) outlived(record Object, terminal []string, times ...string) bool {
	if m.options.Retention <= 0 || !slices.Contains(terminal, record.Text("Status")) {
		return false
	}
	for _, name := range times {
		if at, ok := record.time(name); ok {
			return at.Before(m.options.Now().Add(-m.options.Retention))
		}
	}
	return false
}

// addToList appends a value to a member that is a list, once.
func addToList(o Object, name string, value json.RawMessage) Object {
	present := strings.TrimSpace(string(o.Get(name)))
	if blank(o.Get(name)) {
		return o.With(name, json.RawMessage("["+string(value)+"]"))
	}
	var list []json.RawMessage
	if json.Unmarshal(o.Get(name), &list) != nil {
		return o // a caller's own member of that name
	}
	for _, there := range list {
		if string(there) == string(value) {
			return o
		}
	}
	open := strings.TrimSpace(strings.TrimSuffix(present, "]"))
	return o.With(name, json.RawMessage(open+","+string(value)+"]"))
}
