package conformance

import (
	"slices"
	"time"

	"holdfast/ports"
)

// decided is a row of the decision tables: what is written about the item "w" and the run "r", what each write is decided,
// and what is there afterwards. Nothing else may be there.
type decided struct {
	name string
	must string

	keeps  time.Duration // the retention in force; 0 keeps for ever
	writes []write

	item     string
	events   []string // in the order in which they came
	attempts []string // by number
	manifest string

	changed uint64 // Seq of the write that changed the record last; 0: it is not looked at
}

// write is an entry and what must be decided of it. With Refused the code and the field must fit too.
type write struct {
	entry ports.Entry
	want  ports.Outcome
	code  ports.Code
	field string
}

func stored(e ports.Entry) write        { return write{entry: e, want: ports.Stored} }
func present(e ports.Entry) write       { return write{entry: e, want: ports.AlreadyPresent} }
func absent(e ports.Entry) write        { return write{entry: e, want: ports.AlreadyAbsent} }
func missingFrom(e ports.Entry) write   { return write{entry: e, want: ports.Missing} }
func expired(e ports.Entry) write       { return write{entry: e, want: ports.Expired} }
func conflicting(e ports.Entry) write   { return write{e, ports.Refused, ports.Conflict, "EventGUID"} }
func upsertW(record string) ports.Entry { return upsertOf("w", record) }
func patchW(patch string) ports.Entry   { return patchOf("w", patch) }
func upsertR(record string) ports.Entry { return manifestOf("r", record) }

var decideCases = slices.Concat(
	casesOf("decide", itemRows), casesOf("decide", eventRows), casesOf("decide", attemptRows), casesOf("decide", manifestRows),
	casesOf("decide", againItemRows), casesOf("decide", againRows), decideStampCases,
)

func casesOf(topic string, rows []decided) (cases []Case) {
	for _, row := range rows {
		k := Case{Topic: topic, Name: row.name, Must: row.must, Needs: needLocal, Run: row.try}
		for _, w := range row.writes {
			if f := w.entry.Action.Family(); !slices.Contains(k.Of, f) {
				k.Of = append(k.Of, f)
			}
		}
		cases = append(cases, k)
	}
	return cases
}

func (row *decided) try(c *C) {
	l := &localStore{c: c, store: power[ports.LocalStore](c), host: hostA, retention: row.keeps}
	l.begin()
	for i, w := range row.writes {
		d := l.commit(w.entry)[0]
		what := d.Outcome
		switch {
		case what != w.want:
			c.Errorf("write %d, %s %s of %s, is decided %s, want %s", i+1, w.entry.Class, w.entry.Action, w.entry.Record, told([]ports.Decision{d}), w.want)
		case w.want == ports.Refused && (d.Err == nil || d.Err.Code != w.code || d.Err.Field != w.field):
			c.Errorf("write %d, %s %s of %s, is decided %s, want the code %s and the field %q", i+1, w.entry.Class, w.entry.Action, w.entry.Record, told([]ports.Decision{d}), w.code, w.field)
		}
	}
	rows := everyRow(c, l.store, "w", "r")
	for _, k := range ports.Kinds {
		want := row.want(k)
		got := slices.DeleteFunc(slices.Clone(rows), func(r ports.Row) bool { return r.Kind != k })
		if len(got) != len(want) {
			c.Errorf("there are %d records of kind %s, want %d", len(got), k, len(want))
			continue
		}
		for i := range want {
			if difference := bodyDifference(k, got[i].Body, []byte(want[i])); difference != "" {
				c.Errorf("%s %d: %s", k, i+1, difference)
			}
			if row.changed != 0 && got[i].Change.Seq != row.changed {
				c.Errorf("%s %d was changed last by write %d, want %d", k, i+1, got[i].Change.Seq, row.changed)
			}
		}
	}
}

// want is what must be there of a kind.
func (row *decided) want(k ports.Kind) []string {
	one := func(text string) []string {
		if text == "" {
			return nil
		}
		return []string{text}
	}
	switch k {
	case ports.KindItem:
		return one(row.item)
	case ports.KindEvent:
		return row.events
	case ports.KindAttempt:
		return row.attempts
	}
	return one(row.manifest)
}
