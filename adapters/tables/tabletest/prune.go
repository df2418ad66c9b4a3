package tabletest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

func pruneTakesWhatEnded(t *testing.T, e *Engine) {
	s := e.fresh(t)
	now := time.Date(2026, 5, 2, 0, 30, 0, 0, time.UTC) // the hour in question crosses midnight
	ago := func(minutes int) string {
		return now.Add(-time.Duration(minutes) * time.Minute).Format("2006-01-02T15:04:05.000Z")
	}
	abroad := now.Add(-61 * time.Minute).In(time.FixedZone("", 5*3600+1800)).Format(time.RFC3339)
	cases := []struct {
		record string
		stays  bool
	}{
		{fmt.Sprintf(`"Status":"Complete","LastEventAt":%q`, ago(59)), true},
		{fmt.Sprintf(`"Status":"Complete","LastEventAt":%q`, ago(61)), false},
		{fmt.Sprintf(`"Status":"Error","LastEventAt":%q`, ago(90)), false},
		{fmt.Sprintf(`"Status":"Complete","LastEventAt":%q`, abroad), false},
		{fmt.Sprintf(`"Status":"Running","LastEventAt":%q`, ago(600)), true},
		{fmt.Sprintf(`"Status":"Canceled","LastEventAt":null,"CompletedAt":%q`, ago(61)), false},
		{fmt.Sprintf(`"Status":"Failed","LastEventAt":"soon","EnqueuedAt":%q`, ago(61)), false},
		{fmt.Sprintf(`"Status":"Complete","LastEventAt":%q,"EnqueuedAt":"2099-01-01T00:00:00Z"`, ago(61)), false},
		{fmt.Sprintf(`"Status":"Complete","LastEventAt":%q,"EnqueuedAt":%q`, ago(5), ago(600)), true},
		{`"Status":"Complete"`, true},
	}
	seq, kept := uint64(0), []string(nil)
	for i, c := range cases {
		key := fmt.Sprint("k", i)
		Commit(t, s, UpsertOf(seq+1, key, fmt.Sprintf(`{"WorkItemHash":%q,%s}`, key, c.record)),
			EventOf(seq+2, key, "e"+key, fmt.Sprintf(`{"WorkItemHash":%q}`, key)),
			AttemptOf(seq+3, ports.InsertAttempt, key, 1, fmt.Sprintf(`{"WorkItemHash":%q,"BeaconID":"b"}`, key)),
			AttemptOf(seq+4, ports.InsertAttempt, key, 2, fmt.Sprintf(`{"WorkItemHash":%q,"BeaconID":"b"}`, key)))
		seq += 4
		if c.stays {
			kept = append(kept, key)
		}
	}
	Commit(t, s, EventOf(seq+1, "k1", "more", `{"WorkItemHash":"k1"}`))
	for i, m := range []string{`"Status":"Complete","StopTime":"` + ago(61) + `"`, `"Status":"Waiting","StopTime":"` + ago(61) + `"`, `"Status":"Failed","StopTime":null,"StartTime":"` + ago(61) + `"`, `"Status":"Complete","StopTime":"` + ago(59) + `"`} {
		Commit(t, s, EntryOf(uint64(i+1), ports.UpsertManifest, fmt.Sprint("m", i), fmt.Sprintf(`{"Hash":"m%d",%s}`, i, m)))
	}
	var total ports.Pruned
	for calls := 0; ; calls++ {
		got, err := s.Prune(t.Context(), ports.PruneQuery{Before: now.Add(-time.Hour), Limit: 2})
		if err != nil || got.Items+got.Manifests > 2 || calls > 10 {
			t.Fatalf("call %d: %+v, %v", calls, got, err)
		}
		total.Items += got.Items
		total.Events += got.Events
		total.Attempts += got.Attempts
		total.Manifests += got.Manifests
		if !got.More {
			break
		}
	}
	if want := (ports.Pruned{Items: 6, Events: 7, Attempts: 12, Manifests: 2}); total != want {
		t.Errorf("pruned %+v, want %+v", total, want)
	}
	page, err := s.Items(t.Context(), ports.ItemQuery{})
	if got := KeysOf(page); err != nil || len(got) != len(kept) || slices.ContainsFunc(kept, func(k string) bool { return !slices.Contains(got, k) }) {
		t.Errorf("left are %v, want %v, %v", got, kept, err)
	}
	// A pruned record left no tombstone, and neither the cache: what comes again is new.
	d := Commit(t, s, AttemptOf(seq+2, ports.UpdateAttemptOutcome, "k1", 1, `{"Outcome":"Complete"}`), UpsertOf(seq+3, "k1", `{"WorkItemHash":"k1"}`))
	if d[0].Outcome != ports.Missing || d[1].Outcome != ports.Stored {
		t.Errorf("decided %v", d)
	}
	again := EntryOf(5, ports.UpsertManifest, "m0", `{"Hash":"m0"}`)
	again.Class = ports.Reflush
	if d := Commit(t, s, again); d[0].Outcome != ports.Stored {
		t.Errorf("a pruned manifest sent again is %v", d[0].Outcome)
	}
}

func pruneWithoutAHost(t *testing.T, e *Engine) {
	place := e.Places(t)(t)
	s := place(t)
	Admit(t, s, "")
	Commit(t, s, UpsertOf(1, "a", `{"WorkItemHash":"a","Status":"Complete","LastEventAt":"2020-01-01T00:00:00Z"}`), UpsertOf(2, "b", `{"WorkItemHash":"b"}`))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	tool := opened(t, place)
	page, err := tool.Export(t.Context(), ports.ExportQuery{Family: ports.Queue})
	if err != nil || len(page.Rows) != 2 {
		t.Errorf("%+v, %v", page, err)
	}
	if got, err := tool.Prune(t.Context(), ports.PruneQuery{Before: time.Now()}); err != nil || got.Items != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

// What is to be pruned may stand far behind what is not, and more than one look is needed to find it.
func pruneLooksOn(t *testing.T, e *Engine) {
	s := e.fresh(t)
	var entries []ports.Entry
	for i := range tables.SweepPage + 10 {
		at := "2026-01-01T00:00:00Z"
		if i == tables.SweepPage+5 {
			at = "2020-01-01T00:00:00Z"
		}
		entries = append(entries, UpsertOf(uint64(i+1), fmt.Sprintf("k%05d", i), fmt.Sprintf(`{"WorkItemHash":"k%05d","Status":"Complete","LastEventAt":%q}`, i, at)))
	}
	Pour(t, s, entries)
	var items int64
	for more := true; more; {
		got, err := s.Prune(t.Context(), ports.PruneQuery{Before: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)})
		if err != nil {
			t.Fatal(err)
		}
		items, more = items+got.Items, got.More
	}
	key := fmt.Sprintf("k%05d", tables.SweepPage+5)
	if _, err := s.Item(t.Context(), key); items != 1 || ports.CodeOf(err) != ports.NotFound {
		t.Errorf("pruned %d; reading %s: %v", items, key, err)
	}
}
