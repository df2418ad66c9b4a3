package postgres

import (
	"context"
	"strconv"
	"time"

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
		seen, err := view(ctx, d, opPrune, func(ctx context.Context, r *reading) (int, error) {
			return sw.page(ctx, r, st, a, limit, &found)
		})
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

func (sw *sweep) page(ctx context.Context, r *reading, st *stage, a ages, limit int, found *[]victim) (seen int, err error) {
	key := `"` + st.layout.table.Key + `"`
	err = r.query(ctx, `SELECT "`+st.sort+`", `+key+`, "ChangeHost", `+quoted(st.times)+` FROM "`+st.layout.table.Name+`"
		WHERE "Status" = $1 AND ("`+st.sort+`", `+key+`) > ($2, $3) ORDER BY "`+st.sort+`", `+key+` LIMIT `+strconv.Itoa(sweepPage),
		func(row []any) error {
			if len(*found) == limit {
				return nil // looked at again by the next call
			}
			seen++
			sw.after.Sort, _ = row[0].(string)
			sw.after.Key, _ = row[1].(string)
			host, _ := row[2].(string)
			if before, ok := a.of(host); ok && ended(before, row[3:]) {
				*found = append(*found, victim{st.layout, sw.after.Key})
			}
			return nil
		}, st.status, sw.after.Sort, sw.after.Key)
	return seen, err
}
