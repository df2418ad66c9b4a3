package sqlite

import (
	"database/sql/driver"
	"fmt"
	"time"

	"holdfast/ports"
)

// takeOver gives the rows of a table that another program made what the first write through us would have fixed: when they
// came, and their place in lists and among the changes of host "", behind those of the family's earlier tables. The order is
// that in which they were inserted. It runs once, in the transaction that adds the columns.
func takeOver(l *link, t *ports.Table) error {
	seq, err := nobodys(l, t)
	if err != nil {
		return err
	}
	at := "CreateDate"
	if t.Kind == ports.KindItem {
		at = "EnqueuedAt"
	}
	const page = 1000
	for last := int64(-1 << 63); ; {
		type found struct {
			id          int64
			at, created string
		}
		var rows []found
		text := fmt.Sprintf(`SELECT rowid, CAST("%s" AS TEXT), CAST("CreateDate" AS TEXT) FROM "%s" WHERE rowid > ? ORDER BY rowid LIMIT %d`, at, t.Name, page)
		err := l.query(text, func(row []driver.Value) error {
			var f found
			f.id, _ = row[0].(int64)
			f.at, _ = row[1].(string)
			f.created, _ = row[2].(string)
			rows = append(rows, f)
			return nil
		}, last)
		if err != nil {
			return err
		}
		for _, f := range rows {
			created := timeOf(f.created)
			first := ports.Entry{ReceivedMs: created.UnixMilli(), Seq: uint64(max(f.id, 0))}
			seq++
			text := fmt.Sprintf(`UPDATE "%s" SET "OrderKey" = ?, "ReceivedAt" = ?, "ChangeSeq" = ? WHERE rowid = ?`, t.Name)
			args := []any{first.OrderKey(), first.ReceivedAt(), seq, f.id}
			if t.Kind == ports.KindItem {
				key, ok := ports.TimeKey(f.at)
				if !ok {
					key = ports.KeyOfTime(created)
				}
				text = fmt.Sprintf(`UPDATE "%s" SET "EnqueuedKey" = ?, "OrderKey" = ?, "ReceivedAt" = ?, "ChangeSeq" = ? WHERE rowid = ?`, t.Name)
				args = append([]any{key}, args...)
			}
			if _, err := l.exec(text, args...); err != nil {
				return err
			}
			last = f.id
		}
		if len(rows) < page {
			return nil
		}
	}
}

// nobodys is the highest Seq of host "" in a table and those of its family before it, which have their columns already.
func nobodys(l *link, t *ports.Table) (highest int64, err error) {
	for _, other := range ports.Tables {
		if other.Kind.Family() == t.Kind.Family() {
			n, _, err := l.number(`SELECT max("ChangeSeq") FROM "` + other.Name + `" WHERE "ChangeHost" = ''`)
			if err != nil {
				return 0, err
			}
			highest = max(highest, n)
		}
		if other == t {
			break
		}
	}
	return highest, nil
}

// adopt gives rows that no host is known to have changed, such as those of a copy from a store that does not keep it, a place
// among the changes of host "". Without one nobody would ever be told of them.
func adopt(l *link) error {
	for _, t := range ports.Tables {
		const strays = ` WHERE "ChangeHost" = '' AND "ChangeSeq" = 0`
		first, found := int64(0), false
		err := l.query(`SELECT min(rowid) FROM "`+t.Name+`" INDEXED BY "`+indexBy(t, "ChangeHost")+`"`+strays, func(row []driver.Value) error {
			first, found = row[0].(int64)
			return nil
		})
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		last, err := nobodys(l, t)
		if err != nil {
			return err
		}
		if _, err := l.exec(`UPDATE "`+t.Name+`" SET "ChangeSeq" = rowid + ?`+strays, last+1-first); err != nil {
			return err
		}
	}
	return nil
}

// timeOf reads a date as databeacons write it; one that is none becomes the beginning of 1970.
func timeOf(text string) time.Time {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at
		}
	}
	return time.UnixMilli(0)
}
