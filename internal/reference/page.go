package reference

import (
	"cmp"
	"slices"
	"strings"

	"holdfast/ports"
)

// Limits of a page, in rows.
const (
	usualPage   = 500
	longestPage = 5000
)

// sizeOf is what a row counts against the bytes of a page.
func sizeOf(r *ports.Row) int { return len(r.Body) + len(r.Key) + len(r.GUID) + 200 }

// cursorOf gives a row's place in the order of its list.
func cursorOf(r *ports.Row) ports.Cursor {
	switch r.Kind {
	case ports.KindItem:
		return ports.Cursor{Sort: r.First.EnqueuedKey, Key: r.Key}
	case ports.KindEvent:
		return ports.Cursor{Sort: r.First.OrderKey, Key: r.GUID}
	case ports.KindAttempt:
		return ports.Cursor{Sort: r.Key, Key: r.Key, Kind: r.Kind, Num: r.Number}
	}
	return ports.Cursor{Sort: r.First.OrderKey, Key: r.Key}
}

// byCursor is the order of a list.
func byCursor(a, b ports.Cursor) int {
	return cmp.Or(strings.Compare(a.Sort, b.Sort), strings.Compare(a.Key, b.Key), cmp.Compare(a.Num, b.Num))
}

// list sorts rows by their cursors and gives the page behind one of them.
func list(rows []ports.Row, desc bool, after *ports.Cursor, limit int) ports.Page {
	order := byCursor
	if desc {
		order = func(a, b ports.Cursor) int { return byCursor(b, a) }
	}
	slices.SortFunc(rows, func(a, b ports.Row) int { return order(cursorOf(&a), cursorOf(&b)) })
	if after != nil {
		rows = slices.DeleteFunc(rows, func(r ports.Row) bool { return order(cursorOf(&r), *after) <= 0 })
	}
	return cut(rows, limit, cursorOf)
}

// cut gives the first page of rows that are in order.
func cut(rows []ports.Row, limit int, cursor func(*ports.Row) ports.Cursor) ports.Page {
	if limit <= 0 {
		limit = usualPage
	}
	limit = min(limit, longestPage)
	n, size := 0, 0
	for n < len(rows) && n < limit {
		if size += sizeOf(&rows[n]); n > 0 && size > ports.MaxPageBytes {
			break
		}
		n++
	}
	page := ports.Page{Rows: rows[:n]}
	if n < len(rows) {
		next := cursor(&rows[n-1])
		page.Next = &next
	}
	return page
}
