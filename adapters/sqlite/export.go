package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// Export walks a family in the order of natural keys; see ports.Exporter. A cursor's Sort is the key that the walk is in,
// and its Kind, with Key (the GUID of an event) or Num, the record of it that came last.
func (s *Store) Export(ctx context.Context, q ports.ExportQuery) (ports.Page, error) {
	const op = "sqlite: export"
	f, err := s.open(ctx)
	if err != nil {
		return ports.Page{}, err
	}
	p := tables.NewPager(q.Limit)
	if q.Family == ports.Manifest {
		err = f.exportManifests(ctx, q.After, p)
	} else {
		err = f.exportQueue(ctx, q.After, p)
	}
	return p.Page, s.readFault(ctx, op, err)
}

func (f *file) exportManifests(ctx context.Context, after *ports.Cursor, p *tables.Pager) (err error) {
	from := ""
	if after != nil {
		from = after.Sort
	}
	sc := newScanner(manifests, false, 0)
	rows, err := f.readers.QueryContext(ctx, `SELECT `+sc.columns()+` FROM "UVManifest" WHERE "Hash" > ? AND "Deleted" = 0 ORDER BY "Hash"`, from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		row, err := sc.scan(rows)
		if err != nil {
			return err
		}
		if p.Add(row, ports.Cursor{Sort: row.Key, Key: row.Key, Kind: ports.KindManifest}) {
			break
		}
	}
	return rows.Err()
}

func (f *file) exportQueue(ctx context.Context, after *ports.Cursor, p *tables.Pager) error {
	key := ""
	if after != nil {
		key = after.Sort
		if full, err := f.exportKey(ctx, key, after, p); full || err != nil {
			return err
		}
	}
	for {
		next, found, err := f.nextKey(ctx, key)
		if err != nil || !found {
			return err
		}
		key = next
		if full, err := f.exportKey(ctx, key, nil, p); full || err != nil {
			return err
		}
	}
}

// nextKey is the smallest key behind another of which there is any record.
func (f *file) nextKey(ctx context.Context, key string) (next string, found bool, err error) {
	var least sql.NullString
	err = f.readers.QueryRowContext(ctx, `SELECT min(k) FROM (
		SELECT min("WorkItemHash") AS k FROM "UVQueueWorkItem" WHERE "WorkItemHash" > ?1
		UNION ALL SELECT min("WorkItemHash") FROM "UVQueueWorkItemEvent" WHERE "WorkItemHash" > ?1
		UNION ALL SELECT min("WorkItemHash") FROM "UVQueueWorkItemAttempt" WHERE "WorkItemHash" > ?1)`, key).Scan(&least)
	return least.String, least.Valid, err
}

// exportKey adds what there is of a key behind a record of it (nil: from its beginning), and says whether the page is full.
func (f *file) exportKey(ctx context.Context, key string, after *ports.Cursor, p *tables.Pager) (full bool, err error) {
	done := ports.Kind("")
	if after != nil {
		done = after.Kind
	}
	if done == "" {
		row, found, err := f.fetch(ctx, newScanner(items, false, 0), `"WorkItemHash" = ?`, key)
		if err != nil {
			return false, err
		}
		if found && p.Add(row, ports.Cursor{Sort: key, Key: key, Kind: ports.KindItem}) {
			return true, nil
		}
	}
	if done == "" || done == ports.KindItem || done == ports.KindEvent {
		var from *ports.Cursor
		if done == ports.KindEvent {
			order, found, err := f.orderOf(ctx, after.Key)
			if err != nil {
				return false, err
			}
			if found { // else the event was pruned, and its key with it
				from = &ports.Cursor{Sort: order, Key: after.Key}
			}
		}
		if full, err := f.exportEvents(ctx, key, from, p); full || err != nil {
			return full, err
		}
	}
	number := int64(-1 << 63)
	if done == ports.KindAttempt {
		number = after.Num
	}
	page, err := f.attempts(ctx, key, number, done == ports.KindAttempt, p)
	return page.Next != nil, err
}

func (f *file) orderOf(ctx context.Context, guid string) (order string, found bool, err error) {
	err = f.readers.QueryRowContext(ctx, `SELECT "OrderKey" FROM "UVQueueWorkItemEvent" WHERE "EventGUID" = ?`, guid).Scan(&order)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return order, err == nil, err
}

func (f *file) exportEvents(ctx context.Context, key string, from *ports.Cursor, p *tables.Pager) (full bool, err error) {
	l := listOf(tables.EventList(&ports.EventQuery{Key: key, After: from}))
	sc := newScanner(events, false, leadColumns)
	text, args := l.sql(`"Deleted", ` + sc.columns())
	rows, err := f.readers.QueryContext(ctx, text, args...)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		row, err := sc.scan(rows)
		if err != nil {
			return false, err
		}
		if !sc.deleted() && p.Add(row, ports.Cursor{Sort: key, Key: row.GUID, Kind: ports.KindEvent}) {
			return true, nil
		}
	}
	return false, rows.Err()
}
