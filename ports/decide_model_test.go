package ports_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/internal/model"
	"holdfast/ports"
)

// The model says what history must be; Decide must make it so, whatever comes in whatever order.

var (
	someKeys   = []string{"w1", "w2"}
	someValues = []string{
		`null`, `""`, `{}`, `[]`, `[ ]`, `{ }`, `0`, `-0`, `1`, `1.0`, `1e2`, `9007199254740993`, `"Pending"`, `"Complete"`, `"Running"`, `"Stalled"`,
		`"\u0041"`, `"\ud800"`, `"a\u0000b"`, `"x\/y"`, `"é\n"`, `true`, `false`, `{"a":1, "a":2}`, `[1,null]`,
	}
	someTimes = []string{
		`"2026-11-30T02:00:00.000Z"`, `"2026-11-30T02:00:00Z"`, `"2026-11-30T03:00:00.001+01:00"`, `"2026-11-30T02:00:00.0011Z"`, `"soon"`, `null`,
		`"2020-01-01T00:00:00Z"`, `"2020-06-01T00:00:00.5-03:00"`,
	}
	statuses = []string{`"Pending"`, `"Complete"`, `"Running"`, `"Stalled"`, `"Canceled"`, `"Abandoned"`, `null`, `7`}
	beacons  = []string{`"b1"`, `"b2"`, `"b3"`, `""`, `null`, `7`, `{"b":1}`}
)

var someMembers = map[ports.Kind][]string{
	ports.KindItem: {"Status", "LastEventAt", "EnqueuedAt", "CompletedAt", "Settings", "Result", "Priority", "Health", "HealthComputedAt",
		"CancelRequested", "AttemptNumber", "Capability", "Unknown", "$raw"},
	ports.KindEvent:    {"EventType", "Payload", "BeaconID", "Seq", "EmittedAt", "Unknown", "$absent"},
	ports.KindAttempt:  {"BeaconID", "OtherBeaconIDs", "Outcome", "Error", "ErrorMessage", "CompletedAt", "Unknown"},
	ports.KindManifest: {"Status", "StopTime", "StartTime", "ElapsedMs", "Output", "Log", "OperationHash"},
}

// chosen makes a record: the given members, and some others of its kind.
func chosen(kind ports.Kind, members map[string]string) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var parts []string
		names := someMembers[kind]
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 6, rapid.ID).Draw(t, "members") {
			if members[name] != "" {
				continue
			}
			pool := someValues
			switch name {
			case "Status":
				pool = statuses
			case "LastEventAt", "StopTime", "StartTime", "EnqueuedAt", "CompletedAt", "HealthComputedAt", "EmittedAt":
				pool = someTimes
			case "BeaconID":
				pool = beacons
			case "OtherBeaconIDs":
				pool = []string{`[]`, `["b2"]`, `[7]`, `[ "b3" , {"b":1} ]`, `"b2"`, `null`}
			case "AttemptNumber":
				pool = []string{`0`, `1`, `2`, `-3`, `null`}
			case "Capability":
				pool = []string{`"Shell"`, `null`, `7`}
			}
			parts = append(parts, fmt.Sprintf("%q:%s", name, rapid.SampledFrom(pool).Draw(t, name)))
		}
		for name, value := range members {
			if value != "-" {
				parts = append(parts, fmt.Sprintf("%q:%s", name, value))
			}
		}
		slices.Sort(parts)
		return "{" + strings.Join(rapid.Permutation(parts).Draw(t, "order"), ",") + "}"
	})
}

var tableOf = map[ports.Action]*ports.Table{
	ports.UpsertWorkItem: ports.Items, ports.UpdateWorkItem: ports.Items, ports.AppendEvent: ports.Events,
	ports.InsertAttempt: ports.Attempts, ports.UpdateAttemptOutcome: ports.Attempts, ports.UpsertManifest: ports.Manifests,
}

// act is one action with a re-flush's marks now and then.
type act struct {
	action   ports.Action
	settings string
	again    bool // an import
}

func someAct() *rapid.Generator[act] {
	return rapid.Custom(func(t *rapid.T) act {
		key := rapid.SampledFrom(someKeys).Draw(t, "key")
		number := rapid.SampledFrom([]string{`1`, `1`, `0`, `2`, `null`}).Draw(t, "number")
		flush := rapid.Bool().Draw(t, "flush")
		a := act{action: rapid.SampledFrom(ports.Writes).Draw(t, "action"), again: rapid.IntRange(0, 9).Draw(t, "import") == 0}
		members := map[string]string{"WorkItemHash": fmt.Sprintf("%q", key)}
		mark := func(name, value string) {
			if flush {
				members[name], members["CreateDate"], members["Deleted"] = value, "null", "0"
			}
		}
		record := func() string { return chosen(tableOf[a.action].Kind, members).Draw(t, "record") }
		switch a.action {
		case ports.UpsertWorkItem:
			mark("IDBeaconWorkItem", "1")
			a.settings = fmt.Sprintf(`{"WorkItem":%s}`, record())
		case ports.UpdateWorkItem, ports.UpdateAttemptOutcome:
			a.again = false
			members["AttemptNumber"] = "-"
			delete(members, "WorkItemHash")
			a.settings = fmt.Sprintf(`{"WorkItemHash":%q,"AttemptNumber":%s,"Patch":%s}`, key, number, record())
		case ports.AppendEvent:
			mark("IDBeaconWorkItemEvent", rapid.SampledFrom([]string{"1", "2"}).Draw(t, "row"))
			if rapid.Bool().Draw(t, "named") {
				members["EventGUID"] = rapid.SampledFrom([]string{`"g1"`, `"\u00671"`, `"g2"`, `null`, `""`}).Draw(t, "guid")
			}
			a.settings = fmt.Sprintf(`{"Event":%s}`, record())
		case ports.InsertAttempt:
			members["AttemptNumber"] = number
			a.settings = fmt.Sprintf(`{"Attempt":%s}`, record())
		case ports.UpsertManifest:
			delete(members, "WorkItemHash")
			members["Hash"] = fmt.Sprintf("%q", key)
			mark("Live", "false")
			a.settings = fmt.Sprintf(`{"Manifest":%s}`, record())
		case ports.RemoveManifest:
			a.again = false
			a.settings = fmt.Sprintf(`{"RunHash":%q}`, key)
		}
		return a
	})
}

// entryOf is what the Door makes of an act that it accepts.
func entryOf(t failer, a act, seq uint64, answer model.Answer) *ports.Entry {
	var settings struct {
		WorkItemHash, RunHash                     string
		AttemptNumber                             *int64
		WorkItem, Patch, Event, Attempt, Manifest json.RawMessage
	}
	if err := json.Unmarshal([]byte(a.settings), &settings); err != nil {
		t.Fatalf("%s: %v", a.settings, err)
	}
	e := &ports.Entry{Seq: seq, Action: a.action, Class: ports.Live, Key: settings.WorkItemHash + settings.RunHash, Number: 1,
		ReceivedMs: today.UnixMilli() + int64(seq/3), Host: "host", Actor: fmt.Sprint("actor", seq), Origin: ports.OriginHTTP}
	if a.again {
		e.Class = ports.Reflush
	}
	text := slices.Concat(settings.WorkItem, settings.Patch, settings.Event, settings.Attempt, settings.Manifest)
	if text == nil {
		return e
	}
	table := tableOf[a.action]
	r, err := ports.ParseRecord(table, text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if e.Key == "" {
		e.Key = r.Text(table.Key)
	}
	mark := map[ports.Action]string{ports.UpsertWorkItem: "IDBeaconWorkItem", ports.AppendEvent: "IDBeaconWorkItemEvent", ports.UpsertManifest: "Live"}[a.action]
	if mark != "" && r.Get(mark) != nil {
		e.Class = ports.Reflush
		r.Drop(mark, "CreateDate", "Deleted")
	}
	number := settings.AttemptNumber
	if a.action == ports.InsertAttempt {
		number = nil
		if err := json.Unmarshal(r.Get("AttemptNumber"), &number); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	if number != nil {
		e.Number = max(*number, 1)
	}
	if a.action == ports.AppendEvent {
		e.EventGUID, e.GUIDGiven = answer.EventID, r.Text("EventGUID") != ""
	}
	e.Record = r.JSON()
	return e
}

var today = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

func TestDecideMakesHistoryWhatTheModelSays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rules := ports.Rules{HostID: "host", Retention: rapid.SampledFrom([]time.Duration{0, 365 * 24 * time.Hour}).Draw(t, "retention")}
		m := model.New(model.Options{Retention: rules.Retention, Now: func() time.Time { return today }})
		h := newHistory()
		length := rapid.IntRange(1, 60).Draw(t, "length")
		for seq, a := range rapid.SliceOfN(someAct(), length, length).Draw(t, "acts") {
			take := m.Apply
			if a.again {
				take = m.Again
			}
			want := take(string(a.action), json.RawMessage(a.settings))
			if want.Ignored || refusedAtTheDoor(want) {
				continue
			}
			before := fmt.Sprint(h.texts(ports.KindItem), h.texts(ports.KindEvent), h.texts(ports.KindAttempt), h.texts(ports.KindManifest))
			effect := h.commit(t, entryOf(t, a, uint64(seq+1), want), rules)
			if got := outcomeOf(effect.Decision); got != answerOf(want) {
				t.Fatalf("%s %s is decided %s, want %s", a.action, a.settings, got, answerOf(want))
			}
			compare(t, m, h)
			after := fmt.Sprint(h.texts(ports.KindItem), h.texts(ports.KindEvent), h.texts(ports.KindAttempt), h.texts(ports.KindManifest))
			if changed := effect.Next != nil || effect.Bury; !changed && before != after || effect.Next != nil && effect.Present != nil && before == after {
				t.Fatalf("%s %s: changed is %v\nbefore %s\nafter  %s", a.action, a.settings, changed, before, after)
			}
			stamps(t, effect, uint64(seq+1))
		}
	})
}

// refusedAtTheDoor says that a write never reaches Decide.
func refusedAtTheDoor(answer model.Answer) bool {
	return (answer.Code != "" || answer.Refused != "") && answer.Code != string(ports.Conflict)
}

// stamps checks that what the first write fixed stays, and that the change says who made it.
func stamps(t failer, effect ports.Effect, seq uint64) {
	if effect.Next == nil {
		return
	}
	if (effect.Next.Change != ports.Change{Host: "host", Seq: seq}) {
		t.Fatalf("the change is stamped %+v", effect.Next.Change)
	}
	if effect.Present != nil && effect.Next.First != effect.Present.First {
		t.Fatalf("the first write's stamps went from %+v to %+v", effect.Present.First, effect.Next.First)
	}
	if effect.Present == nil && effect.Next.First.Actor != fmt.Sprint("actor", seq) {
		t.Fatalf("the first write's actor is %s", effect.Next.First.Actor)
	}
}

func answerOf(a model.Answer) string {
	switch {
	case a.Refused != "":
		return "refused " + a.Refused
	case a.Code != "":
		return "refused " + a.Code
	case a.NotFound:
		return string(ports.Missing)
	case a.AlreadyPresent:
		return string(ports.AlreadyPresent)
	case a.AlreadyAbsent:
		return string(ports.AlreadyAbsent)
	case a.Expired:
		return string(ports.Expired)
	}
	return string(ports.Stored)
}

func outcomeOf(d ports.Decision) string {
	if d.Outcome == ports.Refused {
		return "refused " + string(d.Err.Code)
	}
	return string(d.Outcome)
}

func compare(t failer, m *model.Model, h *history) {
	t.Helper()
	for _, key := range someKeys {
		var items, events, attempts, manifests []model.Object
		if item := m.Item(key); item != nil {
			items = append(items, item)
		}
		if manifest := m.Manifest(key); manifest != nil {
			manifests = append(manifests, manifest)
		}
		events, attempts = m.Events(key), m.Attempts(key)
		for kind, want := range map[ports.Kind][]model.Object{ports.KindItem: items, ports.KindEvent: events, ports.KindAttempt: attempts, ports.KindManifest: manifests} {
			var got []model.Object
			for _, text := range h.texts(kind) {
				record := model.MustParse(text)
				if record.Text("WorkItemHash") == key || kind == ports.KindManifest && record.Text("Hash") == key {
					got = append(got, record)
				}
			}
			if kind == ports.KindAttempt {
				slices.SortFunc(got, func(a, b model.Object) int {
					return strings.Compare(string(a.Get("AttemptNumber")), string(b.Get("AttemptNumber")))
				})
			}
			if differences := model.DiffRecords(model.Kind(kind), want, got); len(differences) > 0 {
				t.Fatalf("%s of %s: %s\nwant %s\ngot  %s", kind, key, strings.Join(differences, "; "), want, got)
			}
		}
	}
}
