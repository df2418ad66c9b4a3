package postgres

import (
	"context"
	"strconv"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// Events lists the events of an item in OrderKey order; see ports.EventReader.
func (b *Backend) Events(ctx context.Context, q ports.EventQuery) (ports.Page, error) {
	d, err := b.open(ctx)
	if err != nil {
		return ports.Page{}, err
	}
	list := listOf(tables.EventList(&q))
	return view(ctx, d, "postgres: list events", func(ctx context.Context, r *reading) (ports.Page, error) {
		l := *list // it moves on
		return l.fill(ctx, r, tables.NewPager(q.Limit), !q.Bodies, b.searchLimit)
	})
}

// Attempts lists the attempts of an item by number; see ports.AttemptReader.
func (b *Backend) Attempts(ctx context.Context, q ports.AttemptQuery) (ports.Page, error) {
	d, err := b.open(ctx)
	if err != nil || !holdable(q.Key) {
		return ports.Page{}, err
	}
	return view(ctx, d, "postgres: list attempts", func(ctx context.Context, r *reading) (ports.Page, error) {
		m, p := &marks{}, tables.NewPager(q.Limit)
		where := `"WorkItemHash" = ` + m.of(q.Key)
		if q.After != nil {
			where += ` AND "AttemptNumber" > ` + m.of(q.After.Num)
		}
		text := `SELECT "AttemptNumber", "` + attempts.id + `", ` + attempts.texts(false) + ` FROM "UVQueueWorkItemAttempt" WHERE ` + where +
			` AND "Deleted" = 0 ORDER BY "AttemptNumber" LIMIT ` + strconv.Itoa(p.Limit+1)
		var hits []hit
		err := r.query(ctx, text, func(row []any) error {
			h := hit{at: ports.Cursor{Sort: q.Key, Key: q.Key, Kind: ports.KindAttempt}, layout: attempts}
			h.at.Num, _ = row[0].(int64)
			h.id, _ = row[1].(int64)
			h.size, _ = row[2].(int64)
			hits = append(hits, h)
			return nil
		}, m.args...)
		if err == nil {
			_, err = (&listing{layout: attempts}).take(ctx, r, p, hits, false)
		}
		return p.Page, err
	})
}
