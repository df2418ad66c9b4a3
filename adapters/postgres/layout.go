package postgres

import (
	"bytes"
	"slices"
	"strings"

	"holdfast/ports"
)

// layout is a table as statements see it: the columns that a write may set, in one fixed order, so that a set of them is a
// bit mask. Members come first, then ours, then a manifest's text. Dates are the server's to fill.
type layout struct {
	table   *ports.Table
	names   []string
	kinds   []ports.ColumnType
	members int
	id      string // the identity column
	key     int    // the member by which rows are found; its column holds the key also where nobody gave the member
	aliases uint64 // members that take another member's value while they are absent
	short   uint64 // text members that stand in an index, where there is no room for a long text

	// Places of single columns; -1 where the table has none.
	extra, enqueued, order, received, actor, origin, host, seq, marks, whole int

	updated bool // it has an UpdateDate
	told    int  // how many of our columns a record is restored from: all but the stamps of hubs, which only the writer reads

	list string // every column that a record is restored from, for SELECT: members and ours, or the whole text and ours
	lean string // the same without opaque bodies
	slim []int  // the members in lean
}

var (
	items     = newLayout(ports.Items)
	events    = newLayout(ports.Events)
	attempts  = newLayout(ports.Attempts)
	manifests = newLayout(ports.Manifests)
	layouts   = []*layout{items, events, attempts, manifests}
)

func layoutOf(k ports.Kind) *layout {
	for _, l := range layouts {
		if l.table.Kind == k {
			return l
		}
	}
	return nil
}

func newLayout(t *ports.Table) *layout {
	l := &layout{table: t, members: len(t.Members), key: t.Member(t.Key), id: t.Engine[0].Name}
	place := map[string]int{}
	add := func(c *ports.Column) {
		place[c.Name] = len(l.names)
		l.names, l.kinds = append(l.names, c.Name), append(l.kinds, c.Type)
	}
	for at := range t.Members {
		if t.Members[at].Alias != "" {
			l.aliases |= 1 << at
		}
		add(&t.Members[at])
	}
	for at := range t.Ours { // in the order of the table, the stamps last
		add(&t.Ours[at])
	}
	for at := range t.Engine {
		switch c := &t.Engine[at]; c.Type {
		case ports.Opaque:
			add(c)
		case ports.Updated:
			l.updated = true
		}
	}
	at := func(name string) int {
		if i, ok := place[name]; ok {
			return i
		}
		return -1
	}
	l.extra, l.enqueued, l.order, l.received = at("Extra"), at("EnqueuedKey"), at("OrderKey"), at("ReceivedAt")
	l.actor, l.origin, l.host, l.seq = at("Actor"), at("Origin"), at("ChangeHost"), at("ChangeSeq")
	l.marks, l.whole = at(ports.Stamps), at("ManifestJSON")
	for _, x := range t.Indexes {
		for _, name := range x.Columns {
			if i, member := t.Place([]byte(name)); member && i != l.key && name != "EventGUID" && t.Members[i].Type == ports.Text {
				l.short |= 1 << i
			}
		}
	}

	ours := slices.DeleteFunc(columnNames(t.Ours), func(name string) bool { return name == ports.Stamps })
	l.told = len(ours)
	var slim []string
	for at, c := range t.Members {
		if c.Type != ports.Opaque {
			slim = append(slim, c.Name)
			l.slim = append(l.slim, at)
		}
	}
	if l.whole >= 0 {
		l.list = quoted(append([]string{t.Key, "ManifestJSON"}, ours...))
	} else {
		l.list = quoted(append(columnNames(t.Members), ours...))
	}
	l.lean = quoted(append(slim, ours...))
	return l
}

func columnNames(columns []ports.Column) []string {
	names := make([]string, 0, len(columns))
	for _, c := range columns {
		names = append(names, c.Name)
	}
	return names
}

func quoted(names []string) string { return `"` + strings.Join(names, `", "`) + `"` }

// values sets every column of a record that is new or replaced whole.
func (l *layout) values(dst []any, key string, h *ports.Held) {
	c := l.project(h.Record, h.First)
	copy(dst, c.Values)
	dst[l.key] = key
	if l.extra >= 0 {
		dst[l.extra] = c.Extra
	}
	l.stamps(dst, h)
	if l.whole >= 0 {
		dst[l.whole] = string(h.Record.JSON())
	}
}

func (l *layout) stamps(dst []any, h *ports.Held) {
	if l.enqueued >= 0 {
		dst[l.enqueued] = h.First.EnqueuedKey
	}
	dst[l.order], dst[l.received] = h.First.OrderKey, h.First.ReceivedAt
	dst[l.actor], dst[l.origin] = h.First.Actor, h.First.Origin
	dst[l.host], dst[l.seq] = h.Change.Host, int64(h.Change.Seq)
	if l.marks >= 0 {
		dst[l.marks] = h.Stamps
	}
}

// filled is the set of columns whose value is not the default of the table.
func filled(values []any) (set uint64) {
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

// changes is the set of columns in which the row of next differs from that of base, with their values in dst.
func (l *layout) changes(dst []any, key string, base, next *ports.Held) (set uint64) {
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
		column := &l.table.Members[at]
		v, exact := column.Project(value)
		dst[at] = v
		if !exact || l.tooLong(at, v) {
			extra = true // $raw
		} else if !extra {
			v, exact = column.Project(was)
			extra = !exact || l.tooLong(at, v)
		}
	}
	if base.First.EmittedAt != next.First.EmittedAt && l == events {
		extra = true
		set |= 1 << l.table.Member("EmittedAt")
	}
	if extra {
		c := l.project(next.Record, next.First)
		copy(dst, c.Values)
		dst[l.key] = key
		set |= l.aliases
		if l.extra >= 0 {
			dst[l.extra] = c.Extra
			set |= 1 << l.extra
		}
	}
	if l.whole >= 0 {
		text := next.Record.JSON()
		if set != 0 || extra || !bytes.Equal(base.Record.JSON(), text) {
			dst[l.whole] = string(text)
			set |= 1 << l.whole
		}
	}
	l.stamps(dst, next)
	set |= l.stampChanges(base, next)
	return set
}

func (l *layout) stampChanges(base, next *ports.Held) (set uint64) {
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
	mark(base.Stamps != next.Stamps, l.marks)
	return set
}

func sameBytes(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

func sameMembers(a, b []ports.Member) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Name != b[i].Name || !bytes.Equal(a[i].Value, b[i].Value) {
			return false
		}
	}
	return true
}

// held makes a record of a row as SELECT list gives it.
func (l *layout) held(row []any) (*ports.Held, error) {
	h := l.stamped(row)
	var err error
	if l.whole >= 0 {
		text, _ := row[1].(string)
		if h.Record, err = ports.ParseRecord(l.table, []byte(text)); err != nil {
			// Somebody else wrote this row. Its key is all that is sure, and an ordinary upsert mends it.
			key, _ := row[0].(string)
			h.Record = ports.NewRecord(l.table)
			h.Record.Set(l.table.Key, ports.AppendQuoted(nil, key))
		}
		return h, nil
	}
	extra, _ := row[len(row)-l.told+l.extra-l.members].(string)
	if h.Record, err = ports.RestoreRecord(l.table, ports.Columns{Values: row, Extra: extra}); err != nil {
		return nil, err
	}
	l.emitted(h, row)
	return h, nil
}

// stamped takes our columns, the last of a row.
func (l *layout) stamped(row []any) *ports.Held {
	ours := row[len(row)-l.told:]
	text := func(at int) string {
		if at < 0 {
			return ""
		}
		v, _ := ours[at-l.members].(string)
		return v
	}
	seq, _ := ours[l.seq-l.members].(int64)
	return &ports.Held{
		First: ports.First{
			ReceivedAt: text(l.received), OrderKey: text(l.order), EnqueuedKey: text(l.enqueued),
			Actor: text(l.actor), Origin: text(l.origin),
		},
		Change: ports.Change{Host: text(l.host), Seq: uint64(seq)},
	}
}

// emitted takes the time of an event whose caller gave none from its column.
func (l *layout) emitted(h *ports.Held, values []any) {
	if l != events {
		return
	}
	if at := l.table.Member("EmittedAt"); h.Record.Cols[at] == nil {
		h.First.EmittedAt, _ = values[at].(string)
	}
}
