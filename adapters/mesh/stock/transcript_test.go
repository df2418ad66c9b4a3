package stock

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// recorded is a configuration like that of the beacon that was recorded.
func recorded(url string, polls bool) BeaconConfig {
	return BeaconConfig{
		ServerURL: url, Name: "persist", MaxConcurrent: 8, ForceHTTP: polls, PollInterval: 5 * time.Millisecond,
		HeartbeatInterval: 50 * time.Millisecond,
	}
}

func TestTheBeaconSpeaksAsTheRecordedOneDid(t *testing.T) {
	t.Parallel()
	for name, polls := range map[string]bool{"qp-ws.ndjson": false, "qp-http.ndjson": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub := NewRecordedHub(transcript(t, name), Frames())
			url := serve(t, hub)
			t.Cleanup(hub.Close)
			join(t, NewPersistence().Strict().Beacon(recorded(url, polls)))
			found, err := hub.Await(within(t))
			report(t, found, err)
		})
	}
}

func TestTheHubSpeaksAsTheRecordedOneDid(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"qp-ws.ndjson", "qp-http.ndjson"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub, url := open(t, HubConfig{})
			found, err := PlayBeacon(within(t), transcript(t, name), url, Frames(), dispatcher(hub))
			report(t, found, err)
		})
	}
}

// dispatcher has a hub do recorded works as its bridges do.
func dispatcher(hub *Hub) Dispatcher {
	return func(_ context.Context, _ string, work *Item) (json.RawMessage, error) {
		key := "queue-persistence"
		if work.Capability == ManifestFamily {
			key = "manifest-store"
		}
		o := hub.Dispatch(Spec{
			Capability: work.Capability, Action: work.Action, Settings: loose(work.Settings), TimeoutMs: work.TimeoutMs, AffinityKey: key,
		})
		return o.Outputs, o.Err
	}
}

func report(t *testing.T, found []string, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
	for _, line := range found {
		t.Error(line)
	}
}

func TestTheHubAndTheBeaconUnderstandEachOther(t *testing.T) {
	t.Parallel()
	for name, polls := range map[string]bool{"socket": false, "polling": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub, url := open(t, HubConfig{})
			config := recorded(url, polls)
			config.Name, config.Actions = "worker", []Action{echo("TestWork", "Echo")}
			b := join(t, NewBeacon(config))
			for range 20 {
				o := hub.Dispatch(Spec{Capability: "TestWork", Action: "Echo", Settings: map[string]any{"Text": "x"}})
				if o.Err != nil || did(o) != "Echo" {
					t.Fatalf("a dispatched work came back as %+v", o)
				}
			}
			if err := b.Stop(within(t)); err != nil && polls {
				t.Errorf("a polling beacon said goodbye and was told %v", err)
			}
			awaitHub(t, hub, "the goodbye", func(s HubState) bool { return len(s.Beacons) == 0 })
		})
	}
}

// What the hub writes while work goes on is compared with what the recorded hub wrote, call by call.
func TestTheHubWritesHistoryAsTheRecordedOneDid(t *testing.T) {
	t.Parallel()
	hub, url := open(t, HubConfig{})
	join(t, NewPersistence().Strict().Beacon(recorded(url, false)))
	worker := recorded(url, false)
	worker.Name, worker.Actions = "worker", []Action{echo("TestWork", "Echo")}
	join(t, NewBeacon(worker))
	hub.Enqueue(Spec{Capability: "TestWork", Action: "Echo", RunID: "rn-vm-1-1", Settings: map[string]any{"Text": "x"}})
	awaitHub(t, hub, "the end of the work", func(s HubState) bool { return s.Waiting+s.Running == 0 && idle(s) })

	var wanted []*Item
	for _, s := range transcript(t, "qp-ws.ndjson")[18:28] { // one work from beginning to end
		if w := s.Work(); w != nil {
			wanted = append(wanted, w)
		}
	}
	fired := hub.Fired()
	if len(fired) != len(wanted) {
		t.Fatalf("%d calls were recorded for one work, here %d: %v", len(wanted), len(fired), names(fired))
	}
	shape := Shape{Opaque: []string{"WorkItem.Settings", "Patch.Result", "QueueMetadata"}, Free: []string{"QueueMetadata"}}
	for i, w := range wanted {
		if fired[i].Action != w.Action {
			t.Errorf("call %d: recorded %s, here %s", i, w.Action, fired[i].Action)
		}
		for _, d := range shape.Compare(w.Settings, fired[i].Settings) {
			t.Errorf("call %d, %s: %s", i, w.Action, d)
		}
	}
}

func names(fired []Fired) string {
	var all []string
	for _, f := range fired {
		all = append(all, f.Action)
	}
	return strings.Join(all, " ")
}

func TestTheHubFlushesAsTheRecordedOneDid(t *testing.T) {
	t.Parallel()
	calls, err := Calls(filepath.Join("..", "..", "..", "testdata", "transcripts", "flush-sample.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	hub, url := open(t, HubConfig{})
	for _, c := range calls { // what was flushed goes in, with what its rows lose on the way
		settings := inside(c.Settings)
		switch c.Action {
		case "QP_UpsertWorkItem":
			hub.Keep(without(settings["WorkItem"], "IDBeaconWorkItem", "GUIDBeaconWorkItem"))
		case "QP_AppendEvent":
			hub.mu.Lock()
			hub.bridge.local.do(c.Action, encode(map[string]any{"Event": without(settings["Event"], "IDBeaconWorkItemEvent", "CreateDate")}))
			hub.mu.Unlock()
		case "MS_UpsertManifest":
			hub.KeepRun(without(settings["Manifest"], "Live"))
		}
	}
	store := NewPersistence()
	join(t, store.Beacon(recorded(url, false)))
	awaitHub(t, hub, "both sweeps", func(s HubState) bool { return len(s.Sweeps) == 2 })
	fired := hub.Fired()
	shape := Shape{Free: []string{"QueueMetadata"}, Words: []string{"Status", "EventType", "IDBeaconWorkItemEvent"}}
	for _, c := range calls[:9] { // the tenth is a health patch
		i := 0
		for i < len(fired) && fired[i].Action != c.Action {
			i++
		}
		if i == len(fired) {
			t.Fatalf("no %s was sent any more", c.Action)
		}
		for _, d := range shape.Compare(c.Settings, fired[i].Settings) {
			t.Errorf("%s: %s", c.Action, d)
		}
		fired = append(fired[:i:i], fired[i+1:]...)
	}
	if len(fired) > 0 {
		t.Errorf("more was sent than was recorded: %s", names(fired))
	}
	if held := store.Holds(); len(held.Items) != 3 || len(held.Manifests) != 1 {
		t.Errorf("after a flush of 3 items and 1 run there are %d and %d", len(held.Items), len(held.Manifests))
	}
}

func without(record json.RawMessage, names ...string) json.RawMessage {
	m := inside(record)
	for _, name := range names {
		delete(m, name)
	}
	return document(m)
}

func TestTheComparisonTellsWhatDiffers(t *testing.T) {
	t.Parallel()
	was := `{"Action":"A","ID":"x","N":1,"In":{"Text":"t","List":[{"A":1}],"Free":1},"Own":{"a":1},"None":null}`
	for _, c := range []struct{ name, is, told string }{
		{"the same", was, ""},
		{"other values", strings.NewReplacer(`"x"`, `"other"`, `:1}`, `:77}`).Replace(was), ""},
		{"other insides of what is the sender's", strings.Replace(was, `{"a":1}`, `{"b":[]}`, 1), ""},
		{"another word", strings.Replace(was, `"A","ID"`, `"B","ID"`, 1), "Action: recorded A, here B"},
		{"a missing member", strings.Replace(was, `"Text":"t",`, ``, 1), "In.Text: recorded a string, here missing"},
		{"a new member", strings.Replace(was, `"N":1`, `"N":1,"M":[]`, 1), "M: not recorded, here an array"},
		{"another type", strings.Replace(was, `"N":1`, `"N":"1"`, 1), "N: recorded a number, here a string"},
		{"null for a value", strings.Replace(was, `"ID":"x"`, `"ID":null`, 1), "ID: recorded a string, here null"},
		{"a value for null", strings.Replace(was, `null`, `{}`, 1), "None: recorded null, here an object"},
		{"another element", strings.Replace(was, `[{"A":1}]`, `[{"A":1},{"A":"1"}]`, 1), "In.List.A: recorded a number, here a string"},
		{"no element", strings.Replace(was, `[{"A":1}]`, `[]`, 1), ""},
		{"what may be missing", strings.Replace(was, `,"Free":1`, ``, 1), ""},
		{"no JSON", `{`, "no JSON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			shape := Shape{Opaque: []string{"Own"}, Free: []string{"*.Free"}, Words: []string{"Action"}}
			found := strings.Join(shape.Compare(json.RawMessage(was), json.RawMessage(c.is)), "; ")
			if c.told == "" && found != "" || !strings.Contains(found, c.told) {
				t.Errorf("told %q, wanted %q", found, c.told)
			}
		})
	}
}
