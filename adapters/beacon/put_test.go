package beacon

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/adapters/mesh/stock"
	"holdfast/ports"
)

// settle gives a village with one beacon, its store and a backend.
func settle(t *testing.T, families ...string) (*village, *stock.Persistence, *Backend) {
	t.Helper()
	v, p := newVillage(), stock.NewPersistence()
	v.join("archive", p, families...)
	return v, p, over(t, v, t.TempDir(), "")
}

// failing has an action fail so, as many times.
func (v *village) failing(action string, times int, with func(w ports.Work, do act) (ports.WorkAnswer, error)) {
	v.meddling(func(w ports.Work, do act) (ports.WorkAnswer, error) {
		v.mu.Lock()
		hit := w.Action == action && times > 0
		if hit {
			times--
		}
		v.mu.Unlock()
		if hit {
			return with(w, do)
		}
		return do(w.Settings)
	})
}

func lost(ports.Work, act) (ports.WorkAnswer, error) {
	return ports.WorkAnswer{}, ports.Errorf(ports.BackendGone, "village", "the connection broke")
}

func doneAndLost(w ports.Work, do act) (ports.WorkAnswer, error) {
	if _, err := do(w.Settings); err != nil {
		return ports.WorkAnswer{}, err
	}
	return lost(w, do)
}

func TestAnEventIsSentOnce(t *testing.T) {
	t.Parallel()
	v, p, b := settle(t)
	dir := t.TempDir()
	rows := []ports.Row{item("w", 1, `,"Status":"Pending"`), event("w", "e1", `,"EventType":"enqueued"`), event("w", "e2", `,"EventType":"completed"`)}
	for range 3 {
		put(t, b, rows...)
	}
	if n := v.done("QP_GetEvents"); n != 1 {
		t.Errorf("the events of a key were read %d times, want once", n)
	}
	put(t, over(t, v, dir, ""), rows...) // another process, which remembers nothing
	put(t, b, event("w", "e3", `,"EventType":"reordered"`))
	if got := len(p.Holds().Events["w"]); got != 3 {
		t.Errorf("the beacon has %d events, want 3", got)
	}
}

// Whether it took effect or not, an event whose sending had no answer is there once in the end.
func TestAnEventThatHadNoAnswerIsThereOnceInTheEnd(t *testing.T) {
	t.Parallel()
	for name, fate := range map[string]func(ports.Work, act) (ports.WorkAnswer, error){"not done": lost, "done": doneAndLost} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, p, b := settle(t)
			v.failing("QP_AppendEvent", 1, fate)
			batch := ports.Batch{Family: ports.Queue, Rows: []ports.Row{item("w", 1, ""), event("w", "e1", `,"EventType":"enqueued"`)}}
			applied, err := b.Put(within(t), batch)
			if applied.Done != 1 || ports.CodeOf(err) != ports.Deadline {
				t.Fatalf("Done %d, %v; want 1 and deadline, for nobody knows", applied.Done, err)
			}
			for range 2 {
				put(t, b, batch.Rows...)
			}
			if got := len(p.Holds().Events["w"]); got != 1 {
				t.Errorf("the beacon has %d events, want 1", got)
			}
		})
	}
}

// A handler that fails behind its write says so, and has done it.
func TestAnEventWhoseSendingFailedIsLookedForAgain(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]ports.WorkAnswer{
		"it failed":  {Failure: "ECONNRESET"},
		"it refused": {Outputs: []byte(`{"Success":false,"Reason":"database is locked"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, p, b := settle(t)
			put(t, b, item("w", 1, ""), event("w", "e1", ""))
			v.failing("QP_AppendEvent", 1, func(w ports.Work, do act) (ports.WorkAnswer, error) {
				_, err := do(w.Settings)
				return answer, err
			})
			row := event("w", "e2", "")
			if _, err := b.Put(within(t), ports.Batch{Family: ports.Queue, Rows: []ports.Row{row}}); ports.CodeOf(err) != ports.Unavailable {
				t.Fatalf("got %v, want unavailable", err)
			}
			put(t, b, row)
			if got := len(p.Holds().Events["w"]); got != 2 {
				t.Errorf("the beacon has %d events, want 2", got)
			}
		})
	}
}

// A beacon that is still busy with the event does it while it is looked for.
func TestAnEventThatComesLateIsNotSentAgain(t *testing.T) {
	t.Parallel()
	v, p, b := settle(t)
	var late json.RawMessage
	v.failing("QP_AppendEvent", 1, func(w ports.Work, do act) (ports.WorkAnswer, error) {
		late = w.Settings
		return lost(w, do)
	})
	row := event("w", "e1", `,"EventType":"enqueued"`)
	if _, err := b.Put(within(t), ports.Batch{Family: ports.Queue, Rows: []ports.Row{row}}); err == nil {
		t.Fatal("a Put without an answer succeeded")
	}
	looks := 0
	v.meddling(func(w ports.Work, do act) (ports.WorkAnswer, error) {
		answer, err := do(w.Settings)
		if w.Action == "QP_GetEvents" {
			if looks++; looks == 1 { // behind the first look
				v.mu.Lock()
				sending := v.actions["archive"]["QueuePersistence:QP_AppendEvent"]
				v.mu.Unlock()
				_, _ = sending.Do(t.Context(), &stock.Work{Item: stock.Item{Settings: late}})
			}
		}
		return answer, err
	})
	put(t, b, row)
	if got := len(p.Holds().Events["w"]); got != 1 || looks != 2 {
		t.Errorf("the beacon has %d events after %d looks, want 1 after 2", got, looks)
	}
}

// columnsOnly makes a beacon one that keeps no EventGUID and no time, as the stock tables do.
func columnsOnly(w ports.Work, do act) (ports.WorkAnswer, error) {
	if w.Action != "QP_AppendEvent" {
		return do(w.Settings)
	}
	var settings struct{ Event map[string]json.RawMessage }
	if err := json.Unmarshal(w.Settings, &settings); err != nil {
		return ports.WorkAnswer{}, err
	}
	for name := range settings.Event {
		if !slices.Contains([]string{"WorkItemHash", "RunID", "EventType", "FromStatus", "ToStatus", "BeaconID", "Payload"}, name) {
			delete(settings.Event, name)
		}
	}
	event, err := json.Marshal(settings.Event)
	if err != nil {
		return ports.WorkAnswer{}, err
	}
	return do(settingsOf(member{"Event", event}))
}

func TestAtABeaconWithoutGUIDsEventsAreKnownByTheirContent(t *testing.T) {
	t.Parallel()
	v, p, b := settle(t)
	v.meddling(columnsOnly)
	rows := []ports.Row{
		event("w", "e1", `,"EventType":"stalled","Payload":{"b":1, "a":2}`), event("w", "e2", `,"EventType":"unstalled"`),
		event("w", "e3", `,"EventType":"stalled","Payload":{"a":2,"b":1}`), // once more
	}
	put(t, b, rows...)
	for range 2 {
		put(t, over(t, v, t.TempDir(), ""), rows...)
	}
	put(t, b, rows...)
	if got := len(p.Holds().Events["w"]); got != 3 {
		t.Errorf("the beacon has %d events, want 3: %s", got, p.Holds().Events["w"])
	}
	if _, err := b.Events(within(t), ports.EventQuery{Key: "w"}); ports.CodeOf(err) != ports.Unimplemented {
		t.Errorf("events that lost their order were answered: %v", err)
	}
}

func TestAnEntryIsTakenForOneEventAlsoWhenItIsReadAgain(t *testing.T) {
	t.Parallel()
	one, two := entry{guid: "e1", content: "c"}, entry{guid: "e2", content: "c"}
	h := &holding{}
	h.take([]entry{{content: "c"}})
	h.events[shownBy(h.events, one)].claimed = one.guid
	h.take([]entry{{content: "c"}})
	if shownBy(h.events, two) >= 0 {
		t.Error("one entry is taken for two events")
	}
	h.take([]entry{{content: "c"}, {content: "c"}})
	if first, second := shownBy(h.events, one), shownBy(h.events, two); first < 0 || second < 0 || first == second {
		t.Errorf("the two events are at %d and %d", first, second)
	}
}

func TestEventsOfWhichABeaconShowsNotAllAreRefusedAndNotDoubled(t *testing.T) {
	t.Parallel()
	v, p, b := settle(t)
	v.meddling(func(w ports.Work, do act) (ports.WorkAnswer, error) {
		if w.Action == "QP_GetEvents" {
			return ports.WorkAnswer{Outputs: []byte(`{"Success":true,"Events":[` + strings.Repeat(`{"EventType":"x"},`, mostEvents-1) + `{}]}`)}, nil
		}
		return do(w.Settings)
	})
	_, err := b.Put(within(t), ports.Batch{Family: ports.Queue, Rows: []ports.Row{event("w", "e1", "")}})
	if ports.CodeOf(err) != ports.TooLarge || len(p.Holds().Events) > 0 {
		t.Errorf("%v; want too_large", err)
	}
}

func TestAnAttemptEndsAsItIs(t *testing.T) {
	t.Parallel()
	for name, insert := range map[string]func(w ports.Work, do act) (ports.WorkAnswer, error){
		"at a beacon that lays it over": func(w ports.Work, do act) (ports.WorkAnswer, error) { return do(w.Settings) },
		"at one that says that it is there": func(_ ports.Work, _ act) (ports.WorkAnswer, error) {
			return ports.WorkAnswer{Outputs: []byte(`{"Success":false,"Reason":"UNIQUE constraint failed: attempt"}`)}, nil
		},
		"at one that swallows it": func(ports.Work, act) (ports.WorkAnswer, error) {
			return ports.WorkAnswer{Outputs: []byte(`{"Success":true}`)}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, p, b := settle(t)
			put(t, b, attempt("w", 1, `,"BeaconID":"b","DispatchedAt":"t0","Outcome":"Dispatched"`))
			v.failing("QP_InsertAttempt", 1, insert)
			put(t, b, attempt("w", 1, `,"BeaconID":"b","DispatchedAt":"t0","Outcome":"Complete","CompletedAt":"t1","DurationMs":5`))
			got := p.Holds().Attempts["w"]
			want := `{"AttemptNumber":1,"BeaconID":"b","CompletedAt":"t1","DispatchedAt":"t0","DurationMs":5,"Outcome":"Complete","WorkItemHash":"w"}`
			if len(got) != 1 || string(got[0]) != want {
				t.Errorf("got %s, want %s", got, want)
			}
			before := len(v.works)
			put(t, b, attempt("w", 1, `,"BeaconID":"b","DispatchedAt":"t0","Outcome":"Complete","CompletedAt":"t1","DurationMs":5`))
			if len(v.works) != before {
				t.Error("an attempt that is in was sent again")
			}
		})
	}
}

func TestARefusedRecordStopsNoOtherKey(t *testing.T) {
	t.Parallel()
	_, p, b := settle(t)
	p.RefuseKey("bad", "not this one")
	rows := []ports.Row{item("a", 1, ""), item("bad", 2, ""), event("bad", "e", ""), item("z", 3, "")}
	applied, err := b.Put(within(t), ports.Batch{Family: ports.Queue, Rows: rows})
	if applied.Done != 1 || ports.CodeOf(err) != ports.Invalid || !strings.Contains(err.Error(), "not this one") {
		t.Fatalf("Done %d, %v; want 1, invalid, and the beacon's reason", applied.Done, err)
	}
	if len(p.Holds().Events) > 0 {
		t.Error("an event went before its item")
	}
	put(t, b, rows[0], rows[3])
	if len(p.Holds().Items) != 2 {
		t.Errorf("the beacon has %d items, want 2", len(p.Holds().Items))
	}
}

func TestWhatHasNoAnswerGoesBeforeWhatWasRefused(t *testing.T) {
	t.Parallel()
	v, _, b := settle(t)
	refused := make(chan struct{})
	v.meddling(func(w ports.Work, do act) (ports.WorkAnswer, error) {
		switch {
		case strings.Contains(string(w.Settings), `"bad"`):
			close(refused)
			return ports.WorkAnswer{Outputs: []byte(`{"Success":false,"Reason":"no"}`)}, nil
		case strings.Contains(string(w.Settings), `"lost"`):
			<-refused
			return lost(w, do)
		}
		return do(w.Settings)
	})
	applied, err := b.Put(within(t), ports.Batch{Family: ports.Queue, Rows: []ports.Row{item("bad", 2, ""), item("lost", 3, "")}})
	if applied.Done != 0 || ports.CodeOf(err) != ports.Deadline {
		t.Errorf("Done %d, %v; want 0 and deadline: the host must take the other key for doubtful", applied.Done, err)
	}
}

func TestASlowBeaconIsLeftInTimeAndGainsWithEachPut(t *testing.T) {
	t.Parallel()
	v, p := newVillage(), stock.NewPersistence()
	v.join("archive", p)
	b := over(t, v, t.TempDir(), `{"timeout":"200ms"}`)
	v.meddling(func(w ports.Work, do act) (ports.WorkAnswer, error) {
		pause(t.Context(), 20*time.Millisecond)
		return do(w.Settings)
	})
	var rows []ports.Row
	for i := range 100 {
		rows = append(rows, item(fmt.Sprint("w", i), uint64(i+1), ""))
	}
	last := -1
	for range 50 {
		began := time.Now()
		applied, err := b.Put(within(t), ports.Batch{Family: ports.Queue, Rows: rows})
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("a Put took %s", took)
		}
		if err == nil {
			if n := len(p.Holds().Items); n != 100 {
				t.Errorf("the beacon has %d items", n)
			}
			return
		}
		if applied.Done <= last && ports.CodeOf(err) == ports.Unavailable {
			t.Fatalf("Done %d after %d: %v", applied.Done, last, err)
		}
		last = applied.Done
	}
	t.Error("it never came to an end")
}

func TestLiveWritesGoBeforeCatchingUp(t *testing.T) {
	t.Parallel()
	v, _, b := settle(t)
	for catchUp, want := range map[bool]ports.WorkClass{false: ports.ClassLive, true: ports.ClassCatchUp} {
		for _, n := range []int{1, 100} { // however many rows there are
			var rows []ports.Row
			for i := range n {
				rows = append(rows, item(fmt.Sprint("w", i, n, catchUp), 2, ""))
			}
			before := len(v.works)
			if _, err := b.Put(within(t), ports.Batch{Family: ports.Queue, Rows: rows, CatchUp: catchUp}); err != nil {
				t.Fatal(err)
			}
			for _, w := range v.works[before:] {
				if w.Action == "QP_UpsertWorkItem" && w.Class != want {
					t.Fatalf("%d rows that catch up (%v) go as class %d, want %d", n, catchUp, w.Class, want)
				}
			}
		}
	}
	for _, w := range v.works {
		for _, special := range []string{"SourceURL", "SourceFilename", "OutputFilename", "OutputFile", "ReturnOutputAsBase64", "Command", "AffinityKey"} {
			var settings map[string]json.RawMessage
			if err := json.Unmarshal(w.Settings, &settings); err != nil || settings[special] != nil {
				t.Errorf("%s has the setting %s (%v)", w.Action, special, err)
			}
		}
	}
}

// Another program may have its Name by the time that a work goes out.
func TestWhatIsMeantForOneSessionGoesToNoLaterOne(t *testing.T) {
	t.Parallel()
	v, p, b := settle(t)
	put(t, b, item("w", 1, ""))
	other := stock.NewPersistence()
	v.failing("QP_UpsertWorkItem", 1, func(w ports.Work, do act) (ports.WorkAnswer, error) {
		v.join("archive", other)
		return do(w.Settings)
	})
	_, err := b.Put(within(t), ports.Batch{Family: ports.Queue, Rows: []ports.Row{item("w", 2, `,"N":1`), event("w", "e", "")}})
	if ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("got %v, want unavailable", err)
	}
	if n := len(p.Holds().Items) + len(other.Holds().Items) + len(other.Holds().Events); n != 1 {
		t.Errorf("%d records are in both stores, want the one item of the first", n)
	}
	for _, w := range v.works {
		if w.Session == 0 {
			t.Errorf("%s is meant for any session", w.Action)
		}
	}
}

func TestQueueRecordsThatAreThereCannotBeRemovedAndManifestsCan(t *testing.T) {
	t.Parallel()
	_, p, b := settle(t)
	put(t, b, item("w", 1, ""), event("w", "e", ""))
	gone := func(r ports.Row) ports.Row {
		r.Gone, r.Body = true, nil
		return r
	}
	for _, r := range []ports.Row{item("w", 1, ""), event("w", "e", ""), attempt("w", 1, "")} {
		_, err := b.Put(within(t), ports.Batch{Family: ports.Queue, Rows: []ports.Row{gone(r)}})
		if ports.CodeOf(err) != ports.Unimplemented {
			t.Errorf("removal of a %s: %v; want unimplemented", r.Kind, err)
		}
	}
	put(t, b, gone(item("nobody", 1, "")), gone(event("w", "none", "")))
	put(t, b, manifest("r", ""), gone(manifest("r", "")), gone(manifest("none", "")))
	if len(p.Holds().Manifests) > 0 {
		t.Error("the manifest is still there")
	}
}

func TestARecordWithOurOwnMemberIsRefused(t *testing.T) {
	t.Parallel()
	_, _, b := settle(t)
	_, err := b.Put(within(t), ports.Batch{Family: ports.Queue, Rows: []ports.Row{item("w", 1, `,"`+ownMember+`":1`)}})
	if ports.CodeOf(err) != ports.Invalid || ports.AsError(err).Field != ownMember {
		t.Errorf("got %v", err)
	}
}

// Tables that take no nulls, or no member that they do not know, are sent what they take; reads of that go elsewhere.
func TestABeaconIsSentRecordsAsItTakesThem(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ word, reason, want string }{
		"no nulls":           {`null`, "NOT NULL constraint failed: BeaconWorkItem.AssignedBeaconID", `"AssignedBeaconID":""`},
		"no strange members": {ownMember, "table BeaconWorkItem has no column named HoldfastRow", `"AssignedBeaconID":null`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, p, b := settle(t)
			v.meddling(func(w ports.Work, do act) (ports.WorkAnswer, error) {
				if w.Action == "QP_UpsertWorkItem" && strings.Contains(string(w.Settings), c.word) {
					return ports.WorkAnswer{Outputs: []byte(`{"Success":false,"Reason":"` + c.reason + `"}`)}, nil
				}
				return do(w.Settings)
			})
			put(t, b, item("a", 1, `,"AssignedBeaconID":null,"Health":null,"Other":null`))
			put(t, b, item("b", 2, `,"AssignedBeaconID":null`))
			if n := v.done("QP_UpsertWorkItem"); n != 3 {
				t.Errorf("%d upserts for two items, want 3: what it takes is learned once", n)
			}
			if got := string(p.Holds().Items["a"]); !strings.Contains(got, c.want) {
				t.Errorf("it has %s", got)
			}
			if _, err := b.Item(within(t), "a"); ports.CodeOf(err) != ports.Unimplemented {
				t.Errorf("a record that was changed for the beacon was answered: %v", err)
			}
		})
	}
}
