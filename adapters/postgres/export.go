package postgres

import (
	"context"
	"strconv"
	"strings"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// Export walks a family in the order of natural keys; see ports.Exporter. A cursor's Sort is the key that the walk is in,
// and its Kind, with Key (the GUID of an event) or Num, the record of it that came last.
func (b *Backend) Export(ctx context.Context, q ports.ExportQuery) (ports.Page, error) {
	d, err := b.open(ctx)
	if err != nil {
		return ports.Page{}, err
	}
	return view(ctx, d, "postgres: export", func(ctx context.Context, r *reading) (ports.Page, error) {
		p := tables.NewPager(q.Limit)
		hits, err := r.exported(ctx, &q, p.Limit+1)
		if err == nil {
			_, err = (&listing{}).take(ctx, r, p, hits, false)
		}
		return p.Page, err
	})
}

// exported finds the next records of a walk.
func (r *reading) exported(ctx context.Context, q *ports.ExportQuery, few int) ([]hit, error) {
	m := &marks{}
	var parts []string
	for _, l := range ofFamilyLayouts(q.Family) {
		key := `"` + l.Table.Key + `"`
		order, columns := key, `'' AS o, '' AS g, 0::bigint AS n`
		switch l {
		case events:
			order, columns = key+`, "OrderKey", "EventGUID"`, `"OrderKey", "EventGUID", 0::bigint`
		case attempts:
			order, columns = key+`, "AttemptNumber"`, `'', '', "AttemptNumber"`
		}
		where := `"Deleted" = 0`
		if q.After != nil {
			more, err := r.behind(ctx, m, l, q.After)
			if err != nil {
				return nil, err
			}
			where = more + " AND " + where
		}
		parts = append(parts, `(SELECT `+strconv.Itoa(len(parts))+` AS rank, `+key+` AS k, `+columns+
			`, "`+l.id+`" AS id, `+l.texts(false)+` AS size FROM "`+l.Table.Name+`" WHERE `+where+` ORDER BY `+order+` LIMIT `+strconv.Itoa(few)+`)`)
	}
	text := `SELECT rank, k, g, n, id, size FROM (` + strings.Join(parts, " UNION ALL ") + `) AS each ORDER BY k, rank, o, g, n LIMIT ` + strconv.Itoa(few)
	kinds := ofFamilyLayouts(q.Family)
	var hits []hit
	err := r.query(ctx, text, func(row []any) error {
		rank, _ := row[0].(int64)
		h := hit{layout: kinds[rank]}
		h.at.Kind = h.layout.Table.Kind
		h.at.Sort, _ = row[1].(string)
		h.at.Key = h.at.Sort
		if h.layout == events {
			h.at.Key, _ = row[2].(string)
		}
		h.at.Num, _ = row[3].(int64)
		h.id, _ = row[4].(int64)
		h.size, _ = row[5].(int64)
		hits = append(hits, h)
		return nil
	}, m.args...)
	return hits, err
}

// rankOf is the place of a kind among the records of one key.
func rankOf(k ports.Kind) int {
	for i, kind := range ports.Kinds {
		if kind == k {
			return i
		}
	}
	return -1
}

// behind is the condition for the rows of a table behind a record.
func (r *reading) behind(ctx context.Context, m *marks, l *layout, after *ports.Cursor) (string, error) {
	key, own := `"`+l.Table.Key+`"`, rankOf(l.Table.Kind)
	from := m.of(bound(after.Sort))
	switch done := rankOf(after.Kind); {
	case own > done:
		return key + " >= " + from, nil
	case own < done:
		return key + " > " + from, nil
	}
	switch l {
	case events:
		order, found := "", false
		err := r.query(ctx, `SELECT "OrderKey" FROM "UVQueueWorkItemEvent" WHERE "EventGUID" = $1`, func(row []any) error {
			order, found = row[0].(string)
			return nil
		}, bound(after.Key))
		if err != nil || !found { // the event was pruned, and its key with it
			return key + " >= " + from, err
		}
		return `(` + key + `, "OrderKey", "EventGUID") > (` + from + `, ` + m.of(order) + `, ` + m.of(bound(after.Key)) + `)`, nil
	case attempts:
		return `(` + key + `, "AttemptNumber") > (` + from + `, ` + m.of(after.Num) + `)`, nil
	}
	return key + " > " + from, nil
}
