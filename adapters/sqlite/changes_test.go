package sqlite

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/adapters/tables/tabletest"
	"holdfast/ports"
)

func TestRowsOfAnotherProgramAreToldAsNobodys(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history.db")
	script(t, path,
		`CREATE TABLE UVQueueWorkItem (IDUVQueueWorkItem INTEGER PRIMARY KEY AUTOINCREMENT, WorkItemHash TEXT, Status TEXT, EnqueuedAt TEXT, CreateDate TEXT, Deleted INTEGER DEFAULT 0)`,
		`CREATE TABLE UVQueueWorkItemEvent (IDUVQueueWorkItemEvent INTEGER PRIMARY KEY AUTOINCREMENT, EventGUID TEXT, WorkItemHash TEXT, CreateDate TEXT, Deleted INTEGER DEFAULT 0)`,
		`INSERT INTO UVQueueWorkItem (WorkItemHash, Deleted) VALUES ('b', 0), ('a', 0), ('dead', 1)`,
		`INSERT INTO UVQueueWorkItemEvent (EventGUID, WorkItemHash) VALUES ('g2', 'a'), ('g1', 'b')`)
	s := openStore(t, path)
	admit(t, s, "")
	names := func(rows []ports.Row) (all []string) {
		for _, r := range rows {
			all = append(all, r.Key+r.GUID)
		}
		return all
	}
	rows, at := tabletest.Walk(t, s, ports.ChangesQuery{Family: ports.Queue, Limit: 1}, func() {})
	if got := names(rows); !slices.Equal(got, []string{"b", "a", "ag2", "bg1"}) {
		t.Errorf("told %v", got)
	}
	// What is written later without any Change gets its place at the next start, behind everything that was told.
	commit(t, s, upsert(1, "a", `{"Status":"Running"}`))
	stray := ports.Row{Kind: ports.KindItem, Key: "stray", Body: []byte(`{}`)}
	if _, err := s.Put(t.Context(), ports.Batch{Family: ports.Queue, Rows: []ports.Row{stray}}); err != nil {
		t.Fatal(err)
	}
	script(t, path, `DELETE FROM UVQueueWorkItemEvent`)
	tabletest.Restart(t, s, "n", "epoch-2", 2, nil)
	rows, _ = tabletest.Walk(t, s, ports.ChangesQuery{Family: ports.Queue, After: at}, func() {})
	if got := names(rows); !slices.Equal(got, []string{"stray", "a"}) {
		t.Errorf("told later %v", got)
	}
}

func TestChangesAreReadAlongTheirIndexes(t *testing.T) {
	t.Parallel()
	s := ready(t)
	check := func(text, along string, sorts bool, args ...any) {
		t.Helper()
		for _, step := range plan(t, s, text, args...) {
			if strings.Contains(step, "UV") && !(strings.HasPrefix(step, "SEARCH") && strings.Contains(step, along)) {
				t.Errorf("%s\nis read by %s", text, step)
			}
			if strings.Contains(step, "TEMP B-TREE") && !sorts {
				t.Errorf("%s\nis sorted", text)
			}
		}
	}
	check(tombstones, "(Kind=? AND ChangeHost=? AND ChangeSeq>?)", false, "Manifest", host, 5)
	check(tombstonesOfKey, "(Kind=? AND Key=?)", false, "Manifest", "k", host, 5)
	for _, l := range layouts {
		check(l.since, "(ChangeHost=? AND ChangeSeq>?)", false, host, 5)
		check(l.sinceOfKey, "("+l.Table.Key+"=?)", true, "k", host, 5)
	}
	for _, f := range ports.Families {
		check(textsOf[f].hosts, "ChangeHost>?)", false)
		check(textsOf[f].highest, "ChangeHost=?)", false, host)
	}
}
