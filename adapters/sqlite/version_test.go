package sqlite

import (
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"holdfast/ports"
)

// unpacked gives a copy of a file that an earlier version made.
func unpacked(t *testing.T, name string) (path string) {
	t.Helper()
	from, err := os.Open(filepath.Join("testdata", name+".gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	z, err := gzip.NewReader(from)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "history.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A file of the version before has no place for what orders a hub's writes, nor for early ones.
func TestAFileOfTheVersionBeforeIsWidenedAndKeepsWhatItHas(t *testing.T) {
	t.Parallel()
	path := unpacked(t, "version-1.db")
	s := openStore(t, path)
	standing, err := s.Stand(t.Context(), host)
	if err != nil || standing.Empty || standing.Marks[ports.Queue].Seq != 4 || standing.Marks[ports.Manifest].Seq != 3 || standing.Early != 0 {
		t.Fatalf("it stands as %+v, %v", standing, err)
	}
	var version int
	if err := s.file.readers.QueryRowContext(t.Context(), `PRAGMA user_version`).Scan(&version); err != nil || version != ports.SchemaVersion {
		t.Errorf("its version is %d, %v, want %d", version, err, ports.SchemaVersion)
	}
	exported := func() (rows []string) {
		for _, f := range ports.Families {
			page, err := s.Export(t.Context(), ports.ExportQuery{Family: f})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page.Rows {
				rows = append(rows, string(r.Kind)+" "+string(r.Body)+" "+r.First.OrderKey)
			}
		}
		return rows
	}
	want := []string{
		`WorkItem {"WorkItemHash":"w","Settings":{"b":1,  "a":1.0},"Status":"Running","EnqueuedAt":"2026-11-30T02:12:14Z","LastError":null,"Mine":[1e0]} 01796004734801-0000000000000001-11111111`,
		`Event {"EventGUID":"g","WorkItemHash":"w","EventType":"enqueued","Payload":{"a": 1}} 01796004734803-0000000000000003-11111111`,
		`Attempt {"WorkItemHash":"w","AttemptNumber":1,"BeaconID":"b","Outcome":"Dispatched"} 01796004734804-0000000000000004-11111111`,
		`Manifest {"Hash":"r", "Status":"Waiting","Output":{"a":1}} 01796004734801-0000000000000001-11111111`,
	}
	got := exported()
	if len(got) != len(want) {
		t.Fatalf("it has %d rows, want %d: %s", len(got), len(want), got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("row %d is\n%s\nwant\n%s", i+1, got[i], want[i])
		}
	}
	admit(t, s, "n")
	hub := func(n int, e ports.Entry) ports.Entry {
		e.Stamp = ports.Stamp{Ms: int64(n), Count: uint64(n)}
		return e
	}
	d := commit(t, s,
		hub(3, entry(5, ports.UpdateWorkItem, "w", `{"Status":"Complete"}`)), hub(2, entry(6, ports.UpdateWorkItem, "w", `{"Status":"Running"}`)),
		hub(1, entry(7, ports.UpdateWorkItem, "v", `{"Status":"Running"}`)), hub(0, upsert(8, "v", `{"WorkItemHash":"v"}`)))
	if d[0].Outcome != ports.Stored || d[1].Outcome != ports.Late || d[2].Outcome != ports.Early || d[3].Applied != 1 {
		t.Errorf("a hub's writes are decided %+v", d)
	}
}

func TestAFileOfThisVersionHasTheTablesOfANewOne(t *testing.T) {
	t.Parallel()
	columns := func(path string) (all string) {
		s := openStore(t, path)
		if _, err := s.Stand(t.Context(), host); err != nil {
			t.Fatal(err)
		}
		for _, query := range []string{
			`SELECT group_concat(m.name || '.' || c.name || ' ' || c.type || ' ' || c."notnull" || ' ' || coalesce(c.dflt_value, ''), '; ' ORDER BY m.name, c.name)
				FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'`,
			`SELECT group_concat(name || ' ' || coalesce(sql, ''), '; ' ORDER BY name) FROM sqlite_master WHERE type = 'index'`,
		} {
			var text string
			if err := s.file.readers.QueryRowContext(context.Background(), query).Scan(&text); err != nil {
				t.Fatal(err)
			}
			all += text
		}
		return all
	}
	if widened, made := columns(unpacked(t, "version-1.db")), columns(filepath.Join(t.TempDir(), "history.db")); widened != made {
		t.Errorf("a widened file has\n%s\na new one\n%s", widened, made)
	}
}
