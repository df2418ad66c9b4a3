package stock

// EnsureSchema: makes what is missing and never takes anything away. What it tells is odd when nothing is missing, as in the original:
// indexes over one column are reported again, and columns that are as they should be are listed as changes that were skipped.

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// sequences is where the manner of Postgres keeps the next identities.
const sequences = "stock_sequences"

type ensured struct {
	Success             bool
	SchemaName          string
	Engine              string
	TablesCreated       []string
	ColumnsAdded        []string
	IndicesCreated      []string
	MigrationStatements []string
	SkippedDestructive  []string
	Notes               []string
}

// schemaSettings are those of both actions.
type schemaSettings struct {
	IDBeaconConnection json.RawMessage
	SchemaName         string
	SchemaJSON         json.RawMessage
}

func (d *Databeacon) schemaCall(s json.RawMessage) (db *database, name string, wanted descriptor, failed string) {
	var settings schemaSettings
	_ = json.Unmarshal(s, &settings) // what has the wrong type is missing
	c, failed := d.liveConnection(settings.IDBeaconConnection)
	if failed != "" {
		return nil, "", descriptor{}, failed
	}
	wanted, ok := readDescriptor(settings.SchemaJSON)
	if !ok {
		return nil, "", descriptor{}, "SchemaJSON with a Tables array is required."
	}
	name = settings.SchemaName
	if name == "" {
		name = "unnamed"
	}
	db, err := d.database(c.ID)
	if err != nil {
		return nil, "", descriptor{}, err.Error()
	}
	return db, name, wanted, ""
}

func (d *Databeacon) ensureSchema(s json.RawMessage) (outputs any, failed string) {
	db, name, wanted, failed := d.schemaCall(s)
	if failed != "" {
		return nil, failed
	}
	done := ensured{
		Success: true, SchemaName: name, Engine: d.engine.name(), TablesCreated: []string{}, ColumnsAdded: []string{}, IndicesCreated: []string{},
		MigrationStatements: []string{}, SkippedDestructive: []string{}, Notes: []string{},
	}
	there := map[string]*table{}
	for _, t := range wanted.Tables {
		is, err := db.table(t.Scope)
		if err != nil {
			return nil, err.Error()
		}
		there[t.Scope] = is
	}
	for _, t := range wanted.Tables {
		if there[t.Scope] != nil {
			continue
		}
		if f := d.engine.check(t); f != nil {
			return nil, f.text
		}
		if err := d.makeTable(db, t); err != nil {
			return nil, plain(err)
		}
		done.TablesCreated = append(done.TablesCreated, t.Scope)
	}
	for _, t := range wanted.Tables {
		if is := there[t.Scope]; is != nil {
			if failed := d.widen(db, is, t, &done); failed != "" {
				return nil, failed
			}
		}
	}
	if n := len(done.SkippedDestructive); n > 0 {
		done.Notes = append(done.Notes, fmt.Sprintf("Forward-only filter dropped %d destructive change(s); see SkippedDestructive for the list.", n))
	}
	return done, ""
}

// makeTable makes a table with its indexes, in one step.
func (d *Databeacon) makeTable(db *database, t describedTable) error {
	var columns []string
	for _, c := range t.Schema {
		columns = append(columns, quote(c.Column)+" "+d.engine.declare(c, false))
	}
	statements := []string{"CREATE TABLE " + quote(t.Scope) + " (" + strings.Join(columns, ", ") + ")"}
	for _, x := range t.Indexes {
		statements = append(statements, indexStatement(t.Scope, x))
	}
	tx, err := db.sql.BeginTx(context.Background(), nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for _, s := range statements {
		if _, err := tx.ExecContext(context.Background(), s); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func indexStatement(table string, x describedIndex) string {
	kind := "CREATE INDEX "
	if x.Unique {
		kind = "CREATE UNIQUE INDEX "
	}
	var columns []string
	for _, c := range x.Columns {
		columns = append(columns, quote(c))
	}
	return kind + quote(x.Name) + " ON " + quote(table) + " (" + strings.Join(columns, ", ") + ")"
}

// widen adds a table's missing columns, then its missing indexes. The first statement that fails ends the call; what was done stays.
func (d *Databeacon) widen(db *database, is *table, wanted describedTable, done *ensured) (failed string) {
	for _, c := range wanted.Schema {
		if is.column(c.Column) != nil {
			if c.drifts(d.engine) {
				done.SkippedDestructive = append(done.SkippedDestructive, "alter-column:"+wanted.Scope+"."+c.Column)
			}
			continue
		}
		if f := d.engine.check(describedTable{Schema: []described{c}}); f != nil {
			return f.text
		}
		statement := "ALTER TABLE " + quote(wanted.Scope) + " ADD COLUMN " + quote(c.Column) + " " + d.engine.declare(c, true)
		if _, err := db.sql.ExecContext(context.Background(), statement); err != nil {
			return plain(err)
		}
		done.ColumnsAdded = append(done.ColumnsAdded, wanted.Scope+"."+c.Column)
		done.MigrationStatements = append(done.MigrationStatements, statement)
	}
	for _, c := range is.columns {
		if wanted.column(c.name) == nil {
			done.SkippedDestructive = append(done.SkippedDestructive, "drop-column:"+wanted.Scope+"."+c.name)
		}
	}
	for _, x := range wanted.Indexes {
		have := is.index(x.Name) != nil
		if have && len(x.Columns) != 1 {
			continue // only those over one column are taken for missing
		}
		if d.options.Manner == Postgres && !d.options.Strict {
			return `column "` + strings.ToLower(x.Columns[0]) + `" does not exist` // the statement leaves the column unquoted
		}
		if f := d.engine.check(describedTable{Schema: wanted.Schema, Indexes: []describedIndex{x}}); f != nil && !have {
			return f.text
		}
		if !have {
			if _, err := db.sql.ExecContext(context.Background(), indexStatement(wanted.Scope, x)); err != nil {
				return plain(err)
			}
		}
		done.IndicesCreated = append(done.IndicesCreated, x.Name)
		done.MigrationStatements = append(done.MigrationStatements,
			"CREATE INDEX "+quote(x.Name)+" ON "+quote(wanted.Scope)+" ("+strings.Join(x.Columns, ", ")+")")
	}
	return ""
}

func (t *table) index(name string) *index {
	for _, x := range t.indexes {
		if x.name == name {
			return x
		}
	}
	return nil
}

func (d *Databeacon) introspectSchema(s json.RawMessage) (outputs any, failed string) {
	db, name, wanted, failed := d.schemaCall(s)
	if failed != "" {
		return nil, failed
	}
	type looked struct {
		Scope          string
		Exists         bool
		Columns        []knownColumn
		MissingColumns []string
	}
	tables := []looked{}
	for _, t := range wanted.Tables {
		is, err := db.table(t.Scope)
		if err != nil {
			return nil, err.Error()
		}
		l := looked{Scope: t.Scope, Exists: is != nil, Columns: []knownColumn{}, MissingColumns: []string{}}
		if is != nil {
			l.Columns = d.describe(is)
		}
		for _, c := range t.Schema {
			if is == nil || is.column(c.Column) == nil {
				l.MissingColumns = append(l.MissingColumns, c.Column)
			}
		}
		tables = append(tables, l)
	}
	return map[string]any{"Success": true, "SchemaName": name, "Engine": d.engine.name(), "Tables": tables}, ""
}
