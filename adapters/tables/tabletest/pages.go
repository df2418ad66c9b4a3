package tabletest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast/ports"
)

func pagesCutByBytes(t *testing.T, e *Engine) {
	s := e.fresh(t)
	body := strings.Repeat("x", 3<<20)
	for i := range 7 {
		key, seq := fmt.Sprint("k", i), uint64(2*i+1)
		Commit(t, s, UpsertOf(seq, key, fmt.Sprintf(`{"WorkItemHash":%q,"Settings":{"b":%q},"Result":null,"Status":"S"}`, key, body)),
			EventOf(seq+1, "k0", fmt.Sprint("g", i), fmt.Sprintf(`{"WorkItemHash":"k0","Payload":{"b":%q}}`, body)))
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

func manyEvents(t *testing.T, e *Engine) {
	s := e.fresh(t)
	var entries []ports.Entry
	var want []string
	many := e.Events
	for i := range many {
		guid := fmt.Sprintf("g%05d", (i*7919)%many)
		entries = append(entries, EventOf(uint64(i+1), "w", guid, fmt.Sprintf(`{"WorkItemHash":"w","EventType":"progress","Payload":{"n":%d}}`, i)))
		want = append(want, guid)
	}
	Pour(t, s, entries)
	for _, desc := range []bool{false, true} {
		got := Pages(t, func(after *ports.Cursor) (ports.Page, error) {
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

func manifestsByAcceptance(t *testing.T, e *Engine) {
	s := e.fresh(t)
	var entries []ports.Entry
	for i := range 90 {
		entries = append(entries, EntryOf(uint64(i+1), ports.UpsertManifest, fmt.Sprintf("m%02d", 89-i), fmt.Sprintf(
			`{"Hash":"m%02d","OperationHash":"o%d","Status":"S%d","ElapsedMs":0,"StopTime":null,"Output":{"a":1}}`, 89-i, i%2, i%3)))
	}
	Pour(t, s, entries)
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
			got := Pages(t, func(after *ports.Cursor) (ports.Page, error) {
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
