package stock

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open starts a databeacon in a folder of the test.
func open(t *testing.T, o Options) *Databeacon {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	if o.Name == "" {
		o.Name = "databeacon"
	}
	d, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func connect(t *testing.T, d *Databeacon, name string) int64 {
	t.Helper()
	id, err := d.AddConnection(name, name+".sqlite", true)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// must does a work that may not fail, and reads its outputs.
func must[T any](t *testing.T, d *Databeacon, capability, action string, settings any) (outputs T) {
	t.Helper()
	raw, failure := d.Do(t.Context(), capability, action, encode(settings))
	if failure != "" {
		t.Fatalf("%s %s failed: %s", capability, action, failure)
	}
	if err := json.Unmarshal(raw, &outputs); err != nil {
		t.Fatalf("%s %s: %v in %s", capability, action, err, raw)
	}
	return outputs
}

// fails does a work that has to fail, and gives why.
func fails(t *testing.T, d *Databeacon, capability, action string, settings any) string {
	t.Helper()
	raw, failure := d.Do(t.Context(), capability, action, encode(settings))
	if failure == "" {
		t.Fatalf("%s %s did not fail: %s", capability, action, raw)
	}
	return failure
}

type settings map[string]any

// version1 is the recorded descriptor.
func version1(t testing.TB) json.RawMessage {
	t.Helper()
	var s struct{ SchemaJSON json.RawMessage }
	if err := json.Unmarshal(recordedWorks(t, "databeacon-sqlite-bootstrap.ndjson")[0].Settings, &s); err != nil {
		t.Fatal(err)
	}
	return s.SchemaJSON
}

// bootstrap makes the recorded tables and enables their endpoints.
func bootstrap(t *testing.T, d *Databeacon, connection int64) {
	t.Helper()
	must[any](t, d, "DataBeaconSchema", "EnsureSchema", settings{"IDBeaconConnection": connection, "SchemaName": "ultravisor", "SchemaJSON": version1(t)})
	enable(t, d, connection, "UVQueueWorkItem", "UVQueueWorkItemEvent", "UVQueueWorkItemAttempt", "UVManifest")
}

func enable(t *testing.T, d *Databeacon, connection int64, tables ...string) {
	t.Helper()
	must[any](t, d, "DataBeaconManagement", "Introspect", settings{"IDBeaconConnection": connection})
	for _, name := range tables {
		must[any](t, d, "DataBeaconManagement", "EnableEndpoint", settings{"IDBeaconConnection": connection, "TableName": name})
	}
}

type said struct {
	Status  int
	Headers map[string]string
	Body    string
}

// call sends a request through the proxy.
func call(t *testing.T, d *Databeacon, method, path, body string) said {
	t.Helper()
	return must[said](t, d, "MeadowProxy", "Request", settings{"Method": method, "Path": path, "Body": body})
}

// store is a databeacon with the tables of version 1, where MySQL can hold them, and the base of its endpoints.
func store(t *testing.T, o Options) (d *Databeacon, base string) {
	t.Helper()
	d = open(t, o)
	id := connect(t, d, "UV Store")
	if o.Manner == MySQL {
		must[any](t, d, "DataBeaconSchema", "EnsureSchema", settings{"IDBeaconConnection": id, "SchemaJSON": narrow(t)})
		enable(t, d, id, "UVQueueWorkItem", "UVQueueWorkItemEvent", "UVQueueWorkItemAttempt", "UVManifest")
	} else {
		bootstrap(t, d, id)
	}
	return d, "/1.0/uv-store/"
}

// narrow is the recorded descriptor with no text wider than MySQL takes.
func narrow(t testing.TB) json.RawMessage {
	t.Helper()
	text := string(version1(t))
	for _, size := range []string{`"512"`, `"500"`, `"1024"`} {
		text = strings.ReplaceAll(text, `"Size":`+size, `"Size":"255"`)
	}
	return json.RawMessage(text)
}

var manners = []Manner{SQLite, Postgres, MySQL}

// each runs a test in every manner.
func each(t *testing.T, f func(t *testing.T, m Manner, d *Databeacon, base string)) {
	t.Helper()
	for _, m := range manners {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			d, base := store(t, Options{Manner: m, Strict: true})
			f(t, m, d, base)
		})
	}
}

// post stores a row that has to be taken, and gives it.
func post(t *testing.T, d *Databeacon, path, body string) map[string]any {
	t.Helper()
	a := call(t, d, "POST", path, body)
	if a.Status != 200 {
		t.Fatalf("%s %s: %d %s", path, body, a.Status, a.Body)
	}
	return decode[map[string]any](t, a.Body)
}

func decode[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// column lists one column of a list.
func column1(t *testing.T, d *Databeacon, path, column string) (values []string) {
	t.Helper()
	a := call(t, d, "GET", path, "")
	if a.Status != 200 {
		t.Fatalf("%s: %d %s", path, a.Status, a.Body)
	}
	for _, row := range decode[[]map[string]any](t, a.Body) {
		values = append(values, fmt.Sprint(row[column]))
	}
	return values
}

// want is a status with a text that the body has to contain.
type want struct {
	status int
	text   string
}

func (w want) check(t *testing.T, what string, a said) {
	t.Helper()
	if a.Status != w.status || !strings.Contains(a.Body, w.text) {
		t.Errorf("%s: %d %.400s, want %d with %s", what, a.Status, a.Body, w.status, w.text)
	}
}
