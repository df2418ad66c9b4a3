package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/ports"
)

// Engines before 3.51.3 can lose committed pages when a write and a checkpoint meet.
func TestTheEngineIsNewEnough(t *testing.T) {
	t.Parallel()
	s := ready(t)
	var version string
	if err := s.file.readers.QueryRowContext(t.Context(), `SELECT sqlite_version()`).Scan(&version); err != nil {
		t.Fatal(err)
	}
	number := 0
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			t.Fatalf("version %s", version)
		}
		number = number*1000 + n
	}
	if number < 3_051_003 {
		t.Errorf("sqlite %s; it must be 3.51.3 or newer", version)
	}
}

func TestEveryConnectionHasThePragmasAlsoAReplacedOne(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history.db")
	emptyFile(t, path)
	for name, c := range map[string]struct {
		role role
		want string
	}{
		"writer":  {writes, "busy_timeout 5000 synchronous 2 foreign_keys 0 journal_mode wal auto_vacuum 2 query_only 0"},
		"readers": {reads, "busy_timeout 5000 synchronous 2 foreign_keys 0 journal_mode wal auto_vacuum 2 query_only 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, err := sql.Open("sqlite", dsn(path, defaultBusy, c.role))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			db.SetConnMaxLifetime(time.Nanosecond) // none is used twice
			var held []*sql.Conn
			for range 8 {
				conn, err := db.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				held = append(held, conn)
			}
			for _, conn := range held {
				if got := pragmas(t, conn); got != c.want {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
				if err := conn.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func pragmas(t *testing.T, conn *sql.Conn) string {
	var all []string
	for _, name := range []string{"busy_timeout", "synchronous", "foreign_keys", "journal_mode", "auto_vacuum", "query_only"} {
		var value string
		if err := conn.QueryRowContext(t.Context(), "PRAGMA "+name).Scan(&value); err != nil {
			t.Fatal(err)
		}
		all = append(all, name, value)
	}
	return strings.Join(all, " ")
}

func TestAFileThatIsNoDatabaseIsRefusedAndLeftAsItIs(t *testing.T) {
	t.Parallel()
	half := append([]byte(sqliteHeader), bytes.Repeat([]byte{0xA5}, 5000)...)
	for name, content := range map[string][]byte{
		"text": []byte("these are my notes\n"), "one byte": {1}, "zeros": make([]byte, 8192), "a header and noise": half,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "history.db")
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			s := openStore(t, path)
			_, err := s.Stand(t.Context(), host)
			if ports.CodeOf(err) != ports.Unavailable || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want unavailable and the path", err)
			}
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, content) {
				t.Errorf("the file changed (%v)", err)
			}
			if err := os.Remove(path); err != nil { // the operator's remedy
				t.Fatal(err)
			}
			if _, err := s.Stand(t.Context(), host); err != nil {
				t.Errorf("after the remedy: %v", err)
			}
		})
	}
}

// It may be another host's, which is told only after it was opened.
func TestAStoreThatIsOnlyOpenedIsLeftAsItIs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history.db")
	emptyFile(t, path)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := openStore(t, path)
	if _, err := s.Stand(t.Context(), host); err != nil {
		t.Fatal(err)
	}
	if err := s.Probe(t.Context(), ports.Queue); err != nil {
		t.Fatal(err)
	}
	if log, err := os.Stat(path + "-wal"); err != nil || log.Size() != 0 {
		t.Errorf("something is in the write-ahead log: %+v, %v", log, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the file changed (%v)", err)
	}
}

func TestAStoreOfANewerHoldfastIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history.db")
	emptyFile(t, path)
	script(t, path, fmt.Sprintf(`PRAGMA user_version = %d`, ports.SchemaVersion+41))
	_, err := openStore(t, path).Stand(t.Context(), host)
	want := fmt.Sprintf("schema version %d, this holdfast knows %d", ports.SchemaVersion+41, ports.SchemaVersion)
	if ports.CodeOf(err) != ports.Conflict || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want conflict with %q", err, want)
	}
}

func TestAMissingFolderIsNamedAndNotMade(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "mount")
	s := openStore(t, filepath.Join(folder, "history.db"))
	_, err := s.Stand(t.Context(), host)
	if ports.CodeOf(err) != ports.Unavailable || !strings.Contains(err.Error(), folder) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("the folder is there: %v", err)
	}
}

// A store that goes on writing to a file that has no name any more would promise what nobody finds again.
func TestAFileReplacedUnderTheStoreIsNoticed(t *testing.T) {
	t.Parallel()
	s := ready(t)
	commit(t, s, upsert(1, "a", `{"WorkItemHash":"a"}`))
	before, err := s.Stand(t.Context(), host)
	if err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(s.conf.path + suffix); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if _, err := tryCommit(s, batchOf([]ports.Entry{upsert(2, "b", `{"WorkItemHash":"b"}`)})); ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("commit: %v, want unavailable", err)
	}
	after, err := s.Stand(t.Context(), host)
	if err != nil || after.StoreID == before.StoreID || !after.Empty || after.Nonce != "" {
		t.Errorf("stands as %+v, %v; want a new, empty store", after, err)
	}
}

func TestTablesOfADatabeaconAreTakenOver(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history.db")
	var statements []string
	for _, table := range ports.Tables {
		var columns []string
		for _, c := range append(table.Engine[:1:1], append(slices.Clip(table.Members), table.Engine[1:]...)...) {
			ddl := columnDDL(c)
			if c.Type == ports.Opaque || c.Type == ports.Created || c.Type == ports.Float || c.Type == ports.Updated {
				ddl = strings.ReplaceAll(strings.ReplaceAll(ddl, " NOT NULL DEFAULT ''", ""), " NOT NULL DEFAULT 0", "")
			}
			columns = append(columns, ddl)
		}
		statements = append(statements, fmt.Sprintf("CREATE TABLE %s (%s)", table.Name, strings.Join(columns, ",")))
	}
	statements = append(statements,
		`CREATE UNIQUE INDEX IX_UVQueueWorkItem_Hash ON UVQueueWorkItem (WorkItemHash)`,
		`INSERT INTO UVQueueWorkItem (WorkItemHash, Status, EnqueuedAt, CreateDate) VALUES ('new', 'Complete', '2026-05-02T10:00:00+02:00', '2026-05-02T08:00:01.000Z')`,
		`INSERT INTO UVQueueWorkItem (WorkItemHash, Status, EnqueuedAt, CreateDate) VALUES ('old', 'Pending', 'yesterday', '2026-05-01 08:00:01')`,
		`INSERT INTO UVQueueWorkItem (WorkItemHash, Status, Deleted) VALUES ('dead', 'Pending', 1)`,
		`INSERT INTO UVQueueWorkItemEvent (EventGUID, WorkItemHash, EventType) VALUES ('g2', 'old', 'first'), ('g1', 'old', 'second')`,
		`INSERT INTO UVManifest (Hash, Status, ManifestJSON) VALUES ('m', 'Complete', '{"Hash":"m","Status":"Complete"}'), ('n', 'Complete', NULL)`)
	script(t, path, statements...)

	s := openStore(t, path)
	standing, err := s.Stand(t.Context(), host)
	if err != nil || standing.Empty {
		t.Fatalf("%+v, %v", standing, err)
	}
	admit(t, s, "")
	page, err := s.Items(t.Context(), ports.ItemQuery{Bodies: true})
	if err != nil || fmt.Sprint(keysOf(page)) != "[old new]" {
		t.Errorf("items %v, %v", keysOf(page), err)
	}
	if key := page.Rows[1].First.EnqueuedKey; key != "2026-05-02T08:00:00.000000000Z" {
		t.Errorf("EnqueuedKey %s", key)
	}
	events, err := s.Events(t.Context(), ports.EventQuery{Key: "old", Bodies: true})
	if err != nil || len(events.Rows) != 2 || events.Rows[0].GUID != "g2" {
		t.Errorf("events %+v, %v", events, err)
	}
	if got := commit(t, s, upsert(1, "old", `{"WorkItemHash":"old","Status":"Running"}`), upsert(2, "dead", `{"WorkItemHash":"dead","Status":"Running"}`)); got[0].Outcome != ports.Stored || got[1].Outcome != ports.Stored {
		t.Errorf("decisions %+v", got)
	}
	row, err := s.Item(t.Context(), "dead")
	if err != nil || string(row.Body) != `{"WorkItemHash":"dead","Status":"Running"}` {
		t.Errorf("the deleted item is %s, %v", row.Body, err)
	}
	for hash, want := range map[string]string{"m": `{"Hash":"m","Status":"Complete"}`, "n": `{"Hash":"n"}`} {
		if row, err := s.Manifest(t.Context(), hash); err != nil || string(row.Body) != want {
			t.Errorf("manifest %s is %s, %v", hash, row.Body, err)
		}
	}
}

func TestAnEarlierSchemaGetsItsNewColumns(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history.db")
	s := New()
	configure(t, s, path)
	admit(t, s, "")
	commit(t, s, upsert(1, "a", `{"WorkItemHash":"a","Status":"Pending"}`))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	script(t, path, `ALTER TABLE UVQueueWorkItem DROP COLUMN Actor`, `ALTER TABLE UVQueueWorkItem DROP COLUMN CancelReason`,
		`DROP INDEX IX_UVQueueWorkItem_Enqueued`, `PRAGMA user_version = 0`)
	again := openStore(t, path)
	row, err := again.Item(t.Context(), "a")
	if err != nil || row.First.OrderKey == "" || row.First.Actor != "" {
		t.Errorf("%+v, %v", row, err)
	}
	if _, err := again.Items(t.Context(), ports.ItemQuery{}); err != nil {
		t.Error(err)
	}
}

func TestOptionsAreCheckedByName(t *testing.T) {
	t.Parallel()
	for given, field := range map[string]string{
		`{"path":7}`: "path", `{"path":""}`: "path", `{"busy_timeout":"soon"}`: "busy_timeout", `{"busy_timeout":5}`: "busy_timeout",
		`{"busy_timeout":"2h"}`: "busy_timeout", `{"cache":1}`: "cache",
	} {
		err := New().Configure(t.Context(), ports.Configuration{DataDir: "/data", Options: []byte(given)})
		if e := ports.AsError(err); e == nil || e.Code != ports.Invalid || e.Field != field {
			t.Errorf("%s: got %v, want invalid in %s", given, err, field)
		}
	}
	got, err := parseOptions(ports.Configuration{DataDir: "/data"})
	if err != nil || got.path != "/data/history.db" || got.busy != 5*time.Second {
		t.Errorf("defaults are %+v, %v", got, err)
	}
}

// script runs statements on a file that no store holds.
func script(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, text := range statements {
		if _, err := db.ExecContext(context.Background(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}
