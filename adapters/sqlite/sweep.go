package sqlite

import (
	"context"
	"errors"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// look looks at finished records for those that ended before a key; see tables.Sweep. Reads are short so that they hold up no
// checkpoint.
func (f *file) look(ctx context.Context, st *tables.Stage, after ports.Cursor, before string, limit int) (s tables.Swept, err error) {
	s.After = after
	l := listOf(tables.Listing{Table: st.Table, Sort: st.Sort, Key: st.Table.Key, After: &after, Column: "Status", Values: []string{st.Status}})
	text, args := l.sql(tables.Quoted(st.Times))
	rows, err := f.readers.QueryContext(ctx, text+" LIMIT ?", append(args, tables.SweepPage)...)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	texts := make([]*string, len(st.Times))
	into := []any{&s.After.Sort, &s.After.Key}
	for i := range texts {
		into = append(into, &texts[i])
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return s, err
		}
		s.Seen++
		if !tables.Ended(before, given(texts)) {
			continue
		}
		s.Found = append(s.Found, tables.Victim{Kind: st.Table.Kind, Key: s.After.Key})
		if len(s.Found) == limit {
			break
		}
	}
	return s, rows.Err()
}

func given(texts []*string) (values []any) {
	for _, t := range texts {
		if t != nil {
			values = append(values, *t)
		}
	}
	return values
}
