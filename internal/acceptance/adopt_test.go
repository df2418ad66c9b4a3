package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"holdfast/core"
	"holdfast/internal/e2e"
	"holdfast/internal/model"
	"holdfast/internal/traffic"
)

// A store with the history of another host is taken in by the rules for records that are sent again.

// acts is a stream of random writes about a few keys.
func acts(seed int, n int, guids string) (lines []byte) {
	keys := []string{"a", "b", "c", "d", "e", "f"}
	for _, a := range rapid.SliceOfN(traffic.Acts(keys, guids), n, n).Example(seed) {
		lines = append(append(lines, e2e.Line(a.Action, json.RawMessage(a.Settings))...), '\n')
	}
	return lines
}

// withoutRowIDs leaves out events that a hub sends again: their id is made of the hub's row id and the content, which two
// histories may have in common, and which the model does not make.
func withoutRowIDs(lines []byte) (kept []byte) {
	for line := range bytes.Lines(lines) {
		if !bytes.Contains(line, []byte("IDBeaconWorkItemEvent")) {
			kept = append(kept, line...)
		}
	}
	return kept
}

// try sends lines of which some may be refused, and tells the model.
func (y *history) try(name string, lines []byte) {
	y.Helper()
	want, err := y.model.Ingest(name, bytes.NewReader(lines))
	if err != nil {
		y.Fatal(err)
	}
	got, err := y.client.Stream(y.Context(), name, bytes.NewReader(lines))
	if err != nil || len(got) != len(want) {
		y.Fatalf("%d answers, want %d: %v", len(got), len(want), err)
	}
	for i, a := range got {
		if a.Success != want[i].Success && !a.Deferred {
			y.Errorf("%s is answered %d %s, not found %v, want %+v", bytes.Split(lines, []byte("\n"))[i], a.Status, a.Code, a.NotFound, want[i])
		}
	}
}

// resent is a record as a write that sends it again.
type resent struct {
	action, member string
	record         model.Object
	settings       json.RawMessage
}

// again is everything that a host has.
func again(y *history) (all []resent) {
	y.Helper()
	add := func(action, member string, records []model.Object) {
		for _, r := range records {
			r = r.Without("OrderKey")
			all = append(all, resent{action, member, r, fmt.Appendf(nil, `{%q:%s}`, member, r.JSON())})
		}
	}
	add("QP_UpsertWorkItem", "WorkItem", y.client.Items(y.T))
	for _, key := range y.model.Keys() {
		add("QP_AppendEvent", "Event", y.client.Events(y.T, key))
		add("QP_InsertAttempt", "Attempt", y.client.Attempts(y.T, key))
	}
	add("MS_UpsertManifest", "Manifest", y.client.Manifests(y.T))
	return all
}

// identity is what tells the record from others.
func (r resent) identity() string {
	switch r.member {
	case "WorkItem":
		return "item " + r.record.Text("WorkItemHash")
	case "Event":
		return "event " + r.record.Text("EventGUID")
	case "Attempt":
		return "attempt " + r.record.Text("WorkItemHash") + string(r.record.Get("AttemptNumber"))
	}
	return "manifest " + r.record.Text("Hash")
}

func TestAnAdoptedStoreBecomesWhatTheDecisionTableSays(t *testing.T) {
	t.Parallel()
	for seed := range rounds(1) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			var theirs []resent
			files := foreignWith(t, "retention = \"off\"\n", func(y *history) {
				y.try("theirs", acts(seed, 200, "theirs"))
				y.client.Settle(y.T)
				theirs = again(y)
			})
			m := startMirroredWith(t, "retention = \"off\"\n", "mirror")
			m.try("ours", acts(1000+seed, 200, "ours"))
			m.host.AwaitEqual(t)
			ours := map[string]bool{}
			for _, r := range again(m.history) {
				ours[r.identity()] = true
			}
			m.host.Stop(t)
			place(t, m.host.File("mirror"), files)
			m.host.Restart(t)
			m.host.AwaitEqual(t)

			// What both have is the local store's in both by now; what only the other one has is sent again.
			for _, r := range theirs {
				if !ours[r.identity()] {
					m.model.Again(r.action, r.settings)
				}
			}
			for range 2 { // the second time changes nothing
				var done core.Adopted
				if code := m.host.Ask(t, &done, "adopt", "mirror"); code != 0 || done.Looked == 0 || done.Refused > 0 {
					t.Errorf("adopt: exit code %d of %+v", code, done)
				}
				m.client.Settle(t)
				m.host.AwaitEqual(t)
				m.asTold()
			}
			m.try("later", withoutRowIDs(acts(2000+seed, 200, "later")))
			m.host.AwaitEqual(t)
			m.asTold()
		})
	}
}

// asTold holds what is answered against the model, and the mirror against the local store; it may have more.
func (m *mirrored) asTold() {
	m.Helper()
	e2e.Compare(m.T, m.client, m.model)
	if v := m.host.Compared(m.T, "local", "mirror"); v.OnlyA != 0 || v.Different != 0 {
		m.Errorf("of %d records %d differ, %d are only in the local store, %d only in the mirror: %s", v.Compared, v.Different, v.OnlyA, v.OnlyB, v.Differences[:min(3, len(v.Differences))])
	}
}
