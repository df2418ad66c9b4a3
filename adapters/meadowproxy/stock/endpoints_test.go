package stock

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func endpointSettings(connection int64, table string) settings {
	return settings{"IDBeaconConnection": connection, "TableName": table}
}

type enabledEndpoint struct {
	Message, TableName, EndpointBase string
	ColumnCount                      int
}

func enableOne(t *testing.T, d *Databeacon, connection int64) enabledEndpoint {
	t.Helper()
	return must[enabledEndpoint](t, d, "DataBeaconManagement", "EnableEndpoint", endpointSettings(connection, "Thing"))
}

func TestTheBaseIsToldOnlyTheFirstTime(t *testing.T) {
	t.Parallel()
	d := open(t, Options{})
	id := connect(t, d, "UV Store \u00dcnit #1")
	ensured1(t, d, id, "["+thing+"]")
	if failed := fails(t, d, "DataBeaconManagement", "EnableEndpoint", endpointSettings(id, "Thing")); failed != "Table Thing not introspected." {
		t.Errorf("without introspection: %q", failed)
	}
	must[any](t, d, "DataBeaconManagement", "Introspect", settings{"IDBeaconConnection": id})
	const base = "/1.0/uv-store-unit-1/Thing"
	if got := enableOne(t, d, id); got.EndpointBase != base || got.ColumnCount != 2 {
		t.Errorf("the first time: %+v", got)
	}
	if got := enableOne(t, d, id); got.EndpointBase != "" || got.Message == "" {
		t.Errorf("the second time: %+v", got)
	}
	must[any](t, d, "DataBeaconManagement", "DisableEndpoint", endpointSettings(id, "Thing"))
	want{200, "[]"}.check(t, "disabled", call(t, d, "GET", base+"s", ""))
	if got := enableOne(t, d, id); got.EndpointBase != base {
		t.Errorf("disabled and enabled again: %+v", got)
	}
	d.Restart()
	want{200, "[]"}.check(t, "restarted", call(t, d, "GET", base+"s", ""))
	if got := enableOne(t, d, id); got.EndpointBase != "" {
		t.Errorf("after a restart: %+v", got)
	}
}

func TestARestartForgetsWhatOnlyTheProcessKnew(t *testing.T) {
	t.Parallel()
	d := open(t, Options{})
	id, err := d.AddConnection("shy", "shy.sqlite", false)
	if err != nil {
		t.Fatal(err)
	}
	ensured1(t, d, id, "["+thing+"]")
	enable(t, d, id, "Thing")
	post(t, d, "/1.0/shy/Thing", `{"Mark":"m"}`)
	type config struct {
		PatternsAdded int
		ActiveConfig  struct {
			AllowWrites   bool
			PathAllowlist []string
		}
	}
	pattern := settings{"PathAllowlist": []string{`^/?1\.0/[^/]+/UV[A-Za-z0-9]*`}, "AllowWrites": false}
	if got := must[config](t, d, "DataBeaconManagement", "UpdateProxyConfig", pattern); got.PatternsAdded != 1 || got.ActiveConfig.AllowWrites {
		t.Errorf("the proxy: %+v", got)
	}
	if failed := fails(t, d, "MeadowProxy", "Request", settings{"Method": "POST", "Path": "/1.0/shy/Thing"}); failed != "MeadowProxy: writes are disabled." {
		t.Errorf("writes: %q", failed)
	}

	d.Restart()
	if got := must[config](t, d, "DataBeaconManagement", "UpdateProxyConfig", settings{}); len(got.ActiveConfig.PathAllowlist) != 1 || !got.ActiveConfig.AllowWrites {
		t.Errorf("the proxy after a restart: %+v", got)
	}
	want{404, "Cannot GET 1.0/shy/Things"}.check(t, "not live", call(t, d, "GET", "/1.0/shy/Things", ""))
	if failed := fails(t, d, "DataBeaconManagement", "Introspect", settings{"IDBeaconConnection": id}); failed != "Connection 1 is not connected." {
		t.Errorf("not live: %q", failed)
	}

	again := must[struct {
		IDBeaconConnection int64
		Created, Connected bool
	}](t, d, "DataBeaconManagement", "CreateConnection", settings{"Name": "shy", "Type": "SQLite", "Config": "{}", "AutoConnect": true})
	if again.IDBeaconConnection != id || again.Created || !again.Connected {
		t.Errorf("connected again: %+v", again)
	}
	if got := column1(t, d, "/1.0/shy/Things", "Mark"); !slices.Equal(got, []string{"m"}) {
		t.Errorf("connected again: %q", got)
	}
}

func TestADatabeaconKeepsItsConnectionsOverItsLives(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, Options{Dir: dir})
	id := connect(t, d, "kept")
	if again := connect(t, d, "kept"); again != id {
		t.Errorf("the same name gave %d, before %d", again, id)
	}
	ensured1(t, d, id, "["+thing+"]")
	enable(t, d, id, "Thing")
	post(t, d, "/1.0/kept/Thing", `{"Mark":"m"}`)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, failure := d.Do(t.Context(), "DataBeaconAccess", "ListConnections", nil); failure == "" {
		t.Error("a closed one worked")
	}
	d = open(t, Options{Dir: dir})
	if got := column1(t, d, "/1.0/kept/Things", "Mark"); !slices.Equal(got, []string{"m"}) {
		t.Errorf("it holds %q", got)
	}
	list := must[struct {
		Connections []struct {
			IDBeaconConnection int64
			Name, Config       string
		}
	}](t, d, "DataBeaconAccess", "ListConnections", nil)
	if len(list.Connections) != 1 || list.Connections[0].IDBeaconConnection != id || list.Connections[0].Name != "kept" || list.Connections[0].Config != "{}" {
		t.Errorf("%+v", list)
	}
}

func TestNamesThatSanitiseAlikeShareTheFirstOnesTables(t *testing.T) {
	t.Parallel()
	d := open(t, Options{})
	one, two := connect(t, d, "My Store"), connect(t, d, "my-store!")
	for _, id := range []int64{one, two} {
		ensured1(t, d, id, "["+thing+"]")
		enable(t, d, id, "Thing")
	}
	post(t, d, "/1.0/my-store/Thing", `{"Mark":"m"}`)
	for id, n := range map[int64]int{one: 1, two: 0} {
		got := must[struct{ Count int }](t, d, "DataBeaconAccess", "ReadRecords", endpointSettings(id, "Thing"))
		if got.Count != n {
			t.Errorf("connection %d holds %d rows, want %d", id, got.Count, n)
		}
	}
	for name, want := range map[string]string{"\u0416": "conn-7", "A  b": "a-b", "caf\u00e9": "cafe", strings.Repeat("x", 80): strings.Repeat("x", 64)} {
		if got := slug(name, 7); got != want {
			t.Errorf("the slug of %q is %q, want %q", name, got, want)
		}
	}
}

func TestUnknownActionsAndCapabilities(t *testing.T) {
	t.Parallel()
	d := open(t, Options{})
	connect(t, d, "c")
	if got := d.Capabilities(); !slices.Equal(got, []string{"DataBeaconAccess", "DataBeaconManagement", "MeadowProxy", "DataBeaconSchema"}) {
		t.Errorf("it registers with %q", got)
	}
	got := must[map[string]any](t, d, "QueuePersistence", "QP_UpsertWorkItem", settings{})
	if got["ExitCode"] != -1.0 || got["StdOut"] != "Unknown capability: QueuePersistence" {
		t.Errorf("an unknown capability: %v", got)
	}
	if got := must[map[string]any](t, d, "DataBeaconAccess", "Nope", settings{}); got["Connections"] == nil {
		t.Errorf("an unknown action: %v", got)
	}
	if got := fails(t, d, "DataBeaconSchema", "Nope", settings{"IDBeaconConnection": 1}); !strings.Contains(got, "SchemaJSON") {
		t.Errorf("an unknown action of the schema: %q", got)
	}
}

func TestPathsThatTheProxyOrTheRouterRefuses(t *testing.T) {
	t.Parallel()
	d, base := store(t, Options{})
	for _, c := range []struct{ path, failure string }{
		{"/1.0/User/1", "MeadowProxy: path is not in the allowlist."},
		{"/1.0/UVQueueWorkItem", "MeadowProxy: path is not in the allowlist."},
		{"", "MeadowProxy: path is not in the allowlist."},
		{base + "UVQueueWorkItems/By/RunID/a b", "unescaped characters"},
		{base + "UVQueueWorkItems/By/RunID/\u00e4", "unescaped characters"},
		{base + "UVQueueWorkItems/By/RunID/a\nb", "unescaped characters"},
	} {
		if got := fails(t, d, "MeadowProxy", "Request", settings{"Method": "GET", "Path": c.path}); !strings.Contains(got, c.failure) {
			t.Errorf("%q failed with %q, want %q", c.path, got, c.failure)
		}
	}
	if got := fails(t, d, "MeadowProxy", "Request", settings{"Path": base}); got != "MeadowProxy: Method is required." {
		t.Errorf("no method: %q", got)
	}
	for _, c := range []struct {
		method, path string
		want         want
	}{
		{"GET", base + "UVQueueWorkItems/By/RunID/100%", want{404, `{"code":"ResourceNotFound"`}},
		{"GET", base + "UVQueueWorkItems/By/RunID/%zz", want{404, `{"code":"ResourceNotFound"`}},
		{"GET", base + "UVQueueWorkItems/", want{404, "<!DOCTYPE html>"}},
		{"GET", base + "UVQueueWorkItems/FilteredTo/", want{404, "<!DOCTYPE html>"}},
		{"GET", base + "UVQueueWorkItem", want{404, "<!DOCTYPE html>"}},
		{"GET", base + "UVNothings", want{404, "Cannot GET 1.0/uv-store/UVNothings"}},
		{"GET", strings.TrimPrefix(base, "/") + "UVQueueWorkItems", want{200, "[]"}},
		{"GET", base + "UVQueueWorkItems?x=1", want{200, "[]"}},
		{"POST", base + "UVNothing", want{405, `{"code":"MethodNotAllowed","message":"POST is not allowed"}`}},
		{"DELETE", base + "UVNothing/1", want{405, `MethodNotAllowed`}},
		{"OPTIONS", base + "UVQueueWorkItem", want{405, `MethodNotAllowed`}},
		{"PATCH", base + "UVQueueWorkItem", want{405, `MethodNotAllowed`}},
		{"HEAD", base + "UVQueueWorkItems", want{405, ""}},
		{"GET", base + "UVQueueWorkItems/FilteredTo/FBL~WorkItemHash~INN~" + strings.Repeat("wi-0123456,", 1450), want{200, "[]"}},
		{"GET", base + "UVQueueWorkItems/FilteredTo/FBL~WorkItemHash~INN~" + strings.Repeat("wi-0123456,", 1500), want{431, ""}},
	} {
		a := call(t, d, c.method, c.path, "")
		c.want.check(t, c.method+" "+c.path[:min(len(c.path), 80)], a)
		if c.want.text == "" && a.Body != "" {
			t.Errorf("%s: the body is %q", c.method, a.Body)
		}
	}
}

func TestReducedLists(t *testing.T) {
	t.Parallel()
	d, base := store(t, Options{})
	for _, key := range []string{"wi-1", "wi-2"} {
		post(t, d, base+"UVQueueWorkItem", `{"WorkItemHash":"`+key+`","Status":"Pending"}`)
	}
	for path, text := range map[string]string{
		"UVQueueWorkItems/Lite":                                           `"Value":"UVQueueWorkItem #1","IDUVQueueWorkItem":1,"UpdateDate":`,
		"UVQueueWorkItems/LiteExtended/WorkItemHash/0/1":                  `"WorkItemHash":"wi-1"}]`,
		"UVQueueWorkItems/Distinct/Status":                                `[{"Status":"Pending"}]`,
		"UVQueueWorkItemSelect/FilteredTo/FBV~WorkItemHash~EQ~wi-2":       `[{"Hash":2,"Value":"UVQueueWorkItem #2"}]`,
		"UVQueueWorkItem/Max/WorkItemHash":                                `"WorkItemHash":"wi-2"`,
		"UVQueueWorkItem/Schema":                                          `"title":"UVQueueWorkItem"`,
		"UVQueueWorkItem/Schema/New":                                      `"IDUVQueueWorkItem":0,"WorkItemHash":""`,
		"UVQueueWorkItems/Lite/FilteredTo/FBV~WorkItemHash~EQ~wi-2/0/1":   `#2`,
		"UVQueueWorkItems/FilteredTo/FDST~0~0~0~FBV~WorkItemHash~EQ~wi-2": `"WorkItemHash":"wi-2"`,
	} {
		want{200, text}.check(t, path, call(t, d, "GET", base+path, ""))
	}
}

func TestATestCanAskWhoWroteAndMakeStepsFail(t *testing.T) {
	t.Parallel()
	d, base := store(t, Options{})
	for _, user := range []string{"ann", "ann", ""} {
		must[said](t, d, "MeadowProxy", "Request", settings{"Method": "POST", "Path": base + "UVQueueWorkItemAttempt", "Body": `{"WorkItemHash":"wi"}`, "RemoteUser": user})
	}
	if got := d.Users(); got["ann"] != 2 || got["anonymous"] != 1 {
		t.Errorf("wrote: %v", got)
	}
	d.Fault(func(capability, action string, _ json.RawMessage) (string, bool) {
		return "broken", capability == "DataBeaconManagement" && action == "Introspect"
	})
	if got := fails(t, d, "DataBeaconManagement", "Introspect", settings{"IDBeaconConnection": 1}); got != "broken" {
		t.Errorf("it failed with %q", got)
	}
	want{200, ""}.check(t, "another step", call(t, d, "GET", base+"UVQueueWorkItems", ""))
	d.Fault(nil)
	must[any](t, d, "DataBeaconManagement", "Introspect", settings{"IDBeaconConnection": 1})
}

func TestADatabaseCanBeWipedOrReplacedUnderIt(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m Manner, d *Databeacon, base string) {
		item := base + "UVQueueWorkItem"
		post(t, d, item, `{"WorkItemHash":"old"}`)
		older := filepath.Join(t.TempDir(), "older")
		if err := d.Copy(1, older); err != nil {
			t.Fatal(err)
		}
		post(t, d, item, `{"WorkItemHash":"new"}`)
		if err := d.Replace(1, older); err != nil {
			t.Fatal(err)
		}
		if got := column1(t, d, item+"s", "WorkItemHash"); !slices.Equal(got, []string{"old"}) {
			t.Errorf("replaced, it holds %q", got)
		}
		if _, err := d.Database(1).Exec("DROP TABLE UVQueueWorkItem"); err != nil {
			t.Fatal(err)
		}
		text := map[Manner]string{SQLite: "no such table: UVQueueWorkItem", Postgres: "42P01", MySQL: "ER_NO_SUCH_TABLE"}[m]
		want{500, text}.check(t, "read", call(t, d, "GET", item+"s", ""))
		want{500, text}.check(t, "write", call(t, d, "POST", item, `{"WorkItemHash":"wi"}`))
	})
}
