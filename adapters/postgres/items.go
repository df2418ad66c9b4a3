package postgres

import (
	"context"
	"strconv"
	"strings"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// Item gives one work item; see ports.ItemReader.
func (b *Backend) Item(ctx context.Context, key string) (ports.Row, error) {
	return b.one(ctx, items, key)
}

// one reads a record by its key.
func (b *Backend) one(ctx context.Context, l *layout, key string) (ports.Row, error) {
	op := "postgres: read " + string(l.Table.Kind)
	d, err := b.open(ctx)
	if err != nil {
		return ports.Row{}, err
	}
	found := false
	var row ports.Row
	if holdable(key) {
		row, err = view(ctx, d, op, func(ctx context.Context, r *reading) (row ports.Row, err error) {
			err = r.query(ctx, `SELECT `+l.List+` FROM "`+l.Table.Name+`" WHERE "`+l.Table.Key+`" = $1 AND "Deleted" = 0`, func(values []any) error {
				found = true
				row, err = l.Restore(values, false)
				return err
			}, key)
			return row, err
		})
	}
	if err == nil && !found {
		err = ports.Errorf(ports.NotFound, op, "there is none with this key")
	}
	return row, err
}

// Items lists work items; see ports.ItemReader.
func (b *Backend) Items(ctx context.Context, q ports.ItemQuery) (ports.Page, error) {
	const op = "postgres: list work items"
	d, err := b.open(ctx)
	if err != nil {
		return ports.Page{}, err
	}
	list := listOf(tables.ItemList(&q))
	return view(ctx, d, op, func(ctx context.Context, r *reading) (ports.Page, error) {
		l := *list // it moves on
		if q.OrderBy != "" {
			return l.sorted(ctx, r, &q)
		}
		return l.fill(ctx, r, tables.NewPager(q.Limit), !q.Bodies, b.searchLimit)
	})
}

// sorted gives one page in the order of any column, without a cursor: the column's values may change while one pages. What
// is sorted is the column and where the rows are, so that it needs little memory.
func (l *listing) sorted(ctx context.Context, r *reading, q *ports.ItemQuery) (ports.Page, error) {
	column, err := l.OrderedBy(q.OrderBy)
	if err != nil {
		return ports.Page{}, err
	}
	p := tables.NewPager(q.Limit)
	if l.none {
		return p.Page, nil
	}
	l.After = nil
	m := &marks{}
	where := append(l.window(m), `"Deleted" = 0`)
	if l.Column != "" {
		where = append(where, `"`+l.Column+`" = ANY(`+m.of(l.Values)+`::text[])`)
	}
	for _, t := range l.tests {
		where = append(where, t.before+m.of(t.arg)+t.behind)
	}
	direction, empty := " ASC", " NULLS FIRST"
	if q.Desc {
		direction, empty = " DESC", " NULLS LAST"
	}
	text := `SELECT "` + l.layout.id + `", ` + l.layout.texts(!q.Bodies) + ` FROM "` + l.Table.Name + `" WHERE ` + strings.Join(where, " AND ") +
		` ORDER BY "` + column + `"` + direction + empty + `, "` + l.Key + `"` + direction + ` LIMIT ` + strconv.Itoa(p.Limit)
	var hits []hit
	err = r.query(ctx, text, func(row []any) error {
		h := hit{layout: l.layout}
		h.id, _ = row[0].(int64)
		h.size, _ = row[1].(int64)
		hits = append(hits, h)
		return nil
	}, m.args...)
	if err == nil {
		_, err = l.take(ctx, r, p, hits, !q.Bodies)
	}
	p.Page.Next = nil
	return p.Page, err
}
