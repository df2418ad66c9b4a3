package postgres

import (
	"context"
	"strconv"
	"strings"
	"time"

	"holdfast/ports"
)

const (
	surveyStep   = 100_000                // rows that one statement counts
	surveyMargin = 300 * time.Millisecond // before the deadline, to answer in time
)

// Survey counts what the store holds; see ports.Surveyor. It counts along the identities, a stretch at a time, the tables that are
// usually small first, so that what was counted when the time is over is a lower bound.
func (b *Backend) Survey(ctx context.Context) (ports.Survey, error) {
	const op = "postgres: survey"
	d, err := b.open(ctx)
	if err != nil {
		return ports.Survey{}, err
	}
	survey := ports.Survey{Counts: map[ports.Kind]int64{}}
	survey.Bytes, err = view(ctx, d, op, func(ctx context.Context, r *reading) (int64, error) {
		n, _, err := r.number(ctx, sizeText)
		return n, err
	})
	if err != nil {
		return ports.Survey{}, err
	}
	until, limited := ctx.Deadline()
	for _, l := range []*layout{manifests, items, attempts, events} {
		survey.Counts[l.Table.Kind] = 0
		for last := int64(-1 << 63); ; {
			if limited && time.Until(until) < surveyMargin {
				survey.Partial = true
				return survey, nil
			}
			c, err := view(ctx, d, op, func(ctx context.Context, r *reading) (c stretch, err error) { return r.stretch(ctx, l, last) })
			if ports.CodeOf(err) == ports.Deadline {
				survey.Partial = true
				return survey, nil
			}
			if err != nil {
				return ports.Survey{}, err
			}
			survey.Counts[l.Table.Kind] += c.rows
			if c.rows < surveyStep {
				break
			}
			last = c.last
		}
	}
	return survey, nil
}

// stretch is a run of rows of a table.
type stretch struct{ rows, last int64 }

func (r *reading) stretch(ctx context.Context, l *layout, after int64) (c stretch, err error) {
	id := `"` + l.id + `"`
	err = r.query(ctx, `SELECT count(*), max(id) FROM (SELECT `+id+` AS id FROM "`+l.Table.Name+`" WHERE `+id+` > $1 ORDER BY `+id+` LIMIT `+strconv.Itoa(surveyStep)+`) AS stretch`,
		func(row []any) error {
			c.rows, _ = row[0].(int64)
			c.last, _ = row[1].(int64)
			return nil
		}, after)
	return c, err
}

// sizeText is the query for what all tables take on the server's disk, with indexes and what is kept aside.
var sizeText = func() string {
	names := []string{"UVHoldfast", "UVGone", ports.EarlyWrites.Name}
	for _, t := range ports.Tables {
		names = append(names, t.Name)
	}
	return `SELECT sum(pg_total_relation_size(c))::bigint FROM unnest(ARRAY['"` + strings.Join(names, `"','"`) + `"']::regclass[]) AS c`
}()
