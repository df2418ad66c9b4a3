package tables_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

func batch(after, through uint64, epoch string, seqs ...uint64) *ports.CommitBatch {
	b := &ports.CommitBatch{Family: ports.Queue, Epoch: epoch, After: after, Through: through}
	for _, seq := range seqs {
		b.Entries = append(b.Entries, ports.Entry{Seq: seq, Action: ports.UpsertWorkItem})
	}
	return b
}

func TestABatchIsTheNextOneOrATwinOrNeither(t *testing.T) {
	t.Parallel()
	epochs := []ports.Epoch{{ID: "e1", From: 1}, {ID: "e2", From: 4}}
	foreign := batch(5, 6, "e2", 6)
	foreign.Entries[0].Action = ports.UpsertManifest
	for name, c := range map[string]struct {
		batch *ports.CommitBatch
		twin  bool
		want  ports.Code
	}{
		"the next one":            {batch(5, 7, "e2", 6, 7), false, ""},
		"with entries left out":   {batch(5, 9, "e2", 7), false, ""},
		"a twin":                  {batch(3, 5, "e2", 4, 5), true, ""},
		"an older twin":           {batch(1, 2, "e2", 2), true, ""},
		"a gap":                   {batch(6, 7, "e2", 7), false, ports.Conflict},
		"half a twin":             {batch(4, 6, "e2", 5, 6), false, ports.Conflict},
		"an epoch that was left":  {batch(5, 6, "e1", 6), false, ports.Conflict},
		"an unknown epoch":        {batch(5, 6, "x", 6), false, ports.Conflict},
		"backwards":               {batch(6, 5, "e2"), false, ports.Invalid},
		"out of order":            {batch(5, 8, "e2", 7, 6), false, ports.Invalid},
		"beyond its end":          {batch(5, 6, "e2", 7), false, ports.Invalid},
		"before its beginning":    {batch(5, 6, "e2", 5), false, ports.Invalid},
		"with the other family's": {foreign, false, ports.Invalid},
	} {
		twin, err := tables.Fits("test", c.batch, epochs, 5)
		if twin != c.twin || ports.CodeOf(err) != c.want {
			t.Errorf("%s: a twin %v, %v; want %v, %q", name, twin, err, c.twin, c.want)
		}
	}
}

func TestANewEpochIsAddedAndTheOldestGo(t *testing.T) {
	t.Parallel()
	var list []ports.Epoch
	var anew bool
	for i := range tables.MaxEpochs + 2 {
		if list, anew = tables.Opened(list, ports.Epoch{ID: fmt.Sprint("e", i), From: 1}); !anew {
			t.Fatalf("epoch %d is not new", i)
		}
	}
	if again, anew := tables.Opened(list, list[len(list)-1]); anew || len(again) != len(list) {
		t.Errorf("the same epoch again: new %v, %d", anew, len(again))
	}
	if len(list) != tables.MaxEpochs || list[0].ID != "e2" {
		t.Errorf("%d epochs from %s", len(list), list[0].ID)
	}
}

// A store that starts anew reads the ring from its rows, and goes on behind the newest.
func TestABatchThatComesAgainIsToldWhatItWasTold(t *testing.T) {
	t.Parallel()
	rows := map[string]string{"x": "not a slot", "999": "[]", "0": "not JSON"}
	o := &tables.Odds{}
	for seq := uint64(1); seq <= 600; seq += 2 { // the ring goes round
		list := []ports.Decision{tables.Lasting(ports.Decision{Seq: seq, Outcome: ports.Missing, Foreign: true})}
		text, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		rows[fmt.Sprint(o.Next())] = string(text)
		o.Keep(list)
	}
	anew := &tables.Odds{}
	for slot, text := range rows {
		anew.Take(slot, text)
	}
	if anew.Next() != o.Next() {
		t.Errorf("goes on at %d, want %d", anew.Next(), o.Next())
	}
	young := []ports.Decision{{Seq: 600, Outcome: ports.Late}}
	for name, odds := range map[string]*tables.Odds{"as it was": o, "read anew": anew} {
		got := odds.Recall(batch(596, 600, "e", 597, 598, 599, 600), young)
		if want := "[{597 missing <nil> 0 0 0 false} {598 stored <nil> 0 0 0 false} {599 missing <nil> 0 0 0 false} {600 late <nil> 0 0 0 false}]"; fmt.Sprint(got) != want {
			t.Errorf("%s: %v\nwant %s", name, got, want)
		}
		if got := odds.Recall(batch(0, 1, "e", 1), nil); got[0].Outcome != ports.Stored {
			t.Errorf("%s: what the ring has forgotten is %s", name, got[0].Outcome)
		}
	}
}

func TestAPutForAnotherStateOfTheStoreIsRefused(t *testing.T) {
	t.Parallel()
	at := ports.Position{Seqs: map[string]uint64{"h": 5}}
	for name, c := range map[string]struct {
		after ports.Position
		want  ports.Code
	}{
		"the store's own": {ports.Position{StoreID: "s", Seqs: map[string]uint64{"h": 5}}, ""},
		"behind":          {ports.Position{StoreID: "s", Seqs: map[string]uint64{"h": 4}}, ports.Conflict},
		"ahead":           {ports.Position{StoreID: "s", Seqs: map[string]uint64{"h": 6}}, ports.Conflict},
		"of another":      {ports.Position{StoreID: "x", Seqs: map[string]uint64{"h": 5}}, ports.Conflict},
	} {
		err := tables.Elsewhere("s", at, &ports.Batch{After: &c.after})
		if ports.CodeOf(err) != c.want || err != nil && ports.AsError(err).Field != ports.FieldPosition {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
