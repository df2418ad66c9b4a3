package sqlite

import (
	"database/sql"

	"holdfast/ports"
)

// pager fills one page and stops where it is full.
type pager struct {
	page  ports.Page
	limit int
	bytes int
	last  ports.Cursor
}

const (
	defaultLimit = 500
	maxLimit     = 5000
	rowOverhead  = 200 // of a row on its way, beside its body and key
)

func newPager(limit int) *pager {
	if limit <= 0 {
		limit = defaultLimit
	}
	return &pager{limit: min(limit, maxLimit)}
}

// add takes a row, or says that the page is full and where the next one begins.
func (p *pager) add(row ports.Row, at ports.Cursor) (full bool) {
	size := len(row.Body) + len(row.Key) + rowOverhead
	if n := len(p.page.Rows); n == p.limit || n > 0 && p.bytes+size > ports.MaxPageBytes {
		p.stop()
		return true
	}
	p.page.Rows = append(p.page.Rows, row)
	p.bytes += size
	p.last = at
	return false
}

func (p *pager) stop() {
	next := p.last
	p.page.Next = &next
}

// scanner reads rows of a layout's list, behind some leading columns of the query's own.
type scanner struct {
	layout *layout
	lean   bool
	lead   int
	values []any
	into   []any
}

func newScanner(l *layout, lean bool, lead int) *scanner {
	n := len(l.table.Members)
	switch {
	case lean:
		n = len(l.slim)
	case l.whole >= 0:
		n = 2
	}
	s := &scanner{layout: l, lean: lean, lead: lead, values: make([]any, lead+n+l.told)}
	for i := range s.values {
		s.into = append(s.into, &s.values[i])
	}
	return s
}

func (s *scanner) columns() string {
	if s.lean {
		return s.layout.lean
	}
	return s.layout.list
}

func (s *scanner) text(lead int) string {
	text, _ := s.values[lead].(string)
	return text
}

// leadColumns stand before the record's in a list: the two of the order, and whether a databeacon deleted the row.
const leadColumns = 3

func (s *scanner) deleted() bool {
	n, _ := s.values[leadColumns-1].(int64)
	return n != 0
}

// scan gives the present row. The values of the leading columns stand in s until the next.
func (s *scanner) scan(rows *sql.Rows) (ports.Row, error) {
	if err := rows.Scan(s.into...); err != nil {
		return ports.Row{}, err
	}
	l, values := s.layout, s.values[s.lead:]
	if !s.lean {
		return l.restore(values)
	}
	full := make([]any, l.members+l.told)
	for i, at := range l.slim {
		full[at] = values[i]
	}
	copy(full[l.members:], values[len(l.slim):])
	var held *ports.Held
	var err error
	if l.whole >= 0 {
		held = l.projected(full)
	} else if held, err = l.held(full); err == nil {
		for _, c := range l.table.Members {
			if c.Type == ports.Opaque {
				held.Record.Drop(c.Name)
			}
		}
	}
	if err != nil {
		return ports.Row{}, err
	}
	return l.row(full, held), nil
}

// projected is a manifest as its columns show it: without the members whose column is empty, since those may be members
// that nobody gave.
func (l *layout) projected(values []any) *ports.Held {
	h := l.stamped(values)
	h.Record = ports.NewRecord(l.table)
	for at := range l.table.Members {
		c := &l.table.Members[at]
		if v := values[at]; v != nil && v != c.Zero() {
			h.Record.Cols[at] = c.Append(nil, v)
		}
	}
	return h
}

// restore gives the whole row of values as SELECT list gives them.
func (l *layout) restore(values []any) (ports.Row, error) {
	held, err := l.held(values)
	if err != nil {
		return ports.Row{}, err
	}
	return l.row(values, held), nil
}

func (l *layout) row(values []any, h *ports.Held) ports.Row {
	r := ports.Row{Kind: l.table.Kind, Body: h.Record.JSON(), First: h.First, Change: h.Change}
	at := func(name string) any { return values[l.table.Member(name)] }
	if l.whole >= 0 {
		r.Key, _ = values[0].(string) // Hash is the first column, with and without bodies
		return r
	}
	r.Key, _ = at(l.table.Key).(string)
	switch l {
	case events:
		r.GUID, _ = at("EventGUID").(string)
	case attempts:
		r.Number, _ = at("AttemptNumber").(int64)
	}
	return r
}
