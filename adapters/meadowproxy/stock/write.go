package stock

// The routes that write. Bulk calls do one row after the other: a row that is refused stops none of the others.

import (
	"context"
	"database/sql"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// write answers what is no GET; ok is false where no route fits.
func (d *Databeacon) write(e *endpoint, method, name string, rest []string, body []byte) (a answer, c cost, ok bool) {
	route := method + " " + name + "/" + strings.Join(rest, "/")
	if method == http.MethodDelete && name == "" && len(rest) == 1 && rest[0] != "" {
		a, c = d.remove(e, rest[0])
		return a, c, true
	}
	var do func(*endpoint, value) (answer, cost)
	switch route {
	case "POST /":
		do = d.create1
	case "POST s/":
		do = d.createMany
	case "PUT /":
		do = d.update1
	case "PUT s/":
		do = d.updateMany
	case "PUT /Upsert":
		do = d.upsert1
	case "PUT /Upserts":
		do = d.upsertMany
	case "PUT /Upserts/Detailed":
		do = d.upsertDetailed
	case "DELETE /":
		do = d.removeNamed
	default:
		byID := name == "" && len(rest) == 1 && (method == http.MethodPut || method == http.MethodPatch)
		if !byID {
			return answer{}, nothing, false
		}
		do = func(e *endpoint, v value) (answer, cost) {
			return d.update1(e, value{raw: v.members().with(idColumn(e), of(rest[0])).json()})
		}
	}
	var v value
	if len(body) > 0 {
		var err error
		if v, err = parse(body); err != nil {
			return coded(http.StatusBadRequest, "InvalidContent", "Invalid JSON: "+err.Error()), nothing, true
		}
	} else {
		v = value{raw: json.RawMessage(`""`)} // nothing is no record
	}
	a, c = do(e, v)
	return a, c, true
}

// isRecord is JavaScript's typeof object, without null, on which the original breaks in another way.
func isRecord(v value) bool { return v.isObject() || v.isArray() }

func (d *Databeacon) create1(e *endpoint, body value) (answer, cost) {
	if !isRecord(body) {
		return fail(http.StatusInternalServerError, "Record create failure - a valid record is required.").answer(), nothing
	}
	db, t, f := d.target(e)
	if f != nil {
		return f.answer(), single
	}
	row, f := d.create(db.sql, e, t, body.members()) // a list has no members: a row of defaults
	if f != nil {
		return f.answer(), single
	}
	return done(row.json()), single
}

func (d *Databeacon) createMany(e *endpoint, body value) (answer, cost) {
	if !body.isArray() {
		return fail(http.StatusInternalServerError, "Bulk record create failure - a valid array of records to create is required.").answer(), nothing
	}
	return d.bulk(e, body, createdRow, func(tx asker, t *table, record value) (row object, f *failure) {
		if !record.isObject() {
			return nil, fail(http.StatusInternalServerError, "No record submitted")
		}
		if row, f = d.create(tx, e, t, record.members()); f != nil {
			row = record.members()
		}
		return row, f
	})
}

// bulk does one thing for each of a list, within one transaction for speed, whose statements stand or fall alone.
func (d *Databeacon) bulk(e *endpoint, body value, good cost, do func(asker, *table, value) (object, *failure)) (answer, cost) {
	db, t, f := d.target(e)
	items, took := []json.RawMessage{}, request
	if f != nil {
		for _, record := range body.items() {
			items = append(items, d.refused(record.members(), f))
		}
		return done(array(items)), took
	}
	tx, err := db.sql.BeginTx(context.Background(), nil)
	if err != nil {
		return d.engine.other(err).answer(), took
	}
	defer func() { _ = tx.Rollback() }()
	for _, record := range body.items() {
		row, f := do(tx, t, record)
		if f != nil {
			items, took = append(items, d.refused(row, f)), took+refusedRow
			continue
		}
		items, took = append(items, row.json()), took+good
	}
	if err := tx.Commit(); err != nil {
		return d.engine.other(err).answer(), took
	}
	return done(array(items)), took
}

// refused is an element of a bulk answer that failed.
func (d *Databeacon) refused(row object, f *failure) json.RawMessage {
	shape := f.bare()
	if d.options.Explained {
		shape = f.explained()
	}
	return row.with("Error", value{raw: shape.json()}).json()
}

// create inserts a record over the endpoint's defaults and reads it back.
func (d *Databeacon) create(db asker, e *endpoint, t *table, record object) (object, *failure) {
	merged := defaults(e)
	for _, m := range record {
		merged = merged.with(m.name, m.value)
	}
	for _, m := range merged {
		if t.column(m.name) == nil {
			return nil, d.engine.noColumn(t, m.name, inInsert)
		}
	}
	row := map[string]any{}
	var names []string
	for _, m := range merged {
		c := t.column(m.name)
		if c.primary {
			continue
		}
		stored, f := d.stored(e, c, m.value, len(row)+1)
		if f != nil {
			return nil, f
		}
		names, row[m.name] = append(names, m.name), stored
	}
	if f := d.check(t, row); f != nil {
		return nil, f
	}
	id, f := d.insert(db, t, names, row)
	if f != nil {
		return nil, f
	}
	found, f := d.run(db, t, d.statement(t, e, query{terms: []term{equals(idColumn(e), textOf(id), idColumn(e))}}, false))
	if f != nil {
		return nil, f
	}
	if len(found.list) == 0 {
		return nil, fail(http.StatusInternalServerError, "No record found after create.")
	}
	return found.object(0), nil
}

// stored is what a column gets: dates are the engine's clock, everything else is as sent.
func (d *Databeacon) stored(e *endpoint, c *column, v value, at int) (any, *failure) {
	switch e.meadowType(c.name) {
	case "CreateDate", "UpdateDate":
		return d.engine.now(time.Now()), nil
	}
	return d.engine.bind(c, v, at)
}

func (e *endpoint) meadowType(name string) string {
	for _, c := range e.columns {
		if c.Name == name {
			return c.MeadowType
		}
	}
	return ""
}

func (d *Databeacon) check(t *table, row map[string]any) *failure {
	for _, c := range t.columns {
		if v, given := row[c.name]; given && v == nil && c.notNull {
			return d.engine.null(t, c)
		}
	}
	return d.engine.wide(t, row)
}

func (d *Databeacon) insert(db asker, t *table, names []string, row map[string]any) (id any, f *failure) {
	var columns, places []string
	var args []any
	if d.options.Manner == Postgres && t.id != nil {
		next, err := d.next(db, t)
		if err != nil {
			return nil, d.engine.other(err)
		}
		columns, places, args = append(columns, quote(t.id.name)), append(places, "?"), append(args, next)
		id = next
	}
	for _, name := range names {
		columns, places, args = append(columns, quote(name)), append(places, "?"), append(args, row[name])
	}
	result, err := db.ExecContext(context.Background(), "INSERT INTO "+quote(t.name)+" ("+strings.Join(columns, ", ")+") VALUES ("+strings.Join(places, ", ")+")", args...)
	if err != nil {
		if d.options.Manner == MySQL {
			_, _ = db.ExecContext(context.Background(), "UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = ?", t.name) // a refused row uses up an identity
		}
		return nil, d.translate(err, t, row)
	}
	if id == nil {
		last, err := result.LastInsertId()
		if err != nil {
			return nil, d.engine.other(err)
		}
		id = last
	}
	return id, nil
}

// next takes an identity from a sequence, which a refused row does not give back.
func (d *Databeacon) next(db asker, t *table) (n int64, err error) {
	if _, err = db.ExecContext(context.Background(), "CREATE TABLE IF NOT EXISTS "+sequences+" (name TEXT PRIMARY KEY, last INTEGER NOT NULL)"); err != nil {
		return 0, err
	}
	result, err := db.QueryContext(context.Background(), "INSERT INTO "+sequences+" VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET last = last + 1 RETURNING last", t.name)
	if err != nil {
		return 0, err
	}
	defer func() { _ = result.Close() }()
	for result.Next() {
		if err := result.Scan(&n); err != nil {
			return 0, err
		}
	}
	return n, result.Err()
}

// translate says in the engine's words why SQLite refused a row.
func (d *Databeacon) translate(err error, t *table, row map[string]any) *failure {
	columns, null := violated(err)
	if null != "" {
		if c := t.column(null); c != nil {
			return d.engine.null(t, c)
		}
	}
	if columns != nil {
		return d.engine.unique(t, columns, row)
	}
	return d.engine.other(err)
}

var (
	_ asker = (*sql.DB)(nil)
	_ asker = (*sql.Tx)(nil)
)
