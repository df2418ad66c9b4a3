package stock

// Upsert as the original has it: it looks up by the identity only, so that a record with a key of its own that is there already is
// refused, in words that do not say why.

import (
	"encoding/json"
	"net/http"
)

type upserted struct {
	row       object
	operation string
	failure   *failure
}

func (d *Databeacon) upsert(db asker, e *endpoint, t *table, record object) (u upserted) {
	u.operation = "Create"
	if id, given := record.get(idColumn(e)); given && leading(id.text()) > 0 {
		before, f := d.current(db, e, t, record)
		if f != nil {
			u.failure = f
			return u
		}
		if before != nil {
			u.operation = "Update"
			u.row, u.failure = d.update(db, e, t, record)
			return u
		}
	}
	u.row, u.failure = d.create(db, e, t, record)
	return u
}

func (d *Databeacon) upsert1(e *endpoint, body value) (answer, cost) {
	if !isRecord(body) {
		return fail(http.StatusInternalServerError, "Record upsert failure - a valid record is required.").answer(), nothing
	}
	db, t, f := d.target(e)
	if f != nil {
		return f.answer(), single
	}
	u := d.upsert(db.sql, e, t, body.members())
	if u.failure != nil {
		return fail(http.StatusInternalServerError, "Record upsert unknown failure - no record back from Upsert operation.").answer(), single
	}
	return done(u.row.json()), single
}

// upsertEach upserts a list, one after the other.
func (d *Databeacon) upsertEach(e *endpoint, body value) (all []upserted, records []value, took cost, a *answer) {
	if !body.isArray() {
		refusal := fail(http.StatusInternalServerError, "Record bulk upsert failure - a valid array of records is required.").answer()
		return nil, nil, nothing, &refusal
	}
	db, t, f := d.target(e)
	if f != nil {
		refusal := f.answer()
		return nil, nil, request, &refusal
	}
	took = request
	for _, record := range body.items() {
		u := d.upsert(db.sql, e, t, record.members())
		all, records, took = append(all, u), append(records, record), took+createdRow
	}
	return all, records, took, nil
}

// tally is the counts, as headers too.
func tally(all []upserted) (counts, headers object) {
	good := 0
	for _, u := range all {
		good += bit(u.failure == nil)
	}
	counts = object{{"Total", of(len(all))}, {"Succeeded", of(good)}, {"Errored", of(len(all) - good)}}
	for _, m := range counts {
		name := map[string]string{"Total": "total", "Succeeded": "succeeded", "Errored": "errored"}[m.name]
		headers = append(headers, member{"x-meadow-upsert-" + name, m.value})
	}
	return counts, headers
}

func (d *Databeacon) upsertMany(e *endpoint, body value) (answer, cost) {
	all, _, took, refusal := d.upsertEach(e, body)
	if refusal != nil {
		return *refusal, took
	}
	items := []json.RawMessage{}
	for _, u := range all {
		if u.failure == nil {
			items = append(items, lite(e, u.row, nil).json())
		}
	}
	a := done(array(items))
	_, a.headers = tally(all)
	return a, took
}

func (d *Databeacon) upsertDetailed(e *endpoint, body value) (answer, cost) {
	all, records, took, refusal := d.upsertEach(e, body)
	if refusal != nil {
		return *refusal, took
	}
	good, bad := []json.RawMessage{}, []json.RawMessage{}
	for i, u := range all {
		if u.failure == nil {
			good = append(good, u.row.json())
			continue
		}
		bad = append(bad, object{{"Record", records[i]}, {"Operation", of(u.operation)}, {"Error", of(u.failure.text)}}.json())
	}
	counts, headers := tally(all)
	a := done(object{
		{"Counts", value{raw: counts.json()}}, {"UpsertedRecords", value{raw: array(good)}}, {"ErrorRecords", value{raw: array(bad)}},
	}.json())
	a.headers = headers
	return a, took
}
