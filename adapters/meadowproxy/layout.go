package meadowproxy

import (
	"slices"

	"holdfast/ports"
)

// What of a table travels to a databeacon, and under which name it finds its rows there.

// ownTable keeps what has no place in a record's table: StoreID, positions, and the parts of texts that are too large for a column.
const ownTable = "UVHoldfast"

// layout is a table of records at a databeacon.
type layout struct {
	table    *ports.Table
	identity string // the engine's number of a row; it never leaves this package
	natural  string // the column that tells a record from every other one, with number for an attempt
	number   string
	sort     string // the first column of a list's order
	place    string // the second, the natural key
	whole    string // the column that keeps the record's own text, "" where its members have columns
	ours     []ports.Column
}

var layouts = map[ports.Kind]*layout{
	ports.KindItem:     newLayout(ports.Items, "EnqueuedKey"),
	ports.KindEvent:    newLayout(ports.Events, "OrderKey"),
	ports.KindAttempt:  newLayout(ports.Attempts, "AttemptNumber"),
	ports.KindManifest: newLayout(ports.Manifests, "OrderKey"),
}

func newLayout(t *ports.Table, sort string) *layout {
	l := &layout{table: t, identity: t.Engine[0].Name, natural: t.Key, sort: sort, place: t.Key, ours: ourColumns(t)}
	switch t.Kind {
	case ports.KindEvent:
		l.natural, l.place = "EventGUID", "EventGUID"
	case ports.KindAttempt:
		l.number = "AttemptNumber"
	case ports.KindManifest:
		l.whole = "ManifestJSON"
	}
	return l
}

// ourColumns are the columns of ours that travel. The stamps of hubs are the local store's alone. ChangeSeq is a text: integers of
// most engines end at 32 bits. A manifest has Extra too, for what does not fit its columns.
func ourColumns(t *ports.Table) []ports.Column {
	var list []ports.Column
	for _, c := range t.Ours {
		switch c.Name {
		case ports.Stamps:
			continue
		case "ChangeSeq":
			c = ports.Column{Name: c.Name, Type: ports.Text, Size: 20}
		}
		list = append(list, c)
	}
	if !slices.ContainsFunc(list, func(c ports.Column) bool { return c.Name == "Extra" }) {
		list = append(list, ports.Column{Name: "Extra", Type: ports.Text})
	}
	return list
}

// widest is the longest text column with a size that MySQL can make (CHAR). keyWidth is that of a record's key, which is often longer
// than the 128 of the first version of the schema.
const (
	widest   = 255
	keyWidth = 255
)

// columnsFor lists the columns that holdfast wants of a table at a databeacon, in order, in sizes that every engine can make.
func columnsFor(t *ports.Table) []ports.Column {
	list := slices.Concat(t.Engine[:1], t.Members, t.Engine[1:], ourColumns(t))
	for i := range list {
		if c := &list[i]; c.Type == ports.Text {
			c.Size = min(c.Size, widest)
			if c.Name == t.Key {
				c.Size = keyWidth
			}
		}
	}
	return list
}
