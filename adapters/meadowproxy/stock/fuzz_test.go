package stock

import (
	"encoding/json"
	"net/http"
	"testing"
)

// Whatever path and body come, there is an answer, and JSON where it says so.
func FuzzRequests(f *testing.F) {
	for _, path := range []string{
		"UVQueueWorkItems", "UVQueueWorkItems/FilteredTo/FBV~WorkItemHash~EQ~wi~FSF~IDUVQueueWorkItem~DESC~0/0/5", "UVQueueWorkItem/1", "UVQueueWorkItem/Max/Status",
		"UVQueueWorkItems/By/RunID/%41", "UVQueueWorkItem/Undelete/1", "UVQueueWorkItems/Distinct/Status,RunID", "UVQueueWorkItem/Upserts/Detailed", "UVManifests/Count/By/Live/true",
	} {
		f.Add(byte(0), path, `{"WorkItemHash":"wi","Priority":1.5,"Health":null}`)
		f.Add(byte(2), path, `[{"IDUVQueueWorkItem":1,"Result":[{"a":null}]},7]`)
	}
	var all []*Databeacon
	for _, m := range manners {
		d, err := Open(Options{Name: "db", Dir: f.TempDir(), Manner: m})
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { _ = d.Close() })
		id, err := d.AddConnection("uv", "uv.sqlite", true)
		if err != nil {
			f.Fatal(err)
		}
		for _, w := range recordedBootstrap(f) {
			w.Settings["IDBeaconConnection"] = id
			if w.Action == "EnsureSchema" {
				w.Settings["SchemaJSON"] = narrow(f)
			}
			_, _ = d.Do(f.Context(), w.Capability, w.Action, encode(w.Settings)) // the second EnsureSchema fails on Postgres
		}
		all = append(all, d)
	}
	methods := []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodHead}
	f.Fuzz(func(t *testing.T, method byte, path, body string) {
		for _, d := range all {
			outputs, failure := d.Do(t.Context(), "MeadowProxy", "Request",
				encode(map[string]string{"Method": methods[int(method)%len(methods)], "Path": "/1.0/uv/" + path, "Body": body}))
			if failure != "" {
				continue
			}
			var a said
			if err := json.Unmarshal(outputs, &a); err != nil {
				t.Fatalf("%v in %s", err, outputs)
			}
			if a.Status < 200 || a.Status > 599 {
				t.Errorf("%s: status %d", path, a.Status)
			}
			if a.Headers["content-type"] == "application/json" && a.Body != "" && !json.Valid([]byte(a.Body)) {
				t.Errorf("%s: no JSON: %q", path, a.Body)
			}
		}
	})
}

type bootstrapStep struct {
	Capability, Action string
	Settings           settings
}

func recordedBootstrap(f *testing.F) (steps []bootstrapStep) {
	f.Helper()
	for _, w := range recordedWorks(f, "databeacon-sqlite-bootstrap.ndjson") {
		if w.Capability == "MeadowProxy" {
			break
		}
		var s settings
		if err := json.Unmarshal(w.Settings, &s); err != nil {
			f.Fatal(err)
		}
		steps = append(steps, bootstrapStep{w.Capability, w.Action, s})
	}
	return steps
}
