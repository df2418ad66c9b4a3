package core

import (
	"cmp"
	"slices"
	"strings"

	"holdfast/ports"
)

// Where records stand in the stores in memory, in which order they are listed, and what each of them ever was.

// place is where a record is: an item and a manifest by key, an event by GUID, an attempt by key and number.
type place struct {
	kind   ports.Kind
	key    string
	number int64
}

func placeOf(k ports.Kind, key, guid string, number int64) place {
	switch k {
	case ports.KindEvent:
		return place{kind: k, key: guid}
	case ports.KindAttempt:
		return place{kind: k, key: key, number: number}
	}
	return place{kind: k, key: key}
}

func placeOfRow(r *ports.Row) place { return placeOf(r.Kind, r.Key, r.GUID, r.Number) }

// version is one state of a record.
type version struct {
	change ports.Change
	key    string
	body   string
	first  ports.First
	gone   bool
}

// annals remember every state that a record ever had, in the order in which they took effect. A store that goes back and
// comes forward again adds nothing to them.
type annals struct {
	past  map[place][]version
	void  map[place]bool          // places of which a state was taken back for good
	reach map[ports.Family]uint64 // the furthest that the store ever was
}

func newAnnals() *annals {
	return &annals{past: map[place][]version{}, void: map[place]bool{}, reach: map[ports.Family]uint64{}}
}

func (a *annals) note(at place, v version) {
	past := a.past[at]
	switch n := len(past); {
	case n > 0 && past[n-1].change == v.change:
		past[n-1] = v // the same Seq went on
	case !slices.ContainsFunc(past, func(p version) bool { return p.change == v.change }):
		a.past[at] = append(past, v)
	}
}

// undo forgets what a host changed after a Seq: it never was.
func (a *annals) undo(f ports.Family, host string, after uint64) {
	a.reach[f] = min(a.reach[f], after)
	for at, past := range a.past {
		if at.kind.Family() != f {
			continue
		}
		kept := slices.DeleteFunc(past, func(v version) bool { return v.change.Host == host && v.change.Seq > after })
		if len(kept) < len(past) {
			a.past[at], a.void[at] = kept, true
		}
	}
}

// compareRows orders rows by kind, an item before its events and attempts, and then by what tells them apart.
func compareRows(a, b *ports.Row) int {
	return cmp.Or(
		cmp.Compare(slices.Index(ports.Kinds, a.Kind), slices.Index(ports.Kinds, b.Kind)),
		strings.Compare(a.Key, b.Key), strings.Compare(a.GUID, b.GUID), cmp.Compare(a.Number, b.Number))
}

// cursors give a row's place in the order of its list.
func listCursor(r *ports.Row) ports.Cursor {
	switch r.Kind {
	case ports.KindItem:
		return ports.Cursor{Sort: r.First.EnqueuedKey, Key: r.Key}
	case ports.KindEvent:
		return ports.Cursor{Sort: r.First.OrderKey, Key: r.GUID}
	case ports.KindAttempt:
		return ports.Cursor{Key: r.Key, Num: r.Number}
	}
	return ports.Cursor{Sort: r.First.OrderKey, Key: r.Key}
}

// walkCursor gives a row's place in the order of natural keys.
func walkCursor(r *ports.Row) ports.Cursor {
	return ports.Cursor{Sort: r.Key, Kind: r.Kind, Key: cmp.Or(r.GUID, r.Key), Num: r.Number}
}

func compareCursors(a, b ports.Cursor) int {
	return cmp.Or(
		strings.Compare(a.Sort, b.Sort), cmp.Compare(slices.Index(ports.Kinds, a.Kind), slices.Index(ports.Kinds, b.Kind)),
		strings.Compare(a.Key, b.Key), cmp.Compare(a.Num, b.Num))
}

// cut makes a page of rows: those after a cursor, in order.
func cut(rows []ports.Row, cursor func(*ports.Row) ports.Cursor, desc bool, after *ports.Cursor, limit int) (page ports.Page) {
	order := func(a, b ports.Cursor) int {
		if desc {
			a, b = b, a
		}
		return compareCursors(a, b)
	}
	slices.SortFunc(rows, func(a, b ports.Row) int { return order(cursor(&a), cursor(&b)) })
	if limit <= 0 {
		limit = 500
	}
	for i := range rows {
		at := cursor(&rows[i])
		if after != nil && order(at, *after) <= 0 {
			continue
		}
		if n := len(page.Rows); n == limit {
			last := cursor(&page.Rows[n-1])
			page.Next = &last
			break
		}
		page.Rows = append(page.Rows, rows[i])
	}
	return page
}
