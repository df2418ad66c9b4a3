package core

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"

	"holdfast/ports"
)

// guid gives the EventGUID that an event gets from a source.
func guid(t *testing.T, from Source, event string) string {
	t.Helper()
	c, err := check(&Call{Action: ports.AppendEvent, Settings: []byte(`{"Event":` + event + `}`), Source: from})
	if err != nil {
		t.Fatal(err)
	}
	c.stampGUID(&from)
	return c.entry.EventGUID
}

// read gives the GUIDs of one reading of a stream.
func reading(t *testing.T, stream string, events ...string) (guids []string) {
	t.Helper()
	s := NewStream(stream)
	for i, event := range events {
		guids = append(guids, guid(t, Source{Stream: s, Line: i + 1}, event))
	}
	return guids
}

const event1, event2 = `{"WorkItemHash":"a","EventType":"x","Payload":{"n":1}}`, `{"WorkItemHash":"a","EventType":"x","Payload":{"n":2}}`

func TestAStreamThatIsReadAgainGivesItsEventsTheSameGUIDs(t *testing.T) {
	t.Parallel()
	first := reading(t, "file", event1, event2, event1, event1)
	if again := reading(t, "file", event1, event2, event1, event1); !slices.Equal(first, again) {
		t.Errorf("first %v\nagain %v", first, again)
	}
	if moved := reading(t, "file", event2, event1, event1, event1); moved[0] != first[1] || moved[1] != first[0] || moved[3] != first[3] {
		t.Errorf("the n-th equal line of a content has another GUID elsewhere: %v, %v", moved, first)
	}
	if slices.Contains(reading(t, "other", event1, event2), first[0]) {
		t.Error("another stream gives the same GUIDs")
	}
	slices.Sort(first)
	if len(slices.Compact(first)) != 4 {
		t.Errorf("equal lines have one GUID: %v", first)
	}
}

func TestARequestThatIsSentAgainWithItsIdempotencyKeyGivesTheSameGUIDs(t *testing.T) {
	t.Parallel()
	from := Source{Actor: "token", Idempotency: "k", Line: 3}
	known := guid(t, from, event1)
	if guid(t, from, event1) != known {
		t.Error("the same line has two GUIDs")
	}
	for name, other := range map[string]Source{
		"actor": {Actor: "other", Idempotency: "k", Line: 3}, "key": {Actor: "token", Idempotency: "l", Line: 3}, "line": {Actor: "token", Idempotency: "k", Line: 4},
		"parts that run together": {Actor: "tokenk", Idempotency: "", Line: 3},
	} {
		if guid(t, other, event1) == known {
			t.Errorf("another %s gives the same GUID", name)
		}
	}
}

// Only equal content can ever merge, wherever a GUID comes from.
func TestTheContentIsAlwaysInAMadeUpName(t *testing.T) {
	t.Parallel()
	base := map[string]string{"WorkItemHash": `"a"`, "EventType": `"x"`, "FromStatus": `"f"`, "ToStatus": `"t"`, "BeaconID": `"b"`, "Payload": `{"n":1}`}
	text := func(changed string) string {
		members := map[string]json.RawMessage{"IDBeaconWorkItemEvent": json.RawMessage("7")}
		for name, value := range base {
			if name == changed {
				value = `"changed"`
			}
			members[name] = json.RawMessage(value)
		}
		b, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, from := range []func() Source{
		func() Source { return Source{Stream: NewStream("s")} },
		func() Source { return Source{Idempotency: "k"} },
		func() Source { return Source{Import: true} },
	} {
		seen := map[string]string{}
		for _, changed := range []string{"", "WorkItemHash", "EventType", "FromStatus", "ToStatus", "BeaconID", "Payload"} {
			g := guid(t, from(), text(changed))
			if other, known := seen[g]; known {
				t.Errorf("%+v: %q and %q changed have one GUID", from(), changed, other)
			}
			seen[g] = changed
			if guid(t, from(), text(changed)) != g {
				t.Errorf("%+v: the same event has two GUIDs", from())
			}
		}
	}
}

func TestAnEventsOwnGUIDStays(t *testing.T) {
	t.Parallel()
	for _, from := range []Source{{}, {Stream: NewStream("s")}, {Idempotency: "k"}, {Import: true}} {
		for _, event := range []string{`{"WorkItemHash":"a","EventGUID":"g"}`, `{"WorkItemHash":"a","EventGUID":"g","IDBeaconWorkItemEvent":7}`} {
			if got := guid(t, from, event); got != "g" {
				t.Errorf("%+v: %s gets %s", from, event, got)
			}
		}
		for _, empty := range []string{`null`, `""`} {
			if got, err := uuid.Parse(guid(t, from, `{"WorkItemHash":"a","EventGUID":`+empty+`}`)); err != nil {
				t.Errorf("%+v: an event with GUID %s gets %s: %v", from, empty, got, err)
			}
		}
	}
}

func TestALoneEventGetsANewGUIDEachTime(t *testing.T) {
	t.Parallel()
	one, two := guid(t, Source{}, event1), guid(t, Source{}, event1)
	if id, err := uuid.Parse(one); one == two || err != nil || id.Version() != 7 {
		t.Errorf("they are %s and %s", one, two)
	}
}

// GUIDs that were given once are in databases: what they are made from must never change.
func TestMadeUpGUIDsAreTheSameInEveryVersion(t *testing.T) {
	t.Parallel()
	got := []string{
		guid(t, Source{Stream: NewStream("file")}, event1),
		guid(t, Source{Actor: "token", Idempotency: "k", Line: 3}, event1),
		guid(t, Source{}, `{"WorkItemHash":"a","EventType":"x","IDBeaconWorkItemEvent":7}`),
	}
	want := []string{"1a61f96f-692f-57fd-ac3e-9986aa5884a8", "b8c93ea1-4be1-5081-b9cd-17b25b63dc09", "a8074d19-6aa7-54e1-97cf-9c07f0684095"}
	if !slices.Equal(got, want) {
		t.Errorf("they are %q", got)
	}
}

func TestAStreamRemembersABoundedNumberOfLines(t *testing.T) {
	t.Parallel()
	s := NewStream("file")
	for i := range maxStreamLines {
		s.times[uint64(i)] = 1
	}
	if a, b := s.nth("new", 5), s.nth("new", 6); a != "line 5" || b != "line 6" || len(s.times) != maxStreamLines {
		t.Errorf("beyond the bound lines are %s and %s of %d", a, b, len(s.times))
	}
}

func TestAnEventIsStoredOnceHoweverOftenItsStreamIsRead(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.does(upsert("a", "Pending"), Done)
		for round, want := range []Situation{Done, AlreadyPresent} {
			stream := NewStream("file")
			for i, event := range []string{event1, event2, event1} {
				c := call(ports.AppendEvent, `{"Event":%s}`, event)
				c.Source.Stream, c.Source.Line = stream, i+1
				if a := s.host.Do(t.Context(), c); a.Situation != want {
					t.Errorf("round %d, line %d: %s", round, i, a.AppendJSON(nil))
				}
			}
		}
		if n := len(s.store.look().held); n != 4 {
			t.Errorf("%d records are stored", n)
		}
		flushed := call(ports.AppendEvent, `{"Event":{"WorkItemHash":"a","EventType":"y","IDBeaconWorkItemEvent":9,"CreateDate":"d"}}`)
		s.does(flushed, Done)
		s.does(flushed, AlreadyPresent)
		if fmt.Sprint(s.host.Status().Families[0].Writes.AlreadyPresent) != "4" {
			t.Errorf("the counts are %+v", s.host.Status().Families[0].Writes)
		}
	})
}
