package sqlite

import (
	"context"
	"errors"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// Events lists the events of an item in OrderKey order; see ports.EventReader.
func (s *Store) Events(ctx context.Context, q ports.EventQuery) (ports.Page, error) {
	const op = "sqlite: list events"
	f, err := s.open(ctx)
	if err != nil {
		return ports.Page{}, err
	}
	l := listOf(tables.EventList(&q))
	page, err := straight(ctx, f.readers, newScanner(events, !q.Bodies, leadColumns), l, tables.NewPager(q.Limit))
	return page, s.readFault(ctx, op, err)
}

// Attempts lists the attempts of an item by number; see ports.AttemptReader.
func (s *Store) Attempts(ctx context.Context, q ports.AttemptQuery) (ports.Page, error) {
	const op = "sqlite: list attempts"
	f, err := s.open(ctx)
	if err != nil {
		return ports.Page{}, err
	}
	from := int64(-1 << 63)
	if q.After != nil {
		from = q.After.Num
	}
	page, err := f.attempts(ctx, q.Key, from, q.After != nil, tables.NewPager(q.Limit))
	return page, s.readFault(ctx, op, err)
}

// attempts adds an item's attempts to a page, from a number on, or after it.
func (f *file) attempts(ctx context.Context, key string, from int64, beyond bool, p *tables.Pager) (page ports.Page, err error) {
	sc := newScanner(attempts, false, 0)
	text := `SELECT ` + sc.columns() + ` FROM "UVQueueWorkItemAttempt" WHERE "WorkItemHash" = ? AND "AttemptNumber" >= ? AND "Deleted" = 0 ORDER BY "AttemptNumber"`
	rows, err := f.readers.QueryContext(ctx, text, key, from)
	if err != nil {
		return ports.Page{}, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		row, err := sc.scan(rows)
		if err != nil {
			return ports.Page{}, err
		}
		if beyond && row.Number == from {
			continue
		}
		if p.Add(row, ports.Cursor{Sort: key, Key: key, Kind: ports.KindAttempt, Num: row.Number}) {
			break
		}
	}
	return p.Page, rows.Err()
}
