package core

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"holdfast/ports"
)

// Where Action stands before Settings, ParseCall takes the record apart on its way; behind it, check does so later. Nobody
// must be able to tell.
func TestTheOrderOfActionAndSettingsMakesNoDifference(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", ports.MaxDepth) + strings.Repeat("]", ports.MaxDepth)
	for _, c := range []struct{ action, settings string }{
		{"QP_UpsertWorkItem", `{"WorkItem":{"WorkItemHash":"a","Status":"Pending","Own":{"b":[1,2]},"Settings":{"WorkItem":{"WorkItemHash":"inner"}}},"QueueMetadata":{"WorkItemHash":"x"}}`},
		{"QP_UpsertWorkItem", ` { "WorkItem" : { "WorkItemHash" : "a" } } `},
		{"QP_UpsertWorkItem", `{"WorkItem":{"WorkItemHash":"a","IDBeaconWorkItem":7,"CreateDate":"x"}}`},
		{"QP_UpsertWorkItem", `{"WorkItem":{"WorkItemHash":"a","Status":"x","Status":"y"}}`},
		{"QP_UpsertWorkItem", `{"WorkItem":{"WorkItemHash":"a","Own":1,"\u004fwn":2}}`},
		{"QP_UpsertWorkItem", `{"WorkItem":{"WorkItemHash":"a","\ud800":2}}`},
		{"QP_UpsertWorkItem", `{"WorkItem":{"WorkItemHash":"a"},"WorkItem":{"WorkItemHash":"b"}}`},
		{"QP_UpsertWorkItem", `{"WorkItem":{"WorkItemHash":"a"},"WorkItem":1}`},
		{"QP_UpsertWorkItem", `{"WorkItem":[]}`},
		{"QP_UpsertWorkItem", `{"WorkItem":null}`},
		{"QP_UpsertWorkItem", `{}`},
		{"QP_UpsertWorkItem", `{"WorkItem":{"WorkItemHash":"a","Deep":` + deep + `}}`},
		{"QP_UpsertWorkItem", `{"WorkItem":{"WorkItemHash":"a"},"Beside":` + deep[:4] + deep[len(deep)-4:] + `}`},
		{"QP_UpdateWorkItem", `{"WorkItemHash":"a","Patch":{"Status":"Complete"}}`},
		{"QP_UpdateWorkItem", `{"WorkItemHash":"a","WorkItemHash":"b","Patch":{"Status":"Complete"}}`},
		{"QP_UpdateWorkItem", `{"Patch":{"WorkItemHash":"b"},"WorkItemHash":"a"}`},
		{"QP_AppendEvent", `{"Event":{"WorkItemHash":"a","EventGUID":"g","Payload":{"EventGUID":"h"}}}`},
		{"QP_InsertAttempt", `{"Attempt":{"WorkItemHash":"a","AttemptNumber":3}}`},
		{"QP_UpdateAttemptOutcome", `{"WorkItemHash":"a","AttemptNumber":2,"Patch":{"Outcome":"Complete"}}`},
		{"QP_UpdateAttemptOutcome", `{"WorkItemHash":"a","AttemptNumber":2,"AttemptNumber":3,"Patch":{}}`},
		{"MS_UpsertManifest", `{"Manifest":{"Hash":"m","Live":false,"Output":{}}}`},
		{"MS_RemoveManifest", `{"RunHash":"m","Patch":{"a":1,"a":2}}`},
	} {
		var before, behind []any
		for line, into := range map[string]*[]any{
			fmt.Sprintf(`{"Action":%q,"Settings":%s}`, c.action, c.settings): &before,
			fmt.Sprintf(`{"Settings":%s,"Action":%q}`, c.settings, c.action): &behind,
		} {
			call, err := ParseCall([]byte(line))
			if err != nil {
				*into = []any{"parse", err.Error()}
				continue
			}
			got, err := check(&call)
			*into = []any{got.entry, err}
			if got.record != nil {
				*into = append(*into, string(got.record.JSON()), got.record.Size())
			}
		}
		if !reflect.DeepEqual(before, behind) {
			t.Errorf("%s %s\nbefore: %v\nbehind: %v", c.action, c.settings, before, behind)
		}
	}
}
