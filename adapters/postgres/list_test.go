package postgres

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// A database may sort text by a language, where "a" comes before "B"; a key's order is that of its bytes everywhere.
func TestKeysStandInTheOrderOfTheirBytes(t *testing.T) {
	t.Parallel()
	s, _ := ready(t)
	want := []string{"A", "B", "Z", "_", "a", "b", "z", "\u00e4", "\uffee", "\U0001f600"}
	var entries []ports.Entry
	for i, n := range rand.Perm(len(want)) {
		key := want[n]
		entries = append(entries, upsert(uint64(i+1), key, fmt.Sprintf(`{"WorkItemHash":%q,"EnqueuedAt":"2026-01-01T00:00:00Z","Status":"S","HealthLabel":%q}`, key, key)))
	}
	fill(t, s, entries)
	for name, filter := range map[string]ports.ItemFilter{"all": {}, "by status": {Status: []string{"S", "T"}}} {
		got := pages(t, func(after *ports.Cursor) (ports.Page, error) {
			return s.Items(t.Context(), ports.ItemQuery{Filter: filter, Limit: 1, After: after})
		})
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if page, err := s.Items(t.Context(), ports.ItemQuery{OrderBy: "HealthLabel"}); err != nil || !slices.Equal(keysOf(page), want) {
		t.Errorf("by a column: %q, %v", keysOf(page), err)
	}
	got := pages(t, func(after *ports.Cursor) (ports.Page, error) {
		return s.Export(t.Context(), ports.ExportQuery{Family: ports.Queue, Limit: 1, After: after})
	})
	if !slices.Equal(got, want) {
		t.Errorf("exported: %q", got)
	}
}

// An index has no room for a long text, so that its column shows the beginning alone; who asks for one gets that one.
func TestAFilterByALongTextFindsThatTextAlone(t *testing.T) {
	t.Parallel()
	s, _ := ready(t)
	long := strings.Repeat("x", shortBytes)
	texts := []string{long, long + "a", long + "b", long[1:], strings.Repeat("\u00e9", shortBytes/2) + "e"}
	var entries []ports.Entry
	for i, text := range texts {
		entries = append(entries, upsert(uint64(i+1), fmt.Sprint("k", i), fmt.Sprintf(`{"RunID":%[1]q,"Status":%[1]q,"AssignedBeaconID":%[1]q}`, text)))
	}
	fill(t, s, entries)
	for i, text := range texts {
		want := []string{fmt.Sprint("k", i)}
		for name, filter := range map[string]ports.ItemFilter{
			"run": {RunID: text}, "status": {Status: []string{text}}, "beacon": {AssignedBeaconID: text}, "tested": {RunID: text, Status: []string{"y", text}},
		} {
			for _, bodies := range []bool{false, true} {
				got := pages(t, func(after *ports.Cursor) (ports.Page, error) {
					return s.Items(t.Context(), ports.ItemQuery{Filter: filter, Limit: 1, Bodies: bodies, After: after})
				})
				if !slices.Equal(got, want) {
					t.Errorf("%s of %d bytes: %v, want %v", name, len(text), got, want)
				}
			}
		}
	}
	if got := pages(t, func(after *ports.Cursor) (ports.Page, error) {
		return s.Items(t.Context(), ports.ItemQuery{Filter: ports.ItemFilter{Status: texts[1:3]}, After: after})
	}); fmt.Sprint(got) != "[k1 k2]" {
		t.Errorf("two of them: %v", got)
	}
}

// The server cannot hold these at all, so that it has none of them; it must not be asked.
func TestTextsThatNoRowCanHaveFindNothing(t *testing.T) {
	t.Parallel()
	s, _ := ready(t)
	commit(t, s, upsert(1, "a", `{"Status":"S","RunID":"r","LastError":"e"}`), event(2, "a", "g", `{}`))
	for _, text := range []string{"\x00", "a\x00", "\xff"} {
		if _, err := s.Item(t.Context(), text); ports.CodeOf(err) != ports.NotFound {
			t.Errorf("the item %q: %v", text, err)
		}
		for _, filter := range []ports.ItemFilter{{Status: []string{text}}, {RunID: text}, {Capability: text}, {ErrorText: text}} {
			if page, err := s.Items(t.Context(), ports.ItemQuery{Filter: filter}); err != nil || len(page.Rows) > 0 || page.Next != nil {
				t.Errorf("%+v: %+v, %v", filter, page, err)
			}
			if page, err := s.Items(t.Context(), ports.ItemQuery{Filter: filter, OrderBy: "Status"}); err != nil || len(page.Rows) > 0 {
				t.Errorf("%+v: %+v, %v", filter, page, err)
			}
		}
		page, err := s.Items(t.Context(), ports.ItemQuery{Filter: ports.ItemFilter{Status: []string{text, "S"}}, After: &ports.Cursor{Sort: text, Key: text}})
		if err != nil || len(page.Rows) != 1 && text[0] != 'a' {
			t.Errorf("%q or S: %+v, %v", text, page, err)
		}
		if page, err := s.Events(t.Context(), ports.EventQuery{Key: text}); err != nil || len(page.Rows) > 0 {
			t.Errorf("events of %q: %+v, %v", text, page, err)
		}
		changes, err := s.Changes(t.Context(), ports.ChangesQuery{Family: ports.Queue, Key: text})
		if err != nil || len(changes.Rows) > 0 || changes.End == nil {
			t.Errorf("changes of %q: %+v, %v", text, changes, err)
		}
		for _, kind := range []ports.Kind{"", ports.KindItem, ports.KindEvent, ports.KindAttempt} {
			if _, err := s.Export(t.Context(), ports.ExportQuery{Family: ports.Queue, After: &ports.Cursor{Sort: text, Key: "g" + text, Kind: kind}}); err != nil {
				t.Errorf("exported behind %q: %v", text, err)
			}
		}
		if page, err := s.Attempts(t.Context(), ports.AttemptQuery{Key: text}); err != nil || len(page.Rows) > 0 {
			t.Errorf("attempts of %q: %+v, %v", text, page, err)
		}
	}
}

// A list must begin at its page whatever the number of rows: found by an index, and not sorted.
func TestListsAreFoundAndNotSorted(t *testing.T) {
	t.Parallel()
	s, dsn := ready(t)
	conn := session(t, dsn)
	run(t, conn, `INSERT INTO "UVQueueWorkItem" ("WorkItemHash", "EnqueuedKey", "Status", "RunID", "AssignedBeaconID")
		SELECT 'k' || n, '2026-01-01T00:00:00.' || lpad(n::text, 9, '0') || 'Z', 'S' || n % 7, 'r' || n % 100, 'b' || n % 50 FROM generate_series(1, 30000) AS n`)
	run(t, conn, `INSERT INTO "UVQueueWorkItemEvent" ("EventGUID", "WorkItemHash", "OrderKey") SELECT 'g' || n, 'k' || n % 100, n::text FROM generate_series(1, 30000) AS n`)
	run(t, conn, `INSERT INTO "UVManifest" ("Hash", "OrderKey", "Status", "OperationHash") SELECT 'm' || n, n::text, 'S' || n % 7, 'o' || n % 100 FROM generate_series(1, 30000) AS n`)
	run(t, conn, `ANALYZE`)
	after := &ports.Cursor{Sort: "2026-01-01T00:00:00.000010000Z", Key: "k"}
	for name, l := range map[string]tables.Listing{
		"all":       tables.ItemList(&ports.ItemQuery{}),
		"next":      tables.ItemList(&ports.ItemQuery{After: after}),
		"back":      tables.ItemList(&ports.ItemQuery{After: after, Desc: true}),
		"status":    tables.ItemList(&ports.ItemQuery{Filter: ports.ItemFilter{Status: []string{"S1"}}, After: after}),
		"statuses":  tables.ItemList(&ports.ItemQuery{Filter: ports.ItemFilter{Status: []string{"S1", "S2", "S3"}}, After: after, Desc: true}),
		"run":       tables.ItemList(&ports.ItemQuery{Filter: ports.ItemFilter{RunID: "r5"}, Desc: true}),
		"beacon":    tables.ItemList(&ports.ItemQuery{Filter: ports.ItemFilter{AssignedBeaconID: "b5"}, After: after}),
		"tested":    tables.ItemList(&ports.ItemQuery{Filter: ports.ItemFilter{ErrorText: "e"}, After: after}),
		"events":    tables.EventList(&ports.EventQuery{Key: "k5", After: &ports.Cursor{Sort: "1", Key: "g"}}),
		"manifests": tables.ManifestList(&ports.ManifestQuery{}),
		"operation": tables.ManifestList(&ports.ManifestQuery{OperationHash: "o5", Desc: true}),
		"states":    tables.ManifestList(&ports.ManifestQuery{Status: []string{"S1", "S2"}}),
	} {
		text, args := listOf(l).sql(101, 101, true)
		plan := planOf(t, conn, text, args...)
		for line := range strings.Lines(plan) {
			sorts := strings.Contains(line, "Sort  (") && !strings.Contains(line, "Incremental") // equal OrderKeys are sorted, no more
			if sorts && name != "tested" || strings.Contains(line, "Seq Scan") {
				t.Errorf("%s:\n%s", name, plan)
				break
			}
		}
	}
	if page, err := s.Items(t.Context(), ports.ItemQuery{Limit: 1}); err != nil || len(page.Rows) != 1 {
		t.Errorf("%+v, %v", page, err)
	}
}

func planOf(t *testing.T, conn *pgx.Conn, text string, args ...any) string {
	t.Helper()
	rows, err := conn.Query(t.Context(), "EXPLAIN "+text, args...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return strings.Join(plan, "\n")
}
