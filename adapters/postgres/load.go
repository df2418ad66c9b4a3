package postgres

import (
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Rows are read and locked by one statement a table, in the order of their keys, which is the same for every host. So two hosts that
// write the same records wait for each other and never both.

// loadText is the statement that reads and locks rows by an array of keys, or of keys and numbers.
func (l *layout) loadText() string {
	columns := `"` + l.id + `", "Deleted", ` + l.List
	if l.Marks >= 0 {
		columns += `, "` + l.Names[l.Marks] + `"`
	}
	by := `"` + l.Table.Key + `"`
	switch l {
	case attempts:
		columns = `t."` + strings.ReplaceAll(strings.TrimPrefix(columns, `"`), `, "`, `, t."`)
		return `SELECT ` + columns + ` FROM unnest($1::text[], $2::bigint[]) AS v(k, n) JOIN "` + l.Table.Name + `" AS t
			ON t."WorkItemHash" = v.k AND t."AttemptNumber" = v.n ORDER BY t."WorkItemHash", t."AttemptNumber" FOR UPDATE OF t`
	case events:
		by = `"EventGUID"`
	}
	return `SELECT ` + columns + ` FROM "` + l.Table.Name + `" WHERE ` + by + ` = ANY($1::text[]) ORDER BY ` + by + ` FOR UPDATE`
}

var loadTexts = func() map[*layout]string {
	texts := map[*layout]string{}
	for _, l := range layouts {
		texts[l] = l.loadText()
	}
	return texts
}()

const loadTombs = `SELECT t."Kind", t."Key" FROM unnest($1::text[], $2::text[]) AS v(k, n) JOIN "UVGone" AS t ON t."Kind" = v.k AND t."Key" = v.n`

// queueLoads adds the statements that read what was asked for.
func (f *fold) queueLoads(b *pgx.Batch) {
	for _, l := range layouts {
		var keys []string
		var numbers []int64
		for _, r := range f.asked {
			if r.layout == l {
				keys, numbers = append(keys, r.key), append(numbers, r.number)
			}
		}
		if len(keys) == 0 {
			continue
		}
		args := []any{keys}
		if l == attempts {
			args = append(args, numbers)
		}
		rowsOf(b.Queue(loadTexts[l], args...), func(row []any) error { return f.took(l, row) })
	}
	if len(f.unread) > 0 {
		var kinds, keys []string
		for _, g := range f.unread {
			kinds, keys = append(kinds, string(g.kind)), append(keys, g.key)
		}
		rowsOf(b.Queue(loadTombs, kinds, keys), func(row []any) error {
			g := graveOf(row)
			f.tombs[g] = true
			return nil
		})
	}
	f.queueEarly(b)
	f.asked, f.unread = f.asked[:0], f.unread[:0]
}

// took takes a row that was read.
func (f *fold) took(l *layout, values []any) error {
	id, _ := values[0].(int64)
	hidden := false
	switch v := values[1].(type) {
	case int64:
		hidden = v != 0
	case bool:
		hidden = v
	}
	values = values[2:]
	stamps := ""
	if l.Marks >= 0 {
		stamps, _ = values[len(values)-1].(string)
		values = values[:len(values)-1]
	}
	held, err := l.Held(slices.Clone(values))
	if err != nil {
		return err
	}
	held.Stamps = stamps
	told := l.Row(values, held)
	r := f.rows[placeOf(told.Kind, told.Key, told.GUID, told.Number)]
	if r == nil {
		return nil // a key that compares equal to ours and is another
	}
	r.id, r.owner = id, told.Key
	if hidden {
		r.hidden = true
		return nil
	}
	r.base, r.next = held, held
	return nil
}

// loaded reads what early writes that wait may touch, once they are known.
func (f *fold) loaded() error {
	for _, list := range f.early.waiting {
		for i := range list {
			f.want(&list[i].entry)
		}
	}
	if len(f.asked)+len(f.unread)+len(f.early.asked) == 0 {
		return nil
	}
	return f.load()
}

// load reads what was asked for in a round trip of its own.
func (f *fold) load() error {
	b := &pgx.Batch{}
	f.queueLoads(b)
	return f.t.send(b)
}
