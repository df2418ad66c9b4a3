package postgres

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// step is where one change of a host stands: a row of a table, or a tombstone.
type step struct {
	hit
	seq  uint64
	rank int64      // of equal Seqs: tombstones first, then an item before its events and attempts
	gone ports.Kind // of a tombstone; its key is at.Key
}

// familyTexts are the queries of a family's changes.
type familyTexts struct{ hosts string }

var textsOf = map[ports.Family]familyTexts{
	ports.Queue:    {hostsOf(ports.Queue)},
	ports.Manifest: {hostsOf(ports.Manifest)},
}

// hostsOf is the query for the hosts of which a family has rows or tombstones, with the highest Seq of each. It skips from one host to
// the next, whatever they have written.
func hostsOf(f ports.Family) string {
	least := func(beyond string) string {
		return `(SELECT min(h) FROM (` + overFamily(f, `min("ChangeHost") AS h`, beyond) + `) AS each)`
	}
	return `WITH RECURSIVE known(host) AS (SELECT ` + least(`"ChangeHost" >= ''`) +
		` UNION ALL SELECT ` + least(`"ChangeHost" > known.host`) + ` FROM known WHERE known.host IS NOT NULL)
		SELECT host, (SELECT max(s) FROM (` + overFamily(f, `max("ChangeSeq") AS s`, `"ChangeHost" = known.host`) + `) AS each)
		FROM known WHERE host IS NOT NULL`
}

// overFamily joins one select over every table of a family.
func overFamily(f ports.Family, what, where string) string {
	parts := []string{`SELECT ` + what + ` FROM "UVGone" WHERE "Kind" = '` + string(tables.BuriedOf(f)) + `' AND ` + where}
	for _, l := range ofFamilyLayouts(f) {
		parts = append(parts, `SELECT `+what+` FROM "`+l.Table.Name+`" WHERE `+where)
	}
	return strings.Join(parts, " UNION ALL ")
}

func ofFamilyLayouts(f ports.Family) (found []*layout) {
	for _, l := range layouts {
		if l.Table.Kind.Family() == f {
			found = append(found, l)
		}
	}
	return found
}

// trailText is the query for the changes of a host, or of one key, behind a Seq.
func trailText(f ports.Family, host, key string, after uint64, want int) (text string, args []any) {
	m := &marks{}
	where := `"ChangeHost" = ` + m.of(host) + ` AND "ChangeSeq" > ` + m.of(int64(after))
	of := func(string) string { return where }
	if key != "" {
		mark := m.of(key)
		of = func(column string) string { return `"` + column + `" = ` + mark + ` AND ` + where }
	}
	few := ` ORDER BY "ChangeSeq" FETCH FIRST ` + strconv.Itoa(want) + ` ROWS WITH TIES)`
	parts := []string{`(SELECT -1::bigint AS rank, "ChangeSeq" AS seq, "IDUVGone" AS id, 0::bigint AS size, "Key" AS k FROM "UVGone"
		WHERE "Kind" = '` + string(tables.BuriedOf(f)) + `' AND ` + of("Key") + few}
	for i, l := range layouts {
		if l.Table.Kind.Family() == f {
			parts = append(parts, `(SELECT `+strconv.Itoa(i)+`, "ChangeSeq", "`+l.id+`", `+l.texts(false)+`, '' FROM "`+l.Table.Name+
				`" WHERE `+of(l.Table.Key)+` AND "Deleted" = 0`+few)
		}
	}
	return `SELECT rank, seq, id, size, k FROM (` + strings.Join(parts, " UNION ALL ") + `) AS each ORDER BY seq FETCH FIRST ` +
		strconv.Itoa(want) + ` ROWS WITH TIES`, m.args
}

// trailOf finds the changes of a host behind a Seq, at least as many as asked if there are so many, in order. It never ends inside a
// Seq; more says that there may be others behind.
func (r *reading) trailOf(ctx context.Context, f ports.Family, host, key string, after uint64, want int) (found []step, more bool, err error) {
	text, args := trailText(f, host, key, after, want)
	err = r.query(ctx, text, func(row []any) error {
		var c step
		c.rank, _ = row[0].(int64)
		seq, _ := row[1].(int64)
		c.seq = uint64(seq)
		c.id, _ = row[2].(int64)
		c.size, _ = row[3].(int64)
		if c.rank < 0 {
			c.gone = tables.BuriedOf(f)
			c.at.Key, _ = row[4].(string)
		} else {
			c.layout = layouts[c.rank]
		}
		found = append(found, c)
		return nil
	}, args...)
	slices.SortFunc(found, func(a, b step) int {
		return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.rank, b.rank), cmp.Compare(a.id, b.id))
	})
	return found, len(found) >= want, err
}

// rowsOf gives the rows of changes, in their order.
func (r *reading) rowsOf(ctx context.Context, host string, changes []step) ([]ports.Row, error) {
	var hits []hit
	for _, c := range changes {
		if c.gone == "" {
			hits = append(hits, c.hit)
		}
	}
	present, err := r.fetch(ctx, hits, false)
	if err != nil {
		return nil, err
	}
	rows := make([]ports.Row, 0, len(changes))
	for _, c := range changes {
		if c.gone != "" {
			rows = append(rows, ports.Row{Kind: c.gone, Key: c.at.Key, Gone: true, Change: ports.Change{Host: host, Seq: c.seq}})
			continue
		}
		rows = append(rows, present[0])
		present = present[1:]
	}
	return rows, nil
}
