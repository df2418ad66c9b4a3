package sqlite

import (
	"database/sql/driver"
	"fmt"
	"slices"
	"strconv"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// takeOver gives the rows of a table that another program made what the first write through us would have fixed: when they
// came, and their place in lists and among the changes of host "", behind those of the family's earlier tables. The order is
// that in which they were inserted. It runs once, in the transaction that adds the columns.
func takeOver(l *link, t *ports.Table) error {
	family := tables.OfFamily(t.Kind.Family())
	seq, err := nobodys(l, family[:slices.Index(family, t)+1]) // the later ones may not have their columns yet
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
			first := tables.TakenOver(f.id, f.at, f.created)
			seq++
			text := fmt.Sprintf(`UPDATE "%s" SET "OrderKey" = ?, "ReceivedAt" = ?, "ChangeSeq" = ? WHERE rowid = ?`, t.Name)
			args := []any{first.OrderKey, first.ReceivedAt, seq, f.id}
			if t.Kind == ports.KindItem {
				text = fmt.Sprintf(`UPDATE "%s" SET "EnqueuedKey" = ?, "OrderKey" = ?, "ReceivedAt" = ?, "ChangeSeq" = ? WHERE rowid = ?`, t.Name)
				args = append([]any{first.EnqueuedKey}, args...)
			}
			if _, err := l.exec(text, args...); err != nil {
				return err
			}
			last = f.id
		}
		if len(rows) < page {
			return setKey(l, tables.KeyNobody(t.Kind.Family()), strconv.FormatInt(seq, 10))
		}
	}
}
