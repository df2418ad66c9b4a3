package postgres

import (
	"context"
	"strconv"
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
	sort   string
	status string
	times  []string // members that may hold the end, the best first
}

func stages() []stage {
	var all []stage
	for _, status := range ports.TerminalItems {
		all = append(all, stage{items, "EnqueuedKey", status, itemTimes})
	}
	for _, status := range ports.TerminalManifests {
		all = append(all, stage{manifests, "OrderKey", status, manifestTimes})
	}
	return all
}

var (
	itemTimes     = []string{"LastEventAt", "CompletedAt", "EnqueuedAt"}
	manifestTimes = []string{"StopTime", "StartTime"}
	sweepStages   = stages()
)

// sweepPage is how many rows one read of a sweep looks at; reads are short so that they hold up no vacuum.
const sweepPage = 2000

// ended says whether the first time among the values lies before a key; rows without any time stay.
func ended(before string, values []any) bool {
	for _, v := range values {
		text, _ := v.(string)
		if key, ok := ports.TimeKey(text); ok {
			return key < before
		}
	}
	return false
}

// victim is a record to be pruned.
type victim struct {
	layout *layout
	key    string
}

// find gives up to limit records that ended before their host's key, and whether the pass is at its end.
func (sw *sweep) find(ctx context.Context, d *database, a ages, limit int, until time.Time) (found []victim, end bool, err error) {
	for sw.stage < len(sweepStages) {
		st := &sweepStages[sw.stage]
		p, err := view(ctx, d, opPrune, func(ctx context.Context, r *reading) (swept, error) {
			return st.page(ctx, r, a, sw.after, limit-len(found))
		})
		if err != nil {
			return nil, false, err
		}
		sw.after = p.after
		if found = append(found, p.found...); len(found) == limit {
			return found, false, nil
		}
		if p.seen < sweepPage {
			sw.stage++
			sw.after = ports.Cursor{}
		}
		if sw.stage < len(sweepStages) && time.Now().After(until) {
			return found, false, nil
		}
	}
	return found, true, nil
}

// swept is what one read of a sweep came to.
type swept struct {
	found []victim
	after ports.Cursor // the last row that was looked at
	seen  int
}

func (st *stage) page(ctx context.Context, r *reading, a ages, after ports.Cursor, limit int) (swept, error) {
	p := swept{after: after}
	key := `"` + st.layout.Table.Key + `"`
	err := r.query(ctx, `SELECT "`+st.sort+`", `+key+`, "ChangeHost", `+tables.Quoted(st.times)+` FROM "`+st.layout.Table.Name+`"
		WHERE "Status" = $1 AND ("`+st.sort+`", `+key+`) > ($2, $3) ORDER BY "`+st.sort+`", `+key+` LIMIT `+strconv.Itoa(sweepPage),
		func(row []any) error {
			if len(p.found) == limit {
				return nil // looked at again by the next call
			}
			p.seen++
			p.after.Sort, _ = row[0].(string)
			p.after.Key, _ = row[1].(string)
			host, _ := row[2].(string)
			if before, ok := a.of(host); ok && ended(before, row[3:]) {
				p.found = append(p.found, victim{st.layout, p.after.Key})
			}
			return nil
		}, st.status, after.Sort, after.Key)
	return p, err
}
