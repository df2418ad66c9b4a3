package ports_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/ports"
)

// The short forms of entries about the item "w" and the run "r".
func upsert(record string) *ports.Entry {
	return &ports.Entry{Action: ports.UpsertWorkItem, Class: ports.Live, Key: "w", Record: []byte(record)}
}

func update(patch string) *ports.Entry {
	return &ports.Entry{Action: ports.UpdateWorkItem, Class: ports.Live, Key: "w", Record: []byte(patch)}
}

func event(guid, record string) *ports.Entry {
	return &ports.Entry{Action: ports.AppendEvent, Class: ports.Live, Key: "w", EventGUID: guid, Record: []byte(record)}
}

func attempt(number int64, record string) *ports.Entry {
	return &ports.Entry{Action: ports.InsertAttempt, Class: ports.Live, Key: "w", Number: number, Record: []byte(record)}
}

func outcome(number int64, patch string) *ports.Entry {
	return &ports.Entry{Action: ports.UpdateAttemptOutcome, Class: ports.Live, Key: "w", Number: number, Record: []byte(patch)}
}

func manifest(record string) *ports.Entry {
	return &ports.Entry{Action: ports.UpsertManifest, Class: ports.Live, Key: "r", Record: []byte(record)}
}

func removal() *ports.Entry {
	return &ports.Entry{Action: ports.RemoveManifest, Class: ports.Live, Key: "r"}
}

func again(e *ports.Entry) *ports.Entry { e.Class = ports.Reflush; return e }
func given(e *ports.Entry) *ports.Entry { e.GUIDGiven = true; return e }

// after is an entry and what is decided of it.
type after struct {
	entry *ports.Entry
	want  ports.Outcome
}

func stored(e *ports.Entry) after { return after{e, ports.Stored} }

func TestEachWriteIsDecidedByTheTables(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		writes []after
		kind   ports.Kind
		want   []string
	}{
		{"a live upsert of an absent item stores it as it came", []after{stored(upsert(`{"WorkItemHash":"w","Settings":{"b":1,  "a":1.0},"Result":null}`))},
			ports.KindItem, []string{`{"WorkItemHash":"w","Settings":{"b":1,  "a":1.0},"Result":null}`}},
		{"a live upsert overwrites what is given, clears with null, leaves what is missing", []after{stored(upsert(`{"WorkItemHash":"w","Status":"Pending","Priority":1,"LastError":"x"}`)), stored(upsert(`{"WorkItemHash":"w","Status":"Running","LastError":null}`))},
			ports.KindItem, []string{`{"WorkItemHash":"w","Status":"Running","Priority":1,"LastError":null}`}},
		{"a present item keeps its hash and its EnqueuedAt", []after{stored(upsert(`{"WorkItemHash":"w","EnqueuedAt":"a"}`)), stored(upsert(`{"WorkItemHash":"\u0077","EnqueuedAt":"b"}`)), stored(update(`{"EnqueuedAt":null}`))},
			ports.KindItem, []string{`{"WorkItemHash":"w","EnqueuedAt":"a"}`}},
		{"a present item without EnqueuedAt never gets one", []after{stored(upsert(`{"WorkItemHash":"w"}`)), stored(upsert(`{"WorkItemHash":"w","EnqueuedAt":"b"}`)), stored(again(upsert(`{"WorkItemHash":"w","EnqueuedAt":"b"}`)))},
			ports.KindItem, []string{`{"WorkItemHash":"w"}`}},
		{"an update of an absent item is missing and stores nothing", []after{{update(`{"Status":"Complete"}`), ports.Missing}},
			ports.KindItem, nil},
		{"a patch that changes nothing but HealthComputedAt is not stored", []after{stored(upsert(`{"WorkItemHash":"w","Health":1,"HealthComputedAt":"a"}`)), stored(update(`{"Health":1,"HealthComputedAt":"b"}`))},
			ports.KindItem, []string{`{"WorkItemHash":"w","Health":1,"HealthComputedAt":"a"}`}},
		{"an upsert that changes nothing but HealthComputedAt is stored", []after{stored(upsert(`{"WorkItemHash":"w","HealthComputedAt":"a"}`)), stored(upsert(`{"WorkItemHash":"w","HealthComputedAt":"b"}`))},
			ports.KindItem, []string{`{"WorkItemHash":"w","HealthComputedAt":"b"}`}},

		{"an event of an unknown item is stored", []after{stored(event("g", `{"WorkItemHash":"w"}`))},
			ports.KindEvent, []string{`{"EventGUID":"g","WorkItemHash":"w"}`}},
		{"an event whose GUID is there is already present", []after{stored(event("g", `{"WorkItemHash":"w","EventType":"a"}`)), {event("g", `{"WorkItemHash":"w","EventType":"a"}`), ports.AlreadyPresent}},
			ports.KindEvent, []string{`{"EventGUID":"g","WorkItemHash":"w","EventType":"a"}`}},
		{"an event whose caller gave a GUID that is there with other content is refused", []after{stored(given(event("g", `{"WorkItemHash":"w","RunID":"1"}`))), {given(event("g", `{"WorkItemHash":"w","RunID":"2"}`)), ports.Refused}},
			ports.KindEvent, []string{`{"EventGUID":"g","WorkItemHash":"w","RunID":"1"}`}},
		{"an event whose GUID was made from its content never conflicts", []after{stored(event("g", `{"WorkItemHash":"w","RunID":"1"}`)), {event("g", `{"WorkItemHash":"w","RunID":"2"}`), ports.AlreadyPresent}},
			ports.KindEvent, []string{`{"EventGUID":"g","WorkItemHash":"w","RunID":"1"}`}},
		{"an event that is sent again never conflicts", []after{stored(given(event("g", `{"WorkItemHash":"w","RunID":"1"}`))), {again(given(event("g", `{"WorkItemHash":"w","RunID":"2"}`))), ports.AlreadyPresent}},
			ports.KindEvent, []string{`{"EventGUID":"g","WorkItemHash":"w","RunID":"1"}`}},
		{"an event that is sent again of an absent item is expired", []after{{again(event("g", `{"WorkItemHash":"w"}`)), ports.Expired}},
			ports.KindEvent, nil},

		{"an attempt has its number as the entry says it", []after{stored(attempt(1, `{"WorkItemHash":"w","AttemptNumber":-4}`))},
			ports.KindAttempt, []string{`{"WorkItemHash":"w","AttemptNumber":1}`}},
		{"an attempt inserted again fills what is missing and resets no Outcome", []after{stored(attempt(1, `{"WorkItemHash":"w","Outcome":"Complete","Error":""}`)), stored(attempt(1, `{"WorkItemHash":"w","Outcome":"Dispatched","Error":"e","DispatchedAt":"d"}`))},
			ports.KindAttempt, []string{`{"WorkItemHash":"w","AttemptNumber":1,"Outcome":"Complete","Error":"e","DispatchedAt":"d"}`}},
		{"an attempt inserted again that fills nothing is already present", []after{stored(attempt(1, `{"WorkItemHash":"w","Outcome":"Complete"}`)), {attempt(1, `{"WorkItemHash":"w","Outcome":"Dispatched"}`), ports.AlreadyPresent}},
			ports.KindAttempt, []string{`{"WorkItemHash":"w","AttemptNumber":1,"Outcome":"Complete"}`}},
		{"every other beacon of an attempt is kept once, whatever it is", []after{stored(attempt(1, `{"WorkItemHash":"w","BeaconID":"a","OtherBeaconIDs":[ ]}`)), stored(attempt(1, `{"WorkItemHash":"w","BeaconID":7}`)),
			{attempt(1, `{"WorkItemHash":"w","BeaconID":7}`), ports.AlreadyPresent}, stored(attempt(1, `{"WorkItemHash":"w","BeaconID":"b"}`))},
			ports.KindAttempt, []string{`{"WorkItemHash":"w","AttemptNumber":1,"BeaconID":"a","OtherBeaconIDs":[7,"b"]}`}},
		{"an attempt that is sent again of an absent item is expired", []after{{again(attempt(1, `{"WorkItemHash":"w"}`)), ports.Expired}},
			ports.KindAttempt, nil},
		{"an outcome overwrites what is given", []after{stored(attempt(2, `{"WorkItemHash":"w","Outcome":"Dispatched","BeaconID":"b"}`)), stored(outcome(2, `{"Outcome":"Error","ErrorMessage":"e"}`))},
			ports.KindAttempt, []string{`{"WorkItemHash":"w","AttemptNumber":2,"BeaconID":"b","Outcome":"Error","ErrorMessage":"e"}`}},
		{"an outcome of a known item creates the attempt", []after{stored(upsert(`{"WorkItemHash":"w"}`)), stored(outcome(1, `{"Outcome":"Complete"}`))},
			ports.KindAttempt, []string{`{"WorkItemHash":"w","AttemptNumber":1,"Outcome":"Complete"}`}},
		{"an outcome of an unknown item is missing", []after{{outcome(1, `{"Outcome":"Complete"}`), ports.Missing}},
			ports.KindAttempt, nil},

		{"a manifest is replaced whole", []after{stored(manifest(`{"Hash":"r","Status":"Waiting","WaitingTasks":{}}`)), stored(manifest(`{"Hash":"r","Status":"Complete"}`))},
			ports.KindManifest, []string{`{"Hash":"r","Status":"Complete"}`}},
		{"a manifest keeps the order of its members", []after{stored(manifest(`{"Hash":"r","A":1,"B":2}`)), stored(manifest(`{"B":2, "A":1,"Hash":"r"}`))},
			ports.KindManifest, []string{`{"B":2, "A":1,"Hash":"r"}`}},
		{"a removal buries a manifest", []after{stored(manifest(`{"Hash":"r"}`)), stored(removal()), {removal(), ports.AlreadyAbsent}, {again(manifest(`{"Hash":"r"}`)), ports.Expired}},
			ports.KindManifest, nil},
		{"a live upsert brings a removed manifest back", []after{stored(manifest(`{"Hash":"r","A":1}`)), stored(removal()), stored(manifest(`{"Hash":"r","B":1}`))},
			ports.KindManifest, []string{`{"Hash":"r","B":1}`}},

		{"a later item that is sent again overwrites what is given", []after{stored(upsert(`{"WorkItemHash":"w","Status":"Pending","LastEventAt":"2026-11-30T02:00:00Z","ClaimedAt":"c"}`)), stored(again(upsert(`{"WorkItemHash":"w","Status":"Complete","LastEventAt":"2026-11-30T02:00:00.000000001Z"}`)))},
			ports.KindItem, []string{`{"WorkItemHash":"w","Status":"Complete","ClaimedAt":"c","LastEventAt":"2026-11-30T02:00:00.000000001Z"}`}},
		{"an item of the same instant that is sent again only fills", []after{stored(upsert(`{"WorkItemHash":"w","Status":"Pending","LastEventAt":"2026-11-30T02:00:00Z","Result":{}}`)), stored(again(upsert(`{"WorkItemHash":"w","Status":"Complete","LastEventAt":"2026-11-30T03:00:00.000+01:00","Result":{"a":1},"RunID":"r"}`)))},
			ports.KindItem, []string{`{"WorkItemHash":"w","RunID":"r","Status":"Pending","LastEventAt":"2026-11-30T02:00:00Z","Result":{"a":1}}`}},
		{"an item that is sent again never undoes an end", []after{stored(upsert(`{"WorkItemHash":"w","Status":"Stalled","LastEventAt":"2026-11-30T02:00:00Z"}`)), stored(again(upsert(`{"WorkItemHash":"w","Status":"Running","LastEventAt":"2026-11-30T03:00:00Z"}`)))},
			ports.KindItem, []string{`{"WorkItemHash":"w","Status":"Stalled","LastEventAt":"2026-11-30T02:00:00Z"}`}},
		{"a finished item past the retention that is sent again is expired", []after{{again(upsert(`{"WorkItemHash":"w","Status":"Complete","LastEventAt":"2026-11-01T00:00:00Z"}`)), ports.Expired}},
			ports.KindItem, nil},
		{"an open item past the retention that is sent again is stored", []after{stored(again(upsert(`{"WorkItemHash":"w","Status":"Pending","LastEventAt":"2026-11-01T00:00:00Z"}`)))},
			ports.KindItem, []string{`{"WorkItemHash":"w","Status":"Pending","LastEventAt":"2026-11-01T00:00:00Z"}`}},
		{"a hollow manifest that is sent again empties nothing", []after{stored(manifest(`{"Hash":"r","StopTime":"2026-11-30T02:00:00Z","Output":{"a":1},"Log":[]}`)), stored(again(manifest(`{"Hash":"r","StopTime":"2026-11-30T02:00:00Z","Output":{},"Log":["l"]}`)))},
			ports.KindManifest, []string{`{"Hash":"r","StopTime":"2026-11-30T02:00:00Z","Output":{"a":1},"Log":["l"]}`}},
		{"a later manifest that is sent again empties only what the run waits for", []after{stored(manifest(`{"Hash":"r","Status":"Waiting","StopTime":"2026-11-30T02:00:00Z","Output":{"a":1},"WaitingTasks":{"n":1},"Mine":[1]}`)), stored(again(manifest(`{"Hash":"r","Status":"Complete","StopTime":"2026-11-30T03:00:00Z","Output":{},"WaitingTasks":{},"Mine":[],"Log":[]}`)))},
			ports.KindManifest, []string{`{"Hash":"r","Status":"Complete","StopTime":"2026-11-30T03:00:00Z","Output":{"a":1},"WaitingTasks":{},"Mine":[1],"Log":[]}`}},
		{"a run that has ended does not fail when its hub starts again", []after{stored(manifest(`{"Hash":"r","Status":"Complete","StopTime":"2026-11-30T02:00:00Z","Output":{"a":1}}`)), stored(again(manifest(`{"Hash":"r","Status":"Error","StopTime":"2026-11-30T03:00:00Z","Output":{}}`)))},
			ports.KindManifest, []string{`{"Hash":"r","Status":"Complete","StopTime":"2026-11-30T02:00:00Z","Output":{"a":1}}`}},
		{"a run that was under way fails when its hub starts again", []after{stored(manifest(`{"Hash":"r","Status":"Waiting","StopTime":"2026-11-30T02:00:00Z","Output":{"a":1}}`)), stored(again(manifest(`{"Hash":"r","Status":"Error","StopTime":"2026-11-30T03:00:00Z","Output":{}}`)))},
			ports.KindManifest, []string{`{"Hash":"r","Status":"Error","StopTime":"2026-11-30T03:00:00Z","Output":{"a":1}}`}},

		{"what is no record is refused", []after{{upsert(`{"WorkItemHash":"w","A":1,"A":2}`), ports.Refused}}, ports.KindItem, nil},
		{"a read is refused", []after{{&ports.Entry{Action: ports.GetEvents, Key: "w", Record: []byte(`{}`)}, ports.Refused}}, ports.KindItem, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHistory()
			for i, w := range c.writes {
				w.entry.Seq, w.entry.ReceivedMs = uint64(i+1), today.UnixMilli()
				d := h.commit(t, w.entry, ports.Rules{HostID: "h", Retention: 24 * time.Hour}).Decision
				if d.Outcome != w.want || d.Seq != w.entry.Seq || (d.Err != nil) != (w.want == ports.Refused) {
					t.Errorf("write %d is decided %+v, want %s", i+1, d, w.want)
				}
			}
			if got := h.texts(c.kind); !slices.Equal(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestAWriteThatChangesNothingWritesNothing(t *testing.T) {
	t.Parallel()
	for _, e := range []*ports.Entry{
		upsert(`{"Status":"Pending","WorkItemHash":"w"}`), update(`{"Status":"Pending"}`), again(upsert(`{"WorkItemHash":"w","Status":""}`)),
		attempt(1, `{"WorkItemHash":"w","Outcome":"O"}`), outcome(1, `{"Outcome":"O"}`), manifest(`{"Hash":"r"}`), again(manifest(`{"Hash":"r"}`)),
	} {
		h := newHistory()
		for _, first := range []*ports.Entry{upsert(`{"WorkItemHash":"w","Status":"Pending"}`), attempt(1, `{"WorkItemHash":"w","Outcome":"O"}`), manifest(`{"Hash":"r"}`)} {
			h.commit(t, first, ports.Rules{})
		}
		if effect := h.commit(t, e, ports.Rules{}); effect.Next != nil || effect.Decision.Outcome == ports.Refused {
			t.Errorf("%s %s writes %s", e.Action, e.Record, effect.Next.Record.JSON())
		}
	}
}

func TestTheFirstWriteFixesItsStampsForGood(t *testing.T) {
	t.Parallel()
	h := newHistory()
	first := event("g", `{"WorkItemHash":"w"}`)
	first.Seq, first.ReceivedMs, first.Host, first.Actor, first.Origin = 7, 1796004734801, "abcdef01", "hub-a", ports.OriginHub
	got := h.commit(t, first, ports.Rules{HostID: "long"}).Next
	want := ports.First{ReceivedAt: "2026-11-30T02:12:14.801Z", OrderKey: "01796004734801-0000000000000007-abcdef01", EmittedAt: "2026-11-30T02:12:14.801Z", Actor: "hub-a", Origin: "hub"}
	if got.First != want || got.Change != (ports.Change{Host: "long", Seq: 7}) {
		t.Errorf("got %+v %+v", got.First, got.Change)
	}

	keyOf := func(record string) string {
		e := upsert(record)
		e.ReceivedMs = 1796004734801
		return newHistory().commit(t, e, ports.Rules{}).Next.First.EnqueuedKey
	}
	if key := keyOf(`{"WorkItemHash":"w","EnqueuedAt":"2026-11-30T04:12:14.5+02:00"}`); key != "2026-11-30T02:12:14.500000000Z" {
		t.Errorf("the key of EnqueuedAt is %s", key)
	}
	if key := keyOf(`{"WorkItemHash":"w","EnqueuedAt":"now"}`); key != "2026-11-30T02:12:14.801000000Z" {
		t.Errorf("the key without EnqueuedAt is %s", key)
	}
	for _, e := range []*ports.Entry{event("g", `{"WorkItemHash":"w","EmittedAt":"x"}`), event("g", `{"WorkItemHash":"w","EmittedAt":null}`)} {
		if emitted := newHistory().commit(t, e, ports.Rules{}).Next.First.EmittedAt; emitted != "" {
			t.Errorf("%s is stamped as emitted at %s", e.Record, emitted)
		}
	}
}

func TestAMergedRowBeyondTheLimitIsRefusedAndLeavesTheRow(t *testing.T) {
	t.Parallel()
	h := newHistory()
	half := `"` + strings.Repeat("x", 40<<20) + `"}`
	h.commit(t, upsert(`{"WorkItemHash":"w","A":`+half), ports.Rules{})
	effect := h.commit(t, update(`{"B":`+half), ports.Rules{})
	if err := effect.Decision.Err; effect.Next != nil || err == nil || err.Code != ports.TooLarge || err.Limit != ports.MaxRecordBytes || err.Size < 80<<20 {
		t.Errorf("got %+v, next %v", effect.Decision, effect.Next != nil)
	}
}

func TestAWriteOverAnotherHostsIsNotedAndNoOther(t *testing.T) {
	t.Parallel()
	for host, foreign := range map[string]bool{"other": true, "": false, "ours": false} {
		for _, e := range []*ports.Entry{update(`{"Status":"Running"}`), upsert(`{"WorkItemHash":"w","Priority":2}`), update(`{"Status":"Pending"}`)} {
			record, err := ports.ParseRecord(ports.Items, []byte(`{"WorkItemHash":"w","Status":"Pending"}`))
			if err != nil {
				t.Fatal(err)
			}
			look := present{&ports.Held{Record: record, Change: ports.Change{Host: host, Seq: 7}}}
			effect, err := ports.Decide(e, look, ports.Rules{HostID: "ours"})
			if err != nil {
				t.Fatal(err)
			}
			if want := foreign && effect.Next != nil; effect.Decision.Foreign != want || effect.Decision.Plain() == want {
				t.Errorf("%s over a change of %q is %+v", e.Record, host, effect.Decision)
			}
		}
	}
}

// present is a store with one item, whatever is asked for.
type present struct{ held *ports.Held }

func (p present) Item(string) (*ports.Held, error)         { return p.held, nil }
func (present) Event(string) (*ports.Held, error)          { return nil, nil }
func (present) Attempt(string, int64) (*ports.Held, error) { return nil, nil }
func (present) Manifest(string) (*ports.Held, error)       { return nil, nil }
func (present) Gone(ports.Kind, string) (bool, error)      { return false, nil }
func (present) Early(string) ([]ports.Entry, int, error)   { return nil, 0, nil }

func TestAStoreThatCannotBeLookedAtDecidesNothing(t *testing.T) {
	t.Parallel()
	for _, e := range []*ports.Entry{upsert(`{"WorkItemHash":"w"}`), event("g", `{"WorkItemHash":"w"}`), attempt(1, `{"WorkItemHash":"w"}`), manifest(`{"Hash":"r"}`), removal()} {
		if _, err := ports.Decide(e, broken{}, ports.Rules{}); !errors.Is(err, errBroken) {
			t.Errorf("%s: %v", e.Action, err)
		}
	}
}

// broken is a store whose disk cannot be read.
type broken struct{}

var errBroken = errors.New("disk I/O error")

func (broken) Item(string) (*ports.Held, error)           { return nil, errBroken }
func (broken) Event(string) (*ports.Held, error)          { return nil, errBroken }
func (broken) Attempt(string, int64) (*ports.Held, error) { return nil, errBroken }
func (broken) Manifest(string) (*ports.Held, error)       { return nil, errBroken }
func (broken) Gone(ports.Kind, string) (bool, error)      { return false, errBroken }
func (broken) Early(string) ([]ports.Entry, int, error)   { return nil, 0, errBroken }
