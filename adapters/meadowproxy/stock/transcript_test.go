package stock

// The recorded traffic, put to the stand-in: it has to answer as the original did, identities and times aside.

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// bootstrap are the works of a recorded bootstrap.
type recordedWork struct {
	WorkItemHash string
	Capability   string
	Action       string
	Settings     json.RawMessage
	Outputs      json.RawMessage
	ErrorMessage string
	answered     bool
}

func recordedWorks(t testing.TB, file string) (works []*recordedWork) {
	t.Helper()
	lines(t, file, func(line []byte) {
		var step struct {
			Msg struct {
				Action       string
				EventType    string
				WorkItem     recordedWork
				WorkItemHash string
				Outputs      json.RawMessage
				ErrorMessage string
			}
		}
		if err := json.Unmarshal(line, &step); err != nil {
			t.Fatal(err)
		}
		if step.Msg.EventType == "WorkItem" {
			works = append(works, &step.Msg.WorkItem)
			return
		}
		for _, w := range works {
			if step.Msg.WorkItemHash == w.WorkItemHash && w.WorkItemHash != "" {
				w.answered, w.Outputs, w.ErrorMessage = true, step.Msg.Outputs, step.Msg.ErrorMessage
			}
		}
	})
	return slices.DeleteFunc(works, func(w *recordedWork) bool { return !w.answered })
}

func lines(t testing.TB, file string, f func(line []byte)) {
	t.Helper()
	in, err := os.Open(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	s := bufio.NewScanner(in)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		f(s.Bytes())
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
}

var recordings = []struct {
	manner    Manner
	bootstrap string
	requests  string
	store     string
}{
	{SQLite, "databeacon-sqlite-bootstrap.ndjson", "meadowproxy-sqlite.ndjson", "uvstore-sqlite"},
	{Postgres, "databeacon-postgres-bootstrap.ndjson", "meadowproxy-postgres.ndjson", "uvstore-postgres"},
}

func TestARecordedBootstrapIsAnsweredAsItWas(t *testing.T) {
	t.Parallel()
	for _, r := range recordings {
		t.Run(string(r.manner), func(t *testing.T) {
			t.Parallel()
			d := open(t, Options{Manner: r.manner})
			connect(t, d, r.store)
			works := recordedWorks(t, r.bootstrap)
			if len(works) < 20 {
				t.Fatalf("only %d works were recorded", len(works))
			}
			got := map[string][2]string{}
			if r.manner == Postgres {
				// The second EnsureSchema came while the first was at work.
				got[works[0].WorkItemHash], got[works[1].WorkItemHash] = together(t, d, works[0], works[1])
			}
			for _, w := range works {
				answer, done := got[w.WorkItemHash]
				if !done {
					outputs, failure := d.Do(t.Context(), w.Capability, w.Action, w.Settings)
					answer = [2]string{string(outputs), failure}
				}
				if answer[1] != w.ErrorMessage {
					t.Errorf("%s %s failed with %q, want %q", w.Capability, w.Action, answer[1], w.ErrorMessage)
				}
				compareOutputs(t, w, answer[0])
			}
		})
	}
}

// together does the second work while the first is held up.
func together(t *testing.T, d *Databeacon, first, second *recordedWork) (one, two [2]string) {
	t.Helper()
	begun, release := make(chan struct{}), make(chan struct{})
	d.Fault(func(string, string, json.RawMessage) (string, bool) {
		close(begun)
		<-release
		return "", false
	})
	ended := make(chan [2]string)
	go func() {
		outputs, failure := d.Do(t.Context(), first.Capability, first.Action, first.Settings)
		ended <- [2]string{string(outputs), failure}
	}()
	<-begun
	d.Fault(nil)
	outputs, failure := d.Do(t.Context(), second.Capability, second.Action, second.Settings)
	close(release)
	return <-ended, [2]string{string(outputs), failure}
}

func compareOutputs(t *testing.T, w *recordedWork, got string) {
	t.Helper()
	if w.ErrorMessage != "" {
		return
	}
	var want, have any
	if err := json.Unmarshal(w.Outputs, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(got), &have); err != nil {
		t.Fatalf("%s %s: %v in %s", w.Capability, w.Action, err, got)
	}
	if w.Capability == "MeadowProxy" {
		want, have = proxied(t, want), proxied(t, have)
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("%s %s %s: (-recorded +got)\n%s", w.Capability, w.Action, w.Settings, diff)
	}
}

// proxied is a proxied answer as far as it is compared.
func proxied(t *testing.T, outputs any) any {
	t.Helper()
	o, _ := outputs.(map[string]any)
	headers, _ := o["Headers"].(map[string]any)
	text, _ := o["Body"].(string)
	var body any = text
	if strings.HasPrefix(fmt.Sprint(headers["content-type"]), "application/json") {
		if err := json.Unmarshal([]byte(text), &body); err != nil {
			t.Fatalf("%v in %q", err, text)
		}
	}
	return map[string]any{"Status": o["Status"], "Headers": shape(headers, ""), "Body": shape(body, "")}
}

// verbatim are the members whose texts are compared, and not only that they are texts.
var verbatim = []string{"Error", "Code", "StatusCode", "Query", "RebuiltQueryString", "QueryParameters", "Count", "code", "message", "Health", "CancelRequested"}

// shape is a JSON value with types in the place of values.
func shape(v any, name string) any {
	switch x := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for key, item := range x {
			if name == "QueryParameters" {
				m[key] = item
				continue
			}
			m[key] = shape(item, key)
		}
		return m
	case []any:
		list := []any{}
		for _, item := range x {
			list = append(list, shape(item, ""))
		}
		return list
	}
	if slices.Contains(verbatim, name) {
		return v
	}
	return fmt.Sprintf("%T", v)
}

// recordedRequest is one of the labelled requests.
type recordedRequest struct {
	Label    string
	Request  map[string]string
	Status   int
	Headers  map[string]any
	Body     json.RawMessage
	HubError string
}

func TestRecordedRequestsAreAnsweredAsTheyWere(t *testing.T) {
	t.Parallel()
	for _, r := range recordings {
		t.Run(string(r.manner), func(t *testing.T) {
			t.Parallel()
			d := open(t, Options{Manner: r.manner})
			id := connect(t, d, r.store)
			bootstrap(t, d, id)
			n := 0
			lines(t, r.requests, func(line []byte) {
				var want recordedRequest
				if err := json.Unmarshal(line, &want); err != nil {
					t.Fatal(err)
				}
				if strings.HasPrefix(want.Label, "GET list of ~275") {
					fillUp(t, d, r.store)
				}
				n++
				comparedRequest(t, d, want)
			})
			if n != 70 {
				t.Errorf("%d requests were recorded, want 70", n)
			}
		})
	}
}

// fillUp writes the rows whose requests were not recorded.
func fillUp(t *testing.T, d *Databeacon, store string) {
	t.Helper()
	var rows []string
	for i := range 260 {
		rows = append(rows, fmt.Sprintf(`{"WorkItemHash":"bulk-%d","RunID":"r1","Status":%q}`, i, []string{"Pending", "Complete"}[i%2]))
	}
	if a := call(t, d, "POST", "/1.0/"+store+"/UVQueueWorkItems", "["+strings.Join(rows, ",")+"]"); a.Status != 200 {
		t.Fatal(a)
	}
}

func comparedRequest(t *testing.T, d *Databeacon, want recordedRequest) {
	t.Helper()
	elided := strings.HasPrefix(string(want.Body), `"<`) && !strings.HasPrefix(string(want.Body), `"<!`)
	if strings.HasPrefix(want.Request["Body"], "<") {
		hash := strings.TrimSuffix(strings.TrimPrefix(want.Label, "POST manifest "), "MB")
		want.Request["Body"] = `{"Hash":"run-` + hash + `","OperationHash":"o","OperationName":"n","Status":"Complete","ManifestJSON":` +
			strconv.Quote(strings.Repeat("a manifest's text. ", 5_000)) + `}`
	}
	settings, err := json.Marshal(want.Request)
	if err != nil {
		t.Fatal(err)
	}
	outputs, failure := d.Do(t.Context(), "MeadowProxy", "Request", settings)
	if failure != want.HubError {
		t.Errorf("%s: failed with %q, want %q", want.Label, failure, want.HubError)
	}
	if failure != "" {
		return
	}
	var got struct {
		Status  int
		Headers map[string]any
		Body    string
	}
	if err := json.Unmarshal(outputs, &got); err != nil {
		t.Fatal(err)
	}
	if got.Status != want.Status {
		t.Errorf("%s: status %d, want %d: %.300s", want.Label, got.Status, want.Status, got.Body)
		return
	}
	if diff := cmp.Diff(shape(want.Headers, ""), shape(got.Headers, "")); diff != "" {
		t.Errorf("%s: headers (-recorded +got)\n%s", want.Label, diff)
	}
	if elided {
		return
	}
	var wanted, had any
	if err := json.Unmarshal(want.Body, &wanted); err != nil {
		t.Fatal(err)
	}
	if text, html := wanted.(string); html {
		if text != got.Body {
			t.Errorf("%s: %q, want %q", want.Label, got.Body, text)
		}
		return
	}
	if err := json.Unmarshal([]byte(got.Body), &had); err != nil {
		t.Fatalf("%s: %v in %.300s", want.Label, err, got.Body)
	}
	if diff := cmp.Diff(shape(wanted, ""), shape(had, "")); diff != "" {
		t.Errorf("%s: (-recorded +got)\n%s", want.Label, diff)
	}
}
