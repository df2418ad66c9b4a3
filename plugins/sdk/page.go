package sdk

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

// paged is a page on its way to its caller.
type paged struct{ page ports.Page }

// placeOf gives a row's place in the list of its kind.
func placeOf(r *ports.Row) ports.Cursor {
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

func byPlace(a, b ports.Cursor) int {
	return cmp.Or(strings.Compare(a.Sort, b.Sort), strings.Compare(a.Key, b.Key), cmp.Compare(a.Num, b.Num))
}

// pageOf makes a page of all rows that a query asks for, of one kind and in any order: in the order of their list, from behind
// after, cut at the limit and at what a page may hold. The rows are the callee's to sort.
func pageOf(rows []ports.Row, after *ports.Cursor, desc bool, limit int) paged {
	order := byPlace
	if desc {
		order = func(a, b ports.Cursor) int { return byPlace(b, a) }
	}
	slices.SortFunc(rows, func(a, b ports.Row) int { return order(placeOf(&a), placeOf(&b)) })
	if after != nil {
		rows = slices.DeleteFunc(rows, func(r ports.Row) bool { return order(placeOf(&r), *after) <= 0 })
	}
	return cut(rows, limit, placeOf)
}

// walked is the page of an export: an item, its events as they came, its attempts by number. A cursor has the key that the walk
// is in, and the record of it that came last.
func walked(rows []ports.Row, after *ports.Cursor, limit int) ports.Page {
	order := func(a, b ports.Row) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), cmp.Compare(rank(&a), rank(&b)),
			strings.Compare(eventOrder(&a), eventOrder(&b)), strings.Compare(a.GUID, b.GUID), cmp.Compare(a.Number, b.Number))
	}
	if after != nil {
		last := ports.Row{Kind: after.Kind, Key: after.Sort, Number: after.Num}
		if after.Kind == ports.KindEvent {
			last.GUID = after.Key
			for i := range rows {
				if rows[i].Kind == ports.KindEvent && rows[i].GUID == after.Key {
					last.First.OrderKey = rows[i].First.OrderKey
				}
			}
		}
		rows = slices.DeleteFunc(rows, func(r ports.Row) bool { return order(r, last) <= 0 })
	}
	slices.SortFunc(rows, order)
	return cut(rows, limit, func(r *ports.Row) ports.Cursor {
		return ports.Cursor{Sort: r.Key, Kind: r.Kind, Key: cmp.Or(r.GUID, r.Key), Num: r.Number}
	}).page
}

// rank is the place of a kind among the records of a key; what a cursor does not name is before everything.
func rank(r *ports.Row) int { return slices.Index(ports.Kinds, r.Kind) }

func eventOrder(r *ports.Row) string {
	if r.Kind == ports.KindEvent {
		return r.First.OrderKey
	}
	return ""
}

// cut takes the first rows of those that are in order. One row there is in any case, however large.
func cut(rows []ports.Row, limit int, place func(*ports.Row) ports.Cursor) paged {
	if limit < 1 {
		limit = usualPage
	}
	n, size := 0, 0
	for n < len(rows) && n < min(limit, longestPage) {
		const beside = 200 // what else of a row travels
		if size += len(rows[n].Body) + len(rows[n].Key) + beside; n > 0 && size > ports.MaxPageBytes {
			break
		}
		n++
	}
	p := paged{ports.Page{Rows: rows[:n]}}
	if n < len(rows) {
		next := place(&rows[n-1])
		p.page.Next = &next
	}
	return p
}

// lean takes members off, unless bodies are asked for.
func (p paged) lean(bodies bool, members ...string) (ports.Page, error) {
	return p.each(bodies, func(r *ports.Record) *ports.Record {
		r.Drop(members...)
		return r
	})
}

// columns leaves only the members that are columns, unless bodies are asked for.
func (p paged) columns(bodies bool) (ports.Page, error) {
	return p.each(bodies, func(r *ports.Record) *ports.Record {
		lean := ports.NewRecord(r.Table)
		copy(lean.Cols, r.Cols)
		return lean
	})
}

func (p paged) each(whole bool, change func(*ports.Record) *ports.Record) (ports.Page, error) {
	for i := range p.page.Rows {
		if whole {
			break
		}
		row := &p.page.Rows[i]
		r, err := ports.ParseRecord(ports.TableOf(row.Kind), row.Body)
		if err != nil {
			return ports.Page{}, ports.Wrap(ports.Internal, "read", err)
		}
		row.Body = change(r).JSON()
	}
	return p.page, nil
}
