package core

import (
	"fmt"
	"testing"

	"holdfast/ports"
)

func TestWorkThatPersistenceItselfCausesIsIgnored(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		for name := range exempt {
			item, event, patched := "i-"+name, "e-"+name, "p-"+name
			s.does(call(ports.UpsertWorkItem, `{"WorkItem":{"WorkItemHash":%q,"Capability":%q}}`, item, name), Ignored)
			s.does(patch(item, "Complete"), Ignored) // its later writes are known by their key
			s.does(call(ports.InsertAttempt, `{"Attempt":{"WorkItemHash":%q}}`, item), Ignored)
			s.does(call(ports.UpdateAttemptOutcome, `{"WorkItemHash":%q,"AttemptNumber":1,"Patch":{"Outcome":"x"}}`, item), Ignored)
			s.does(call(ports.AppendEvent, `{"Event":{"WorkItemHash":%q,"Payload":{"Capability":%q}}}`, event, name), Ignored)
			s.does(upsert(event, "Pending"), Ignored)
			s.does(call(ports.UpdateWorkItem, `{"WorkItemHash":%q,"Patch":{"Settings":{"Other":{},"\u0043apability":%q}}}`, patched, name), Ignored)
			s.does(upsert(patched, "Pending"), Ignored)
		}
		if f := s.host.Status().Families[0]; f.Head != 0 || f.Writes.Ignored != uint64(8*len(exempt)) {
			t.Errorf("the family is %+v", f)
		}
	})
}

func TestOtherWorkIsNotIgnored(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.does(call(ports.UpsertWorkItem, `{"WorkItem":{"WorkItemHash":"a","Capability":"Shell"}}`), Done)
		s.does(call(ports.UpsertWorkItem, `{"WorkItem":{"WorkItemHash":"b","Capability":"meadowproxy"}}`), Done)
		s.does(call(ports.UpsertWorkItem, `{"WorkItem":{"WorkItemHash":"c","Capability":null,"Settings":{"Capability":"MeadowProxy"}}}`), Done)
		s.does(call(ports.AppendEvent, `{"Event":{"WorkItemHash":"a","Payload":"Capability MeadowProxy"}}`), Done)
		s.does(call(ports.AppendEvent, `{"Event":{"WorkItemHash":"a","Payload":{"Inner":{"Capability":"MeadowProxy"}}}}`), Done)
		s.does(call(ports.UpdateWorkItem, `{"WorkItemHash":"a","Patch":{"Result":{"Capability":"MeadowProxy"}}}`), Done)
		s.does(call(ports.UpsertManifest, `{"Manifest":{"Hash":"m","Capability":"MeadowProxy"}}`), Done) // manifests are no work
	})
}

func TestAKeyThatIsUsedForOrdinaryWorkIsNoLongerIgnored(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.does(call(ports.UpsertWorkItem, `{"WorkItem":{"WorkItemHash":"a","Capability":"MeadowProxy"}}`), Ignored)
		s.does(call(ports.UpsertWorkItem, `{"WorkItem":{"WorkItemHash":"a","Capability":"Shell"}}`), Done)
		s.does(patch("a", "Complete"), Done)
	})
}

func TestTheNewestIgnoredKeysAreRememberedAndNoMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	x := newExemptions()
	for i := range 3 * maxExemptKeys {
		x.remember(fmt.Sprint(i))
		if n := len(x.now) + len(x.old); n > maxExemptKeys {
			t.Fatalf("%d keys are remembered", n)
		}
	}
	for i := range maxExemptKeys / 2 {
		if !x.knows(fmt.Sprint(3*maxExemptKeys - 1 - i)) {
			t.Fatalf("the key %d before the last is forgotten", i)
		}
	}
	if x.knows("0") {
		t.Error("the oldest is still known")
	}
}
