package postgres

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"holdfast/internal/pgtest"
	"holdfast/ports"
)

// beaconDDL makes a table as a databeacon makes it: serial, varchar, integer, numeric(10,2), text that may be NULL.
func beaconDDL(t *ports.Table) string {
	var columns []string
	for _, c := range append(append([]ports.Column{t.Engine[0]}, t.Members...), t.Engine[1:]...) {
		kind := map[ports.ColumnType]string{
			ports.Identity: "serial PRIMARY KEY", ports.Opaque: "text", ports.Integer: "integer NOT NULL DEFAULT 0",
			ports.Float: "numeric(10,2)", ports.Boolean: "boolean NOT NULL DEFAULT false", ports.Deleted: "integer NOT NULL DEFAULT 0",
			ports.Created: "timestamp without time zone", ports.Updated: "timestamp without time zone",
		}[c.Type]
		if c.Type == ports.Text {
			if kind = "text"; c.Size > 0 {
				kind = fmt.Sprintf("varchar(%d) NOT NULL DEFAULT ''", c.Size)
			}
		}
		columns = append(columns, `"`+c.Name+`" `+kind)
	}
	return `CREATE TABLE "` + t.Name + `" (` + strings.Join(columns, ", ") + `)`
}

// beaconTables makes what a databeacon makes: four tables, and the contract's own indexes.
func beaconTables(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	for _, table := range ports.Tables {
		run(t, conn, beaconDDL(table))
	}
	for _, text := range []string{
		`CREATE UNIQUE INDEX "IX_UVQueueWorkItem_Hash" ON "UVQueueWorkItem" ("WorkItemHash")`,
		`CREATE INDEX "IX_UVQueueWorkItem_Status" ON "UVQueueWorkItem" ("Status")`,
		`CREATE UNIQUE INDEX "IX_UVQueueEvent_GUID" ON "UVQueueWorkItemEvent" ("EventGUID")`,
		`CREATE UNIQUE INDEX "IX_UVManifest_Hash" ON "UVManifest" ("Hash")`,
	} {
		run(t, conn, text)
	}
}

func TestTablesOfADatabeaconAreAdoptedAndWidened(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	conn := session(t, dsn)
	beaconTables(t, conn)
	run(t, conn, `INSERT INTO "UVQueueWorkItem" ("WorkItemHash", "Status", "EnqueuedAt", "Priority", "Health", "Settings", "CreateDate")
		VALUES ('old', 'Complete', '2026-11-29T01:00:00+01:00', 7, 0.75, '{"a": 1}', '2026-11-29 00:00:00'), ('gone', 'Pending', '', 0, 0, NULL, '2026-11-29 00:00:01')`)
	run(t, conn, `UPDATE "UVQueueWorkItem" SET "Deleted" = 1 WHERE "WorkItemHash" = 'gone'`)
	run(t, conn, `INSERT INTO "UVQueueWorkItemEvent" ("EventGUID", "WorkItemHash", "EventType", "CreateDate") VALUES ('g', 'old', 'enqueued', '2026-11-29 00:00:02')`)
	run(t, conn, `INSERT INTO "UVManifest" ("Hash", "ManifestJSON", "CreateDate") VALUES ('m', '{"Hash":"m"}', '2026-11-29 00:00:03')`)

	b := openStore(t, dsn)
	admit(t, b, "")
	row, err := b.Item(t.Context(), "old")
	if err != nil || row.First.EnqueuedKey != "2026-11-29T00:00:00.000000000Z" || row.Change != (ports.Change{Seq: 1}) || !strings.Contains(string(row.Body), `"Settings":{"a": 1}`) {
		t.Errorf("the old item is %s %+v, %v", row.Body, row, err)
	}
	if _, err := b.Item(t.Context(), "gone"); ports.CodeOf(err) != ports.NotFound {
		t.Errorf("the deleted item: %v", err)
	}
	page, err := b.Changes(t.Context(), ports.ChangesQuery{Family: ports.Queue})
	if err != nil || len(page.Rows) != 2 || page.Rows[1].GUID != "g" {
		t.Errorf("what changed is %+v, %v", page.Rows, err)
	}

	// Nothing is cut, rounded or refused that a new table would hold.
	long := strings.Repeat("k", 300)
	wide := fmt.Sprintf(`{"WorkItemHash":%q,"Status":%q,"Priority":%d,"Health":0.123456789,"QueueWaitMs":%d,"CancelRequested":true,"LastError":"é\u0000x"}`,
		long, strings.Repeat("s", 40), int64(math.MaxInt64), int64(1)<<40)
	commit(t, b, upsert(1, long, wide), upsert(2, "gone", `{"Status":"Running"}`), patch(3, "old", `{"Priority":3000000000}`))
	for key, want := range map[string]string{long: wide, "gone": `{"Status":"Running"}`} {
		row, err := b.Item(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := ports.ParseRecord(ports.Items, row.Body)
		if given, _ := ports.ParseRecord(ports.Items, []byte(want)); !got.Same(given) {
			t.Errorf("%.20s is %s, want %s", key, row.Body, want)
		}
	}
	// Numbers of rows go on beyond 31 bits.
	run(t, conn, `SELECT setval(pg_get_serial_sequence('"UVQueueWorkItemEvent"', 'IDUVQueueWorkItemEvent'), 2147483646)`)
	for n := range uint64(5) {
		commit(t, b, event(4+n, "old", fmt.Sprint("e", n), `{"EventType":"t"}`))
	}
	if n := ask[int64](t, conn, `SELECT max("IDUVQueueWorkItemEvent") FROM "UVQueueWorkItemEvent"`); n != math.MaxInt32+4 {
		t.Errorf("the last event has the number %d", n)
	}
	for n := range uint64(10) { // those that are there already use up no numbers
		commit(t, b, event(9+n, "old", "e0", `{"EventType":"t"}`))
	}
	if n := ask[int64](t, conn, `SELECT nextval(pg_get_serial_sequence('"UVQueueWorkItemEvent"', 'IDUVQueueWorkItemEvent'))`); n != math.MaxInt32+5 {
		t.Errorf("the next event has the number %d", n)
	}
}

func TestAnAdoptedTableHasTheColumnsAndIndexesOfANewOne(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	shape := func(beacon bool) (columns, indexes string) {
		dsn := server.Database(t)
		conn := session(t, dsn)
		if beacon {
			beaconTables(t, conn)
		}
		b := openStore(t, dsn)
		if _, err := b.Stand(t.Context(), host); err != nil {
			t.Fatal(err)
		}
		return ask[string](t, conn, `SELECT string_agg(c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || coalesce(' ' || o.collname, ''), '; ' ORDER BY c.relname, a.attname)
				FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid LEFT JOIN pg_collation o ON o.oid = a.attcollation
				WHERE c.relname LIKE 'UV%' AND c.relkind = 'r' AND a.attnum > 0`),
			ask[string](t, conn, `SELECT string_agg(indexdef, '; ' ORDER BY indexname) FROM pg_indexes WHERE indexname LIKE 'IX_%'`)
	}
	columns, indexes := shape(false)
	adopted, theirs := shape(true)
	if adopted != columns {
		t.Errorf("an adopted table has\n%s\na new one\n%s", adopted, columns)
	}
	if theirs != indexes {
		t.Errorf("an adopted table has the indexes\n%s\na new one\n%s", theirs, indexes)
	}
}

// A text that leads an index of a key of the largest size fits, however long both are, and comes back whole.
func TestTextsTooLongForAnIndexAreKeptWhole(t *testing.T) {
	t.Parallel()
	b, dsn := ready(t)
	key := strings.Repeat("\U0001F600", ports.MaxKeyPoints)
	text := randomText(5000)
	record := fmt.Sprintf(`{"Status":%[1]q,"RunID":%[1]q,"AssignedBeaconID":"é%[2]s","EnqueuedAt":%[1]q,"$raw":{"x":1},"Mine":[1, 2],"LastError":null}`, text, text)
	commit(t, b, upsert(1, key, record), event(2, key, key, fmt.Sprintf(`{"EventType":%q,"FromStatus":%[1]q}`, text)))
	commitManifests(t, b, 1, fmt.Sprintf(`{"Hash":%q,"Status":%q,"OperationHash":%[2]q}`, key, text))
	same := func(want string) {
		t.Helper()
		row, err := b.Item(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ports.ParseRecord(ports.Items, row.Body)
		given, _ := ports.ParseRecord(ports.Items, []byte(want))
		if err != nil || !got.Same(given) {
			t.Fatalf("the item is\n%s\nwant\n%s", row.Body, want)
		}
	}
	same(record)
	commit(t, b, patch(3, key, `{"RunID":"short","LastError":"x"}`))
	record = strings.Replace(strings.Replace(record, fmt.Sprintf(`"RunID":%q`, text), `"RunID":"short"`, 1), `"LastError":null`, `"LastError":"x"`, 1)
	same(record)
	page, err := b.Items(t.Context(), ports.ItemQuery{Filter: ports.ItemFilter{Status: []string{text}}})
	if err != nil || len(page.Rows) != 1 {
		t.Errorf("its list has %d rows, %v", len(page.Rows), err)
	}
	page, err = b.Items(t.Context(), ports.ItemQuery{Filter: ports.ItemFilter{Status: []string{text[:len(text)-1]}}})
	if err != nil || len(page.Rows) != 0 {
		t.Errorf("the list of a text that only begins alike has %d rows, %v", len(page.Rows), err)
	}
	if extra := ask[string](t, session(t, dsn), `SELECT "Extra"::jsonb->'$raw'->>'Status' FROM "UVQueueWorkItem"`); extra != text {
		t.Errorf("$raw has %.40q of the status", extra)
	}
}
