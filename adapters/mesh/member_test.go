package mesh

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/adapters/mesh/stock"
	"holdfast/ports"
)

func TestAStockHubKeepsItsHistoryWithTheMember(t *testing.T) {
	t.Parallel()
	host := history(t)
	hub, url := ultravisor(t, stock.HubConfig{Name: "uv-1"})
	joinedMember(t, url, Over(host), nil)
	hub.Imagine(stock.Registration{Name: "worker", Capabilities: []string{"Echo"}}, true)
	hash := hub.Enqueue(stock.Spec{Capability: "Echo", Action: "Say", Settings: map[string]any{"Text": "hello"}})
	if err := hub.Complete(hash, stock.Result{Outputs: made(map[string]any{"Said": true})}); err != nil {
		t.Fatal(err)
	}
	awaitUltravisor(t, hub, "the answers", settledHub)
	if s := hub.State(); s.Failures != 0 || s.Local != 0 {
		t.Errorf("%d of its calls failed, %d went into its own store", s.Failures, s.Local)
	}
	item := itemOf(t, host, hash)
	if item["Status"] != "Complete" || item["Capability"] != "Echo" || item["Result"] == nil || item["QueueMetadata"] != nil {
		t.Errorf("the item is %v", item)
	}
	if got := types(t, host, hash); !slices.Equal(got, []string{"enqueued", "completed"}) {
		t.Errorf("its events are %v", got)
	}
	if got := rows(t, host.Attempts(t.Context(), ports.AttemptQuery{Key: hash, Limit: 10})); len(got) != 1 || got[0]["Outcome"] != "Complete" {
		t.Errorf("its attempts are %v", got)
	}
}

// What a hub reads comes from here, in the shapes that it reads.
func TestAHubReadsWhatItWroteThroughTheMember(t *testing.T) {
	t.Parallel()
	host := history(t)
	hub, url := ultravisor(t, stock.HubConfig{})
	joinedMember(t, url, Over(host), nil)
	hub.Imagine(stock.Registration{Name: "worker", Capabilities: []string{"Echo"}}, true)
	hash := hub.Enqueue(stock.Spec{Capability: "Echo"})
	hub.UpsertManifest(made(map[string]any{"Hash": "run-1", "OperationHash": "op", "Status": "Complete", "TaskOutputs": map[string]any{"a": 1}}))
	awaitUltravisor(t, hub, "the answers", settledHub)
	for _, c := range []struct {
		action   string
		settings map[string]any
		wants    []string
	}{
		{"QP_GetWorkItemByHash", map[string]any{"WorkItemHash": hash}, []string{`"Success":true`, `"WorkItem":{`, hash}},
		{"QP_GetWorkItemByHash", map[string]any{"WorkItemHash": "nobody"}, []string{`"Success":false`, `"WorkItem":null`, `"Available":true`}},
		{"QP_GetEvents", map[string]any{"WorkItemHash": hash, "Limit": 500}, []string{`"Success":true`, `"Events":[{`, `"enqueued"`}},
		{"QP_ListWorkItems", map[string]any{"Filter": map[string]any{"Limit": 200, "OrderBy": "-EnqueuedAt"}}, []string{`"Success":true`, `"WorkItems":[{`, hash}},
		{"MS_GetManifest", map[string]any{"RunHash": "run-1"}, []string{`"Success":true`, `"Manifest":{`, `"TaskOutputs":{"a":1}`}},
		{"MS_GetManifest", map[string]any{"RunHash": "nobody"}, []string{`"Success":false`, `"Manifest":null`}},
		{"MS_ListManifests", map[string]any{"Filter": map[string]any{}}, []string{`"Success":true`, `"Manifests":[{`, `"run-1"`}},
	} {
		answer := string(hub.Call(c.action, c.settings))
		for _, want := range c.wants {
			if !strings.Contains(answer, want) {
				t.Errorf("%s answers %s, without %s", c.action, answer, want)
			}
		}
	}
	for path, want := range map[string]string{
		"/Beacon/Work/" + hash + "/Events": `"enqueued"`, "/Beacon/Queue?include=history": hash, "/Manifest": "run-1", "/Manifest/run-1": `"TaskOutputs"`,
	} {
		if a, err := request(url, "GET", path, nil); err != nil || a.status != 200 || !strings.Contains(a.text, want) {
			t.Errorf("the hub answers GET %s with %d %s, %v", path, a.status, a.text, err)
		}
	}
}

func TestWhatTheMemberDoesNotOfferIsRefusedByName(t *testing.T) {
	t.Parallel()
	host := history(t)
	hub, url := ultravisor(t, stock.HubConfig{})
	m := joinedMember(t, url, Over(host), nil)
	for _, c := range []struct{ capability, action, settings, want string }{
		{"QueuePersistence", "QP_Truncate", `{}`, `"QP_Truncate\" is no action of QueuePersistence`},
		{"QueuePersistence", "MS_UpsertManifest", `{"Manifest":{"Hash":"r"}}`, `is no action of QueuePersistence`},
		{"Shell", "Execute", `{}`, `"Shell\" is none of this beacon's`},
		{"QueuePersistence", "QP_UpsertWorkItem", `{"WorkItem":{}}`, "WorkItem.WorkItemHash"},
		{"QueuePersistence", "QP_UpsertWorkItem", `{"WorkItem":7}`, "is not an object"},
		{"QueuePersistence", "QP_UpsertWorkItem", `[]`, "is missing from Settings"},
		{"ManifestStore", "MS_GetManifest", `{}`, "RunHash"},
	} {
		work := map[string]any{"WorkItemHash": "wi-unknown-unknown-1-" + c.action + c.capability, "Capability": c.capability, "Action": c.action, "Settings": made(jsonText(c.settings))}
		before := m.Status().Refused
		if !hub.Say(m.name, map[string]any{"EventType": "WorkItem", "WorkItem": work}) {
			t.Fatal("the member is not there")
		}
		awaitMember(t, m, c.want, func(s MemberStatus) bool { return s.Refused == before+1 })
	}
	// A hub gets to hear why.
	o := hub.Dispatch(stock.Spec{Capability: "QueuePersistence", Action: "QP_Truncate", TimeoutMs: 5000})
	if o.Err != nil || !strings.Contains(string(o.Outputs), `"Success":false`) || !strings.Contains(string(o.Outputs), "QP_Truncate") || !strings.Contains(string(o.Outputs), `"Reason":`) {
		t.Errorf("the hub was answered %s, %v", o.Outputs, o.Err)
	}
}

// jsonText is JSON as it is.
type jsonText string

func (j jsonText) MarshalJSON() ([]byte, error) { return []byte(j), nil }

// The three times that a store is flushed change nothing: no item more, no event twice, no full manifest hollow.
func TestAStoreFlushedThreeTimesIsThereOnce(t *testing.T) {
	t.Parallel()
	items := 200
	if whole() {
		items = 5000
	}
	host := history(t)
	hub, url := ultravisor(t, stock.HubConfig{})
	keepItems(hub, items)
	m := joinedMember(t, url, Over(host), nil)
	full := map[string]any{"Hash": "run-1", "OperationHash": "op", "Status": "Complete", "StopTime": "2026-01-01T00:00:00.000Z", "TaskOutputs": map[string]any{"a": 1}, "Log": []string{"x"}}
	hub.UpsertManifest(made(full))
	for n := range 3 {
		awaitUltravisor(t, hub, "the sweeps", func(s stock.HubState) bool { return len(s.Sweeps) >= 2*(n+1) && settledHub(s) })
		taken := m.Status().Taken
		again := hub.Redeliver(m.name, 200)
		awaitMember(t, m, "what was pushed once more", func(s MemberStatus) bool { return s.Taken >= taken+uint64(again) && s.InHand == 0 })
		if got := held(t, host); got[ports.KindItem] != int64(items) || got[ports.KindEvent] != int64(2*items) || got[ports.KindManifest] != 1 {
			t.Errorf("after %d flushes: %v", n+1, got)
		}
		if n < 2 {
			before := m.Status().Registrations
			hub.DropSocket(m.name)
			awaitMember(t, m, "the next registration", func(s MemberStatus) bool { return s.Registrations > before })
		}
	}
	for _, s := range hub.State().Sweeps {
		if s.Stopped != "" || s.Family == stock.QueueFamily && s.Pushed != items {
			t.Errorf("a sweep ended with %+v", s)
		}
	}
	if got := manifestOf(t, host, "run-1"); len(got["TaskOutputs"].(map[string]any)) != 1 || len(got["Log"].([]any)) != 1 {
		t.Errorf("the manifest was emptied: %v", got)
	}
	if got := types(t, host, itemHash(7)); !slices.Equal(got, []string{"enqueued", "completed"}) {
		t.Errorf("the events of an item are %v", got)
	}
}

func TestALiveManifestIsReplacedAndAnAbandonedRunEndsSo(t *testing.T) {
	t.Parallel()
	host := history(t)
	hub, url := ultravisor(t, stock.HubConfig{})
	m := joinedMember(t, url, Over(host), nil)
	write := func(manifest map[string]any) {
		hub.UpsertManifest(made(manifest))
		awaitUltravisor(t, hub, "the answer", settledHub)
	}
	write(map[string]any{"Hash": "run-1", "Status": "Waiting", "StopTime": "2026-01-01T00:00:00.000Z", "WaitingTasks": map[string]any{"n": 1}, "TaskOutputs": map[string]any{"a": 1}})
	write(map[string]any{"Hash": "run-1", "Status": "Abandoned", "StopTime": "2026-01-02T00:00:00.000Z", "TaskOutputs": map[string]any{"a": 1}})
	hub.DropSocket(m.name) // and the flush of the hollow run comes behind
	awaitUltravisor(t, hub, "another sweep", func(s stock.HubState) bool { return len(s.Sweeps) >= 4 && settledHub(s) })
	got := manifestOf(t, host, "run-1")
	if waiting, _ := got["WaitingTasks"].(map[string]any); got["Status"] != "Abandoned" || len(waiting) > 0 || len(got["TaskOutputs"].(map[string]any)) != 1 {
		t.Errorf("the run ends as %v", got)
	}
}

// A hub that starts again takes the runs that it had finished for failed, since their ends were told here alone, and flushes them
// so, as of now and without anything in them.
func TestARunThatHasEndedIsNotUndoneByItsHubsRestart(t *testing.T) {
	t.Parallel()
	host := history(t)
	hub, url := ultravisor(t, stock.HubConfig{})
	m := joinedMember(t, url, Over(host), nil)
	awaitUltravisor(t, hub, "the first sweeps", func(s stock.HubState) bool { return len(s.Sweeps) >= 2 && settledHub(s) })
	for hash, status := range map[string]string{"run-1": "Complete", "run-2": "Waiting"} {
		hub.UpsertManifest(made(map[string]any{"Hash": hash, "Status": status, "StopTime": "2026-01-01T00:00:00.000Z", "ElapsedMs": 5, "TaskOutputs": map[string]any{"a": 1}}))
	}
	awaitUltravisor(t, hub, "the answers", settledHub)
	hub.Restart()
	awaitUltravisor(t, hub, "the sweeps after it", func(s stock.HubState) bool { return len(s.Sweeps) >= 4 && settledHub(s) })
	awaitMember(t, m, "rest", func(s MemberStatus) bool { return s.InHand == 0 })
	for hash, status := range map[string]string{"run-1": "Complete", "run-2": "Error"} {
		got := manifestOf(t, host, hash)
		if got["Status"] != status || len(got["TaskOutputs"].(map[string]any)) != 1 || fmt.Sprint(got["ElapsedMs"]) != "5" {
			t.Errorf("%s ends as %v", hash, got)
		}
	}
}

func TestARecordOfThatManyMebibytesGoesInAndOutAgain(t *testing.T) {
	t.Parallel()
	host := history(t)
	hub, url := ultravisor(t, stock.HubConfig{BridgeTimeout: time.Minute})
	joinedMember(t, url, Over(host), func(c *MemberConfig) { c.Timing.Answer = 30 * time.Second })
	manifest := func(hash string, size int) map[string]any {
		return map[string]any{"Hash": hash, "Status": "Complete", "TaskOutputs": map[string]any{"big": strings.Repeat("x", size)}}
	}
	size := 24 << 20
	if whole() {
		size = ports.MaxRecordBytes - 4096
	}
	hub.UpsertManifest(made(manifest("large", size)))
	// A slow disk takes longer than a hub is let wait; what it was told then, and the read, are about a moment before the end.
	eventuallyWithin(t, 4*testPatience, "a manifest as large as it went in", func() bool {
		return len(hub.Call("MS_GetManifest", map[string]any{"RunHash": "large"})) > size
	})
	answer := hub.Call("MS_UpsertManifest", map[string]any{"Manifest": manifest("larger", ports.MaxRecordBytes+2<<20)})
	if !strings.Contains(string(answer), `"Success":false`) || !strings.Contains(string(answer), string(ports.TooLarge)) {
		t.Errorf("one beyond the limit is answered %.300s", answer)
	}
	if got := types(t, host, "nothing"); len(got) != 0 {
		t.Error(got)
	}
}
