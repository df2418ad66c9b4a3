package tables

import (
	"time"

	"holdfast/ports"
)

// Sweep is one pass over the finished records, oldest first, in search of those that ended before a time. It remembers
// where it is from one call of Prune to the next, so that a pass over many young records need not fit into one call.
type Sweep struct {
	under bool // way: a pass has begun
	since time.Time
	stage int // of stages
	after ports.Cursor
}

// Stage is one status of one table.
type Stage struct {
	Table  *ports.Table
	Sort   string
	Status string
	Times  []string // members that may hold the end, the best first
}

var stages = func() (all []Stage) {
	for _, t := range []*ports.Table{ports.Items, ports.Manifests} {
		sort := "OrderKey"
		if t.Kind == ports.KindItem {
			sort = "EnqueuedKey"
		}
		times, terminal := EndOf(t.Kind)
		for _, status := range terminal {
			all = append(all, Stage{t, sort, status, times})
		}
	}
	return all
}()

// Victim is a record to be pruned.
type Victim struct {
	Kind ports.Kind
	Key  string
}

// Swept is what one look at a stage came to.
type Swept struct {
	Found []Victim
	After ports.Cursor // the last row that was looked at
	Seen  int
}

// SweepPage is how many rows a look takes in at most; looks are short so that they are in nobody's way.
const SweepPage = 2000

// EndOf gives the members that may tell when a record of a kind ended, the best first, and the statuses in which it has ended.
func EndOf(k ports.Kind) (times, terminal []string) {
	if k == ports.KindManifest {
		return []string{"StopTime", "StartTime"}, ports.TerminalManifests
	}
	return []string{"LastEventAt", "CompletedAt", "EnqueuedAt"}, ports.TerminalItems
}

// Ended says whether the first time among the values lies before a key; rows without any time stay.
func Ended(before string, values []any) bool {
	for _, v := range values {
		text, _ := v.(string)
		if key, ok := ports.TimeKey(text); ok {
			return key < before
		}
	}
	return false
}

// Begin begins a pass unless one is under way that looks for no less.
func (s *Sweep) Begin(before time.Time) {
	if !s.under || before.Before(s.since) {
		*s = Sweep{under: true, since: before}
	}
}

// Find gives up to limit records, and whether the pass is at its end. look looks at the rows of a stage behind a place until it has
// as many as it is told.
func (s *Sweep) Find(limit int, until time.Time, look func(st *Stage, after ports.Cursor, limit int) (Swept, error)) (found []Victim, end bool, err error) {
	for s.stage < len(stages) {
		seen, err := look(&stages[s.stage], s.after, limit-len(found))
		if err != nil {
			return nil, false, err
		}
		s.after = seen.After
		if found = append(found, seen.Found...); len(found) == limit {
			return found, false, nil
		}
		if seen.Seen < SweepPage {
			s.stage++
			s.after = ports.Cursor{}
		}
		if s.stage < len(stages) && time.Now().After(until) {
			return found, false, nil
		}
	}
	return found, true, nil
}
