package ports

import "strconv"

// What a row that is put says beside its record, for stores that keep records by columns.

// Identify gives a record the member that tells it from others of its key, where the caller left it to the row. The column of
// that member is how the record is found again, so the two must agree.
func (r *Row) Identify(record *Record) error {
	var name string
	var want any
	var text []byte
	switch r.Kind {
	case KindEvent:
		name, want, text = "EventGUID", r.GUID, AppendQuoted(nil, r.GUID)
	case KindAttempt:
		name, want, text = "AttemptNumber", r.Number, strconv.AppendInt(nil, r.Number, 10)
	default:
		return nil
	}
	given := record.Get(name)
	if given == nil {
		record.Set(name, text)
		return nil
	}
	if v, _ := record.Table.Members[record.Table.Member(name)].Project(given); v != want {
		return InField(Invalid, name, "is not that of the row that has the record")
	}
	return nil
}

// FirstOf is what the row's first write fixed, as far as its kind has it, so that reading gives back what was put.
func (r *Row) FirstOf(record *Record) First {
	first := r.First
	if r.Kind != KindItem {
		first.EnqueuedKey = ""
	}
	if r.Kind != KindEvent || record.Get("EmittedAt") != nil {
		first.EmittedAt = ""
	}
	return first
}
