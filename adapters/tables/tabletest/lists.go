package tabletest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/ports"
)

func everyPageSize(t *testing.T, e *Engine) {
	s := e.fresh(t)
	same := e.Items
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
		entries = append(entries, UpsertOf(uint64(i+1), g.key, fmt.Sprintf(`{"WorkItemHash":%q,"EnqueuedAt":%q,"Status":"S%d","RunID":"r","AssignedBeaconID":"b","Capability":"Shell"}`, g.key, g.at, i%3)))
	}
	Pour(t, s, entries)
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
				if limit < 7 && (name != "statuses" || desc != (limit == 2)) {
					continue // thousands of pages: once is enough
				}
				got := Pages(t, func(after *ports.Cursor) (ports.Page, error) {
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

func filters(t *testing.T, e *Engine) {
	s := e.fresh(t)
	var entries []ports.Entry
	for i := range 240 {
		entries = append(entries, UpsertOf(uint64(i+1), fmt.Sprintf("k%03d", i), fmt.Sprintf(
			`{"WorkItemHash":"k%03d","EnqueuedAt":"2026-01-01T00:%02d:00Z","Status":"S%d","RunID":"r%d","RunHash":"h%d","OperationHash":"o%d","Capability":"c%d","Action":"a%d","AffinityKey":"f%d","AssignedBeaconID":"b%d","LastError":"err %d%%"}`,
			i, i%60, i%2, i%3, i%4, i%5, i%2, i%3, i%4, i%5, i)))
	}
	Pour(t, s, entries)
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
		got := Pages(t, func(after *ports.Cursor) (ports.Page, error) {
			return s.Items(t.Context(), ports.ItemQuery{Filter: c.filter, Limit: 7, After: after})
		})
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v\nwant %v", name, got, want)
		}
	}
}

func orderOfAColumn(t *testing.T, e *Engine) {
	s := e.fresh(t)
	for i, priority := range []int{5, 100, -3, 5, 20} {
		Commit(t, s, UpsertOf(uint64(i+1), fmt.Sprint("k", i), fmt.Sprintf(`{"WorkItemHash":"k%d","Priority":%d,"Status":"S%d"}`, i, priority, i%2)))
	}
	page, err := s.Items(t.Context(), ports.ItemQuery{OrderBy: "Priority", Limit: 4, After: &ports.Cursor{Sort: "z", Key: "z"}})
	if got := fmt.Sprint(KeysOf(page)); err != nil || got != "[k2 k0 k3 k4]" || page.Next != nil {
		t.Errorf("%s, next %v, %v", got, page.Next, err)
	}
	page, err = s.Items(t.Context(), ports.ItemQuery{OrderBy: "Priority", Desc: true, Filter: ports.ItemFilter{Status: []string{"S0", "S9"}}})
	if got := fmt.Sprint(KeysOf(page)); err != nil || got != "[k4 k0 k2]" {
		t.Errorf("%s, %v", got, err)
	}
	for _, column := range []string{"Nonsense", `Status" DESC --`, "rowid", "ctid"} {
		_, err := s.Items(t.Context(), ports.ItemQuery{OrderBy: column})
		if e := ports.AsError(err); e == nil || e.Code != ports.Invalid || e.Field != "OrderBy" {
			t.Errorf("%s: %v, want invalid in OrderBy", column, err)
		}
	}
}

func searchStops(t *testing.T, e *Engine) {
	s := e.fresh(t)
	var entries []ports.Entry
	for i := range 1500 {
		entries = append(entries, UpsertOf(uint64(i+1), fmt.Sprintf("k%04d", i), fmt.Sprintf(`{"WorkItemHash":"k%04d","LastError":"e%d"}`, i, i%700)))
	}
	Pour(t, s, entries)
	e.LimitSearch(s, 0)
	partial := 0
	got := Pages(t, func(after *ports.Cursor) (ports.Page, error) {
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
