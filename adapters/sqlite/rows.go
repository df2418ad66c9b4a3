package sqlite

import (
	"database/sql"

	"holdfast/ports"
)

// scanner reads rows of a layout's list, behind some leading columns of the query's own.
type scanner struct {
	layout *layout
	lean   bool
	lead   int
	values []any
	into   []any
}

func newScanner(l *layout, lean bool, lead int) *scanner {
	s := &scanner{layout: l, lean: lean, lead: lead, values: make([]any, lead+l.Width(lean))}
	for i := range s.values {
		s.into = append(s.into, &s.values[i])
	}
	return s
}

func (s *scanner) columns() string { return s.layout.Columns(s.lean) }

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
	return s.layout.Restore(s.values[s.lead:], s.lean)
}
