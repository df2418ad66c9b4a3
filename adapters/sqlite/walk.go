package sqlite

import (
	"context"
	"errors"
	"strings"
	"time"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// walk fills a page along an index. Where rows must be tested it looks at them for a bounded time, and then says how far
// it came.
func (s *Store) walk(ctx context.Context, f *file, sc *scanner, l *listing, p *tables.Pager) (page ports.Page, err error) {
	conn, err := f.readers.Conn(ctx) // both statements below see one snapshot
	if err != nil {
		return ports.Page{}, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if len(l.tests) == 0 {
		return straight(ctx, conn, sc, l, p)
	}
	text, args := l.sql(`rowid, coalesce(`+strings.Join(l.tests, " AND ")+`, 0)`, l.testArgs...)
	rows, err := conn.QueryContext(ctx, text, args...)
	if err != nil {
		return ports.Page{}, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	one := newScanner(l.layout, sc.lean, 0)
	until := time.Now().Add(s.searchLimit)
	for seen := 1; rows.Next(); seen++ {
		var at ports.Cursor
		var id int64
		var match bool
		if err := rows.Scan(&at.Sort, &at.Key, &id, &match); err != nil {
			return ports.Page{}, err
		}
		if match {
			row, found, err := fetch(ctx, conn, one, "rowid = ?", id)
			if err != nil {
				return ports.Page{}, err
			}
			if found && p.Add(row, at) {
				return p.Page, nil
			}
		}
		p.Last = at
		if seen%256 == 0 && time.Now().After(until) {
			p.Stop()
			p.Page.Partial = true
			return p.Page, nil
		}
	}
	return p.Page, rows.Err()
}

// straight reads the rows of a list as they come: all of them belong to it.
func straight(ctx context.Context, q querier, sc *scanner, l *listing, p *tables.Pager) (page ports.Page, err error) {
	text, args := l.sql(`"Deleted", ` + sc.columns())
	rows, err := q.QueryContext(ctx, text, args...)
	if err != nil {
		return ports.Page{}, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		row, err := sc.scan(rows)
		if err != nil {
			return ports.Page{}, err
		}
		if sc.deleted() {
			continue
		}
		if p.Add(row, ports.Cursor{Sort: sc.text(0), Key: sc.text(1)}) {
			break
		}
	}
	return p.Page, rows.Err()
}
