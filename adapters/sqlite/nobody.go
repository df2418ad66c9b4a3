package sqlite

import (
	"database/sql/driver"
	"strconv"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// Rows that no host is known to have changed count as changes of host "", numbered when they are found. A number is never
// given twice: a reader that has come so far would not be told of the second row.

// adopt numbers the rows of host "" that have no Seq yet, such as those of a copy from a store that does not keep it. Without
// one nobody would ever be told of them. It must run in a transaction.
func adopt(l *link) error {
	for _, t := range ports.Tables {
		const strays = ` WHERE "ChangeHost" = '' AND "ChangeSeq" = 0`
		first, last, found := int64(0), int64(0), false
		ends := `SELECT min(rowid), max(rowid) FROM "` + t.Name + `" INDEXED BY "` + indexBy(t, "ChangeHost") + `"` + strays
		err := l.query(ends, func(row []driver.Value) error {
			first, found = row[0].(int64)
			last, _ = row[1].(int64)
			return nil
		})
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		given, err := nobodys(l, tables.OfFamily(t.Kind.Family()))
		if err != nil {
			return err
		}
		if _, err := l.exec(`UPDATE "`+t.Name+`" SET "ChangeSeq" = rowid + ?`+strays, given+1-first); err != nil {
			return err
		}
		if err := setKey(l, tables.KeyNobody(t.Kind.Family()), strconv.FormatInt(given+1-first+last, 10)); err != nil {
			return err
		}
	}
	return nil
}

// nobodys is the highest Seq that host "" has or had in some tables of one family.
func nobodys(l *link, of []*ports.Table) (highest int64, err error) {
	text, err := l.word(readKey, tables.KeyNobody(of[0].Kind.Family()))
	if err != nil {
		return 0, err
	}
	highest, _ = strconv.ParseInt(text, 10, 64) // none: 0
	for _, t := range of {
		n, _, err := l.number(`SELECT max("ChangeSeq") FROM "` + t.Name + `" WHERE "ChangeHost" = ''`)
		if err != nil {
			return 0, err
		}
		highest = max(highest, n)
	}
	return highest, nil
}
