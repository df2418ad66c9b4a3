package stock

import (
	"encoding/json"
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
func version1(t *testing.T) json.RawMessage {
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
