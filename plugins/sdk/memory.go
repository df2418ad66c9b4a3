package sdk

import (
	"slices"

	"holdfast/ports"
)

// Memory keeps rows by their keys, as they came. It is no store by itself: whoever has one locks it, and moves the position
// together with the rows.
type Memory map[string][]ports.Row

// Put makes a row the state of its record; a gone one takes it away. Rows that were read before stay as they were.
func (m Memory) Put(row ports.Row) {
	rows := slices.DeleteFunc(slices.Clone(m[row.Key]), func(r ports.Row) bool {
		return r.Kind == row.Kind && r.GUID == row.GUID && r.Number == row.Number
	})
	if !row.Gone {
		rows = append(rows, row)
	}
	if m[row.Key] = rows; len(rows) == 0 {
		delete(m, row.Key)
	}
}

// Of gives the rows of a key, or with an empty key all. They are not to be changed.
func (m Memory) Of(key string) (rows []ports.Row) {
	if key != "" {
		return m[key]
	}
	for _, some := range m {
		rows = append(rows, some...)
	}
	return rows
}
