package mesh

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"holdfast/core"
	"holdfast/ports"
)

func TestWhatIsNoRouteSaysSoInJSON(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	for _, c := range []struct {
		method, path, body string
		status             int
		code               string
	}{
		{"GET", "/Nothing", "", 404, "ResourceNotFound"},
		{"GET", "/Beacon/Work/x/y/z", "", 404, "ResourceNotFound"},
		{"PUT", "/Beacon/Register", "", 405, "MethodNotAllowed"},
		{"POST", "/Beacon/Register", "{", 400, "InvalidContent"},
		{"POST", "/Beacon/Register", `{"Name":"x"}`, 400, "InvalidContent"},
		{"POST", "/Beacon/Register", `{"Capabilities":[]}`, 400, "InvalidContent"},
		{"POST", "/Beacon/Work/Poll", `{}`, 400, "InvalidContent"},
		{"POST", "/Beacon/Work/Enqueue", `{}`, 501, ""},
		{"POST", "/Beacon/Work/x/Cancel", `{}`, 501, ""},
		{"POST", "/Beacon/Work/Complete/Batch", `{"Items":7}`, 400, "InvalidContent"},
		{"GET", "/Beacon/bcn-none-1", "", 404, ""},
		{"DELETE", "/Beacon/bcn-none-1", "", 404, ""},
		{"POST", "/Beacon/Work/x/Progress", "{}", 404, ""},
		{"POST", "/Beacon/Work/x/Progress", "[]", 400, "InvalidContent"},
		{"GET", "/Manifest/none", "", 503, ""},
		{"GET", "/Beacon/Work/x/Events", "", 503, ""},
	} {
		a := s.call(c.method, c.path, c.body)
		if a.status != c.status || a.body["Error"] == "" || c.code != "" && a.body["code"] != c.code {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, a.status, a.text)
		}
	}
}

func TestBesideTheAPIOnlyTheHubsPathsAreTheHubs(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "the API's") })
	for path, ours := range map[string]bool{"/": false, "/v1/actions": false, "/metrics": false, "/status": true, "/Beacon": true, "/Beaconry": false, "/Manifest": true, "/1.0/CheckSession": true} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Host = "localhost"
		s.hub.Beside(api).ServeHTTP(w, r)
		if (w.Body.String() != "the API's") != ours {
			t.Errorf("%s: %s", path, w.Body)
		}
	}
}

func TestABeaconsRecordAndTheCatalogTellWhatItSaid(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	schema := map[string]any{"Capability": "Shell", "Action": "Execute", "Description": "runs it", "SettingsSchema": []any{map[string]any{"Name": "Command"}}}
	for _, name := range []string{"one", "two"} {
		a := s.call("POST", "/Beacon/Register", map[string]any{
			"Name": name, "Capabilities": []string{"Shell", "Shell", name}, "MaxConcurrent": 3, "HostID": "node-1", "ActionSchemas": []any{schema},
			"Tags": map[string]any{"PersistenceConnectionID": 4}, "BindAddresses": []any{map[string]any{"IP": "10.0.0.1"}}, "SharedMounts": []any{}, "JoinSecret": "x",
		})
		if len(a.body) != 14 || a.body["Status"] != "Online" || a.body["SessionID"] != "anonymous" || a.body["MaxConcurrent"] != 3.0 ||
			fmt.Sprint(a.body["Tags"], a.body["BindAddresses"], a.body["Contexts"], a.body["Capabilities"]) != "map[PersistenceConnectionID:4] [map[IP:10.0.0.1]] map[] [Shell "+name+"]" {
			t.Errorf("it is %s", a.text)
		}
	}
	if a := s.call("GET", "/Beacon/Capabilities", nil); fmt.Sprint(a.body["Capabilities"], a.body["BeaconCount"]) != "[Shell one two] 2" || len(a.body["ActionCatalog"].([]any)) != 1 {
		t.Errorf("got %s", a.text)
	}
	a := s.call("GET", "/Beacon/Actions", nil)
	if first := a.body["Actions"].([]any)[0].(map[string]any); fmt.Sprint(first["SourceBeacons"], first["Available"], first["Description"]) != "[one two] trueruns it" {
		t.Errorf("got %s", a.text)
	}
	if a := s.call("GET", "/Beacon", nil); !strings.HasPrefix(a.text, `[{"BeaconID":"bcn-one-`) {
		t.Errorf("got %s", a.text)
	}
	if a := s.call("GET", "/Beacon/Affinity", nil); a.text != "[]" {
		t.Errorf("got %s", a.text)
	}
}

func TestBatchesAnswerEntryByEntry(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	b := s.beacon("worker", 2, "Shell")
	one, two := s.later(within(t, testPatience), shell("worker")), s.later(within(t, testPatience), shell("worker"))
	first, _ := b.work()
	second, _ := b.work()
	a := s.call("POST", "/Beacon/Work/Progress/Batch", map[string]any{"Progress": []any{map[string]any{"WorkItemHash": first, "Percent": 50}, 7}})
	if a.status != 200 || len(a.body["Items"].([]any)) != 1 || a.body["Errors"].([]any)[0].(map[string]any)["Index"] != 1.0 {
		t.Errorf("progress: %d %s", a.status, a.text)
	}
	if live := s.call("GET", "/Beacon/Work", nil); !strings.Contains(live.text, `"Percent":50`) {
		t.Errorf("live: %s", live.text)
	}
	items := []any{map[string]any{"WorkItemHash": first, "Outputs": map[string]any{}}, map[string]any{"WorkItemHash": "wi-never"}, map[string]any{"WorkItemHash": second}}
	a = s.call("POST", "/Beacon/Work/Complete/Batch", map[string]any{"Items": items})
	if a.status != 200 || len(a.body["Items"].([]any)) != 2 || len(a.body["Errors"].([]any)) != 1 {
		t.Errorf("complete: %d %s", a.status, a.text)
	}
	if r1, r2 := <-one, <-two; r1.err != nil || r2.err != nil {
		t.Error(r1.err, r2.err)
	}
	many := make([]any, maxBatch+1)
	for i := range many {
		many[i] = map[string]any{}
	}
	if a := s.call("POST", "/Beacon/Work/Complete/Batch", map[string]any{"Items": many}); a.status != 413 {
		t.Errorf("too many: %d %s", a.status, a.text)
	}
}

func TestAnOutsideCallersBeaconIsFoundByItsKey(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	if a := s.call("POST", "/Beacon/Work/Dispatch", map[string]any{"Capability": "Shell"}); a.status != 503 {
		t.Errorf("without any beacon: %d %s", a.status, a.text)
	}
	one, two := s.beacon("one", 1, "Shell"), s.beacon("two", 1, "Shell", "Other")
	for _, c := range []struct {
		body map[string]any
		at   *peer
	}{
		{map[string]any{"Capability": "Shell", "AffinityKey": "two"}, two},
		{map[string]any{"Capability": "Shell", "AffinityKey": "one", "RequireAffinityMatch": true}, one},
		{map[string]any{"Capability": "Other", "AffinityKey": "one"}, two}, // one cannot, and would say that it did
		{map[string]any{"Capability": "Other", "AffinityKey": "no beacon"}, two},
	} {
		got := s.dispatched(c.body)
		hash, _ := c.at.work()
		c.at.complete(hash, map[string]any{})
		if a := <-got; a.status != 200 {
			t.Errorf("%v: %d %s", c.body, a.status, a.text)
		}
	}
	for _, c := range []struct {
		body   map[string]any
		status int
	}{
		{map[string]any{}, 400},
		{map[string]any{"Capability": "Other", "AffinityKey": "one", "RequireAffinityMatch": true}, 400},
		{map[string]any{"Capability": "Shell", "AffinityKey": "nobody", "RequireAffinityMatch": true, "TimeoutMs": 50}, 500},
		{map[string]any{"Capability": "Shell", "RequireAffinityMatch": true}, 400},
		{map[string]any{"Capability": "Shell", "Settings": 7}, 400},
	} {
		if a := s.call("POST", "/Beacon/Work/Dispatch", c.body); a.status != c.status || a.body["Success"] != false || a.body["Error"] == "" {
			t.Errorf("%v: %d %s", c.body, a.status, a.text)
		}
	}
}

func TestAnOutsideCallerGetsOutputsAsTheyCame(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	b := s.beacon("worker", 1, "Shell")
	for outputs, want := range map[string]string{`[1,{"a":2}]`: `[1,{"a":2}]`, `"text"`: `"text"`, `7`: `7`, `true`: `true`, `0`: `{}`, `-0.0e1`: `{}`, `false`: `{}`, `""`: `{}`, `null`: `{}`, `{"a":1}`: `{"a":1}`} {
		got := s.dispatched(map[string]any{"Capability": "Shell"})
		hash, _ := b.work()
		b.say(map[string]any{"Action": "WorkComplete", "WorkItemHash": hash, "Outputs": jsonText(outputs)})
		if a := <-got; a.status != 200 || !strings.Contains(a.text, `"Outputs":`+want) {
			t.Errorf("%s: %d %s", outputs, a.status, a.text)
		}
	}
}

func TestAWorkThatOnlyOneBeaconMayHaveWaitsForIt(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	other := s.beacon("other", 1, "Shell")
	got := s.dispatched(map[string]any{"Capability": "Shell", "AffinityKey": "expected", "RequireAffinityMatch": true, "TimeoutMs": 10_000})
	eventually(t, "the work", func() bool { return s.hub.Status().Waiting == 1 })
	plain := s.dispatched(map[string]any{"Capability": "Shell"})
	hash, _ := other.work() // which is for anybody
	other.complete(hash, map[string]any{})
	if a := <-plain; a.status != 200 {
		t.Errorf("one for anybody: %d %s", a.status, a.text)
	}
	s.beacon("expected", 1, "Other") // which cannot
	expected := s.beacon("expected", 1, "Shell")
	hash, _ = expected.work()
	expected.complete(hash, map[string]any{})
	if a := <-got; a.status != 200 {
		t.Errorf("one for the expected: %d %s", a.status, a.text)
	}
}

func TestAWorkOfAnOutsideCallerOutlivesItsSocket(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	b := s.beacon("worker", 1, "Shell")
	got := s.dispatched(map[string]any{"Capability": "Shell"})
	hash, _ := b.work()
	_ = b.conn.CloseNow()
	eventually(t, "its end", func() bool { return s.sockets() == 0 })
	if a := s.call("POST", "/Beacon/Work/"+hash+"/Complete", map[string]any{"Outputs": map[string]any{"n": 1}}); a.status != 200 {
		t.Errorf("the report over HTTP: %d %s", a.status, a.text)
	}
	if a := <-got; a.status != 200 || fmt.Sprint(a.body["Outputs"]) != "map[n:1]" {
		t.Errorf("got %d %s", a.status, a.text)
	}
}

func TestSettingsArriveAsTheyCameWithMetadataBehindThem(t *testing.T) {
	t.Parallel()
	about := []byte(`{"n":1}`)
	for given, want := range map[string]string{
		`{}`:                              `{"QueueMetadata":{"n":1}}`,
		" { } ":                           `{ "QueueMetadata":{"n":1}}`,
		`{"a": 1.50}`:                     `{"a": 1.50,"QueueMetadata":{"n":1}}`,
		`{"QueueMetadata":7,"a":1}`:       `{"a":1,"QueueMetadata":{"n":1}}`,
		`{"Queue\u004detadata":7,"a":1}`:  `{"a":1,"QueueMetadata":{"n":1}}`,
		`{"b":{"QueueMetadata":7},"a":1}`: `{"b":{"QueueMetadata":7},"a":1,"QueueMetadata":{"n":1}}`,
	} {
		if got := string(withMetadata([]byte(given), about)); got != want {
			t.Errorf("%s: got %s, want %s", given, got, want)
		}
	}
}

func TestTheStockReadsOfHistoryAreAnsweredFromOurs(t *testing.T) {
	t.Parallel()
	host := history(t)
	s := serve(t, Config{Core: Over(host)})
	write := func(action ports.Action, settings string) {
		t.Helper()
		if a := host.Do(context.Background(), core.Call{Action: action, Settings: []byte(settings)}); !a.Success() {
			t.Fatal(a.Err)
		}
	}
	write(ports.UpsertWorkItem, `{"WorkItem":{"WorkItemHash":"wi/1 ä","Capability":"Shell","Status":"Complete","EnqueuedAt":"2026-11-30T12:00:00.000Z"}}`)
	write(ports.AppendEvent, `{"Event":{"WorkItemHash":"wi/1 ä","EventType":"enqueued"}}`)
	write(ports.UpsertManifest, `{"Manifest":{"Hash":"run-1","OperationHash":"op","Status":"Complete","StagingPath":"/srv","Output":{"n": 1.0},"Errors":null}}`)
	write(ports.UpsertManifest, `{"Manifest":{"Hash":"run-2","OperationHash":"op","Status":"Waiting"}}`)
	a := s.call("GET", "/Beacon/Work/wi%2F1%20%C3%A4/Events", nil)
	if a.status != 200 || a.body["WorkItemHash"] != "wi/1 ä" || len(a.body["Events"].([]any)) != 1 {
		t.Errorf("events: %d %s", a.status, a.text)
	}
	if a := s.call("GET", "/Beacon/Work/wi-none/Events", nil); a.status != 404 {
		t.Errorf("events of nothing: %d %s", a.status, a.text)
	}
	a = s.call("GET", "/Beacon/Queue?include=history", nil)
	if a.status != 200 || len(a.body["History"].([]any)) != 1 || len(a.body["Items"].([]any)) != 0 || a.body["Summary"] == nil {
		t.Errorf("queue: %d %s", a.status, a.text)
	}
	if a := s.call("GET", "/Beacon/Queue", nil); a.body["History"] != nil {
		t.Errorf("queue without history: %s", a.text)
	}
	a = s.call("GET", "/Manifest/run-1", nil)
	if a.status != 200 || len(a.body) != len(wireMembers) || !strings.Contains(a.text, `"Output":{"n": 1.0}`) || !strings.Contains(a.text, `"Errors":[]`) || strings.Contains(a.text, "StagingPath") {
		t.Errorf("manifest: %d %s", a.status, a.text)
	}
	var list []map[string]any
	if a := s.call("GET", "/Manifest", nil); json.Unmarshal([]byte(a.text), &list) != nil || len(list) != 2 || list[0]["Hash"] != "run-2" {
		t.Errorf("manifests: %d %s", a.status, a.text)
	}
	for name, a := range map[string]answer{
		"query": s.call("GET", "/Manifest?hashes=run-1,%20run-9,run-2", nil),
		"batch": s.call("POST", "/Manifest/Batch", map[string]any{"Hashes": []string{"run-1", "run-9", "run-2"}}),
	} {
		if a.status != 200 || len(a.body["Manifests"].([]any)) != 2 || fmt.Sprint(a.body["NotFound"]) != "[run-9]" {
			t.Errorf("%s: %d %s", name, a.status, a.text)
		}
	}
	if a := s.call("POST", "/Manifest/Batch", map[string]any{"Hashes": make([]string, maxHashes+1)}); a.status != 400 {
		t.Errorf("too many hashes: %d", a.status)
	}
	if a := s.call("GET", "/Manifest/none", nil); a.status != 404 {
		t.Errorf("no manifest: %d", a.status)
	}
}

func TestAStoppingHubAnswersEveryCallerAndClosesEverySocket(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	b := s.beacon("worker", 1, "Shell")
	running := s.later(within(t, testPatience), shell("worker"))
	b.work()
	outside := s.dispatched(map[string]any{"Capability": "Shell"})
	eventually(t, "the outside caller to wait", func() bool { return s.state().waiting == 1 })
	began := time.Now()
	s.hub.Close()
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it took %s", took)
	}
	if r := <-running; ports.CodeOf(r.err) != ports.BackendGone {
		t.Errorf("what ran: %v", r.err)
	}
	if a := <-outside; a.status != 503 {
		t.Errorf("what waited: %d %s", a.status, a.text)
	}
	if _, err := s.hub.Dispatch(within(t, testPatience), shell("worker")); ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("what came after: %v", err)
	}
	if _, err := s.tryDial(); err == nil {
		t.Error("a socket was opened")
	}
	if a := s.call("POST", "/Beacon/Register", map[string]any{"Name": "x", "Capabilities": []string{}}); a.status != 503 {
		t.Errorf("a registration: %d %s", a.status, a.text)
	}
}

func TestAWorkThatCannotBeSentIsInvalid(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{Limits: Limits{Work: 100}})
	s.beacon("worker", 1, "Shell")
	ctx := within(t, testPatience)
	for name, c := range map[string]struct {
		ctx  context.Context
		work ports.Work
		want ports.Code
	}{
		"without a deadline":   {context.Background(), shell("worker"), ports.Invalid},
		"without a capability": {ctx, ports.Work{Beacon: "worker"}, ports.Invalid},
		"no object":            {ctx, ports.Work{Beacon: "worker", Capability: "Shell", Settings: []byte("7")}, ports.Invalid},
		"no JSON":              {ctx, ports.Work{Beacon: "worker", Capability: "Shell", Settings: []byte("{")}, ports.Invalid},
		"no class":             {ctx, ports.Work{Beacon: "worker", Capability: "Shell", Class: 9}, ports.Invalid},
		"too large":            {ctx, ports.Work{Beacon: "worker", Capability: "Shell", Settings: []byte(`{"a":"` + strings.Repeat("x", 100) + `"}`)}, ports.TooLarge},
		"not offered":          {ctx, ports.Work{Beacon: "worker", Capability: "Other"}, ports.Invalid},
		"of nobody":            {ctx, ports.Work{Capability: "Other"}, ports.Unavailable},
	} {
		if _, err := s.hub.Dispatch(c.ctx, c.work); ports.CodeOf(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
