package postgres

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// A databeacon makes the same tables with narrower types: varchar(128), integer, numeric(10,2). They are widened once, when holdfast
// first finds them: from varchar to text the catalog alone changes and indexes are built anew, from integer to bigint the table
// is rewritten, which takes seconds for a million rows and lets nobody else in meanwhile. In return nothing is ever cut or rounded, and
// every statement fits every table. The databeacon goes on working: it asks for the types again at its next introspection.

// present is a column as the server has it.
type present struct {
	kind     string // as format_type gives it
	collated bool   // by bytes
}

func columnsOf(ctx context.Context, conn *pgx.Conn, table string) (map[string]present, error) {
	rows, err := conn.Query(ctx, `SELECT a.attname::text, format_type(a.atttypid, NULL), coalesce(c.collname::text, '') FROM pg_attribute a
		LEFT JOIN pg_collation c ON c.oid = a.attcollation
		WHERE a.attrelid = to_regclass(quote_ident($1)) AND a.attnum > 0 AND NOT a.attisdropped`, table)
	if err != nil {
		return nil, err
	}
	all := map[string]present{}
	var name, kind, collation string
	_, err = pgx.ForEachRow(rows, []any{&name, &kind, &collation}, func() error {
		all[name] = present{kind, collation == "C"}
		return nil
	})
	return all, err
}

// widening lists what makes a table ours.
func widening(t *ports.Table, there map[string]present) (changes []string) {
	for _, c := range tables.ColumnsOf(t) {
		now, found := there[c.Name]
		kind, _ := typeOf(&c)
		alter := func(text string, using string) {
			changes = append(changes, fmt.Sprintf(`ALTER COLUMN "%s" TYPE %s%s`, c.Name, text, using))
		}
		switch {
		case !found:
			changes = append(changes, "ADD COLUMN "+columnDDL(&c))
		case c.Type == ports.Text || c.Type == ports.Opaque:
			if now.kind != "text" || !now.collated {
				alter(kind, "")
			}
		case c.Type == ports.Integer || c.Type == ports.Identity:
			if now.kind != "bigint" {
				alter(kind, "")
			}
		case c.Type == ports.Float:
			if now.kind != "double precision" {
				alter(kind, "")
			}
		case c.Type == ports.Boolean && now.kind != "boolean":
			changes = append(changes, fmt.Sprintf(`ALTER COLUMN "%s" DROP DEFAULT`, c.Name))
			alter(kind, fmt.Sprintf(` USING "%s"::text NOT IN ('0', 'f', 'false', '')`, c.Name))
			changes = append(changes, fmt.Sprintf(`ALTER COLUMN "%s" SET DEFAULT false`, c.Name))
		}
	}
	return changes
}

// widenSequence lets a table's numbers go beyond 31 bits.
func widenSequence(ctx context.Context, conn *pgx.Conn, t *ports.Table) error {
	var name string
	err := conn.QueryRow(ctx, `SELECT coalesce((SELECT s.seqrelid::regclass::text FROM pg_sequence s
		WHERE s.seqrelid = pg_get_serial_sequence(quote_ident($1), $2)::regclass AND s.seqtypid <> 'bigint'::regtype), '')`, t.Name, t.Engine[0].Name).Scan(&name)
	if err != nil || name == "" {
		return err
	}
	_, err = conn.Exec(ctx, `ALTER SEQUENCE `+name+` AS bigint`)
	return err
}

// takeOver gives the rows of a table that another program made what the first write through us would have fixed: when they
// came, and their place in lists and among the changes of host "", behind those of the family's earlier tables. The order is
// that in which they were inserted. It runs once, in the transaction that adds the columns.
func takeOver(ctx context.Context, conn *pgx.Conn, t *ports.Table) error {
	family := tables.OfFamily(t.Kind.Family())
	seq, err := nobodys(ctx, conn, family[:slices.Index(family, t)+1]) // the later ones may not have their columns yet
	if err != nil {
		return err
	}
	id, at := t.Engine[0].Name, "CreateDate"
	if t.Kind == ports.KindItem {
		at = "EnqueuedAt"
	}
	const page = 1000
	text := fmt.Sprintf(`SELECT "%[1]s", coalesce("%[2]s"::text, ''), coalesce("CreateDate"::text, '') FROM "%[3]s" WHERE "%[1]s" > $1 ORDER BY "%[1]s" LIMIT %[4]d`,
		id, at, t.Name, page)
	update := `UPDATE "` + t.Name + `" AS t SET "OrderKey" = v.o, "ReceivedAt" = v.r, "ChangeSeq" = v.s%s FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::text[]) AS v(id, o, r, s, e) WHERE t."` + id + `" = v.id`
	enqueued := ""
	if t.Kind == ports.KindItem {
		enqueued = `, "EnqueuedKey" = v.e`
	}
	update = fmt.Sprintf(update, enqueued)
	for last := int64(-1 << 63); ; {
		rows, err := conn.Query(ctx, text, last)
		if err != nil {
			return err
		}
		var ids, seqs []int64
		var orders, received, keys []string
		var when, date string
		_, err = pgx.ForEachRow(rows, []any{&last, &when, &date}, func() error {
			first := tables.TakenOver(last, when, strings.TrimSuffix(date, "+00"))
			seq++
			ids, seqs = append(ids, last), append(seqs, seq)
			orders, received, keys = append(orders, first.OrderKey), append(received, first.ReceivedAt), append(keys, first.EnqueuedKey)
			return nil
		})
		if err != nil {
			return err
		}
		if len(ids) > 0 {
			if _, err := conn.Exec(ctx, update, ids, orders, received, seqs, keys); err != nil {
				return err
			}
		}
		if len(ids) < page {
			return setWord(ctx, conn, tables.KeyNobody(t.Kind.Family()), strconv.FormatInt(seq, 10))
		}
	}
}

func setWord(ctx context.Context, conn *pgx.Conn, key, value string) error {
	_, err := conn.Exec(ctx, setKeys, []string{key}, []string{value})
	return err
}
