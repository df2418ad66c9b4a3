package postgres

import (
	"strings"
	"testing"
	"time"

	"holdfast/ports"
)

func TestManyEventsOfAnItemGoInShortTransactions(t *testing.T) {
	t.Parallel()
	s, dsn := ready(t)
	commit(t, s, upsert(1, "old", `{"WorkItemHash":"old","Status":"Complete","LastEventAt":"2020-01-01T00:00:00Z"}`))
	run(t, session(t, dsn), `INSERT INTO "UVQueueWorkItemEvent" ("EventGUID", "WorkItemHash") SELECT 'g' || n, 'old' FROM generate_series(1, $1) AS n`, 3*pruneRows+7)
	got, err := s.Prune(t.Context(), ports.PruneQuery{Before: time.Now()})
	if err != nil || got.Items != 1 || got.Events != 3*pruneRows+7 || got.More {
		t.Fatalf("%+v, %v", got, err)
	}
}

// A record that was written between being found and being removed is young again.
func TestARecordThatComesBackToLifeIsNotPruned(t *testing.T) {
	t.Parallel()
	s, _ := ready(t)
	commit(t, s, upsert(1, "a", `{"WorkItemHash":"a","Status":"Complete","LastEventAt":"2020-01-01T00:00:00Z"}`))
	p := pruning{base: s.base, ages: ages{all: true, before: ports.KeyOfTime(time.Now())}}
	commit(t, s, patch(2, "a", `{"Status":"Running"}`))
	if err := p.remove(t.Context(), items, []string{"a", "gone already"}); err != nil || p.pruned != (ports.Pruned{}) {
		t.Errorf("%+v, %v", p.pruned, err)
	}
	if _, err := s.Item(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}

func TestNewTablesAreVacuumedEarly(t *testing.T) {
	t.Parallel()
	_, dsn := ready(t)
	conn := session(t, dsn)
	for _, l := range layouts {
		if got := ask[string](t, conn, `SELECT coalesce(array_to_string(reloptions, ', '), '') FROM pg_class WHERE oid = $1::text::regclass`, `"`+l.Table.Name+`"`); got != strings.ReplaceAll(vacuumEarly, " = ", "=") {
			t.Errorf("%s has %q", l.Table.Name, got)
		}
	}
}
