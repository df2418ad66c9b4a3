package postgres

import (
	"holdfast/adapters/tables"
	"holdfast/ports"
)

// layout is a table whose dates are the server's to fill, and some of whose columns have room for short texts alone; see narrow.go.
type layout struct {
	tables.Layout

	id      string // the identity column
	short   uint64 // text members that stand in an index, where there is no room for a long text
	updated bool   // it has an UpdateDate
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
		if l.Table.Kind == k {
			return l
		}
	}
	return nil
}

func newLayout(t *ports.Table) *layout {
	l := &layout{Layout: tables.NewLayout(t, ports.Opaque), id: t.Engine[0].Name}
	l.Project, l.Cut = l.project, l.tooLong
	for at := range t.Engine {
		l.updated = l.updated || t.Engine[at].Type == ports.Updated
	}
	for _, x := range t.Indexes {
		for _, name := range x.Columns {
			if i, member := t.Place([]byte(name)); member && i != l.Key && name != "EventGUID" && t.Members[i].Type == ports.Text {
				l.short |= 1 << i
			}
		}
	}
	return l
}
