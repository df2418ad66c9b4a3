package tables_test

import (
	"slices"
	"strings"
	"testing"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

func held(t *testing.T, table *ports.Table, record string, seq uint64) *ports.Held {
	t.Helper()
	r, err := ports.ParseRecord(table, []byte(record))
	if err != nil {
		t.Fatal(err)
	}
	return &ports.Held{Record: r, First: ports.First{OrderKey: "o", ReceivedAt: "r", Actor: "a", Origin: "http"}, Change: ports.Change{Host: "h", Seq: seq}}
}

func namesOf(l *tables.Layout, set uint64) (names []string) {
	for at, name := range l.Names {
		if set&(1<<at) != 0 {
			names = append(names, name)
		}
	}
	return names
}

func TestOnlyWhatDiffersIsSet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		table      *ports.Table
		base, next string
		seq        uint64
		want       string
	}{
		{ports.Items, `{"Status":"Pending"}`, `{"Status":"Pending"}`, 1, ""},
		{ports.Items, `{"Status":"Pending"}`, `{"Status":"Pending"}`, 2, "ChangeSeq"},
		{ports.Items, `{"Status":"Pending"}`, `{"Status":"Running"}`, 2, "Status ChangeSeq"},
		{ports.Items, `{"Status":"Pending"}`, `{"Status":null}`, 2, "Status Extra ChangeSeq"},
		{ports.Items, `{"Status":"Pending"}`, `{"Status":"Pending","X":1}`, 2, "Extra ChangeSeq"},
		{ports.Items, `{"Priority":1}`, `{"Priority":1.0}`, 2, "Priority Extra ChangeSeq"},
		{ports.Manifests, `{"Status":"Pending"}`, `{"Status":"Pending","X":1}`, 2, "ChangeSeq ManifestJSON"},
	} {
		l := tables.NewLayout(c.table, ports.Opaque)
		dst := make([]any, len(l.Names))
		set := l.Changes(dst, "k", held(t, c.table, c.base, 1), held(t, c.table, c.next, c.seq))
		if got := strings.Join(namesOf(&l, set), " "); got != c.want {
			t.Errorf("%s to %s sets %q, want %q", c.base, c.next, got, c.want)
		}
	}
}

// A column that another member may fill has its value also where that member alone changed.
func TestAColumnFollowsTheMemberThatFillsIt(t *testing.T) {
	t.Parallel()
	l := tables.NewLayout(ports.Attempts)
	for at, c := range ports.Attempts.Members {
		if c.Alias == "" {
			continue
		}
		base, next := held(t, ports.Attempts, `{"`+c.Alias+`":"a"}`, 1), held(t, ports.Attempts, `{"`+c.Alias+`":"b"}`, 2)
		dst, all := make([]any, len(l.Names)), make([]any, len(l.Names))
		set := l.Changes(dst, "k", base, next)
		l.Values(all, "k", next)
		if set&(1<<at) == 0 || dst[at] != all[at] {
			t.Errorf("%s is set %v to %v, want %v", c.Name, set&(1<<at) != 0, dst[at], all[at])
		}
	}
}

func TestARowGivesBackItsRecord(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		table        *ports.Table
		record, lean string
	}{
		{ports.Items, `{"WorkItemHash":"k","Settings":{"a": 1},"Status":"S","Priority":1.0,"X":[ ]}`, `{"WorkItemHash":"k","Status":"S","Priority":1.0,"X":[ ]}`},
		{ports.Attempts, `{"WorkItemHash":"k","AttemptNumber":2}`, `{"WorkItemHash":"k","AttemptNumber":2}`},
		{ports.Manifests, `{"X":1, "Hash":"k","Status":"S"}`, `{"Hash":"k","Status":"S"}`},
	} {
		l := tables.NewLayout(c.table, ports.Opaque)
		values := make([]any, len(l.Names))
		want := held(t, c.table, c.record, 7)
		l.Values(values, "k", want)
		for _, lean := range []bool{false, true} {
			var row []any
			for name := range strings.SplitSeq(l.Columns(lean), ", ") {
				row = append(row, values[slices.Index(l.Names, strings.Trim(name, `"`))])
			}
			if len(row) != l.Width(lean) {
				t.Fatalf("%s, lean %v: %d columns, but %d wide", c.table.Name, lean, len(row), l.Width(lean))
			}
			got, err := l.Restore(row, lean)
			body := map[bool]string{false: string(want.Record.JSON()), true: c.lean}[lean]
			if err != nil || string(got.Body) != body || got.Key != "k" || got.First != want.First || got.Change != want.Change {
				t.Errorf("%s, lean %v: %+v with %s, want %s (%v)", c.table.Name, lean, got, got.Body, body, err)
			}
		}
	}
}

// An engine without room for a long text says so, and then the whole value stands elsewhere.
func TestAColumnThatShowsLessIsToldToHoldLess(t *testing.T) {
	t.Parallel()
	l := tables.NewLayout(ports.Items)
	l.Cut = func(_ int, value any) bool { return value == "long" }
	for next, extra := range map[string]bool{"long": true, "other": false} {
		dst := make([]any, len(l.Names))
		set := l.Changes(dst, "k", held(t, ports.Items, `{"Status":"S"}`, 1), held(t, ports.Items, `{"Status":"`+next+`"}`, 1))
		if got := set&(1<<l.Extra) != 0; got != extra {
			t.Errorf("%s: Extra is set %v", next, got)
		}
	}
}
