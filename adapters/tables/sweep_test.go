package tables_test

import (
	"fmt"
	"testing"
	"time"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// A pass that runs out of time goes on where it was, and one that has found enough as well.
func TestASweepGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	const rows, first = 2*tables.SweepPage + 10, "Complete"
	old := map[string]bool{"k00003": true, fmt.Sprintf("k%05d", tables.SweepPage+5): true, fmt.Sprintf("k%05d", rows-1): true}
	looks := 0
	look := func(st *tables.Stage, after ports.Cursor, limit int) (s tables.Swept, err error) {
		looks++
		s.After = after
		if st.Table != ports.Items || st.Status != first {
			return s, nil
		}
		for i := range rows {
			key := fmt.Sprintf("k%05d", i)
			if key <= after.Key {
				continue
			}
			s.After.Key = key
			if s.Seen++; old[key] {
				s.Found = append(s.Found, tables.Victim{Kind: st.Table.Kind, Key: key})
			}
			if len(s.Found) == limit || s.Seen == tables.SweepPage {
				break
			}
		}
		return s, nil
	}
	for _, limit := range []int{1, 2, 10} {
		var sw tables.Sweep
		sw.Begin(time.Now())
		var found []tables.Victim
		calls := 0
		for end := false; !end; calls++ {
			more, over, err := sw.Find(limit, time.Now().Add(-time.Second), look)
			if err != nil || len(more) > limit || calls > 100 {
				t.Fatalf("call %d: %v, %v", calls, more, err)
			}
			found, end = append(found, more...), over
		}
		if len(found) != len(old) || !old[found[0].Key] || !old[found[1].Key] || !old[found[2].Key] || found[0] == found[1] {
			t.Errorf("by %d: found %v", limit, found)
		}
		if calls < 3 {
			t.Errorf("by %d: a pass without time made %d calls", limit, calls)
		}
	}
	if stages := len(ports.TerminalItems) + len(ports.TerminalManifests); looks < 3*stages {
		t.Errorf("%d looks at %d stages", looks, stages)
	}
}

func TestAPassUnderWayIsBegunAnewOnlyForAnEarlierTime(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, c := range map[string]struct {
		next time.Time
		anew bool
	}{"the same": {now, false}, "later": {now.Add(time.Hour), false}, "earlier": {now.Add(-time.Hour), true}} {
		var sw tables.Sweep
		var seen []string
		look := func(st *tables.Stage, _ ports.Cursor, _ int) (tables.Swept, error) {
			seen = append(seen, st.Status)
			return tables.Swept{}, nil
		}
		sw.Begin(now)
		if _, _, err := sw.Find(1, now.Add(-time.Hour), look); err != nil { // one stage
			t.Fatal(err)
		}
		sw.Begin(c.next)
		if _, _, err := sw.Find(1, now.Add(-time.Hour), look); err != nil {
			t.Fatal(err)
		}
		if (seen[1] == seen[0]) != c.anew {
			t.Errorf("%s: looked at %v", name, seen)
		}
	}
}

func TestTheFirstTimeSaysWhenARecordEnded(t *testing.T) {
	t.Parallel()
	before := ports.KeyOfTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	for _, c := range []struct {
		values []any
		ended  bool
	}{
		{nil, false},
		{[]any{nil, "", int64(5)}, false},
		{[]any{"2025-12-31T23:59:59Z"}, true},
		{[]any{"2026-01-01T00:00:00Z"}, false},
		{[]any{"2026-01-01T01:00:00+02:00"}, true},
		{[]any{nil, "soon", "2025-01-01T00:00:00Z"}, true},
		{[]any{"2027-01-01T00:00:00Z", "2025-01-01T00:00:00Z"}, false},
	} {
		if got := tables.Ended(before, c.values); got != c.ended {
			t.Errorf("%v: ended %v", c.values, got)
		}
	}
}
