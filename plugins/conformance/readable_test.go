package conformance

import (
	"strings"
	"testing"
	"time"

	"holdfast/ports"
)

func TestATraceIsForPeople(t *testing.T) {
	t.Parallel()
	long := `"` + strings.Repeat("x", 2000) + `"`
	for name, c := range map[string]struct {
		value any
		want  string
	}{
		"nothing": {nil, ``},
		"a word":  {ports.Queue, `"Queue"`},
		"a batch": {
			ports.Batch{Family: ports.Queue, Rows: []ports.Row{{
				Kind: ports.KindEvent, Key: "w", GUID: "g", Body: []byte(`{"a" :1e400,"a":"\ud800"}`), Change: ports.Change{Host: "h", Seq: 3},
			}}},
			`{"Family": "Queue", "Rows": [{"Kind": "Event", "Key": "w", "GUID": "g", "Body": {"a" :1e400,"a":"\ud800"}, "Change": {"Host": "h", "Seq": 3}}]}`,
		},
		"a position": {
			ports.Batch{Position: &ports.Position{StoreID: "s", Seqs: map[string]uint64{"b": 2, "a": 1}}},
			`{"Position": {"StoreID": "s", "Seqs": {"a": 1, "b": 2}}}`,
		},
		"a body that is none":   {ports.Row{Body: []byte(`{"a"`)}, `{"Body": "{\"a\""}`},
		"a body that is large":  {ports.Row{Body: []byte(long)}, `{"Body": ` + long[:keptBody] + `... (2002 bytes)}`},
		"a time":                {ports.PruneQuery{Before: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), Limit: 5}, `{"Before": "2026-11-30T00:00:00Z", "Limit": 5}`},
		"a duration and a list": {ports.Opening{HostID: "h", Retention: time.Hour, Resume: map[ports.Family]uint64{ports.Queue: 7}}, `{"HostID": "h", "Resume": {"Queue": 7}, "Retention": "1h0m0s"}`},
		"an error": {
			[]ports.Decision{{Seq: 4, Outcome: ports.Refused, Err: ports.OverLimit("Settings", "bytes", 5, 9)}},
			`[{"Seq": 4, "Outcome": "refused", "Err": "too_large: Settings: has 9 bytes, the limit is 5 (limit 5, size 9)"}]`,
		},
	} {
		if got := text(c.value); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", name, got, c.want)
		}
	}
	rows := make([]ports.Row, 5000)
	if got := text(ports.Page{Rows: rows}); len(got) > 3*keptText || !strings.HasSuffix(got, "bytes)") {
		t.Errorf("a long list has %d characters", len(got))
	}
	exchanges := []Exchange{{Call: "Put", Request: "r", Answer: "a"}, {Call: "Probe", Err: "full: no room"}}
	if got := traced(exchanges); got != "  Put\n    asked    r\n    answered a\n  Probe\n    refused  full: no room\n" {
		t.Errorf("got %q", got)
	}
}
