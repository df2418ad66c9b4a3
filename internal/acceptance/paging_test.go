package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/internal/e2e"
	"holdfast/internal/model"
)

// ingested sends lines as one stream, all of which must be taken.
func ingested(t *testing.T, client *e2e.Client, lines [][]byte) {
	t.Helper()
	for chunk := range slices.Chunk(lines, 5000) {
		answers, err := client.Stream(t.Context(), "", bytes.NewReader(bytes.Join(chunk, []byte("\n"))))
		if err != nil || len(answers) != len(chunk) {
			t.Fatalf("%d answers to %d lines: %v", len(answers), len(chunk), err)
		}
		for i, a := range answers {
			if !a.Success {
				t.Fatalf("line %d is answered %s: %s", i, a.Code, a.Reason)
			}
		}
	}
	client.Settle(t)
}

// walk reads a list page by page, at most so many pages, and gives one member of each row.
func walk(t *testing.T, client *e2e.Client, path, member string, size, pages int, more url.Values) (seen []string, end bool) {
	t.Helper()
	query := url.Values{"limit": {strconv.Itoa(size)}}
	maps.Copy(query, more)
	for range pages {
		a, err := client.Get(t.Context(), path, query)
		if err != nil || !a.Success || a.Stale || a.Incomplete {
			t.Fatalf("%s?%s is answered %d: %s (%v)", path, query.Encode(), a.Status, a.Reason, err)
		}
		rows := slices.Concat(a.WorkItems, a.Events)
		if len(rows) > size || a.More && len(rows) < size {
			t.Fatalf("a page of %d has %d rows, more %v", size, len(rows), a.More)
		}
		for _, row := range rows {
			var o map[string]json.RawMessage
			var text string
			if json.Unmarshal(row, &o) != nil || json.Unmarshal(o[member], &text) != nil {
				t.Fatalf("a row without %s: %s", member, row)
			}
			seen = append(seen, text)
		}
		if !a.More {
			return seen, true
		}
		query.Set("cursor", a.Cursor)
	}
	return seen, false
}

// pagedAlike walks a list in pages of every size and holds it against the one order.
func pagedAlike(t *testing.T, client *e2e.Client, path, member string, want []string, more url.Values) {
	t.Helper()
	for size, pages := range map[int]int{1: 40, 7: 100_000, 50: 100_000, 500: 100_000} {
		if size == 7 && len(want) > 5000 {
			pages = 300
		}
		got, end := walk(t, client, path, member, size, pages, more)
		if end && len(got) != len(want) || len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
			at := 0
			for at < min(len(got), len(want)) && got[at] == want[at] {
				at++
			}
			t.Errorf("%s %v in pages of %d: %d rows, want %d; they differ from row %d: %.3q, want %.3q",
				path, more, size, len(got), len(want), at, got[at:], want[min(at, len(want)):])
		}
		if !end && pages > 1000 {
			t.Errorf("%s in pages of %d has no end", path, size)
		}
	}
}

func TestManyEventsOfOneItemArePagedOnceInTheirOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 20,000 events")
	}
	t.Parallel()
	h := e2e.Start(t)
	client := h.Client()
	defer client.Close()
	lines := [][]byte{e2e.Line("QP_UpsertWorkItem", item("w", ""))}
	var want []string
	for i := range 20_000 {
		guid := fmt.Sprintf("%08x-event", uint32(i)*2654435761) // no order of its own
		want = append(want, guid)
		lines = append(lines, e2e.Line("QP_AppendEvent", fmt.Appendf(nil, `{"Event":{"WorkItemHash":"w","EventGUID":%q,"EventType":"t","EmittedAt":"2026-01-01T00:00:00Z"}}`, guid)))
	}
	ingested(t, client, lines)
	pagedAlike(t, client, "/v1/work-items/w/events", "EventGUID", want, nil)
	slices.Reverse(want)
	pagedAlike(t, client, "/v1/work-items/w/events", "EventGUID", want, url.Values{"order": {"desc"}})
}

func TestItemsOfOneTimeAndOfEveryFormOfTimeArePagedOnceInOneOrder(t *testing.T) {
	t.Parallel()
	h := e2e.Start(t)
	client := h.Client()
	defer client.Close()
	type at struct {
		when time.Time
		hash string
	}
	var items []at
	var lines [][]byte
	add := func(hash, text string) {
		when, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, at{when, hash})
		lines = append(lines, e2e.Line("QP_UpsertWorkItem", item(hash, fmt.Sprintf(`"Status":"Running","EnqueuedAt":%q`, text))))
	}
	for i := range 2000 {
		add(fmt.Sprintf("%08x", uint32(i)*2654435761), "2026-03-01T12:00:00Z")
	}
	base := time.Date(2026, 3, 1, 11, 59, 59, 123456789, time.UTC)
	for i := range 200 {
		when := base.Add(time.Duration(i*10_000_019) * time.Nanosecond)
		layout := "2006-01-02T15:04:05"
		if digits := i % 10; digits > 0 {
			layout += "." + "000000000"[:digits]
		}
		zone := []*time.Location{time.UTC, time.FixedZone("", 2*3600), time.FixedZone("", -(5*3600 + 1800))}[i%3]
		add(fmt.Sprintf("odd-%03d", i), when.In(zone).Format(layout+"Z07:00"))
	}
	ingested(t, client, lines)

	slices.SortFunc(items, func(a, b at) int {
		if c := a.when.Compare(b.when); c != 0 {
			return c
		}
		return strings.Compare(a.hash, b.hash)
	})
	var oldest []string
	for _, i := range items {
		oldest = append(oldest, i.hash)
	}
	newest := slices.Clone(oldest)
	slices.Reverse(newest)
	pagedAlike(t, client, "/v1/work-items", "WorkItemHash", newest, nil)
	pagedAlike(t, client, "/v1/work-items", "WorkItemHash", newest, url.Values{"status": {"Running"}})
	pagedAlike(t, client, "/v1/work-items", "WorkItemHash", oldest, url.Values{"order": {"asc"}})

	// The action lists in the same order, in one page.
	a := client.Do(t, "QP_ListWorkItems", json.RawMessage(`{"Filter":{"Status":"Running"},"Limit":5000,"OrderBy":"EnqueuedAt ASC"}`))
	var got []string
	for _, row := range a.WorkItems {
		got = append(got, model.MustParse(string(row)).Text("WorkItemHash"))
	}
	if !a.Success || !slices.Equal(got, oldest) {
		t.Errorf("the action lists %d items, want %d: %.3q, want %.3q", len(got), len(oldest), got, oldest)
	}
}
