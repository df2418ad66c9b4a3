package tables

import (
	"bytes"
	"slices"
	"strings"

	"holdfast/ports"
)

// Layout is a table as statements see it: the columns that a write may set, in one fixed order, so that a set of them is a
// bit mask. Members come first, then ours, then those of the engine's that holdfast fills.
type Layout struct {
	Table   *ports.Table
	Names   []string
	Types   []ports.ColumnType
	Members int
	Key     int // the member by which rows are found; its column holds the key also where nobody gave the member

	// Places of single columns; -1 where the table has none.
	Extra int
	Marks int // the stamps of hubs
	Whole int // a manifest's text

	List string // every column that a record is restored from, for SELECT: members and ours, or the whole text and ours
	Lean string // the same without opaque bodies

	// Project gives a record's columns, and Cut says whether a column shows less than a value. An engine that has no room for long
	// texts in some columns sets both; with nil every column holds every value.
	Project func(r *ports.Record, first ports.First) ports.Columns
	Cut     func(at int, value any) bool

	enqueued, order, received, actor, origin, host, seq int

	aliases uint64 // members that take another member's value while they are absent
	emitted int    // of events: the member that is filled where the caller gave none
	told    int    // how many of our columns a record is restored from: all but the stamps of hubs, which only the writer reads
	slim    []int  // the members in Lean
}

// NewLayout gives the layout of a table. fills are the types of the engine's columns that writes set.
func NewLayout(t *ports.Table, fills ...ports.ColumnType) Layout {
	l := Layout{Table: t, Members: len(t.Members), Key: t.Member(t.Key), emitted: -1}
	if t.Kind == ports.KindEvent {
		l.emitted = t.Member("EmittedAt")
	}
	for at := range t.Members {
		if t.Members[at].Alias != "" {
			l.aliases |= 1 << at
		}
		l.add(&t.Members[at])
	}
	for at := range t.Ours { // in the order of the table, the stamps last
		l.add(&t.Ours[at])
	}
	for at := range t.Engine {
		if slices.Contains(fills, t.Engine[at].Type) {
			l.add(&t.Engine[at])
		}
	}
	l.Extra, l.Marks, l.Whole = l.Place("Extra"), l.Place(ports.Stamps), l.Place("ManifestJSON")
	l.enqueued, l.order, l.received = l.Place("EnqueuedKey"), l.Place("OrderKey"), l.Place("ReceivedAt")
	l.actor, l.origin, l.host, l.seq = l.Place("Actor"), l.Place("Origin"), l.Place("ChangeHost"), l.Place("ChangeSeq")

	ours := slices.DeleteFunc(namesOf(t.Ours), func(name string) bool { return name == ports.Stamps })
	l.told = len(ours)
	var slim []string
	for at, c := range t.Members {
		if c.Type != ports.Opaque {
			slim = append(slim, c.Name)
			l.slim = append(l.slim, at)
		}
	}
	if l.Whole >= 0 {
		l.List = Quoted(append([]string{t.Key, "ManifestJSON"}, ours...))
	} else {
		l.List = Quoted(append(namesOf(t.Members), ours...))
	}
	l.Lean = Quoted(append(slim, ours...))
	return l
}

func (l *Layout) add(c *ports.Column) {
	l.Names, l.Types = append(l.Names, c.Name), append(l.Types, c.Type)
}

// Place is where a column stands that is no member; -1 says that writes set none of this name.
func (l *Layout) Place(name string) int {
	if at := slices.Index(l.Names[l.Members:], name); at >= 0 {
		return l.Members + at
	}
	return -1
}

// Values sets every column of a record that is new or replaced whole.
func (l *Layout) Values(dst []any, key string, h *ports.Held) {
	l.fill(dst, key, h)
	l.stamp(dst, h)
	if l.Whole >= 0 {
		dst[l.Whole] = string(h.Record.JSON())
	}
}

// fill sets the members, and what they do not tell of the record.
func (l *Layout) fill(dst []any, key string, h *ports.Held) {
	var c ports.Columns
	if l.Project != nil {
		c = l.Project(h.Record, h.First)
	} else {
		c = h.Record.Project(h.First)
	}
	copy(dst, c.Values)
	dst[l.Key] = key
	if l.Extra >= 0 {
		dst[l.Extra] = c.Extra
	}
}

func (l *Layout) stamp(dst []any, h *ports.Held) {
	if l.enqueued >= 0 {
		dst[l.enqueued] = h.First.EnqueuedKey
	}
	dst[l.order], dst[l.received] = h.First.OrderKey, h.First.ReceivedAt
	dst[l.actor], dst[l.origin] = h.First.Actor, h.First.Origin
	dst[l.host], dst[l.seq] = h.Change.Host, int64(h.Change.Seq)
	if l.Marks >= 0 {
		dst[l.Marks] = h.Stamps
	}
}

// Changes is the set of columns in which the row of next differs from that of base, with their values in dst.
func (l *Layout) Changes(dst []any, key string, base, next *ports.Held) (set uint64) {
	extra := !sameMembers(base.Record.Extra, next.Record.Extra)
	for at, value := range next.Record.Cols {
		was := base.Record.Cols[at]
		if sameBytes(was, value) {
			continue
		}
		set |= 1 << at
		if value == nil || was == nil {
			extra = true // $absent
			continue
		}
		v, exact := l.project(at, value)
		dst[at] = v
		if !exact {
			extra = true // $raw
		} else if !extra {
			_, exact = l.project(at, was)
			extra = !exact
		}
	}
	if base.First.EmittedAt != next.First.EmittedAt && l.emitted >= 0 {
		extra = true
		set |= 1 << l.emitted
	}
	if extra {
		l.fill(dst, key, next)
		set |= l.aliases
		if l.Extra >= 0 {
			set |= 1 << l.Extra
		}
	}
	if l.Whole >= 0 {
		text := next.Record.JSON()
		if set != 0 || extra || !bytes.Equal(base.Record.JSON(), text) {
			dst[l.Whole] = string(text)
			set |= 1 << l.Whole
		}
	}
	l.stamp(dst, next)
	return set | l.stampChanges(base, next)
}

// project gives the value of a member's column; exact says that the column tells all of the member.
func (l *Layout) project(at int, value []byte) (v any, exact bool) {
	v, exact = l.Table.Members[at].Project(value)
	return v, exact && (l.Cut == nil || !l.Cut(at, v))
}

func (l *Layout) stampChanges(base, next *ports.Held) (set uint64) {
	mark := func(differs bool, at int) {
		if differs && at >= 0 {
			set |= 1 << at
		}
	}
	mark(base.First.EnqueuedKey != next.First.EnqueuedKey, l.enqueued)
	mark(base.First.OrderKey != next.First.OrderKey, l.order)
	mark(base.First.ReceivedAt != next.First.ReceivedAt, l.received)
	mark(base.First.Actor != next.First.Actor, l.actor)
	mark(base.First.Origin != next.First.Origin, l.origin)
	mark(base.Change.Host != next.Change.Host, l.host)
	mark(base.Change.Seq != next.Change.Seq, l.seq)
	mark(base.Stamps != next.Stamps, l.Marks)
	return set
}

func sameBytes(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

func sameMembers(a, b []ports.Member) bool {
	return slices.EqualFunc(a, b, func(a, b ports.Member) bool { return a.Name == b.Name && bytes.Equal(a.Value, b.Value) })
}

// Filled is the set of columns whose value is not the default of the table.
func Filled(values []any) (set uint64) {
	for at, v := range values {
		empty := false
		switch v := v.(type) {
		case string:
			empty = v == ""
		case int64:
			empty = v == 0
		case float64:
			empty = v == 0
		case bool:
			empty = !v
		}
		if !empty {
			set |= 1 << at
		}
	}
	return set
}

// Quoted gives names as a list in SQL.
func Quoted(names []string) string { return `"` + strings.Join(names, `", "`) + `"` }

func namesOf(columns []ports.Column) []string {
	names := make([]string, 0, len(columns))
	for _, c := range columns {
		names = append(names, c.Name)
	}
	return names
}
