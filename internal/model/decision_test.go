package model_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"holdfast/internal/model"
)

// step is one action and what its caller must be told: the answer's flags or code, "ok" for plain success.
type step struct{ action, settings, want string }

func told(a model.Answer) string {
	switch {
	case a.Refused != "":
		return "refused " + a.Refused
	case a.Code != "":
		return a.Code
	case a.NotFound:
		return "not found"
	case a.AlreadyPresent:
		return "already present"
	case a.AlreadyAbsent:
		return "already absent"
	case a.Ignored:
		return "ignored"
	case a.Expired:
		return "expired"
	case a.Success:
		return "ok"
	}
	return "nothing"
}

// The short forms of the actions about the item, run and event of these tests.
func upsert(members string) string  { return `{"WorkItem":{"WorkItemHash":"w"` + and(members) + `}}` }
func patch(members string) string   { return `{"WorkItemHash":"w","Patch":{` + members + `}}` }
func event(members string) string   { return `{"Event":{"WorkItemHash":"w"` + and(members) + `}}` }
func attempt(members string) string { return `{"Attempt":{"WorkItemHash":"w"` + and(members) + `}}` }
func outcome(n, patch string) string {
	return `{"WorkItemHash":"w"` + and(n) + `,"Patch":{` + patch + `}}`
}
func manifest(members string) string { return `{"Manifest":{"Hash":"r"` + and(members) + `}}` }

func and(members string) string {
	if members == "" {
		return ""
	}
	return "," + members
}

const (
	up   = "QP_UpsertWorkItem"
	upd  = "QP_UpdateWorkItem"
	ev   = "QP_AppendEvent"
	att  = "QP_InsertAttempt"
	out  = "QP_UpdateAttemptOutcome"
	man  = "MS_UpsertManifest"
	gone = "MS_RemoveManifest"

	early = `"LastEventAt":"2026-11-30T02:00:00.000Z"`
	late  = `"LastEventAt":"2026-11-30T02:00:00.001Z"`
	mark  = `"IDBeaconWorkItem":1,"GUIDBeaconWorkItem":""`
)

func TestEveryRowOfTheDecisionTables(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name                            string
		steps                           []step
		item, events, attempts, present string // what is there afterwards
	}{
		{name: "a live upsert of an absent item stores it as it is",
			steps: []step{{up, upsert(`"Status":"Pending","Settings":{"b":1,  "a":1.0},"Result":null`), "ok"}},
			item:  `{"WorkItemHash":"w","Status":"Pending","Settings":{"b":1,  "a":1.0},"Result":null}`},
		{name: "a live upsert overwrites what it gives, clears with null and leaves the rest",
			steps: []step{{up, upsert(`"Status":"Pending","LastError":"x","Priority":1`), "ok"}, {up, upsert(`"Status":"Running","LastError":null`), "ok"}},
			item:  `{"WorkItemHash":"w","Status":"Running","LastError":null,"Priority":1}`},
		{name: "a present item keeps its EnqueuedAt",
			steps: []step{{up, upsert(`"EnqueuedAt":"a"`), "ok"}, {up, upsert(`"EnqueuedAt":"b","Status":"S"`), "ok"}, {upd, patch(`"EnqueuedAt":"c"`), "ok"}},
			item:  `{"WorkItemHash":"w","EnqueuedAt":"a","Status":"S"}`},
		{name: "a present item without EnqueuedAt gets none",
			steps: []step{{up, upsert(``), "ok"}, {up, upsert(`"EnqueuedAt":"b"`), "ok"}, {upd, patch(`"EnqueuedAt":"c"`), "ok"}, {up, upsert(mark + `,"EnqueuedAt":"b"`), "ok"}},
			item:  `{"WorkItemHash":"w"}`},
		{name: "a live update works as an upsert",
			steps: []step{{up, upsert(`"Status":"Pending","Priority":1`), "ok"}, {upd, patch(`"Status":"Complete","Priority":null,"New":{}`), "ok"}},
			item:  `{"WorkItemHash":"w","Status":"Complete","Priority":null,"New":{}}`},
		{name: "a patch may name its own WorkItemHash, in any spelling",
			steps: []step{{up, upsert(``), "ok"}, {upd, patch(`"WorkItemHash":"\u0077","A":1`), "ok"}},
			item:  `{"WorkItemHash":"w","A":1}`},
		{name: "a patch with another WorkItemHash is invalid",
			steps: []step{{up, upsert(``), "ok"}, {upd, patch(`"WorkItemHash":"v","A":1`), "invalid"}},
			item:  `{"WorkItemHash":"w"}`},
		{name: "a live update of an absent item finds nothing and stores nothing",
			steps: []step{{upd, patch(`"Status":"Complete"`), "not found"}}},
		{name: "a patch that changes nothing but HealthComputedAt is not stored",
			steps: []step{{up, upsert(`"Health":null,"HealthComputedAt":"a"`), "ok"}, {upd, patch(`"Health":null,"HealthComputedAt":"b"`), "ok"}},
			item:  `{"WorkItemHash":"w","Health":null,"HealthComputedAt":"a"}`},
		{name: "a patch that changes more stores HealthComputedAt too",
			steps: []step{{up, upsert(`"Health":null,"HealthComputedAt":"a"`), "ok"}, {upd, patch(`"Health":1,"HealthComputedAt":"b"`), "ok"}},
			item:  `{"WorkItemHash":"w","Health":1,"HealthComputedAt":"b"}`},
		{name: "an upsert that changes nothing but HealthComputedAt is stored",
			steps: []step{{up, upsert(`"HealthComputedAt":"a"`), "ok"}, {up, upsert(`"HealthComputedAt":"b"`), "ok"}},
			item:  `{"WorkItemHash":"w","HealthComputedAt":"b"}`},

		{name: "an event is stored, also when its item is unknown",
			steps:  []step{{ev, event(`"EventType":"a"`), "ok"}, {ev, event(`"EventType":"b"`), "ok"}},
			events: `{"WorkItemHash":"w","EventType":"a"} {"WorkItemHash":"w","EventType":"b"}`},
		{name: "an event with a GUID that is there is already present",
			steps:  []step{{ev, event(`"EventGUID":"g","EventType":"a"`), "ok"}, {ev, event(`"EventGUID":"g","EventType":"a"`), "already present"}},
			events: `{"WorkItemHash":"w","EventGUID":"g","EventType":"a"}`},
		{name: "an event with a GUID that has other content is a conflict",
			steps:  []step{{ev, event(`"EventGUID":"g","Payload":{"a":1}`), "ok"}, {ev, event(`"EventGUID":"g","Payload":{"a":2}`), "conflict"}},
			events: `{"WorkItemHash":"w","EventGUID":"g","Payload":{"a":1}}`},

		{name: "an attempt is stored, numbers below 1 being 1",
			steps:    []step{{att, attempt(`"AttemptNumber":0,"Outcome":"Dispatched"`), "ok"}},
			attempts: `{"WorkItemHash":"w","AttemptNumber":1,"Outcome":"Dispatched"}`},
		{name: "an attempt without a number is the first",
			steps:    []step{{att, attempt(``), "ok"}, {att, attempt(`"AttemptNumber":null,"Outcome":"O"`), "ok"}},
			attempts: `{"WorkItemHash":"w","AttemptNumber":1,"Outcome":"O"}`},
		{name: "an attempt over a present one fills what is missing and never resets",
			steps:    []step{{att, attempt(`"AttemptNumber":1,"Outcome":"Complete","Error":""`), "ok"}, {att, attempt(`"AttemptNumber":1,"Outcome":"Dispatched","Error":"e","DispatchedAt":"d"`), "ok"}},
			attempts: `{"WorkItemHash":"w","AttemptNumber":1,"Outcome":"Complete","Error":"e","DispatchedAt":"d"}`},
		{name: "an attempt that fills nothing is already present",
			steps:    []step{{att, attempt(`"AttemptNumber":1,"Outcome":"Complete"`), "ok"}, {att, attempt(`"AttemptNumber":1,"Outcome":"Dispatched"`), "already present"}},
			attempts: `{"WorkItemHash":"w","AttemptNumber":1,"Outcome":"Complete"}`},
		{name: "a missing member of an attempt is filled with null as given, a blank one is not",
			steps:    []step{{att, attempt(`"Error":""`), "ok"}, {att, attempt(`"Error":null,"EndedAt":null`), "ok"}},
			attempts: `{"WorkItemHash":"w","AttemptNumber":1,"Error":"","EndedAt":null}`},
		{name: "another beacon of an attempt is kept beside the first, once",
			steps:    []step{{att, attempt(`"BeaconID":"a"`), "ok"}, {att, attempt(`"BeaconID":"b"`), "ok"}, {att, attempt(`"BeaconID":"b"`), "already present"}, {att, attempt(`"BeaconID":"c"`), "ok"}},
			attempts: `{"WorkItemHash":"w","AttemptNumber":1,"BeaconID":"a","OtherBeaconIDs":["b","c"]}`},

		{name: "an outcome overwrites what it gives",
			steps:    []step{{att, attempt(`"AttemptNumber":2,"Outcome":"Dispatched","BeaconID":"b"`), "ok"}, {out, outcome(`"AttemptNumber":2`, `"Outcome":"Error","ErrorMessage":"e"`), "ok"}},
			attempts: `{"WorkItemHash":"w","AttemptNumber":2,"Outcome":"Error","BeaconID":"b","ErrorMessage":"e"}`},
		{name: "an outcome of a known item creates the attempt",
			steps:    []step{{up, upsert(``), "ok"}, {out, outcome(``, `"Outcome":"Complete"`), "ok"}},
			item:     `{"WorkItemHash":"w"}`,
			attempts: `{"WorkItemHash":"w","AttemptNumber":1,"Outcome":"Complete"}`},
		{name: "an outcome of an unknown item finds nothing",
			steps: []step{{out, outcome(`"AttemptNumber":1`, `"Outcome":"Complete"`), "not found"}}},

		{name: "a manifest is replaced whole",
			steps:   []step{{man, manifest(`"Status":"Waiting","WaitingTasks":{"a":1}`), "ok"}, {man, manifest(`"Status":"Complete"`), "ok"}},
			present: `{"Hash":"r","Status":"Complete"}`},
		{name: "a removed manifest is gone, and removing it again says so",
			steps: []step{{man, manifest(``), "ok"}, {gone, `{"RunHash":"r"}`, "ok"}, {gone, `{"RunHash":"r"}`, "already absent"}}},
		{name: "a live upsert brings a removed manifest back",
			steps:   []step{{man, manifest(`"A":1`), "ok"}, {gone, `{"RunHash":"r"}`, "ok"}, {man, manifest(`"B":1`), "ok"}},
			present: `{"Hash":"r","B":1}`},

		{name: "a re-flush of an absent item stores it without the engine's members",
			steps: []step{{up, upsert(mark + `,"CreateDate":"d","Deleted":0,"Status":"Pending"`), "ok"}},
			item:  `{"WorkItemHash":"w","Status":"Pending"}`},
		{name: "the engine's members of a live item stay",
			steps: []step{{up, upsert(`"CreateDate":"d","Deleted":0`), "ok"}},
			item:  `{"WorkItemHash":"w","CreateDate":"d","Deleted":0}`},
		{name: "a later re-flush overwrites what it gives and leaves the rest",
			steps: []step{{up, upsert(early + `,"Status":"Pending","ClaimedAt":"c"`), "ok"}, {up, upsert(mark + `,` + late + `,"Status":"Complete"`), "ok"}},
			item:  `{"WorkItemHash":"w",` + late + `,"Status":"Complete","ClaimedAt":"c"}`},
		{name: "a re-flush that is not later only fills",
			steps: []step{{up, upsert(late + `,"Status":"Pending","Result":null`), "ok"}, {up, upsert(mark + `,` + early + `,"Status":"Complete","Result":{"a":1},"RunID":"r"`), "ok"}},
			item:  `{"WorkItemHash":"w",` + late + `,"Status":"Pending","Result":{"a":1},"RunID":"r"}`},
		{name: "a re-flush of the same moment only fills",
			steps: []step{{up, upsert(late + `,"Status":"Pending"`), "ok"}, {up, upsert(mark + `,` + late + `,"Status":"Complete"`), "ok"}},
			item:  `{"WorkItemHash":"w",` + late + `,"Status":"Pending"}`},
		{name: "a later re-flush never undoes an end",
			steps: []step{{up, upsert(early + `,"Status":"Complete"`), "ok"}, {up, upsert(mark + `,` + late + `,"Status":"Pending","RunID":"r"`), "ok"}},
			item:  `{"WorkItemHash":"w",` + early + `,"Status":"Complete","RunID":"r"}`},
		{name: "a later re-flush may go from one end to another",
			steps: []step{{up, upsert(early + `,"Status":"Stalled"`), "ok"}, {up, upsert(mark + `,` + late + `,"Status":"Complete"`), "ok"}},
			item:  `{"WorkItemHash":"w",` + late + `,"Status":"Complete"}`},
		{name: "a re-flushed event is stored once",
			steps: []step{{up, upsert(``), "ok"}, {ev, event(`"IDBeaconWorkItemEvent":7,"CreateDate":null,"EventType":"a"`), "ok"}, {ev, event(`"IDBeaconWorkItemEvent":7,"CreateDate":null,"EventType":"a"`), "already present"},
				{ev, event(`"IDBeaconWorkItemEvent":8,"CreateDate":null,"EventType":"a"`), "ok"}},
			item: `{"WorkItemHash":"w"}`, events: `{"WorkItemHash":"w","EventType":"a"} {"WorkItemHash":"w","EventType":"a"}`},
		{name: "a re-flushed event of an absent item is expired",
			steps: []step{{ev, event(`"IDBeaconWorkItemEvent":7,"EventType":"a"`), "expired"}}},
		{name: "a re-flushed event with a GUID that is there never conflicts",
			steps:  []step{{ev, event(`"EventGUID":"g","EventType":"a"`), "ok"}, {ev, event(`"IDBeaconWorkItemEvent":7,"EventGUID":"g","EventType":"b"`), "already present"}},
			events: `{"WorkItemHash":"w","EventGUID":"g","EventType":"a"}`},
		{name: "a re-flush with a time is later than an item without",
			steps: []step{{up, upsert(`"Status":"Pending"`), "ok"}, {up, upsert(mark + `,` + early + `,"Status":"Complete"`), "ok"}},
			item:  `{"WorkItemHash":"w",` + early + `,"Status":"Complete"}`},
		{name: "a hollow re-flush never empties a manifest",
			steps:   []step{{man, manifest(`"Status":"Complete","StopTime":"2026-11-30T02:00:00Z","Output":{"a":1},"Log":[]`), "ok"}, {man, manifest(`"Live":false,"Status":"Complete","StopTime":"2026-11-30T02:00:00Z","Output":{},"Log":["l"]`), "ok"}},
			present: `{"Hash":"r","Status":"Complete","StopTime":"2026-11-30T02:00:00Z","Output":{"a":1},"Log":["l"]}`},
		{name: "a later re-flush of a manifest overwrites what it gives",
			steps:   []step{{man, manifest(`"Status":"Waiting","StopTime":"2026-11-30T02:00:00Z","GlobalState":{"a":1}`), "ok"}, {man, manifest(`"Live":false,"Status":"Complete","StopTime":"2026-11-30T02:00:01Z"`), "ok"}},
			present: `{"Hash":"r","Status":"Complete","StopTime":"2026-11-30T02:00:01Z","GlobalState":{"a":1}}`},
		{name: "a later re-flush of a manifest empties only what it waits for",
			steps:   []step{{man, manifest(`"Status":"Waiting","StopTime":"2026-11-30T02:00:00Z","TaskOutputs":{"a":1},"WaitingTasks":{"a":1}`), "ok"}, {man, manifest(`"Live":false,"Status":"Complete","StopTime":"2026-11-30T02:00:01Z","TaskOutputs":{},"TimingSummary":null,"WaitingTasks":{}`), "ok"}},
			present: `{"Hash":"r","Status":"Complete","StopTime":"2026-11-30T02:00:01Z","TaskOutputs":{"a":1},"WaitingTasks":{},"TimingSummary":null}`},
		{name: "a hub that started again lets no run fail that has ended",
			steps:   []step{{man, manifest(`"Status":"Complete","StopTime":"2026-11-30T02:00:00Z","ElapsedMs":5,"TaskOutputs":{"a":1}`), "ok"}, {man, manifest(`"Live":false,"Status":"Error","StopTime":"2026-11-30T03:00:00Z","ElapsedMs":null,"TaskOutputs":{}`), "ok"}},
			present: `{"Hash":"r","Status":"Complete","StopTime":"2026-11-30T02:00:00Z","ElapsedMs":5,"TaskOutputs":{"a":1}}`},
		{name: "a re-flush of a removed manifest is expired",
			steps: []step{{man, manifest(``), "ok"}, {gone, `{"RunHash":"r"}`, "ok"}, {man, manifest(`"Live":false`), "expired"}}},
		{name: "a re-flush past the retention is expired, unless it is unfinished",
			steps: []step{{up, upsert(mark + `,"Status":"Complete","LastEventAt":"2020-01-01T00:00:00Z"`), "expired"}, {up, upsert(mark + `,"Status":"Pending","LastEventAt":"2020-01-01T00:00:00Z"`), "ok"},
				{man, manifest(`"Live":false,"Status":"Failed","StopTime":"2020-01-01T00:00:00Z"`), "expired"}},
			item: `{"WorkItemHash":"w","Status":"Pending","LastEventAt":"2020-01-01T00:00:00Z"}`},
		{name: "a live write past the retention is stored",
			steps: []step{{up, upsert(`"Status":"Complete","LastEventAt":"2020-01-01T00:00:00Z"`), "ok"}},
			item:  `{"WorkItemHash":"w","Status":"Complete","LastEventAt":"2020-01-01T00:00:00Z"}`},
		{name: "a re-flush that is refused must not end a sweep",
			steps: []step{{up, `{"WorkItem":{"WorkItemHash":"","IDBeaconWorkItem":1}}`, "refused invalid"}}},

		{name: "an item about persistence itself is ignored, and so are its later writes",
			steps: []step{{up, upsert(`"Capability":"MeadowProxy"`), "ignored"}, {upd, patch(`"Status":"Complete"`), "ignored"}, {ev, event(`"EventType":"completed"`), "ignored"}, {att, attempt(``), "ignored"}, {out, outcome(``, `"Outcome":"Complete"`), "ignored"}, {up, upsert(`"Capability":"Shell"`), "ignored"}}},
		{name: "an event whose payload names persistence is ignored",
			steps: []step{{ev, event(`"Payload":{"Capability":"QueuePersistence"}`), "ignored"}, {upd, patch(`"A":1`), "ignored"}}},
		{name: "a patch whose settings name persistence is ignored",
			steps: []step{{upd, patch(`"Settings":{"Capability":"ManifestStore"}`), "ignored"}, {upd, patch(`"A":1`), "ignored"}}},
		{name: "an item whose settings only speak of it is stored",
			steps: []step{{up, upsert(`"Capability":"Shell","Settings":{"Text":"MeadowProxy"}`), "ok"}},
			item:  `{"WorkItemHash":"w","Capability":"Shell","Settings":{"Text":"MeadowProxy"}}`},

		{name: "what is no record is invalid",
			steps: []step{{"QP_Nothing", `{}`, "invalid"}, {up, `[]`, "invalid"}, {up, `{"WorkItem":7}`, "invalid"}, {up, `{"WorkItem":{"WorkItemHash":7}}`, "invalid"}, {up, upsert(`"a":1,"a":2`), "invalid"},
				{up, `{"WorkItem":{"WorkItemHash":"a\u0000b"}}`, "invalid"}, {up, upsert(`"a":` + strings.Repeat("[", 400) + strings.Repeat("]", 400)), "invalid"}, {att, attempt(`"AttemptNumber":"one"`), "invalid"}}},
		{name: "a key of 512 characters is the longest",
			steps: []step{{upd, `{"WorkItemHash":"` + strings.Repeat("é", 512) + `","Patch":{}}`, "not found"}, {upd, `{"WorkItemHash":"` + strings.Repeat("é", 513) + `","Patch":{}}`, "too_large"}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := model.New(model.Options{Retention: 24 * time.Hour, Now: func() time.Time { return time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC) }})
			for i, s := range c.steps {
				if got := told(m.Apply(s.action, json.RawMessage(s.settings))); got != s.want {
					t.Errorf("step %d: %s %s is answered %q, want %q", i+1, s.action, s.settings, got, s.want)
				}
			}
			same(t, "item", objects(t, c.item), there(m.Item("w")))
			same(t, "events", objects(t, c.events), m.Events("w"))
			same(t, "attempts", objects(t, c.attempts), m.Attempts("w"))
			same(t, "manifest", objects(t, c.present), there(m.Manifest("r")))
		})
	}
}

func there(o model.Object) []model.Object {
	if o == nil {
		return nil
	}
	return []model.Object{o}
}

func objects(t *testing.T, text string) []model.Object {
	t.Helper()
	var list []model.Object
	for d := json.NewDecoder(strings.NewReader(text)); d.More(); {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			t.Fatal(err)
		}
		list = append(list, model.MustParse(string(raw)))
	}
	return list
}

func TestAMergedRowBeyondTheLimitIsRefusedAndLeavesTheRow(t *testing.T) {
	t.Parallel()
	half := `"` + strings.Repeat("x", 60) + `"`
	m := model.New(model.Options{MaxRecord: 100})
	m.Apply(up, json.RawMessage(upsert(`"A":`+half)))
	if got := told(m.Apply(upd, json.RawMessage(patch(`"B":`+half)))); got != "too_large" {
		t.Errorf("the merge is answered %q", got)
	}
	if got := told(m.Apply(upd, json.RawMessage(patch(`"C":`+half+half[:1]+`,"D":`+half)))); got != "invalid" {
		t.Errorf("what is no JSON is answered %q", got)
	}
	if got := told(m.Apply(up, json.RawMessage(upsert(`"B":`+half+`,"C":`+half)))); got != "too_large" {
		t.Errorf("the record is answered %q", got)
	}
	if m.Item("w").Get("B") != nil {
		t.Error("the refused member is there")
	}
}

func TestADifferenceIsToldMemberByMember(t *testing.T) {
	t.Parallel()
	want := model.MustParse(`{"a":1,"b":1.0,"c":{"x":1}}`)
	got := model.MustParse(`{"c":{ "x":1},"b":1.0,"d":2,"OrderKey":"k"}`)
	list := strings.Join(model.DiffRecord(model.KindItem, want, got), "; ")
	if list != `a is missing, want 1; c is { "x":1}, want {"x":1}; d is 2, want nothing there` {
		t.Error(list)
	}
	if list := model.DiffRecord(model.KindEvent, model.MustParse(`{"EventGUID":"g"}`), model.MustParse(`{"EventGUID":"h"}`)); len(list) != 1 {
		t.Error(list)
	}
}
