package postgres

import (
	"context"
	"strconv"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// look looks at finished records for those that ended before their host's key; see tables.Sweep. Reads are short so that they hold up
// no vacuum.
func (a *ages) look(ctx context.Context, r *reading, st *tables.Stage, after ports.Cursor, limit int) (tables.Swept, error) {
	s := tables.Swept{After: after}
	key := `"` + st.Table.Key + `"`
	err := r.query(ctx, `SELECT "`+st.Sort+`", `+key+`, "ChangeHost", `+tables.Quoted(st.Times)+` FROM "`+st.Table.Name+`"
		WHERE "Status" = $1 AND ("`+st.Sort+`", `+key+`) > ($2, $3) ORDER BY "`+st.Sort+`", `+key+` LIMIT `+strconv.Itoa(tables.SweepPage),
		func(row []any) error {
			if len(s.Found) == limit {
				return nil // looked at again by the next call
			}
			s.Seen++
			s.After.Sort, _ = row[0].(string)
			s.After.Key, _ = row[1].(string)
			host, _ := row[2].(string)
			if before, ok := a.of(host); ok && tables.Ended(before, row[3:]) {
				s.Found = append(s.Found, tables.Victim{Kind: st.Table.Kind, Key: s.After.Key})
			}
			return nil
		}, st.Status, after.Sort, after.Key)
	return s, err
}
