package sqlite

import (
	"database/sql/driver"
	"errors"
	"io"
	"strings"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// trail is what one table has of one host's changes, in order of Seq: its rows, or the tombstones of its kind.
type trail struct {
	layout *layout // nil: tombstones
	kind   ports.Kind
	key    string // of one record's tombstone; else the tombstone has it
	rows   driver.Rows
	values []driver.Value
	seq    uint64 // of the present row
	over   bool
}

// The first column of a trail is the Seq. Where only one key is asked for its rows are looked up by the key and then sorted,
// by what is needed for it: the bodies are read one by one, so that no temporary file is filled with them.
const (
	tombstones      = `SELECT "ChangeSeq", "Key" FROM "UVGone" INDEXED BY "IX_UVGone_Change" WHERE "Kind" = ? AND "ChangeHost" = ? AND "ChangeSeq" > ? ORDER BY "ChangeSeq"`
	tombstonesOfKey = `SELECT "ChangeSeq", "Key" FROM "UVGone" INDEXED BY "IX_UVGone_Key" WHERE "Kind" = ? AND "Key" = ? AND "ChangeHost" = ? AND "ChangeSeq" > ?`
)

// changesOf is the query for the rows of a table that a host changed after a Seq.
func changesOf(t *ports.Table, list string) string {
	return `SELECT "ChangeSeq", ` + list + ` FROM "` + t.Name + `" INDEXED BY "` + indexBy(t, "ChangeHost") +
		`" WHERE "ChangeHost" = ? AND "ChangeSeq" > ? AND "Deleted" = 0 ORDER BY "ChangeSeq"`
}

// changesOfKey is the same for one key, but gives only where the rows stand.
func changesOfKey(t *ports.Table) string {
	return `SELECT "ChangeSeq", rowid FROM "` + t.Name + `" INDEXED BY "` + indexBy(t, t.Key) +
		`" WHERE "` + t.Key + `" = ? AND "ChangeHost" = ? AND "ChangeSeq" > ? AND "Deleted" = 0 ORDER BY "ChangeSeq"`
}

// indexBy is the first index of a table that a column leads.
func indexBy(t *ports.Table, column string) string {
	for _, x := range t.Indexes {
		if x.Columns[0] == column {
			return x.Name
		}
	}
	panic("sqlite: " + t.Name + " has no index by " + column)
}

// highestOf is the query for the highest Seq of a host in the tables and tombstones of a family.
func highestOf(f ports.Family) string {
	return `SELECT max(s) FROM (` + overFamily(f, `max("ChangeSeq") AS s`, `"ChangeHost" = ?1`) + `)`
}

// hostsOf is the query for the hosts of which a family has rows or tombstones. It skips from one host to the next, whatever
// they have written.
func hostsOf(f ports.Family) string {
	least := func(beyond string) string {
		return `(SELECT min(h) FROM (` + overFamily(f, `min("ChangeHost") AS h`, beyond) + `))`
	}
	return `WITH RECURSIVE known(host) AS (SELECT ` + least(`"ChangeHost" >= ''`) +
		` UNION ALL SELECT ` + least(`"ChangeHost" > known.host`) + ` FROM known WHERE known.host IS NOT NULL)
		SELECT host FROM known WHERE host IS NOT NULL`
}

// overFamily joins one select over every table of a family.
func overFamily(f ports.Family, what, where string) string {
	parts := []string{`SELECT ` + what + ` FROM "UVGone" INDEXED BY "IX_UVGone_Change" WHERE ` + gravesOf(f) + ` AND ` + where}
	for _, l := range layouts {
		if l.Table.Kind.Family() == f {
			parts = append(parts, `SELECT `+what+` FROM "`+l.Table.Name+`" INDEXED BY "`+indexBy(l.Table, "ChangeHost")+`" WHERE `+where)
		}
	}
	return strings.Join(parts, " UNION ALL ")
}

// familyTexts are the queries of a family.
type familyTexts struct{ hosts, highest string }

var textsOf = map[ports.Family]familyTexts{
	ports.Queue:    {hostsOf(ports.Queue), highestOf(ports.Queue)},
	ports.Manifest: {hostsOf(ports.Manifest), highestOf(ports.Manifest)},
}

// openTrails gives the trails of a host behind a Seq, for equal Seqs in the order in which their rows are told. They must be
// closed also after an error.
func openTrails(l *link, f ports.Family, host, key string, after uint64) (trails []*trail, err error) {
	for _, kind := range ports.Kinds {
		if kind.Family() == f && tables.Buried(kind) {
			t := &trail{kind: kind, key: key}
			trails = append(trails, t)
			if key == "" {
				err = t.open(l, tombstones, string(kind), host, int64(after))
			} else {
				err = t.open(l, tombstonesOfKey, string(kind), key, host, int64(after))
			}
			if err != nil {
				return trails, err
			}
		}
	}
	for _, layout := range layouts {
		if layout.Table.Kind.Family() != f {
			continue
		}
		t := &trail{layout: layout, kind: layout.Table.Kind, key: key}
		trails = append(trails, t)
		if key == "" {
			err = t.open(l, layout.since, host, int64(after))
		} else {
			err = t.open(l, layout.sinceOfKey, key, host, int64(after))
		}
		if err != nil {
			return trails, err
		}
	}
	return trails, nil
}

func (t *trail) open(l *link, text string, args ...any) (err error) {
	if t.rows, err = l.rows(text, args...); err != nil {
		return err
	}
	t.values = make([]driver.Value, len(t.rows.Columns()))
	return t.step()
}

// step goes to the next row.
func (t *trail) step() error {
	err := t.rows.Next(t.values)
	if errors.Is(err, io.EOF) {
		t.over = true
		return nil
	}
	seq, _ := t.values[0].(int64)
	t.seq = uint64(seq)
	return err
}

// row gives the present row.
func (t *trail) row(l *link, host string) (row ports.Row, err error) {
	switch {
	case t.layout == nil:
		key, _ := t.values[1].(string)
		return ports.Row{Kind: t.kind, Key: key, Gone: true, Change: ports.Change{Host: host, Seq: t.seq}}, nil
	case t.key == "":
		return t.layout.Restore(anys(t.values[1:]), false)
	}
	err = l.query(t.layout.readID, func(v []driver.Value) (err error) {
		row, err = t.layout.Restore(anys(v[1:]), false)
		return err
	}, t.values[1])
	return row, err
}

func closeTrails(trails []*trail) error {
	var all []error
	for _, t := range trails {
		if t.rows != nil {
			all = append(all, t.rows.Close())
		}
	}
	return errors.Join(all...)
}
