package postgres

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/internal/pgtest"
	"holdfast/ports"
)

// bulk makes records with the indexes laid aside, which takes a fraction of the time.
func bulk(t *testing.T, conn *pgx.Conn, from, to int, since time.Time) {
	t.Helper()
	rows, err := conn.Query(t.Context(), `SELECT indexname::text, indexdef FROM pg_indexes WHERE schemaname = 'public' AND indexname LIKE 'IX\_UV%' AND tablename LIKE 'UVQueue%'`)
	if err != nil {
		t.Fatal(err)
	}
	indexes := map[string]string{}
	var name, definition string
	if _, err := pgx.ForEachRow(rows, []any{&name, &definition}, func() error { indexes[name] = definition; return nil }); err != nil {
		t.Fatal(err)
	}
	for name := range indexes {
		run(t, conn, `DROP INDEX "`+name+`"`)
	}
	for part := from; part < to; part += 100_000 {
		generated(t, conn, 32, part, min(part+100_000, to), since)
	}
	run(t, conn, `SET maintenance_work_mem = '512MB'`)
	for _, definition := range indexes {
		run(t, conn, definition)
	}
	run(t, conn, `VACUUM ANALYZE`)
}

func TestListsOfFiveMillionItemsBeginAsFastAsThoseOfAHundredThousand(t *testing.T) {
	if os.Getenv("HOLDFAST_SOAK") == "" {
		t.Skip("takes minutes and 20 GB; set HOLDFAST_SOAK=1")
	}
	const few, many = 100_000, 5_000_000
	server := pgtest.Start(t, pgtest.Options{Settings: map[string]string{"max_wal_size": "8GB", "shared_buffers": "512MB", "fsync": "off"}})
	dsn := server.Database(t)
	s := openStore(t, dsn)
	admit(t, s, "")
	conn := session(t, server.Superuser(t, dsn))
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	lists := map[string]ports.ItemQuery{
		"all":                 {},
		"all, newest first":   {Desc: true},
		"a status, 1 in 100":  {Filter: ports.ItemFilter{Status: []string{"Error"}}, Desc: true},
		"a status, 99 in 100": {Filter: ports.ItemFilter{Status: []string{"Complete"}}, Desc: true},
		"two statuses":        {Filter: ports.ItemFilter{Status: []string{"Complete", "Error"}}, Desc: true},
		"a run":               {Filter: ports.ItemFilter{RunID: "run-77"}},
		"a beacon":            {Filter: ports.ItemFilter{AssignedBeaconID: "bcn-7"}, Desc: true},
		"a beacon, a status":  {Filter: ports.ItemFilter{AssignedBeaconID: "bcn-7", Status: []string{"Complete"}}, Desc: true},
		"a time":              {Filter: ports.ItemFilter{From: ports.KeyOfTime(start.Add(50_000 * time.Second))}},
	}
	type times struct{ p50, p99 time.Duration }
	smaller := map[string]times{}
	bulk(t, conn, 0, few, start)
	for size, from := few, few; ; size, from = many, many {
		for name, q := range lists {
			q.Limit = 50
			p50, p99 := listed(t, s, q)
			t.Logf("%d items: %s: %s, p99 %s", size, name, p50, p99)
			if size == few {
				smaller[name] = times{p50, p99}
				continue
			}
			// Below that it is the machine that is measured.
			was := smaller[name]
			if p50 > 2*was.p50 && p50 > 2*time.Millisecond || p99 > 2*was.p99 && p99 > 20*time.Millisecond {
				t.Errorf("%s takes %s (p99 %s), with %d items %s (p99 %s)", name, p50, p99, few, was.p50, was.p99)
			}
		}
		if size == many {
			return
		}
		bulk(t, conn, from, many, start)
	}
}

// listed gives the median and the 99th percentile of a list's time.
func listed(t *testing.T, s *Backend, q ports.ItemQuery) (p50, p99 time.Duration) {
	t.Helper()
	const times = 300
	var took []time.Duration
	for range times {
		began := time.Now()
		page, err := s.Items(t.Context(), q)
		if err != nil || len(page.Rows) == 0 {
			t.Fatalf("%d rows, %v", len(page.Rows), err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[times/2], took[times*99/100]
}
