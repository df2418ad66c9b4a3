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
	"holdfast/internal/traffic"
	"holdfast/ports"
)

// The model says what history must be; Decide must make it so, whatever comes in whatever order.

var someKeys = []string{"w1", "w2"}

var tableOf = map[string]*ports.Table{
	"QP_UpsertWorkItem": ports.Items, "QP_UpdateWorkItem": ports.Items, "QP_AppendEvent": ports.Events,
	"QP_InsertAttempt": ports.Attempts, "QP_UpdateAttemptOutcome": ports.Attempts, "MS_UpsertManifest": ports.Manifests,
}

// entryOf is what the Door makes of an act that it accepts.
func entryOf(t failer, a traffic.Act, seq uint64, answer model.Answer) *ports.Entry {
	var settings struct {
		WorkItemHash, RunHash                     string
		AttemptNumber                             *int64
		WorkItem, Patch, Event, Attempt, Manifest json.RawMessage
	}
	if err := json.Unmarshal([]byte(a.Settings), &settings); err != nil {
		t.Fatalf("%s: %v", a.Settings, err)
	}
	e := &ports.Entry{Seq: seq, Action: ports.Action(a.Action), Class: ports.Live, Key: settings.WorkItemHash + settings.RunHash, Number: 1,
		ReceivedMs: today.UnixMilli() + int64(seq/3), Host: "host", Actor: fmt.Sprint("actor", seq), Origin: ports.OriginHTTP}
	if a.Again {
		e.Class = ports.Reflush
	}
	text := slices.Concat(settings.WorkItem, settings.Patch, settings.Event, settings.Attempt, settings.Manifest)
	if text == nil {
		return e
	}
	table := tableOf[a.Action]
	r, err := ports.ParseRecord(table, text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if e.Key == "" {
		e.Key = r.Text(table.Key)
	}
	mark := map[ports.Action]string{ports.UpsertWorkItem: "IDBeaconWorkItem", ports.AppendEvent: "IDBeaconWorkItemEvent", ports.UpsertManifest: "Live"}[e.Action]
	if mark != "" && r.Get(mark) != nil {
		e.Class = ports.Reflush
		r.Drop(mark, "CreateDate", "Deleted")
	}
	number := settings.AttemptNumber
	if e.Action == ports.InsertAttempt {
		number = nil
		if err := json.Unmarshal(r.Get("AttemptNumber"), &number); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	if number != nil {
		e.Number = max(*number, 1)
	}
	if e.Action == ports.AppendEvent {
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
		for seq, a := range rapid.SliceOfN(traffic.Acts(someKeys, "e"), length, length).Draw(t, "acts") {
			take := m.Apply
			if a.Again {
				take = m.Again
			}
			want := take(a.Action, json.RawMessage(a.Settings))
			if want.Ignored || refusedAtTheDoor(want) {
				continue
			}
			before := fmt.Sprint(h.texts(ports.KindItem), h.texts(ports.KindEvent), h.texts(ports.KindAttempt), h.texts(ports.KindManifest))
			effect := h.commit(t, entryOf(t, a, uint64(seq+1), want), rules)
			if got := outcomeOf(effect.Decision); got != answerOf(want) {
				t.Fatalf("%s %s is decided %s, want %s", a.Action, a.Settings, got, answerOf(want))
			}
			compare(t, m, h)
			after := fmt.Sprint(h.texts(ports.KindItem), h.texts(ports.KindEvent), h.texts(ports.KindAttempt), h.texts(ports.KindManifest))
			if changed := effect.Next != nil || effect.Bury; !changed && before != after || effect.Next != nil && effect.Present != nil && before == after {
				t.Fatalf("%s %s: changed is %v\nbefore %s\nafter  %s", a.Action, a.Settings, changed, before, after)
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
