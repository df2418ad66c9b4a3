package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/internal/workload"
	"holdfast/ports"
)

// How fast a mirror is filled from zero, beside a bare program that copies the same rows by one upsert for each.

// followItems is how many items there are to be copied; each is an item, two events and an attempt.
const (
	followItems = 37_500
	rowsOfItem  = 4
)

// copyTables are what is copied, and what a row is found by.
var copyTables = []struct {
	table *ports.Table
	key   string
}{
	{ports.Items, `"WorkItemHash"`},
	{ports.Events, `"EventGUID"`},
	{ports.Attempts, `"WorkItemHash", "AttemptNumber"`},
}

// source is a table's rows in the order of their changes.
type source struct {
	rows   *sql.Rows
	upsert string
	width  int
	next   []any // the next row, its ChangeSeq first; nil behind the last
}

func (s *source) step() error {
	s.next = nil
	if !s.rows.Next() {
		return s.rows.Err()
	}
	row, into := make([]any, s.width), make([]any, s.width)
	for i := range row {
		into[i] = &row[i]
	}
	if err := s.rows.Scan(into...); err != nil {
		return err
	}
	s.next = row
	return nil
}

func openSource(ctx context.Context, db *sql.DB, t *ports.Table, key string) (*source, error) {
	var names, sets []string
	for _, c := range slices.Concat(t.Members, t.Ours, t.Engine) {
		if c.Type != ports.Identity && c.Type != ports.Deleted {
			names = append(names, `"`+c.Name+`"`)
			sets = append(sets, fmt.Sprintf(`"%s" = excluded."%s"`, c.Name, c.Name))
		}
	}
	list := strings.Join(names, ", ")
	marks := strings.TrimSuffix(strings.Repeat("?, ", len(names)), ", ")
	s := &source{width: len(names) + 1}
	s.upsert = fmt.Sprintf(`INSERT INTO "%s" (%s) VALUES (%s) ON CONFLICT (%s) DO UPDATE SET %s`, t.Name, list, marks, key, strings.Join(sets, ", "))
	var err error
	s.rows, err = db.QueryContext(ctx, fmt.Sprintf(`SELECT "ChangeSeq", %s FROM "%s" ORDER BY "ChangeHost", "ChangeSeq"`, list, t.Name)) //nolint:rowserrcheck // step looks for its error
	if err != nil {
		return nil, err
	}
	return s, s.step()
}

// copied is what a bare copy took.
type copied struct {
	rows             int
	writing, reading time.Duration
	busy             time.Duration // the processor, while writing
}

// bareCopy copies a file of one host's changes into a new one, in the order of changes.
func bareCopy(ctx context.Context, from, dir string) (c copied, err error) {
	to, err := openFile(dir)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	db, err := sql.Open("sqlite", from)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var sources []*source
	defer func() {
		for _, s := range sources {
			err = errors.Join(err, s.rows.Close())
		}
	}()
	for _, t := range copyTables {
		s, err := openSource(ctx, db, t.table, t.key)
		if err != nil {
			return c, err
		}
		sources = append(sources, s)
	}
	for {
		began := time.Now()
		writes, err := nextRows(sources, 8*workload.BareBatch)
		c.reading += time.Since(began)
		if err != nil || len(writes) == 0 {
			return c, err
		}
		began, used := time.Now(), ownTime()
		if err := to.Run(ctx, writes); err != nil {
			return c, err
		}
		c.writing += time.Since(began)
		c.busy += ownTime() - used
		c.rows += len(writes)
	}
}

// nextRows takes rows from the sources by their Seq.
func nextRows(sources []*source, limit int) (writes []workload.Write, err error) {
	for len(writes) < limit {
		var least *source
		for _, s := range sources {
			if s.next != nil && (least == nil || s.next[0].(int64) < least.next[0].(int64)) {
				least = s
			}
		}
		if least == nil {
			return writes, nil
		}
		writes = append(writes, workload.Write{SQL: least.upsert, Args: least.next[1:]})
		if err := least.step(); err != nil {
			return nil, err
		}
	}
	return writes, nil
}

// copyRound measures one round of both. The host is stopped while the bare program runs.
func copyRound(b *testing.B, data string) {
	forget(b, data)
	c, err := bareCopy(b.Context(), filepath.Join(data, "history.db"), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	base := float64(c.rows) / c.writing.Seconds()
	table.add(partFollow, "bare copy, values already read", "rows/s", base)
	table.add(partFollow, "bare copy, reading included", "rows/s", float64(c.rows)/(c.writing+c.reading).Seconds())
	table.add(partCost, "bare copy, writing", "us/row", c.busy.Seconds()*1e6/float64(c.rows))

	host, l := over(b, data, configured(mirrorFirst))
	first := l.until(b, "the first row", func(f following) bool { return f.Copied > 0 })
	began, procs := time.Now(), l.trio(b)
	since := procs.busy()
	last := l.until(b, "the last row", func(f following) bool { return f.Phase == "ready" && f.Behind == 0 })
	took := time.Since(began)
	if int(last.Copied) != c.rows {
		b.Errorf("%d rows were copied, there are %d", last.Copied, c.rows)
	}
	n := last.Copied - first.Copied
	table.add(partFollow, fmt.Sprintf("copy from zero, %d rows", followItems*rowsOfItem), "rows/s", float64(n)/took.Seconds()).
		of("bare copy", base).target(target{What: "ratio", Least: 0.5})
	procs.note("copy from zero", since, n)
	stop(b, host, l)
}
