package stock

import (
	"encoding/json"
	"testing"
)

func TestPersistenceAnswersAsTheContractSays(t *testing.T) {
	t.Parallel()
	type step struct{ action, settings, wanted string }
	for _, c := range []struct {
		name   string
		strict bool
		steps  []step
	}{
		{"an upsert lays members over", false, []step{
			{"QP_UpsertWorkItem", `{"WorkItem":{"WorkItemHash":"a","Status":"Pending","N":1}}`, `{"Success":true}`},
			{"QP_UpsertWorkItem", `{"WorkItem":{"WorkItemHash":"a","Status":"Complete","M":null}}`, `{"Success":true}`},
			{"QP_GetWorkItemByHash", `{"WorkItemHash":"a"}`, `{"Success":true,"WorkItem":{"M":null,"N":1,"Status":"Complete","WorkItemHash":"a"}}`},
		}},
		{"a patch of nothing is swallowed", false, []step{
			{"QP_UpdateWorkItem", `{"WorkItemHash":"a","Patch":{"Status":"Complete"}}`, `{"Success":true}`},
			{"QP_UpdateAttemptOutcome", `{"WorkItemHash":"a","AttemptNumber":1,"Patch":{"Outcome":"Complete"}}`, `{"Success":true}`},
			{"QP_GetWorkItemByHash", `{"WorkItemHash":"a"}`, `{"Success":false,"WorkItem":null}`},
		}},
		{"or refused, as was recorded", true, []step{
			{"QP_UpdateWorkItem", `{"WorkItemHash":"a","Patch":{}}`, `{"Reason":"Unknown work item a","Success":false}`},
			{"QP_UpdateAttemptOutcome", `{"WorkItemHash":"a","AttemptNumber":1,"Patch":{}}`, `{"Reason":"Unknown attempt","Success":false}`},
		}},
		{"events are appended, also those that are there", false, []step{
			{"QP_AppendEvent", `{"Event":{"WorkItemHash":"a","EventType":"x"}}`, `{"Success":true}`},
			{"QP_AppendEvent", `{"Event":{"WorkItemHash":"a","EventType":"x"}}`, `{"Success":true}`},
			{"QP_GetEvents", `{"WorkItemHash":"a","Limit":0}`, `{"Events":[{"WorkItemHash":"a","EventType":"x"},{"WorkItemHash":"a","EventType":"x"}],"Success":true}`},
			{"QP_GetEvents", `{"WorkItemHash":"a","Limit":1}`, `{"Events":[{"WorkItemHash":"a","EventType":"x"}],"Success":true}`},
		}},
		{"attempts are unique", false, []step{
			{"QP_InsertAttempt", `{"Attempt":{"WorkItemHash":"a","AttemptNumber":1,"Outcome":"Dispatched"}}`, `{"Success":true}`},
			{"QP_InsertAttempt", `{"Attempt":{"WorkItemHash":"a","AttemptNumber":1,"Outcome":"Dispatched"}}`, `{"Success":true}`},
			{"QP_UpdateAttemptOutcome", `{"WorkItemHash":"a","AttemptNumber":1,"Patch":{"Outcome":"Complete"}}`, `{"Success":true}`},
		}},
		{"manifests are replaced, removed and missed", false, []step{
			{"MS_UpsertManifest", `{"Manifest":{"Hash":"r","A":1}}`, `{"Success":true}`},
			{"MS_UpsertManifest", `{"Manifest":{"Hash":"r","B":2}}`, `{"Success":true}`},
			{"MS_GetManifest", `{"RunHash":"r"}`, `{"Manifest":{"B":2,"Hash":"r"},"Success":true}`},
			{"MS_RemoveManifest", `{"RunHash":"r"}`, `{"Success":true}`},
			{"MS_RemoveManifest", `{"RunHash":"r"}`, `{"Success":true}`},
			{"MS_GetManifest", `{"RunHash":"r"}`, `{"Manifest":null,"Success":false}`},
		}},
		{"lists are filtered and ordered", false, []step{
			{"QP_UpsertWorkItem", `{"WorkItem":{"WorkItemHash":"a","Status":"Error","EnqueuedAt":"2"}}`, `{"Success":true}`},
			{"QP_UpsertWorkItem", `{"WorkItem":{"WorkItemHash":"b","Status":"Complete","EnqueuedAt":"1"}}`, `{"Success":true}`},
			{"QP_UpsertWorkItem", `{"WorkItem":{"WorkItemHash":"c","Status":"Pending","EnqueuedAt":"3"}}`, `{"Success":true}`},
			{"QP_ListWorkItems", `{"Filter":{"Status":["Error","Complete"]}}`, `{"Success":true,"WorkItems":[{"EnqueuedAt":"1","Status":"Complete","WorkItemHash":"b"},{"EnqueuedAt":"2","Status":"Error","WorkItemHash":"a"}]}`},
			{"QP_ListWorkItems", `{"Filter":{"OrderBy":"-EnqueuedAt","Limit":1}}`, `{"Success":true,"WorkItems":[{"EnqueuedAt":"3","Status":"Pending","WorkItemHash":"c"}]}`},
			{"QP_ListWorkItems", `{"Filter":{"OrderBy":"EnqueuedAt DESC","Status":"Error"}}`, `{"Success":true,"WorkItems":[{"EnqueuedAt":"2","Status":"Error","WorkItemHash":"a"}]}`},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := NewPersistence()
			p.strict = c.strict
			for _, s := range c.steps {
				if got := string(p.do(s.action, json.RawMessage(s.settings))); !sameJSON(json.RawMessage(got), json.RawMessage(s.wanted)) {
					t.Errorf("%s %s: %s\nwanted %s", s.action, s.settings, got, s.wanted)
				}
			}
			if attempts := p.Holds().Attempts["a"]; len(attempts) > 1 {
				t.Errorf("attempts: %s", attempts)
			}
		})
	}
}
