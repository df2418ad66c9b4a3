package ports

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A column is a projection of a member. What the column's canonical rendering does not give back byte for byte (null, a
// value of another type, another spelling of a number or text, text with NUL or a lone surrogate) stands raw in Extra under
// $raw; $absent lists the columns that nobody gave; unknown members stand in Extra under their own names, with one more $ in
// front where the name begins with one. So every engine gives back exactly what was given, and its columns stay readable.

// Columns is a record as a table row: Values by place among the table's Members, each a string, int64, float64 or bool, and
// the text of Extra, "" when there is nothing to say there.
type Columns struct {
	Values []any
	Extra  string
}

// Project gives a record's row. first supplies what the first write fixed for a column that nobody gave.
func (r *Record) Project(first First) Columns {
	c := Columns{Values: make([]any, len(r.Cols))}
	var absent, raw []byte
	for at, value := range r.Cols {
		column := &r.Table.Members[at]
		if value == nil {
			c.Values[at] = r.derived(column, first)
			absent = appendItem(absent, column.Name)
			continue
		}
		v, exact := column.Project(value)
		c.Values[at] = v
		if !exact {
			if raw == nil {
				raw = append(raw, '{')
			}
			raw = appendMember(raw, column.Name, value)
		}
	}
	if r.Table.Kind == KindManifest || (absent == nil && raw == nil && len(r.Extra) == 0) {
		return c
	}
	extra := append(make([]byte, 0, len(absent)+len(raw)+64), '{')
	if absent != nil {
		extra = appendMember(extra, "$absent", append(absent, ']'))
	}
	if raw != nil {
		extra = appendMember(extra, "$raw", append(raw, '}'))
	}
	for _, m := range r.Extra {
		name := m.Name
		if strings.HasPrefix(name, "$") {
			name = "$" + name
		}
		extra = appendMember(extra, name, m.Value)
	}
	c.Extra = string(append(extra, '}'))
	return c
}

func appendItem(list []byte, name string) []byte {
	if list == nil {
		list = append(list, '[')
	} else {
		list = append(list, ',')
	}
	return AppendQuoted(list, name)
}

// derived is what stands in a column whose member nobody gave.
func (r *Record) derived(c *Column, first First) any {
	if c.Alias != "" {
		if raw := r.Get(c.Alias); raw != nil {
			v, _ := c.Project(raw)
			return v
		}
	}
	if c.Name == "EmittedAt" {
		return first.EmittedAt
	}
	return c.Zero()
}

// Zero is the column's empty value.
func (c *Column) Zero() any {
	switch c.Type {
	case Integer:
		return int64(0)
	case Float:
		return float64(0)
	case Boolean:
		return false
	}
	return ""
}

// Project gives the column's value of a member's raw JSON; exact says that Append gives the same bytes back.
func (c *Column) Project(raw []byte) (value any, exact bool) {
	switch c.Type {
	case Opaque:
		if string(raw) == "null" {
			return "", false
		}
		return string(raw), true
	case Integer:
		return projectInteger(raw)
	case Float:
		f, err := strconv.ParseFloat(string(raw), 64)
		if err != nil {
			return float64(0), false
		}
		// SQLite keeps no sign on a zero.
		return f, f != 0 && string(strconv.AppendFloat(nil, f, 'f', -1, 64)) == string(raw) || string(raw) == "0"
	case Boolean:
		return string(raw) == "true", string(raw) == "true" || string(raw) == "false"
	}
	return projectText(raw)
}

func projectInteger(raw []byte) (any, bool) {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err == nil {
		return n, string(strconv.AppendInt(nil, n, 10)) == string(raw)
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	switch {
	case err != nil || math.IsNaN(f):
		return int64(0), false
	case f >= math.MaxInt64:
		return int64(math.MaxInt64), false
	case f <= math.MinInt64:
		return int64(math.MinInt64), false
	}
	return int64(f), false
}

func projectText(raw []byte) (any, bool) {
	switch raw[0] {
	case '"':
	case 'n':
		return "", false
	default:
		return string(raw), false
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), true
	}
	text, whole := Unquote(raw)
	exact := whole && string(AppendQuoted(nil, text)) == string(raw)
	if strings.IndexByte(text, 0) >= 0 {
		text, exact = strings.ReplaceAll(text, "\x00", "\uFFFD"), false
	}
	return text, exact
}

// Append appends the canonical rendering of a column's value. It takes what database drivers give: string, []byte, int64,
// float64, bool or nil.
func (c *Column) Append(dst []byte, value any) []byte {
	switch c.Type {
	case Integer:
		n, _ := value.(int64)
		return strconv.AppendInt(dst, n, 10)
	case Float:
		f, ok := value.(float64)
		if n, whole := value.(int64); !ok && whole {
			f = float64(n)
		}
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	case Boolean:
		b, ok := value.(bool)
		if n, number := value.(int64); !ok && number {
			b = n != 0
		}
		return strconv.AppendBool(dst, b)
	case Opaque:
		return append(dst, textOf(value)...)
	}
	return AppendQuoted(dst, textOf(value))
}

func textOf(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return ""
}

// RestoreRecord is the reverse of Project: it gives the record of a row. skip names members to leave out. It fails with
// Internal when Extra is not what Project writes.
func RestoreRecord(t *Table, c Columns, skip ...string) (*Record, error) {
	r := NewRecord(t)
	var absent uint64
	if c.Extra != "" {
		err := ScanObject([]byte(c.Extra), MaxDepth+2, func(name, value []byte) error {
			plain, _ := Unquote(name)
			switch plain {
			case "$absent":
				return ScanItems(value, func(name []byte) {
					plain, _ := Unquote(name)
					if at, ok := t.places[plain]; ok {
						absent |= 1 << at
					}
				})
			case "$raw":
				return ScanObject(value, MaxDepth+1, func(name, value []byte) error {
					plain, _ := Unquote(name)
					if at, ok := t.places[plain]; ok {
						r.Cols[at] = value
					}
					return nil
				})
			}
			r.Extra = append(r.Extra, Member{Name: strings.TrimPrefix(plain, "$"), Value: value})
			return nil
		})
		if err != nil {
			return nil, Wrap(Internal, "restore "+t.Name, err)
		}
	}
	for at := range t.Members {
		column := &t.Members[at]
		switch {
		case slices.Contains(skip, column.Name):
			r.Cols[at] = nil
		case r.Cols[at] == nil && absent&(1<<at) == 0:
			// An empty opaque column is nobody's value: null stands in $raw.
			if raw := column.Append(nil, c.Values[at]); len(raw) > 0 {
				r.Cols[at] = raw
			}
		}
	}
	return r, nil
}

// ScanItems calls each with the raw items of a valid JSON array.
func ScanItems(list []byte, each func(item []byte)) error {
	if Blank(list) {
		return nil
	}
	s := scanner{text: list, at: 1}
	for {
		s.space()
		from := s.at
		if err := s.value(MaxDepth); err != nil {
			return err
		}
		each(list[from:s.at])
		if more, err := s.next(']'); !more {
			return err
		}
	}
}
