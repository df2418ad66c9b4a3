package sqlite

import (
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// The tables come from the schema in ports; a table that exists already, ours of an earlier version or a databeacon's,
// gets the columns and indexes that it lacks. No table, column or row is ever dropped.

// ourTables are the tables that hold no records. UVGone has one row for each removed record; its rowid is the order in
// which they went.
const ourTables = `
CREATE TABLE IF NOT EXISTS "UVGone" (
	"Kind" TEXT NOT NULL, "Key" TEXT NOT NULL,
	"ChangeHost" TEXT NOT NULL DEFAULT '', "ChangeSeq" INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX IF NOT EXISTS "IX_UVGone_Key" ON "UVGone" ("Kind", "Key");
CREATE TABLE IF NOT EXISTS "UVHoldfast" ("Key" TEXT NOT NULL PRIMARY KEY, "Value" TEXT NOT NULL DEFAULT '')`

// goneByChange leads to the tombstones of a family that a host left after a Seq. The kind leads, because the Seqs of families
// say nothing of each other.
var goneByChange = ports.Index{Name: "IX_UVGone_Change", Columns: []string{"Kind", "ChangeHost", "ChangeSeq"}}

func columnDDL(c ports.Column) string {
	kind := "TEXT NOT NULL DEFAULT ''"
	switch c.Type {
	case ports.Identity:
		kind = "INTEGER PRIMARY KEY AUTOINCREMENT"
	case ports.Integer, ports.Boolean, ports.Deleted:
		kind = "INTEGER NOT NULL DEFAULT 0"
	case ports.Float:
		kind = "REAL NOT NULL DEFAULT 0"
	}
	return `"` + c.Name + `" ` + kind
}

// tableDDL keeps the contract's order: identity, members, the engine's other columns, ours.
func tableDDL(t *ports.Table) string {
	var columns []string
	for _, c := range tables.ColumnsOf(t) {
		columns = append(columns, columnDDL(c))
	}
	return fmt.Sprintf("CREATE TABLE \"%s\" (\n\t%s)", t.Name, strings.Join(columns, ",\n\t"))
}

// migrate brings the file to this version's schema, in one transaction, and gives its StoreID.
func migrate(l *link, path string) (storeID string, err error) {
	version, _, err := l.number("PRAGMA user_version")
	if err != nil {
		return "", err
	}
	if version > ports.SchemaVersion {
		return "", ports.Errorf(ports.Conflict, "sqlite: open",
			"%s has schema version %d, this holdfast knows %d; use the newer holdfast or another path", path, version, ports.SchemaVersion)
	}
	tx, err := l.begin()
	if err != nil {
		return "", err
	}
	if storeID, err = mend(l, version); err != nil {
		_ = tx.Rollback() // the error that counts is the first
		return "", err
	}
	return storeID, tx.Commit()
}

// mend writes nothing where nothing is missing: a store that turns out to be another's is left as it was found.
func mend(l *link, version int64) (storeID string, err error) {
	for text := range strings.SplitSeq(ourTables, ";") {
		if err := l.once(text); err != nil {
			return "", err
		}
	}
	if err := mendIndex(l, "UVGone", goneByChange); err != nil {
		return "", err
	}
	for _, t := range slices.Concat(ports.Tables, []*ports.Table{ports.EarlyWrites}) {
		if err := mendTable(l, t); err != nil {
			return "", err
		}
		for _, x := range t.Indexes {
			if err := mendIndex(l, t.Name, x); err != nil {
				return "", err
			}
		}
	}
	if storeID, err = l.word(readKey, tables.KeyStoreID); err != nil {
		return "", err
	}
	if storeID == "" {
		storeID = uuid.NewString()
		if err := setKey(l, tables.KeyStoreID, storeID); err != nil {
			return "", err
		}
	}
	if version == ports.SchemaVersion {
		return storeID, nil
	}
	return storeID, l.once(fmt.Sprintf("PRAGMA user_version = %d", ports.SchemaVersion))
}

// mendIndex makes an index that is not there, or has fewer columns.
func mendIndex(l *link, table string, x ports.Index) error {
	var present []string
	err := l.query(`SELECT name FROM pragma_index_info(?) ORDER BY seqno`, func(row []driver.Value) error {
		name, _ := row[0].(string)
		present = append(present, name)
		return nil
	}, x.Name)
	if err != nil || slices.Equal(present, x.Columns) {
		return err
	}
	if len(present) > 0 {
		if err := l.once(fmt.Sprintf(`DROP INDEX "%s"`, x.Name)); err != nil {
			return err
		}
	}
	return l.once(tables.IndexDDL(table, x))
}

func mendTable(l *link, t *ports.Table) error {
	present := map[string]bool{}
	err := l.query(`SELECT name FROM pragma_table_info(?)`, func(row []driver.Value) error {
		name, _ := row[0].(string)
		present[name] = true
		return nil
	}, t.Name)
	if err != nil {
		return err
	}
	if len(present) == 0 {
		return l.once(tableDDL(t))
	}
	for _, c := range tables.ColumnsOf(t) {
		if present[c.Name] || c.Type == ports.Identity {
			continue
		}
		if err := l.once(fmt.Sprintf(`ALTER TABLE "%s" ADD COLUMN %s`, t.Name, columnDDL(c))); err != nil {
			return err
		}
	}
	if t != ports.EarlyWrites && !present["OrderKey"] {
		return takeOver(l, t)
	}
	return nil
}
