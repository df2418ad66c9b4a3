package mesh

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"holdfast/core"
	"holdfast/ports"
)

// narrow is a core whose pages hold one item, as if each were large.
type narrow struct {
	Core
	away string // the item that cannot be read
}

func (narrow) HostID() string { return "host" }

func (n narrow) Items(_ context.Context, q ports.ItemQuery) core.Answer {
	if len(q.Filter.Status) > 0 { // the hub's own search
		return core.Answer{Value: []byte("[]")}
	}
	place := 5
	if q.After != nil {
		_, _ = fmt.Sscanf(q.After.Key, "wi-%d", &place)
		place--
	}
	key := fmt.Sprintf("wi-%d", place)
	if key == n.away {
		return core.Answer{Situation: core.Unavailable, Err: ports.Errorf(ports.Unavailable, "local", "is away")}
	}
	a := core.Answer{Value: fmt.Appendf(nil, `[{"WorkItemHash":%q,"Whole":%v}]`, key, q.Bodies)}
	if place > 0 {
		a.More, a.Cursor = true, ports.Cursor{Key: key}.Token()
	}
	return a
}

func TestALargeResultHidesNoOtherWorkOfTheQueuesHistory(t *testing.T) {
	t.Parallel()
	for away, want := range map[string][]string{
		"":     {"wi-5 true", "wi-4 false", "wi-3 false", "wi-2 false", "wi-1 false", "wi-0 false"},
		"wi-3": {"wi-5 true", "wi-4 false"},
	} {
		s := serve(t, Config{Core: narrow{away: away}})
		a := s.call("GET", "/Beacon/Queue?include=history", nil)
		var got []string
		for _, row := range a.body["History"].([]any) {
			got = append(got, fmt.Sprint(row.(map[string]any)["WorkItemHash"], " ", row.(map[string]any)["Whole"]))
		}
		if !slices.Equal(got, want) || (a.body["HistoryTruncated"] == true) != (away != "") {
			t.Errorf("without %q it has %v, truncated: %v", away, got, a.body["HistoryTruncated"])
		}
	}
}
