package sqlite

import (
	"context"
	"errors"
	"slices"
	"time"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// sweep is one pass over the finished records, oldest first, in search of those that ended before a time. It remembers
// where it is from one call of Prune to the next, so that a pass over many young records need not fit into one call.
type sweep struct {
	under bool // way: a pass has begun
	since time.Time
	stage int // of sweeps
	after ports.Cursor
}

// stage is one status of one table.
type stage struct {
	layout *layout
	index  string
	sort   string
	status string
	times  []string // members that may hold the end, the best first
}

func stages() []stage {
	var all []stage
	for _, status := range ports.TerminalItems {
		all = append(all, stage{items, "IX_UVQueueWorkItem_Status", "EnqueuedKey", status, itemTimes})
	}
	for _, status := range ports.TerminalManifests {
		all = append(all, stage{manifests, "IX_UVManifest_StatusOrder", "OrderKey", status, manifestTimes})
	}
	return all
}

var (
	itemTimes     = []string{"LastEventAt", "CompletedAt", "EnqueuedAt"}
	manifestTimes = []string{"StopTime", "StartTime"}
	sweepStages   = stages()
)

// sweepPage is how many rows one read of a sweep looks at; reads are short so that they hold up no checkpoint.
const sweepPage = 2000

// ended says whether the first time among the texts lies before a key; rows without any time stay.
func ended(before string, texts ...string) bool {
	for _, text := range texts {
		if key, ok := ports.TimeKey(text); ok {
			return key < before
		}
	}
	return false
}

// find gives up to limit records that ended before a key, and whether the pass is at its end.
func (sw *sweep) find(ctx context.Context, f *file, before string, limit int, until time.Time) (found []place, end bool, err error) {
	for sw.stage < len(sweepStages) {
		st := &sweepStages[sw.stage]
		seen, err := sw.page(ctx, f, st, before, limit-len(found), &found)
		if err != nil {
			return nil, false, err
		}
		if len(found) == limit {
			return found, false, nil
		}
		if seen < sweepPage {
			sw.stage++
			sw.after = ports.Cursor{}
		}
		if sw.stage < len(sweepStages) && time.Now().After(until) {
			return found, false, nil
		}
	}
	return found, true, nil
}

func (sw *sweep) page(ctx context.Context, f *file, st *stage, before string, limit int, found *[]place) (seen int, err error) {
	l := &listing{layout: st.layout, sort: st.sort, key: st.layout.Table.Key, after: &sw.after}
	l.along(st.index, "Status", st.status)
	text, args := l.sql(tables.Quoted(st.times))
	rows, err := f.readers.QueryContext(ctx, text+" LIMIT ?", append(args, sweepPage)...)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	texts := make([]*string, len(st.times))
	into := []any{&sw.after.Sort, &sw.after.Key}
	for i := range texts {
		into = append(into, &texts[i])
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return seen, err
		}
		seen++
		if !ended(before, given(texts)...) {
			continue
		}
		*found = append(*found, place{st.layout, sw.after.Key, 0})
		if limit--; limit == 0 {
			break
		}
	}
	return seen, rows.Err()
}

func given(texts []*string) []string {
	var out []string
	for _, t := range texts {
		if t != nil {
			out = append(out, *t)
		}
	}
	return slices.Clip(out)
}
