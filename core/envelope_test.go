package core

import (
	"testing"

	"holdfast/ports"
)

func TestWhatACallIsAboutMayStandOnlyOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		action   ports.Action
		settings string
		field    string
	}{
		{ports.UpsertWorkItem, `{"WorkItem":{"WorkItemHash":"a"},"WorkItem":{"WorkItemHash":"b"}}`, "WorkItem"},
		{ports.UpdateWorkItem, `{"WorkItemHash":"a","WorkItemHash":"b","Patch":{}}`, "WorkItemHash"},
		{ports.UpdateAttemptOutcome, `{"WorkItemHash":"a","AttemptNumber":1,"AttemptNumber":2,"Patch":{}}`, "AttemptNumber"},
		{ports.RemoveManifest, `{"RunHash":"a","RunHash":"b"}`, "RunHash"},
	} {
		_, err := check(&Call{Action: c.action, Settings: []byte(c.settings)})
		if e := ports.AsError(err); e == nil || e.Code != ports.Invalid || e.Field != c.field {
			t.Errorf("%s %s: %v", c.action, c.settings, err)
		}
	}
}
