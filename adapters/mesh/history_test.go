package mesh

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast/core"
	"holdfast/ports"
)

func TestALargeResultHidesNoOtherWorkOfTheQueuesHistory(t *testing.T) {
	t.Parallel()
	host := history(t)
	s := serve(t, Config{Core: Over(host)})
	for i := range 6 {
		result := "{}"
		if i%2 == 0 {
			result = `{"Data":"` + strings.Repeat("x", ports.MaxPageBytes) + `"}`
		}
		text := fmt.Sprintf(`{"WorkItem":{"WorkItemHash":"wi-%d","Capability":"Shell","Status":"Complete","EnqueuedAt":"2026-11-30T12:00:0%d.000Z","Result":%s}}`, i, i, result)
		if a := host.Do(context.Background(), core.Call{Action: ports.UpsertWorkItem, Settings: []byte(text)}); !a.Success() {
			t.Fatal(a.Err)
		}
	}
	a := s.call("GET", "/Beacon/Queue?include=history", nil)
	var hashes []string
	for _, row := range a.body["History"].([]any) {
		hashes = append(hashes, row.(map[string]any)["WorkItemHash"].(string))
	}
	if !slices.Equal(hashes, []string{"wi-5", "wi-4", "wi-3", "wi-2", "wi-1", "wi-0"}) || a.body["HistoryTruncated"] != nil {
		t.Errorf("it has %v", hashes)
	}
}
