package stock

// Changing rows that are there: updates, and the deletion that only hides.

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"
)

func (d *Databeacon) update1(e *endpoint, body value) (answer, cost) {
	if !isRecord(body) {
		return fail(http.StatusBadRequest, "Record update failure - a valid record is required.").answer(), nothing
	}
	db, t, f := d.target(e)
	if f != nil {
		return f.answer(), single
	}
	record := body.members()
	row, f := d.update(db.sql, e, t, record)
	switch {
	case f == nil:
		return done(row.json()), single
	case f.code != "" && t.column("UpdateDate") != nil:
		record = record.with("UpdateDate", of(false))
	}
	return f.answer(member{"Record", value{raw: record.json()}}), single
}

func (d *Databeacon) updateMany(e *endpoint, body value) (answer, cost) {
	if !body.isArray() {
		return fail(http.StatusInternalServerError, "Record update failure - a valid record is required.").answer(), nothing
	}
	return d.bulk(e, body, updatedRow, func(tx asker, t *table, record value) (object, *failure) {
		row, f := d.update(tx, e, t, record.members())
		if f != nil && f.code != "" { // the row that was found, as it was
			row, _ = d.current(tx, e, t, record.members())
		}
		return row, f
	})
}

// current reads the row that a record is about.
func (d *Databeacon) current(db asker, e *endpoint, t *table, record object) (object, *failure) {
	id, _ := record.get(idColumn(e))
	s := d.statement(t, e, query{terms: []term{equals(idColumn(e), id.text(), idColumn(e))}}, false)
	if s.refused != nil {
		return nil, s.refused
	}
	found, f := d.run(db, t, s)
	if f != nil || len(found.list) == 0 {
		return nil, f
	}
	return found.object(0), nil
}

// update changes the columns that a record has and reads the row back.
func (d *Databeacon) update(db asker, e *endpoint, t *table, record object) (object, *failure) {
	id, given := record.get(idColumn(e))
	switch {
	case !given:
		return nil, fail(http.StatusInternalServerError, "Automated update missing default identifier")
	case belowOne(id):
		return nil, fail(http.StatusBadRequest, "Record update failure - a valid record ID is required in the passed-in record.")
	}
	before, f := d.current(db, e, t, record)
	if f != nil {
		return nil, f
	}
	if before == nil {
		return nil, fail(http.StatusNotFound, "Record not Found")
	}
	row, sets, args := map[string]any{}, []string{}, []any{}
	for _, m := range record {
		c := t.column(m.name)
		if c == nil {
			return nil, d.engine.noColumn(t, m.name, inUpdate)
		}
	}
	stamp := false
	for _, m := range record {
		c := t.column(m.name)
		kind := e.meadowType(m.name)
		if c.primary || kind == "CreateDate" {
			continue
		}
		stamp = stamp || kind == "UpdateDate"
		bound, f := d.stored(e, c, m.value, len(args)+1)
		if f != nil {
			return nil, f
		}
		row[m.name], sets, args = bound, append(sets, quote(m.name)+" = ?"), append(args, bound)
	}
	if f := d.check(t, row); f != nil {
		return nil, f
	}
	if !stamp && t.column("UpdateDate") != nil {
		sets, args = append(sets, `"UpdateDate" = ?`), append(args, d.engine.now(time.Now()))
	}
	if f := d.set(db, t, sets, args, id.text()); f != nil {
		return nil, f
	}
	after, f := d.current(db, e, t, record)
	if f == nil && after == nil {
		f = fail(http.StatusInternalServerError, "No record found to update!")
	}
	return after, f
}

// belowOne is JavaScript's v < 1, which is false for what is no number.
func belowOne(v value) bool {
	if v.isNull() || v.isBool() && !v.truth() {
		return true
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(v.text()), 64)
	return err == nil && f < 1
}

// set changes one row. In a Postgres table it then lies at the end.
func (d *Databeacon) set(db asker, t *table, sets []string, args []any, id string) *failure {
	if d.options.Manner == Postgres {
		sets = append(sets, "rowid = (SELECT max(rowid) + 1 FROM "+quote(t.name)+")")
	}
	if len(sets) == 0 || t.id == nil {
		return fail(http.StatusInternalServerError, "No record updated.")
	}
	_, err := db.ExecContext(context.Background(), "UPDATE "+quote(t.name)+" SET "+strings.Join(sets, ", ")+" WHERE "+quote(t.id.name)+" = ?", append(args, leading(id))...)
	if err != nil {
		row := map[string]any{}
		for i, s := range sets[:len(args)] {
			row[strings.Trim(strings.TrimSuffix(s, " = ?"), `"`)] = args[i]
		}
		return d.translate(err, t, row)
	}
	return nil
}

func (d *Databeacon) removeNamed(e *endpoint, body value) (answer, cost) {
	id, _ := body.members().get(idColumn(e))
	if !id.isString() && !id.isNumber() {
		return fail(http.StatusInternalServerError, "Record delete failure - a valid record ID is required in the passed-in record.").answer(), nothing
	}
	return d.remove(e, id.text())
}

func (d *Databeacon) remove(e *endpoint, id string) (answer, cost) {
	return d.mark(e, query{terms: []term{equals(idColumn(e), id, idColumn(e))}}, "1")
}

func (d *Databeacon) undelete(e *endpoint, id string) (answer, cost) {
	return d.mark(e, query{terms: []term{equals(idColumn(e), id, idColumn(e)), equals("Deleted", "1", "Deleted")}}, "0")
}

// mark sets whether the one row of a query is deleted. The row stays, and with it its unique keys.
func (d *Databeacon) mark(e *endpoint, q query, deleted string) (answer, cost) {
	found, s, f := d.found(e, q)
	if f != nil {
		return f.answer(s.shown()...), single
	}
	if len(found.list) == 0 {
		return fail(http.StatusNotFound, "Record not found.").answer(s.shown()...), single
	}
	db, t, f := d.target(e)
	if f != nil {
		return f.answer(), single
	}
	sets, args := []string{quote(deletedColumn(e)) + " = " + deleted}, []any{}
	if t.column("UpdateDate") != nil {
		sets, args = append([]string{`"UpdateDate" = ?`}, sets...), append(args, d.engine.now(time.Now()))
	}
	id, _ := found.object(0).get(idColumn(e))
	if f := d.set(db.sql, t, sets, args, id.text()); f != nil {
		return f.answer(), single
	}
	return done(object{{"Count", of(1)}}.json()), single
}
