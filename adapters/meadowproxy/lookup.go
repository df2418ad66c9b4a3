package meadowproxy

import (
	"context"

	"holdfast/ports"
)

// Which of the records of a Put are there already, and under which identity: asked for many at a time.

// Limits of one question.
const (
	mostKeys    = 100
	alikeAtMost = 4 // rows of other keys that an engine may take for each of them
)

// target is one record of a Put.
type target struct {
	layout *layout
	row    *ports.Row // its last state in the batch
	rows   []int      // the rows of all of its states
	sent   *sent      // nil when it is to go
	place  place
	forms  []string // under which its key may stand
	form   int      // the one for a new row

	looked bool
	found  *shown // the row that was seen; nil when only its identity is known, or none is there
	id     int64

	failed  int  // how often a write of it failed
	taken   bool // the database said that another row has its key
	err     error
	settled bool
}

func (t *target) settle(err error) { t.err, t.settled = err, true }

// again has it looked up anew.
func (t *target) again(w *way) {
	t.looked, t.found, t.id = false, nil, 0
	w.known.drop(t.place)
}

func (t *target) is(s *shown) bool {
	if t.layout.natural == "EventGUID" {
		return s.guid == t.row.GUID
	}
	return s.key == t.row.Key && (t.layout.number == "" || s.number == t.row.Number)
}

// seen lists the columns that a look-up needs.
func (w *way) seen(l *layout) []string {
	columns := []string{l.natural}
	if l.natural != l.table.Key {
		columns = append(columns, l.table.Key)
	}
	if l.number != "" {
		columns = append(columns, l.number)
	}
	columns = append(columns, "Deleted", "ChangeHost", "ChangeSeq")
	if w.engine != engineSQLite { // else keys stand as they are, and nothing is in parts
		columns = append(columns, "Extra")
	}
	return columns
}

// isLike is is for what a write answers: nobody can read that again, and there is no other row that it could show.
func (t *target) isLike(s *shown) bool {
	return t.is(s) || alike(s.key, t.row.Key) && alike(s.guid, t.row.GUID) && (t.layout.number == "" || s.number == t.row.Number)
}

// lookup finds the identities of targets of one table, the deleted ones too.
func (w *way) lookup(ctx context.Context, class ports.WorkClass, targets []*target) error {
	var listed []*target
	for _, t := range targets {
		if id, ok := w.known.identity(t.place); ok && t.failed == 0 {
			t.looked, t.id = true, id
			continue
		}
		if plainForms(t.forms) {
			listed = append(listed, t)
			continue
		}
		if err := w.lookupBy(ctx, class, t); err != nil {
			return err
		}
	}
	for len(listed) > 0 {
		n, size := 0, 0
		for ; n < len(listed) && n < mostKeys; n++ {
			for _, form := range listed[n].forms {
				size += len(escaped(form)) + len("FBVOR~WorkItemHash~EQ~~")
			}
			if n > 0 && size > longestPath-400 {
				break
			}
		}
		if err := w.lookupList(ctx, class, listed[:n]); err != nil {
			return err
		}
		listed = listed[n:]
	}
	return nil
}

func plainForms(forms []string) bool {
	for _, form := range forms {
		if !sayable(form) {
			return false
		}
	}
	return true
}

func (w *way) lookupList(ctx context.Context, class ports.WorkClass, targets []*target) error {
	l := targets[0].layout
	a := ask{class: class, layout: l, columns: w.seen(l)}
	var forms []string
	var numbers []int64
	mentioned, counted := map[string]bool{}, map[int64]bool{}
	for _, t := range targets {
		t.looked = true
		for _, form := range t.forms {
			if !mentioned[form] {
				forms = append(forms, form)
			}
			mentioned[form] = true
		}
		if l.number != "" && !counted[t.row.Number] {
			numbers = append(numbers, t.row.Number)
		}
		counted[t.row.Number] = true
	}
	a.filter.any(l.natural, forms)
	if len(numbers) > 0 {
		a.filter.numbers(l.number, numbers)
	}
	a.filter.deletedToo()
	a.filter.by(false, l.identity)
	a.limit = len(forms) * max(1, len(numbers)) * alikeAtMost
	return w.each(ctx, &a, func(s *shown) { match(targets, s) })
}

// match gives a row to the record whose it is.
func match(targets []*target, s *shown) {
	for _, t := range targets {
		if t.is(s) {
			t.found, t.id = s, s.id
		}
	}
}

// lookupBy finds one whose key no filter can say. That way does not show deleted rows; they are only searched when the database
// said that the key is taken.
func (w *way) lookupBy(ctx context.Context, class ports.WorkClass, t *target) error {
	t.looked = true
	for _, form := range t.forms {
		a := ask{class: class, layout: t.layout, column: t.layout.natural, by: form, limit: manyRows}
		if sayable(form) {
			a = ask{class: class, layout: t.layout, columns: w.seen(t.layout), limit: manyRows}
			a.filter.is(t.layout.natural, form)
			a.filter.deletedToo()
			a.filter.by(false, t.layout.identity)
		}
		if err := w.each(ctx, &a, func(s *shown) { match([]*target{t}, s) }); err != nil {
			return err
		}
	}
	if t.id > 0 || t.failed == 0 {
		return nil
	}
	a := ask{class: class, layout: t.layout, columns: w.seen(t.layout), limit: manyRows}
	a.filter.is(t.layout.natural, t.forms[0])
	a.filter.onlyDeleted()
	a.filter.by(false, t.layout.identity)
	return w.each(ctx, &a, func(s *shown) { match([]*target{t}, s) })
}

// manyRows is how many rows are asked for at once where nobody knows how many there are.
const manyRows = 1000

// each asks for all rows, page by page.
func (w *way) each(ctx context.Context, a *ask, visit func(*shown)) error {
	for {
		rows, err := w.rows(ctx, a)
		if err != nil {
			return err
		}
		for _, s := range rows {
			visit(s)
		}
		if a.limit <= 0 || len(rows) < a.limit {
			return nil
		}
		a.begin += len(rows)
	}
}
