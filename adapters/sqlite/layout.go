package sqlite

import (
	"holdfast/adapters/tables"
	"holdfast/ports"
)

// layout is a table with the statements that its rows are found, read and told by. The engine has no dates of its own: writes
// set them.
type layout struct {
	tables.Layout

	updated, created int // places of the dates; -1 where the table has none

	// Statements by key and by rowid; writeID is readID with the stamps of hubs behind it.
	findID, readID, writeID, deleteID string

	// What a host changed after a Seq, of all keys and of one; see trail.
	since, sinceOfKey string
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
	l := &layout{Layout: tables.NewLayout(t, ports.Opaque, ports.Created, ports.Updated)}
	l.updated, l.created = l.Place("UpdateDate"), l.Place("CreateDate")
	l.findID = `SELECT rowid FROM "` + t.Name + `" WHERE "` + t.Key + `" = ?`
	switch t.Kind {
	case ports.KindEvent:
		l.findID = `SELECT rowid FROM "` + t.Name + `" WHERE "EventGUID" = ?`
	case ports.KindAttempt:
		l.findID += ` AND "AttemptNumber" = ?`
	}
	l.readID = `SELECT "Deleted", ` + l.List + ` FROM "` + t.Name + `" WHERE rowid = ?`
	l.writeID = l.readID
	if l.Marks >= 0 {
		l.writeID = `SELECT "Deleted", ` + l.List + `, "` + ports.Stamps + `" FROM "` + t.Name + `" WHERE rowid = ?`
	}
	l.deleteID = `DELETE FROM "` + t.Name + `" WHERE rowid = ?`
	l.since, l.sinceOfKey = changesOf(t, l.List), changesOfKey(t)
	return l
}

// values sets every column of a record that is new or replaced whole.
func (l *layout) values(dst []any, key string, h *ports.Held, now string) {
	l.Values(dst, key, h)
	if l.updated >= 0 {
		dst[l.updated] = now
	}
	dst[l.created] = now
}

// changes is the set of columns in which the row of next differs from that of base, with their values in dst.
func (l *layout) changes(dst []any, key string, base, next *ports.Held, now string) (set uint64) {
	set = l.Changes(dst, key, base, next)
	if set != 0 && l.updated >= 0 {
		dst[l.updated] = now
		set |= 1 << l.updated
	}
	return set
}
