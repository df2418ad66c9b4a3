package sqlite

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// fill commits entries in batches as a host would.
func fill(t testing.TB, s *Store, entries []ports.Entry) {
	t.Helper()
	pour(t, s, entries, 4)
}

// pages walks a list to its end and gives the keys.
func pages(t *testing.T, next func(after *ports.Cursor) (ports.Page, error)) (keys []string) {
	t.Helper()
	var after *ports.Cursor
	for {
		page, err := next(after)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Rows {
			keys = append(keys, cmp.Or(r.GUID, r.Key))
		}
		if page.Next == nil {
			return keys
		}
		// A token is what callers hold.
		if after, err = ports.ParseCursor(page.Next.Token()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEveryPageSizeShowsEachItemOnceInTheOrderOfTime(t *testing.T) {
	t.Parallel()
	s := ready(t)
	const same = 2000 / slowdown
	type given struct{ key, at string }
	var all []given
	for i := range same {
		all = append(all, given{fmt.Sprintf("same-%04d", i), "2026-01-01T00:00:00.25Z"})
	}
	for i, at := range []string{
		"2026-01-01T00:00:00Z", "2026-01-01T00:00:00.1Z", "2026-01-01T00:00:00.100000001Z", "2026-01-01T00:00:00.102Z",
		"2026-01-01T00:00:00.24999999Z", "2026-01-01T05:30:00.250000001+05:30", "2025-12-31T19:00:00.5-05:00", "2026-01-01T00:00:00.50000001Z",
	} {
		all = append(all, given{fmt.Sprint("frac-", i), at})
	}
	sorted := slices.Clone(all)
	instant := func(g given) int64 {
		at, err := time.Parse(time.RFC3339Nano, g.at)
		if err != nil {
			t.Fatal(err)
		}
		return at.UnixNano()
	}
	slices.SortFunc(sorted, func(a, b given) int {
		return cmp.Or(cmp.Compare(instant(a), instant(b)), strings.Compare(a.key, b.key))
	})
	var want []string
	for _, g := range sorted {
		want = append(want, g.key)
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var entries []ports.Entry
	for i, g := range all {
		entries = append(entries, upsert(uint64(i+1), g.key, fmt.Sprintf(`{"WorkItemHash":%q,"EnqueuedAt":%q,"Status":"S%d","RunID":"r","AssignedBeaconID":"b","Capability":"Shell"}`, g.key, g.at, i%3)))
	}
	fill(t, s, entries)
	backwards := slices.Clone(want)
	slices.Reverse(backwards)
	filters := map[string]ports.ItemFilter{
		"all": {}, "statuses": {Status: []string{"S2", "S0", "S1", "S0", "none"}}, "run": {RunID: "r"}, "beacon": {AssignedBeaconID: "b"},
		"tested": {Capability: "Shell"}, "all of it": {RunID: "r", AssignedBeaconID: "b", Status: []string{"S0", "S1", "S2"}, Capability: "Shell"},
		"window": {From: "2026-01-01T00:00:00.000000000Z", To: "2026-01-01T00:00:01.000000000Z"},
	}
	for name, filter := range filters {
		for _, limit := range []int{1, 2, 7, 100, same + 8, 5000} {
			for _, desc := range []bool{false, true} {
				if limit < 7*slowdown && name != "statuses" || limit < 7 && (name != "statuses" || desc != (limit == 2)) {
					continue // thousands of pages: once is enough
				}
				got := pages(t, func(after *ports.Cursor) (ports.Page, error) {
					return s.Items(t.Context(), ports.ItemQuery{Filter: filter, Limit: limit, Desc: desc, After: after})
				})
				expect := want
				if desc {
					expect = backwards
				}
				if !slices.Equal(got, expect) {
					t.Errorf("%s by %d, desc %v: %d rows, want %d in order", name, limit, desc, len(got), len(expect))
				}
			}
		}
	}
}

func TestFiltersHoldTogether(t *testing.T) {
	t.Parallel()
	s := ready(t)
	var entries []ports.Entry
	for i := range 240 {
		entries = append(entries, upsert(uint64(i+1), fmt.Sprintf("k%03d", i), fmt.Sprintf(
			`{"WorkItemHash":"k%03d","EnqueuedAt":"2026-01-01T00:%02d:00Z","Status":"S%d","RunID":"r%d","RunHash":"h%d","OperationHash":"o%d","Capability":"c%d","Action":"a%d","AffinityKey":"f%d","AssignedBeaconID":"b%d","LastError":"err %d%%"}`,
			i, i%60, i%2, i%3, i%4, i%5, i%2, i%3, i%4, i%5, i)))
	}
	fill(t, s, entries)
	for name, c := range map[string]struct {
		filter ports.ItemFilter
		match  func(i int) bool
	}{
		"status":       {ports.ItemFilter{Status: []string{"S1"}}, func(i int) bool { return i%2 == 1 }},
		"run, status":  {ports.ItemFilter{RunID: "r1", Status: []string{"S1", "S7"}}, func(i int) bool { return i%3 == 1 && i%2 == 1 }},
		"run, beacon":  {ports.ItemFilter{RunID: "r1", AssignedBeaconID: "b2"}, func(i int) bool { return i%3 == 1 && i%5 == 2 }},
		"the rest":     {ports.ItemFilter{RunHash: "h1", OperationHash: "o1", Capability: "c1", Action: "a0", AffinityKey: "f1"}, func(i int) bool { return i%4 == 1 && i%5 == 1 && i%2 == 1 && i%3 == 0 }},
		"error text":   {ports.ItemFilter{ErrorText: "err 1%"}, func(i int) bool { return i == 1 }},
		"case is kept": {ports.ItemFilter{ErrorText: "ERR"}, func(int) bool { return false }},
		"window":       {ports.ItemFilter{From: "2026-01-01T00:10:00.000000000Z", To: "2026-01-01T00:20:00.000000000Z", Status: []string{"S0"}}, func(i int) bool { return i%60 >= 10 && i%60 < 20 && i%2 == 0 }},
		"many statuses": {ports.ItemFilter{Status: strings.Fields(strings.Repeat("x ", 40) + "S0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16")}, func(i int) bool {
			return i%2 == 0
		}},
	} {
		var want []string
		for i := range 240 {
			if c.match(i) {
				want = append(want, fmt.Sprintf("k%03d", i))
			}
		}
		got := pages(t, func(after *ports.Cursor) (ports.Page, error) {
			return s.Items(t.Context(), ports.ItemQuery{Filter: c.filter, Limit: 7, After: after})
		})
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v\nwant %v", name, got, want)
		}
	}
}

func TestAListInTheOrderOfAColumn(t *testing.T) {
	t.Parallel()
	s := ready(t)
	for i, priority := range []int{5, 100, -3, 5, 20} {
		commit(t, s, upsert(uint64(i+1), fmt.Sprint("k", i), fmt.Sprintf(`{"WorkItemHash":"k%d","Priority":%d,"Status":"S%d"}`, i, priority, i%2)))
	}
	page, err := s.Items(t.Context(), ports.ItemQuery{OrderBy: "Priority", Limit: 4, After: &ports.Cursor{Sort: "z", Key: "z"}})
	if got := fmt.Sprint(keysOf(page)); err != nil || got != "[k2 k0 k3 k4]" || page.Next != nil {
		t.Errorf("%s, next %v, %v", got, page.Next, err)
	}
	page, err = s.Items(t.Context(), ports.ItemQuery{OrderBy: "Priority", Desc: true, Filter: ports.ItemFilter{Status: []string{"S0", "S9"}}})
	if got := fmt.Sprint(keysOf(page)); err != nil || got != "[k4 k0 k2]" {
		t.Errorf("%s, %v", got, err)
	}
	for _, column := range []string{"Nonsense", `Status" DESC --`, "rowid"} {
		_, err := s.Items(t.Context(), ports.ItemQuery{OrderBy: column})
		if e := ports.AsError(err); e == nil || e.Code != ports.Invalid || e.Field != "OrderBy" {
			t.Errorf("%s: %v, want invalid in OrderBy", column, err)
		}
	}
}

func TestASearchStopsInTimeAndGoesOn(t *testing.T) {
	t.Parallel()
	s := ready(t)
	var entries []ports.Entry
	for i := range 1500 {
		entries = append(entries, upsert(uint64(i+1), fmt.Sprintf("k%04d", i), fmt.Sprintf(`{"WorkItemHash":"k%04d","LastError":"e%d"}`, i, i%700)))
	}
	fill(t, s, entries)
	s.searchLimit = 0
	partial := 0
	got := pages(t, func(after *ports.Cursor) (ports.Page, error) {
		page, err := s.Items(t.Context(), ports.ItemQuery{Filter: ports.ItemFilter{ErrorText: "e699"}, After: after})
		if page.Partial {
			partial++
			if page.Next == nil {
				t.Fatal("a partial page without a next")
			}
		}
		return page, err
	})
	if fmt.Sprint(got) != "[k0699 k1399]" || partial < 5 {
		t.Errorf("%v in %d partial pages", got, partial)
	}
}

func TestPagesAreCutByBytesAndBodiesLeftOut(t *testing.T) {
	t.Parallel()
	s := ready(t)
	body := strings.Repeat("x", 3<<20)
	for i := range 7 {
		key, seq := fmt.Sprint("k", i), uint64(2*i+1)
		commit(t, s, upsert(seq, key, fmt.Sprintf(`{"WorkItemHash":%q,"Settings":{"b":%q},"Result":null,"Status":"S"}`, key, body)),
			event(seq+1, "k0", fmt.Sprint("g", i), fmt.Sprintf(`{"WorkItemHash":"k0","Payload":{"b":%q}}`, body)))
	}
	for name, bodies := range map[string]bool{"with": true, "without": false} {
		page, err := s.Items(t.Context(), ports.ItemQuery{Bodies: bodies, Limit: 50})
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for _, r := range page.Rows {
			size += len(r.Body)
		}
		if bodies && (len(page.Rows) != 5 || page.Next == nil || size > ports.MaxPageBytes) {
			t.Errorf("%s: %d rows of %d bytes, next %v", name, len(page.Rows), size, page.Next)
		}
		if want := `{"WorkItemHash":"k0","Status":"S"}`; !bodies && (len(page.Rows) != 7 || string(page.Rows[0].Body) != want) {
			t.Errorf("%s: %d rows, the first is %s", name, len(page.Rows), page.Rows[0].Body)
		}
	}
	page, err := s.Events(t.Context(), ports.EventQuery{Key: "k0", Bodies: true})
	if err != nil || len(page.Rows) != 5 || page.Next == nil {
		t.Errorf("events: %d, %v", len(page.Rows), err)
	}
	if page, err = s.Events(t.Context(), ports.EventQuery{Key: "k0"}); err != nil || len(page.Rows) != 7 || strings.Contains(string(page.Rows[0].Body), "Payload") {
		t.Errorf("events without bodies: %d, %v", len(page.Rows), err)
	}
}

func TestTwentyThousandEventsOfOneItem(t *testing.T) {
	t.Parallel()
	s := ready(t)
	var entries []ports.Entry
	var want []string
	const many = 20_000 / slowdown
	for i := range many {
		guid := fmt.Sprintf("g%05d", (i*7919)%many)
		entries = append(entries, event(uint64(i+1), "w", guid, fmt.Sprintf(`{"WorkItemHash":"w","EventType":"progress","Payload":{"n":%d}}`, i)))
		want = append(want, guid)
	}
	fill(t, s, entries)
	for _, desc := range []bool{false, true} {
		got := pages(t, func(after *ports.Cursor) (ports.Page, error) {
			return s.Events(t.Context(), ports.EventQuery{Key: "w", Limit: 777, Bodies: true, Desc: desc, After: after})
		})
		if desc {
			slices.Reverse(got)
		}
		if !slices.Equal(got, want) {
			t.Errorf("desc %v: %d events, want %d in order", desc, len(got), len(want))
		}
	}
	if page, err := s.Events(t.Context(), ports.EventQuery{Key: "nobody"}); err != nil || len(page.Rows) != 0 || page.Next != nil {
		t.Errorf("events of nobody: %+v, %v", page, err)
	}
}

func TestManifestsAreListedByAcceptance(t *testing.T) {
	t.Parallel()
	s := ready(t)
	var entries []ports.Entry
	for i := range 90 {
		entries = append(entries, entry(uint64(i+1), ports.UpsertManifest, fmt.Sprintf("m%02d", 89-i), fmt.Sprintf(
			`{"Hash":"m%02d","OperationHash":"o%d","Status":"S%d","ElapsedMs":0,"StopTime":null,"Output":{"a":1}}`, 89-i, i%2, i%3)))
	}
	fill(t, s, entries)
	for name, c := range map[string]struct {
		query ports.ManifestQuery
		match func(i int) bool
	}{
		"all":       {ports.ManifestQuery{}, func(int) bool { return true }},
		"operation": {ports.ManifestQuery{OperationHash: "o1"}, func(i int) bool { return i%2 == 1 }},
		"statuses":  {ports.ManifestQuery{Status: []string{"S0", "S2"}}, func(i int) bool { return i%3 != 1 }},
		"both":      {ports.ManifestQuery{OperationHash: "o1", Status: []string{"S0", "S2"}}, func(i int) bool { return i%2 == 1 && i%3 != 1 }},
		"window":    {ports.ManifestQuery{From: entries[10].OrderKey(), To: entries[20].OrderKey()}, func(i int) bool { return i >= 10 && i < 20 }},
	} {
		for _, desc := range []bool{false, true} {
			var want []string
			for i := range 90 {
				if c.match(i) {
					want = append(want, fmt.Sprintf("m%02d", 89-i))
				}
			}
			if desc {
				slices.Reverse(want)
			}
			got := pages(t, func(after *ports.Cursor) (ports.Page, error) {
				q := c.query
				q.Desc, q.After, q.Limit = desc, after, 4
				return s.Manifests(t.Context(), q)
			})
			if !slices.Equal(got, want) {
				t.Errorf("%s, desc %v: %v\nwant %v", name, desc, got, want)
			}
		}
	}
	page, err := s.Manifests(t.Context(), ports.ManifestQuery{Limit: 1})
	if want := `{"Hash":"m89","OperationHash":"o0","Status":"S0"}`; err != nil || string(page.Rows[0].Body) != want {
		t.Errorf("without bodies: %s, %v", page.Rows[0].Body, err)
	}
}

// A list must begin at its page whatever the number of rows: found by an index, and not sorted.
func TestListsAreFoundAndNotSorted(t *testing.T) {
	t.Parallel()
	s := ready(t)
	after := &ports.Cursor{Sort: "2026-01-01T00:00:00.000000000Z", Key: "k"}
	for name, l := range map[string]tables.Listing{
		"all":      tables.ItemList(&ports.ItemQuery{}),
		"next":     tables.ItemList(&ports.ItemQuery{After: after}),
		"status":   tables.ItemList(&ports.ItemQuery{Filter: ports.ItemFilter{Status: []string{"Pending"}}, After: after}),
		"statuses": tables.ItemList(&ports.ItemQuery{Filter: ports.ItemFilter{Status: []string{"Pending", "Running", "Complete"}}, After: after, Desc: true}),
		"run":      tables.ItemList(&ports.ItemQuery{Filter: ports.ItemFilter{RunID: "r"}, Desc: true}),
		"beacon":   tables.ItemList(&ports.ItemQuery{Filter: ports.ItemFilter{AssignedBeaconID: "b"}, After: after}),
	} {
		for _, detail := range planOf(t, s, listOf(l)) {
			if strings.Contains(detail, "TEMP B-TREE") || name != "all" && strings.HasPrefix(detail, "SCAN") {
				t.Errorf("%s: %s", name, detail)
			}
		}
	}
	for _, detail := range planOf(t, s, listOf(tables.EventList(&ports.EventQuery{Key: "w", After: after}))) {
		if strings.HasPrefix(detail, "SCAN") || strings.Contains(detail, "TEMP B-TREE FOR ORDER BY") { // equal OrderKeys are sorted, no more
			t.Errorf("events: %s", detail)
		}
	}
}

func planOf(t *testing.T, s *Store, l *listing) []string {
	t.Helper()
	text, args := l.sql(l.layout.Lean)
	return plan(t, s, text, args...)
}

func plan(t *testing.T, s *Store, text string, args ...any) (details []string) {
	t.Helper()
	rows, err := s.file.readers.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		details = append(details, detail)
	}
	if len(details) == 0 || rows.Err() != nil {
		t.Fatalf("no plan: %v", rows.Err())
	}
	return details
}
