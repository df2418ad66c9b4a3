package postgres

import (
	"strings"
	"testing"

	"holdfast/adapters/tables/tabletest"
	"holdfast/ports"
)

func TestChangesAreReadAlongTheirIndexes(t *testing.T) {
	t.Parallel()
	s, dsn := ready(t)
	conn := session(t, dsn)
	for _, l := range layouts {
		own := map[*layout]string{items: `"WorkItemHash"`, events: `"EventGUID"`, attempts: `"WorkItemHash"`, manifests: `"Hash"`}[l]
		run(t, conn, `INSERT INTO "`+l.Table.Name+`" (`+own+`, "ChangeHost", "ChangeSeq") SELECT 'k' || n, $1, n FROM generate_series(1, 20000) AS n`, host)
	}
	run(t, conn, `INSERT INTO "UVGone" ("Kind", "Key", "ChangeHost", "ChangeSeq") SELECT 'WorkItem', 'd' || n, $1, n FROM generate_series(1, 20000) AS n`, host)
	run(t, conn, `ANALYZE`)
	check := func(text string, args ...any) {
		t.Helper()
		plan := planOf(t, conn, text, args...)
		if strings.Contains(plan, "Seq Scan") {
			t.Errorf("%s\n%s", text, plan)
		}
	}
	for _, f := range ports.Families {
		check(textsOf[f].hosts)
		for _, key := range []string{"", "k5"} {
			text, args := trailText(f, host, key, 100, 513)
			check(text, args...)
		}
	}
	if page := tabletest.Changes(t, s, ports.ChangesQuery{Family: ports.Manifest, Limit: 3, After: ports.Position{Epoch: epoch, Seqs: map[string]uint64{host: 10}}}); len(page.Rows) != 3 || page.Rows[0].Key != "k11" {
		t.Errorf("%+v", page)
	}
}
