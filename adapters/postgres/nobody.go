package postgres

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// Rows that no host is known to have changed count as changes of host "", numbered when they are found. A number is never
// given twice: a reader that has come so far would not be told of the second row.

// adopt numbers the rows of host "" that have no Seq yet, such as those of a copy from a store that does not keep it. Without
// one nobody would ever be told of them. It must run in a transaction; the lock keeps another host's adoption out.
func adopt(ctx context.Context, conn *pgx.Conn) error {
	const strays = ` WHERE "ChangeHost" = '' AND "ChangeSeq" = 0`
	locked := false
	for _, t := range ports.Tables {
		var found bool
		if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM "`+t.Name+`"`+strays+`)`).Scan(&found); err != nil {
			return err
		}
		if !found {
			continue
		}
		if !locked {
			if _, err := conn.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(ddlLock)); err != nil {
				return err
			}
			locked = true
		}
		given, err := nobodys(ctx, conn, tables.OfFamily(t.Kind.Family()))
		if err != nil {
			return err
		}
		id := `"` + t.Engine[0].Name + `"`
		var last int64
		err = conn.QueryRow(ctx, `WITH numbered AS (SELECT `+id+` AS id, row_number() OVER (ORDER BY `+id+`) + $1 AS seq FROM "`+t.Name+`"`+strays+`),
			told AS (UPDATE "`+t.Name+`" AS t SET "ChangeSeq" = n.seq FROM numbered n WHERE t.`+id+` = n.id RETURNING t."ChangeSeq" AS seq)
			SELECT coalesce(max(seq), $1) FROM told`, given).Scan(&last)
		if err != nil {
			return err
		}
		if err := setWord(ctx, conn, tables.KeyNobody(t.Kind.Family()), strconv.FormatInt(last, 10)); err != nil {
			return err
		}
	}
	return nil
}

// nobodys is the highest Seq that host "" has or had in some tables of one family.
func nobodys(ctx context.Context, conn *pgx.Conn, of []*ports.Table) (highest int64, err error) {
	key := tables.KeyNobody(of[0].Kind.Family())
	words, err := wordsOf(ctx, conn, key)
	if err != nil {
		return 0, err
	}
	highest, _ = strconv.ParseInt(words[key], 10, 64) // none: 0
	for _, t := range of {
		var n int64
		err := conn.QueryRow(ctx, `SELECT coalesce(max("ChangeSeq"), 0) FROM "`+t.Name+`" WHERE "ChangeHost" = ''`).Scan(&n)
		if err != nil {
			return 0, err
		}
		highest = max(highest, n)
	}
	return highest, nil
}
