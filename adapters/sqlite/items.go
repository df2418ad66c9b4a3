package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// Item gives one work item; see ports.ItemReader.
func (s *Store) Item(ctx context.Context, key string) (ports.Row, error) {
	return s.one(ctx, items, key)
}

// one reads a record by its key.
func (s *Store) one(ctx context.Context, l *layout, key string) (ports.Row, error) {
	op := "sqlite: read " + string(l.Table.Kind)
	f, err := s.open(ctx)
	if err != nil {
		return ports.Row{}, err
	}
	row, found, err := f.fetch(ctx, newScanner(l, false, 0), `"`+l.Table.Key+`" = ?`, key)
	if err != nil {
		return ports.Row{}, s.readFault(ctx, op, err)
	}
	if !found {
		return ports.Row{}, ports.Errorf(ports.NotFound, op, "there is none with this key")
	}
	return row, nil
}

// querier is a pool of connections, or one of them.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func (f *file) fetch(ctx context.Context, sc *scanner, where string, args ...any) (ports.Row, bool, error) {
	return fetch(ctx, f.readers, sc, where, args...)
}

// fetch reads at most one row.
func fetch(ctx context.Context, q querier, sc *scanner, where string, args ...any) (row ports.Row, found bool, err error) {
	rows, err := q.QueryContext(ctx, `SELECT `+sc.columns()+` FROM "`+sc.layout.Table.Name+`" WHERE `+where+` AND "Deleted" = 0`, args...)
	if err != nil {
		return ports.Row{}, false, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if !rows.Next() {
		return ports.Row{}, false, rows.Err()
	}
	row, err = sc.scan(rows)
	return row, err == nil, err
}

// Items lists work items; see ports.ItemReader.
func (s *Store) Items(ctx context.Context, q ports.ItemQuery) (ports.Page, error) {
	const op = "sqlite: list work items"
	f, err := s.open(ctx)
	if err != nil {
		return ports.Page{}, err
	}
	list := listOf(tables.ItemList(&q))
	if q.OrderBy != "" {
		page, err := sorted(ctx, f, newScanner(items, !q.Bodies, 0), list, &q)
		return page, s.readFault(ctx, op, err)
	}
	page, err := s.walk(ctx, f, newScanner(items, !q.Bodies, leadColumns), list, tables.NewPager(q.Limit))
	return page, s.readFault(ctx, op, err)
}

// sorted gives one page in the order of any column, without a cursor: the column's values may change while one pages. What
// is sorted is the column and the rowids alone, so that it needs little memory and no temporary file.
func sorted(ctx context.Context, f *file, sc *scanner, l *listing, query *ports.ItemQuery) (page ports.Page, err error) {
	column, err := l.OrderedBy(query.OrderBy)
	if err != nil {
		return ports.Page{}, err
	}
	l.After = nil
	where, args := l.where(0)
	if len(l.Values) > 1 {
		where, args = l.anyBranch()
	}
	where = append(append(where, l.tests...), `"Deleted" = 0`)
	args = append(args, l.testArgs...)
	direction := " ASC"
	if query.Desc {
		direction = " DESC"
	}
	p := tables.NewPager(query.Limit)
	conn, err := f.readers.Conn(ctx) // both statements below see one snapshot
	if err != nil {
		return ports.Page{}, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	rows, err := conn.QueryContext(ctx, `SELECT rowid FROM "`+l.Table.Name+`" WHERE `+strings.Join(where, " AND ")+
		` ORDER BY "`+column+`"`+direction+`, "`+l.Key+`"`+direction+` LIMIT ?`, append(args, p.Limit)...)
	if err != nil {
		return ports.Page{}, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return ports.Page{}, err
		}
		row, found, err := fetch(ctx, conn, sc, "rowid = ?", id)
		if err != nil {
			return ports.Page{}, err
		}
		if found && p.Add(row, ports.Cursor{}) {
			break
		}
	}
	p.Page.Next = nil
	return p.Page, rows.Err()
}
