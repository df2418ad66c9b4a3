package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/internal/workload"
	"holdfast/ports"
)

// The bare program for PostgreSQL: what each batch of 1,024 writes leaves of its records, folded and decoded before the clock starts, in one
// transaction and one round trip, by one prepared statement a table: INSERT ... SELECT unnest ... ON CONFLICT DO UPDATE. No reading, no
// decisions.

// upsert is a table's part of a batch.
type upsert struct {
	text string
	args []any
}

// barePostgres is the work of a bare program, batch by batch.
type barePostgres struct{ batches [][]upsert }

// folded is a record while it is folded.
type folded struct {
	record *ports.Record
	first  ports.First
	seq    uint64
}

// bareOf folds and decodes entries.
func bareOf(b *testing.B, entries []ports.Entry) *barePostgres {
	b.Helper()
	all := map[string]*folded{}
	p := &barePostgres{}
	for chunk := range slices.Chunk(entries, workload.BareBatch) {
		touched := map[*ports.Table][]string{}
		for i := range chunk {
			e := &chunk[i]
			table, key := ports.Items, e.Key
			switch e.Action {
			case ports.AppendEvent:
				table, key = ports.Events, e.EventGUID
			case ports.UpdateAttemptOutcome:
				table, key = ports.Attempts, "attempt of "+e.Key
			}
			r, err := ports.ParseRecord(table, e.Record)
			if err != nil {
				b.Fatal(err)
			}
			f, known := all[key]
			if !known {
				f = &folded{record: r, first: ports.First{ReceivedAt: e.ReceivedAt(), OrderKey: e.OrderKey(), Actor: e.Actor, Origin: e.Origin}}
				switch table {
				case ports.Items:
					f.first.EnqueuedKey, _ = ports.TimeKey(r.Text("EnqueuedAt"))
				case ports.Events:
					f.first.EmittedAt = e.ReceivedAt()
					r.Set("EventGUID", ports.AppendQuoted(nil, e.EventGUID))
				default:
					r.Set("WorkItemHash", ports.AppendQuoted(nil, e.Key))
					r.Set("AttemptNumber", fmt.Appendf(nil, "%d", e.Number))
				}
				all[key] = f
			} else {
				for at, value := range r.Cols {
					if value != nil {
						f.record.Set(table.Members[at].Name, value)
					}
				}
			}
			f.seq = e.Seq
			if !slices.Contains(touched[table], key) {
				touched[table] = append(touched[table], key)
			}
		}
		var batch []upsert
		for _, table := range []*ports.Table{ports.Items, ports.Events, ports.Attempts} {
			if keys := touched[table]; len(keys) > 0 {
				batch = append(batch, upsertOf(table, all, keys))
			}
		}
		p.batches = append(p.batches, batch)
	}
	return p
}

func upsertOf(table *ports.Table, all map[string]*folded, keys []string) upsert {
	var names, params, sets, fields []string
	var args []any
	add := func(c ports.Column, at func(f *folded, values []any, extra string) any) {
		names = append(names, `"`+c.Name+`"`)
		kind := "text"
		var column any
		switch c.Type {
		case ports.Integer:
			kind, column = "bigint", columnOf[int64](all, keys, at)
		case ports.Float:
			kind, column = "double precision", columnOf[float64](all, keys, at)
		case ports.Boolean:
			kind, column = "boolean", columnOf[bool](all, keys, at)
		default:
			column = columnOf[string](all, keys, at)
		}
		args = append(args, column)
		params = append(params, fmt.Sprintf("$%d::%s[]", len(args), kind))
		fields = append(fields, fmt.Sprintf("c%d", len(args)))
		sets = append(sets, fmt.Sprintf(`"%[1]s" = excluded."%[1]s"`, c.Name))
	}
	for place, c := range table.Members {
		add(c, func(_ *folded, values []any, _ string) any { return values[place] })
	}
	for _, c := range table.Ours {
		add(c, func(f *folded, _ []any, extra string) any {
			return ours(c.Name, extra, f)
		})
	}
	unique := table.Indexes[slices.IndexFunc(table.Indexes, func(x ports.Index) bool { return x.Unique })].Columns
	return upsert{
		text: fmt.Sprintf(`INSERT INTO "%s" (%s) SELECT %[3]s FROM unnest(%[4]s) AS v(%[3]s) ON CONFLICT ("%[5]s") DO UPDATE SET %[6]s`, table.Name,
			strings.Join(names, ", "), strings.Join(fields, ", "), strings.Join(params, ", "), strings.Join(unique, `", "`), strings.Join(sets, ", ")),
		args: args,
	}
}

func columnOf[T any](all map[string]*folded, keys []string, at func(f *folded, values []any, extra string) any) (column []T) {
	for _, key := range keys {
		f := all[key]
		c := f.record.Project(f.first)
		v, _ := at(f, c.Values, c.Extra).(T)
		column = append(column, v)
	}
	return column
}

func ours(name, extra string, f *folded) any {
	switch name {
	case "Extra":
		return extra
	case "EnqueuedKey":
		return f.first.EnqueuedKey
	case "OrderKey":
		return f.first.OrderKey
	case "ReceivedAt":
		return f.first.ReceivedAt
	case "Actor":
		return f.first.Actor
	case "Origin":
		return f.first.Origin
	case "ChangeHost":
		return benchHost
	case "ChangeSeq":
		return int64(f.seq)
	}
	return ""
}

// run commits the batches and gives the time that this took.
func (p *barePostgres) run(ctx context.Context, conn *pgx.Conn) (time.Duration, error) {
	began := time.Now()
	for _, batch := range p.batches {
		b := &pgx.Batch{}
		b.Queue("BEGIN")
		for _, u := range batch {
			b.Queue(u.text, u.args...)
		}
		b.Queue("COMMIT")
		if err := conn.SendBatch(ctx, b).Close(); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

// single commits every record of the batches by an INSERT of its own, which is what a program does that knows no better.
func (p *barePostgres) single(ctx context.Context, conn *pgx.Conn, batches int) (rows int, took time.Duration, err error) {
	began := time.Now()
	for _, batch := range p.batches[:batches] {
		for _, u := range batch {
			for i := range lengthOf(u.args[0]) {
				one := make([]any, len(u.args))
				for at, column := range u.args {
					one[at] = rowOf(column, i)
				}
				if _, err := conn.Exec(ctx, u.text, one...); err != nil {
					return 0, 0, err
				}
				rows++
			}
		}
	}
	return rows, time.Since(began), nil
}

func lengthOf(column any) int {
	switch c := column.(type) {
	case []string:
		return len(c)
	case []int64:
		return len(c)
	}
	return 0
}

func rowOf(column any, i int) any {
	switch c := column.(type) {
	case []string:
		return c[i : i+1]
	case []int64:
		return c[i : i+1]
	case []float64:
		return c[i : i+1]
	case []bool:
		return c[i : i+1]
	}
	return nil
}
