package sqlite

import (
	"strings"
	"testing"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

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
