package core

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"holdfast/ports"
)

// checked is a write that passed the Door's checks: what will be journaled, and what the ignore rule needs to see.
type checked struct {
	entry  ports.Entry
	record *ports.Record // nil for a removal
}

// engineMembers are what a hub's store adds to the records that it sends again; they are no part of history.
var engineMembers = []string{
	"GUIDBeaconWorkItem", "CreateDate", "CreatingIDUser", "UpdateDate", "UpdatingIDUser", "Deleted", "DeleteDate", "DeletingIDUser",
}

// settings are the members of a write's Settings that count; all others are beside the record.
type settings struct {
	record  []byte // WorkItem, Patch, Event, Attempt or Manifest
	key     []byte // WorkItemHash or RunHash
	attempt []byte // AttemptNumber
}

// check turns a write into an entry, or says what is wrong with it; the entry's class is known then too, where it can be.
func check(call *Call) (checked, error) {
	member := recordMember(call.Action)
	given, err := call.settings()
	if err != nil {
		return checked{}, err
	}
	c := checked{entry: ports.Entry{Action: call.Action, Class: ports.Live, Actor: call.Source.Actor, Origin: call.Source.Origin, Stamp: call.Source.Stamp}}
	if call.Source.Import {
		c.entry.Class = ports.Reflush
	}
	if call.Action == ports.RemoveManifest {
		c.entry.Key, err = keyOf("RunHash", given.key)
		return c, err
	}
	switch {
	case given.record == nil:
		return checked{}, ports.InField(ports.Invalid, member, "is missing from Settings")
	case given.record[0] != '{':
		return checked{}, ports.InField(ports.Invalid, member, "is not an object")
	case len(given.record) > ports.MaxRecordBytes:
		return checked{}, ports.OverLimit(member, "bytes", ports.MaxRecordBytes, int64(len(given.record)))
	}
	if c.record, err = call.record(given.record); err != nil {
		return c, inRecord(member, err)
	}
	c.flushed()
	if err := c.identify(given); err != nil {
		return c, err
	}
	if c.entry.Class == ports.Reflush {
		c.takeOffFlush()
	}
	c.entry.Record = c.record.JSON()
	return c, nil
}

func recordMember(a ports.Action) string {
	switch a {
	case ports.UpsertWorkItem:
		return "WorkItem"
	case ports.AppendEvent:
		return "Event"
	case ports.InsertAttempt:
		return "Attempt"
	case ports.UpsertManifest:
		return "Manifest"
	}
	return "Patch"
}

func tableOf(a ports.Action) *ports.Table {
	switch a {
	case ports.AppendEvent:
		return ports.Events
	case ports.InsertAttempt, ports.UpdateAttemptOutcome:
		return ports.Attempts
	case ports.UpsertManifest:
		return ports.Manifests
	}
	return ports.Items
}

// settings gives what counts of the call's Settings.
func (c *Call) settings() (settings, error) {
	if c.seen.write == c.Action {
		return c.seen.given, nil
	}
	var s settings
	err := ports.ScanObject(c.Settings, ports.MaxDepth+1, func(name, value []byte) error { return s.take(c.Action, name, value) })
	return s, ports.Wrap(ports.Invalid, "Settings", err)
}

// record takes the call's record apart.
func (c *Call) record(text []byte) (*ports.Record, error) {
	if r := c.seen.record; r != nil && c.seen.write == c.Action {
		r.Is(text)
		return r, nil
	}
	return ports.ParseRecord(tableOf(c.Action), text)
}

// take takes in a member of Settings, if it counts.
func (s *settings) take(a ports.Action, name, value []byte) error {
	keyName := "WorkItemHash"
	if a == ports.RemoveManifest {
		keyName = "RunHash"
	}
	switch string(name[1 : len(name)-1]) {
	case recordMember(a):
		return once(recordMember(a), &s.record, value)
	case keyName:
		return once(keyName, &s.key, value)
	case "AttemptNumber":
		return once("AttemptNumber", &s.attempt, value)
	}
	return nil
}

// inRecord names the record in front of a fault's own field.
func inRecord(member string, err error) error {
	e := *ports.AsError(err)
	if e.Field == "" {
		e.Field = member
	} else {
		e.Field = member + "." + e.Field
	}
	return &e
}

// identify finds the entry's key, an attempt's number and an event's own GUID.
func (c *checked) identify(given settings) (err error) {
	e := &c.entry
	switch e.Action {
	case ports.UpsertManifest:
		e.Key, err = keyOf("Manifest.Hash", c.record.Get("Hash"))
	case ports.UpdateWorkItem, ports.UpdateAttemptOutcome:
		if e.Key, err = keyOf("WorkItemHash", given.key); err != nil {
			return err
		}
		if inner := c.record.Get("WorkItemHash"); inner != nil && c.record.Text("WorkItemHash") != e.Key {
			return ports.InField(ports.Invalid, "Patch.WorkItemHash", "is another hash than the patch is for; a patch never renames its record")
		}
	default:
		e.Key, err = keyOf(recordMember(e.Action)+".WorkItemHash", c.record.Get("WorkItemHash"))
	}
	if err != nil {
		return err
	}
	switch e.Action {
	case ports.InsertAttempt:
		e.Number, err = attemptNumber("Attempt.AttemptNumber", c.record.Get("AttemptNumber"))
	case ports.UpdateAttemptOutcome:
		if e.Number, err = attemptNumber("AttemptNumber", given.attempt); err != nil {
			return err
		}
		if inner := c.record.Get("AttemptNumber"); inner != nil {
			n, err := attemptNumber("Patch.AttemptNumber", inner)
			if err == nil && n != e.Number {
				err = ports.InField(ports.Invalid, "Patch.AttemptNumber", "is another number than the patch is for")
			}
			return err
		}
	case ports.AppendEvent:
		return c.ownGUID()
	}
	return err
}

func (c *checked) ownGUID() error {
	raw := c.record.Get("EventGUID")
	if ports.Blank(raw) {
		return nil
	}
	guid, err := keyOf("Event.EventGUID", raw)
	if err != nil {
		return err
	}
	c.entry.EventGUID, c.entry.GUIDGiven = guid, true
	return nil
}

// keyOf checks a key: a text that is there, without NUL, of at most MaxKeyPoints code points.
func keyOf(field string, raw []byte) (string, error) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", ports.InField(ports.Invalid, field, "is missing or no text")
	}
	key, whole := ports.Unquote(raw)
	switch points := utf8.RuneCountInString(key); {
	case !whole:
		return "", ports.InField(ports.Invalid, field, "has a lone surrogate, which no store can hold in a key")
	case points == 0:
		return "", ports.InField(ports.Invalid, field, "is empty")
	case points > ports.MaxKeyPoints:
		return "", ports.OverLimit(field, "code points", ports.MaxKeyPoints, int64(points))
	case strings.IndexByte(key, 0) >= 0:
		return "", ports.InField(ports.Invalid, field, "has a NUL character, which not every store can hold in a key")
	}
	return key, nil
}

func attemptNumber(field string, raw []byte) (int64, error) {
	if raw == nil || string(raw) == "null" {
		return 1, nil
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		return 0, ports.InField(ports.Invalid, field, "is not a whole number")
	}
	return max(n, 1), nil
}

// flushMarks are the members by which a record that a hub sends again is known.
var flushMarks = map[ports.Action]string{
	ports.UpsertWorkItem: "IDBeaconWorkItem",
	ports.AppendEvent:    "IDBeaconWorkItemEvent",
	ports.UpsertManifest: "Live",
}

// flushed recognises a record that a hub sends again.
func (c *checked) flushed() {
	if mark, ok := flushMarks[c.entry.Action]; ok && c.record.Get(mark) != nil {
		c.entry.Class = ports.Reflush
	}
}

// takeOffFlush takes off what the hub's store added; an event's row id becomes its GUID.
func (c *checked) takeOffFlush() {
	mark, ok := flushMarks[c.entry.Action]
	if !ok {
		return
	}
	if id := c.record.Get(mark); id != nil {
		c.flushID(id)
		c.record.Drop(mark)
		c.record.Drop(engineMembers...)
	}
}
