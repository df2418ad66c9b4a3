package stock

// The routes that read.

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// rows are what a statement found, each value as it is answered.
type rows struct {
	columns []string
	list    [][]json.RawMessage
}

func (r rows) json() (all []json.RawMessage) {
	heads := make([][]byte, len(r.columns))
	for i, name := range r.columns {
		heads[i] = append(encode(name), ':')
	}
	for _, cells := range r.list {
		var b bytes.Buffer
		for i, cell := range cells {
			b.WriteByte(",{"[bit(i == 0)])
			b.Write(heads[i])
			b.Write(cell)
		}
		b.WriteByte('}')
		all = append(all, b.Bytes())
	}
	return all
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// object is one row.
func (r rows) object(i int) (o object) {
	for j, name := range r.columns {
		o = append(o, member{name, value{raw: r.list[i][j]}})
	}
	return o
}

// target is the table behind an endpoint as it is now.
func (d *Databeacon) target(e *endpoint) (*database, *table, *failure) {
	db, err := d.database(e.connection)
	if err != nil {
		return nil, nil, fail(http.StatusInternalServerError, err.Error())
	}
	t, err := db.table(e.table)
	if err != nil {
		return nil, nil, d.engine.other(err)
	}
	if t == nil {
		return nil, nil, d.engine.noTable(e.table)
	}
	return db, t, nil
}

// read runs a query.
func (d *Databeacon) read(e *endpoint, q query) (rows, *failure) {
	found, _, f := d.found(e, q)
	return found, f
}

func (d *Databeacon) found(e *endpoint, q query) (rows, statement, *failure) {
	db, t, f := d.target(e)
	if f != nil {
		return rows{}, statement{}, f
	}
	s := d.statement(t, e, q, false)
	if s.refused != nil {
		return rows{}, s, s.refused
	}
	found, f := d.run(db.sql, t, s)
	return found, s, f
}

// asker is a database or a transaction.
type asker interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func (d *Databeacon) run(db asker, t *table, s statement) (found rows, f *failure) {
	result, err := db.QueryContext(context.Background(), d.heap(s.text), s.args...)
	if err != nil {
		return rows{}, d.engine.other(err)
	}
	defer func() { _ = result.Close() }()
	if found.columns, err = result.Columns(); err != nil {
		return rows{}, d.engine.other(err)
	}
	columns := make([]*column, len(found.columns))
	for i, name := range found.columns {
		if columns[i] = t.column(name); columns[i] == nil {
			columns[i] = &column{name: name}
		}
	}
	values, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	for result.Next() {
		if err := result.Scan(into...); err != nil {
			return rows{}, d.engine.other(err)
		}
		cells := make([]json.RawMessage, len(columns))
		for i, c := range columns {
			if cells[i], f = d.engine.show(c, values[i]); f != nil {
				return rows{}, f
			}
		}
		found.list = append(found.list, cells)
	}
	if err := result.Err(); err != nil {
		return rows{}, d.engine.other(err)
	}
	return found, nil
}

func (d *Databeacon) list(e *endpoint, q query) (answer, cost) {
	found, s, f := d.found(e, q)
	if f != nil {
		return f.answer(s.shown()...), lookUp
	}
	return done(array(found.json())), lists(max(q.keys(), len(found.list)))
}

func idColumn(e *endpoint) string {
	for _, c := range e.columns {
		if c.MeadowType == "AutoIdentity" {
			return c.Name
		}
	}
	return ""
}

func (d *Databeacon) byID(e *endpoint, id string) (answer, cost) {
	return d.one(e, query{terms: []term{equals(idColumn(e), id, "RequestDefaultIdentifier")}})
}

func (d *Databeacon) one(e *endpoint, q query) (answer, cost) {
	found, s, f := d.found(e, q)
	if f != nil {
		return f.answer(s.shown()...), lookUp
	}
	if len(found.list) == 0 {
		return fail(http.StatusNotFound, "Record not Found").answer(s.shown()...), lookUp
	}
	return done(found.json()[0]), lookUp
}

func (d *Databeacon) largest(e *endpoint, column string) (answer, cost) {
	return d.one(e, query{sort: []order{{column, true}}, cap: 1})
}

func (d *Databeacon) count(e *endpoint, q query) (answer, cost) {
	db, t, f := d.target(e)
	if f != nil {
		return f.answer(), lookUp
	}
	s := d.statement(t, e, q, true)
	if s.refused != nil {
		return s.refused.answer(s.shown()...), lookUp
	}
	var n int64
	if err := db.sql.QueryRowContext(context.Background(), s.text, s.args...).Scan(&n); err != nil {
		return d.engine.other(err).answer(s.shown()...), lookUp
	}
	return done(object{{"Count", of(n)}}.json()), lists(q.keys())
}

// selectList is a list for a choice.
func (d *Databeacon) selectList(e *endpoint, q query) (answer, cost) {
	found, s, f := d.found(e, q)
	if f != nil {
		return f.answer(s.shown()...), lookUp
	}
	items := []json.RawMessage{}
	for i := range found.list {
		id, _ := found.object(i).get(idColumn(e))
		items = append(items, object{{"Hash", id}, {"Value", of(e.table + " #" + id.text())}}.json())
	}
	return done(array(items)), lists(len(items))
}

func (d *Databeacon) liteList(e *endpoint, q query, extra []string) (answer, cost) {
	found, s, f := d.found(e, q)
	if f != nil {
		return f.answer(s.shown()...), lookUp
	}
	items := []json.RawMessage{}
	for i := range found.list {
		items = append(items, lite(e, found.object(i), extra).json())
	}
	return done(array(items)), lists(len(items))
}

// lite is a row reduced to what identifies it.
func lite(e *endpoint, row object, extra []string) object {
	id, _ := row.get(idColumn(e))
	o := object{{"Value", of(e.table + " #" + id.text())}, {idColumn(e), id}}
	if v, ok := row.get("UpdateDate"); ok {
		o = o.with("UpdateDate", v)
	}
	for _, name := range extra {
		if v, ok := row.get(name); ok {
			o = o.with(name, v)
		}
	}
	for _, m := range row {
		if strings.HasPrefix(m.name, "ID") || strings.HasPrefix(m.name, "GUID") {
			o = o.with(m.name, m.value)
		}
	}
	return o
}

func (d *Databeacon) distinctList(e *endpoint, q query, columns []string) (answer, cost) {
	q.distinct, q.fields = true, columns
	return d.list(e, q)
}

// defaults is a new row, from what introspection knew of the columns.
func defaults(e *endpoint) (o object) {
	for _, c := range e.columns {
		switch c.MeadowType {
		case "AutoIdentity", "Numeric", "Deleted":
			o = append(o, member{c.Name, of(0)})
		case "Boolean":
			o = append(o, member{c.Name, of(false)})
		case "CreateDate", "UpdateDate", "DateTime":
			o = append(o, member{c.Name, of(nil)})
		default:
			o = append(o, member{c.Name, of("")})
		}
	}
	return o
}

func (d *Databeacon) jsonSchema(e *endpoint) json.RawMessage {
	properties, required := object{}, []string{}
	for _, c := range e.columns {
		kind := "string"
		switch c.MeadowType {
		case "AutoIdentity":
			kind, required = "integer", append(required, c.Name)
		case "Numeric", "Deleted":
			kind = "number"
		case "Boolean":
			kind = "boolean"
		}
		p := object{{"type", of(kind)}}
		if c.MaxLength != nil {
			p = append(p, member{"size", of(strconv.FormatInt(*c.MaxLength, 10))})
		}
		properties = append(properties, member{c.Name, value{raw: p.json()}})
	}
	return object{
		{"title", of(e.table)}, {"type", of("object")}, {"properties", value{raw: properties.json()}}, {"required", of(required)},
	}.json()
}
