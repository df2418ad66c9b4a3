package ports_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/internal/model"
	"holdfast/internal/traffic"
	"holdfast/ports"
)

// What a hub sends comes among the writes of everybody else, late, twice and out of order. The model knows what must come of it.
func TestDecideMakesOfAHubsWritesWhatTheModelSays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rules := ports.Rules{HostID: "host"}
		now := today
		m := model.New(model.Options{Now: func() time.Time { return now }})
		h := newHistory()
		length := rapid.IntRange(1, 60).Draw(t, "length")
		for seq, a := range rapid.SliceOfN(traffic.Acts(someKeys, "e"), length, length).Draw(t, "acts") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 0, 0, 1, 11}).Draw(t, "hours")) * time.Hour)
			var sent model.Sent
			take := m.Apply
			switch {
			case a.Again:
				take = m.Again
			case rapid.IntRange(0, 3).Draw(t, "who") > 0:
				sent = model.Sent{
					Ms: rapid.SampledFrom([]int64{1796004000000, 1796004000001, 1796004000002}).Draw(t, "ms"), Count: rapid.Uint64Range(1, 3).Draw(t, "count"),
				}
				take = func(action string, settings json.RawMessage) model.Answer { return m.FromHub(action, settings, sent) }
			}
			applied, dropped := m.Applied, m.Dropped
			want := take(a.Action, json.RawMessage(a.Settings))
			if want.Ignored || want.Code != "full" && refusedAtTheDoor(want) {
				h.expire(&ports.Entry{ReceivedMs: now.UnixMilli()})
				continue
			}
			e := entryOf(t, a, uint64(seq+1), want)
			e.ReceivedMs = now.UnixMilli()
			e.Stamp = ports.Stamp(sent)
			got := h.commitAll(t, e, rules)
			wanted := ports.Decision{Outcome: got.Outcome, Applied: m.Applied - applied, Dropped: m.Dropped - dropped}
			if outcomeOf(got) != hubAnswerOf(want) || got.Applied != wanted.Applied || got.Dropped != wanted.Dropped {
				t.Fatalf("%s %s of %+v is decided %s with %+v, want %s with %+v", a.Action, a.Settings, sent, outcomeOf(got), got, hubAnswerOf(want), wanted)
			}
			compare(t, m, h)
		}
	})
}

func hubAnswerOf(a model.Answer) string {
	switch {
	case a.Late:
		return string(ports.Late)
	case a.Early:
		return string(ports.Early)
	}
	return answerOf(a)
}

func TestTheStampsOfARowAreWrittenShort(t *testing.T) {
	t.Parallel()
	h := newHistory()
	at := func(ms int64, count uint64, e *ports.Entry) *ports.Entry {
		e.Stamp = ports.Stamp{Ms: ms, Count: count}
		return e
	}
	h.commit(t, at(10, 1, upsert(`{"WorkItemHash":"w","Status":"Pending","Health":null,"Mine":1,"Priority":2}`)), ports.Rules{})
	for _, step := range []struct {
		entry *ports.Entry
		want  string
	}{
		{update(`{"Late":1}`), `[[10,1],[0,0,"Late"]]`},
		{at(20, 7, update(`{"Health":0.5,"Mine":2}`)), `[[10,1],[20,7,"Health","Mine"],[0,0,"Late"]]`},
		{at(20, 7, update(`{"Health":0.5,"Mine":2}`)), `[[10,1],[20,7,"Health","Mine"],[0,0,"Late"]]`},
		{at(15, 5, update(`{"Mine":3,"RunID":"r"}`)), `[[10,1],[15,5,"RunID"],[20,7,"Health","Mine"],[0,0,"Late"]]`},
		{at(30, 8, update(`{"Mine":2}`)), `[[10,1],[15,5,"RunID"],[20,7,"Health"],[30,8,"Mine"],[0,0,"Late"]]`},
		{at(40, 9, upsert(`{"WorkItemHash":"w","Status":"Pending","Health":1,"Mine":1,"Priority":2,"RunID":"r","Late":1}`)), `[[40,9],[10,1,"WorkItemHash"]]`},
	} {
		h.commit(t, step.entry, ports.Rules{})
		if item, _ := h.Item("w"); item.Stamps != step.want {
			t.Errorf("after %s the stamps are %s, want %s", step.entry.Record, item.Stamps, step.want)
		}
	}
}

func TestStampsThatNobodyCanReadStopNoWrite(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`x`, `[]`, `[[]]`, `[[1]]`, `[["a","b"]]`, `[[1,-2]]`, `{}`, strings.Repeat("[", 1000)} {
		h := newHistory()
		h.commit(t, upsert(`{"WorkItemHash":"w","Status":"Pending"}`), ports.Rules{})
		item, _ := h.Item("w")
		item.Stamps = text
		patch := update(`{"Status":"Running"}`)
		patch.Stamp = ports.Stamp{Ms: 1, Count: 1}
		if d := h.commit(t, patch, ports.Rules{}).Decision; d.Outcome != ports.Stored {
			t.Errorf("with the stamps %q a patch is decided %+v", text, d)
		}
	}
}
