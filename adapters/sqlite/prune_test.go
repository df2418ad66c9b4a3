package sqlite

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

func TestPruneTakesWhatEndedBeforeATimeAndNothingElse(t *testing.T) {
	t.Parallel()
	s := ready(t)
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
		commit(t, s, upsert(seq+1, key, fmt.Sprintf(`{"WorkItemHash":%q,%s}`, key, c.record)),
			event(seq+2, key, "e"+key, fmt.Sprintf(`{"WorkItemHash":%q}`, key)),
			attempt(seq+3, ports.InsertAttempt, key, 1, fmt.Sprintf(`{"WorkItemHash":%q,"BeaconID":"b"}`, key)),
			attempt(seq+4, ports.InsertAttempt, key, 2, fmt.Sprintf(`{"WorkItemHash":%q,"BeaconID":"b"}`, key)))
		seq += 4
		if c.stays {
			kept = append(kept, key)
		}
	}
	commit(t, s, event(seq+1, "k1", "more", `{"WorkItemHash":"k1"}`))
	for i, m := range []string{`"Status":"Complete","StopTime":"` + ago(61) + `"`, `"Status":"Waiting","StopTime":"` + ago(61) + `"`, `"Status":"Failed","StopTime":null,"StartTime":"` + ago(61) + `"`, `"Status":"Complete","StopTime":"` + ago(59) + `"`} {
		commit(t, s, entry(uint64(i+1), ports.UpsertManifest, fmt.Sprint("m", i), fmt.Sprintf(`{"Hash":"m%d",%s}`, i, m)))
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
	if got := keysOf(page); err != nil || len(got) != len(kept) || slices.ContainsFunc(kept, func(k string) bool { return !slices.Contains(got, k) }) {
		t.Errorf("left are %v, want %v, %v", got, kept, err)
	}
	// A pruned record left no tombstone, and neither the cache: what comes again is new.
	d := commit(t, s, attempt(seq+2, ports.UpdateAttemptOutcome, "k1", 1, `{"Outcome":"Complete"}`), upsert(seq+3, "k1", `{"WorkItemHash":"k1"}`))
	if d[0].Outcome != ports.Missing || d[1].Outcome != ports.Stored {
		t.Errorf("decided %v", d)
	}
	again := entry(5, ports.UpsertManifest, "m0", `{"Hash":"m0"}`)
	again.Class = ports.Reflush
	if d := commit(t, s, again); d[0].Outcome != ports.Stored {
		t.Errorf("a pruned manifest sent again is %v", d[0].Outcome)
	}
}

func TestAPrunedFileShrinksAndManyEventsGoInShortTransactions(t *testing.T) {
	t.Parallel()
	s := ready(t)
	body := strings.Repeat("x", 2000)
	entries := []ports.Entry{upsert(1, "old", `{"WorkItemHash":"old","Status":"Complete","LastEventAt":"2020-01-01T00:00:00Z"}`)}
	for i := range 3 * pruneRows {
		entries = append(entries, event(uint64(i+2), "old", fmt.Sprint("g", i), fmt.Sprintf(`{"WorkItemHash":"old","Payload":%q}`, body)))
	}
	pour(t, s, entries, 4)
	before := s.file.bytes()
	got, err := s.Prune(t.Context(), ports.PruneQuery{Before: time.Now()})
	if err != nil || got.Items != 1 || got.Events != 3*pruneRows || got.More {
		t.Fatalf("%+v, %v", got, err)
	}
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := s.file.bytes(); after > before/4 {
		t.Errorf("%d bytes before, %d after", before, after)
	}
}

// A record that was written between being found and being removed is young again.
func TestARecordThatComesBackToLifeIsNotPruned(t *testing.T) {
	t.Parallel()
	s := ready(t)
	commit(t, s, upsert(1, "a", `{"WorkItemHash":"a","Status":"Complete","LastEventAt":"2020-01-01T00:00:00Z"}`))
	p := pruning{w: s.work, before: ports.KeyOfTime(time.Now())}
	commit(t, s, patch(2, "a", `{"Status":"Running"}`))
	if err := p.remove(t.Context(), []tables.Victim{{Kind: ports.KindItem, Key: "a"}, {Kind: ports.KindItem, Key: "gone already"}}); err != nil || p.pruned != (ports.Pruned{}) {
		t.Errorf("%+v, %v", p.pruned, err)
	}
	if _, err := s.Item(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}

func TestPruneAndExportWorkWithoutAHost(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history.db")
	s := New()
	configure(t, s, path)
	admit(t, s, "")
	commit(t, s, upsert(1, "a", `{"WorkItemHash":"a","Status":"Complete","LastEventAt":"2020-01-01T00:00:00Z"}`), upsert(2, "b", `{"WorkItemHash":"b"}`))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	tool := openStore(t, path)
	page, err := tool.Export(t.Context(), ports.ExportQuery{Family: ports.Queue})
	if err != nil || len(page.Rows) != 2 {
		t.Errorf("%+v, %v", page, err)
	}
	if got, err := tool.Prune(t.Context(), ports.PruneQuery{Before: time.Now()}); err != nil || got.Items != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}
