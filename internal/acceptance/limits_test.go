package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/internal/e2e"
	"holdfast/internal/model"
)

const mebibyte = 1 << 20

// stages are the ways that a record must come through unchanged: as it was taken, after a restart of the host and its
// plugin, and out of one host into another. check is told whom to ask.
func stages(t *testing.T, h *e2e.Host, check func(stage string, h *e2e.Host)) {
	t.Helper()
	check("as taken", h)
	h.Kill()
	h.Restart(t)
	check("after a restart", h)
	file := filepath.Join(t.TempDir(), "history.ndjson")
	must(t, h, "export", "-o", file)
	h.Stop(t)
	other := e2e.Start(t)
	must(t, other, "ingest", file)
	check("in another host", other)
}

// decided sends a write and gives its answer, decided also when that takes longer than a caller waits.
func decided(t testing.TB, h *e2e.Host, client *e2e.Client, action string, settings json.RawMessage) e2e.Answer {
	t.Helper()
	a := client.Do(t, action, settings)
	if !a.Deferred {
		return a
	}
	client.Settle(t)
	var got struct {
		Write struct{ State, Outcome, Reason string }
	}
	text, _ := told(t, h, a.Seq)
	if err := json.Unmarshal([]byte(text), &got); err != nil || got.Write.State != "decided" {
		t.Fatalf("write %d is %s, %v", a.Seq, text, err)
	}
	a.Code, a.Reason, a.Success = got.Write.Outcome, got.Write.Reason, got.Write.Outcome == ""
	return a
}

func TestWhatIsOddButAllowedComesBackAsItWent(t *testing.T) {
	t.Parallel()
	h := e2e.Start(t)
	client, m := h.Client(), model.New(model.Options{})
	defer client.Close()
	deep := strings.Repeat("[", 399) + strings.Repeat("]", 399)
	values := []string{
		`"a\u0000b"`, `"\ud800"`, `"x\udc00\ud800y"`, `"\u00e9é\/\b"`, `9007199254740993`, `-0`, `1.10`, `1e400`, `1E+2`, `""`, `null`, `{}`, `[]`,
		`{"a":1,"a":2}`, `{"b": 1.0, "a" : [ 2 ] }`, `true`, `[null,"",{}]`, `"` + strings.Repeat("ü€😀", 1000) + `"`, deep,
	}
	keys := []string{strings.Repeat("ü", 512), strings.Repeat("😀", 512), "a/b?c=d&e#f %20", "../..", ".", " ", "ключ", "'; DROP TABLE UVQueueWorkItem; --"}
	write := func(action, settings string) {
		t.Helper()
		if a := decided(t, h, client, action, json.RawMessage(settings)); !a.Success {
			t.Fatalf("%s of %.200s is answered %d %s: %s", action, settings, a.Status, a.Code, a.Reason)
		}
		m.Apply(action, json.RawMessage(settings))
	}
	manifests := map[string]string{}
	for i, value := range values {
		hash := fmt.Sprintf("value-%02d", i)
		write("QP_UpsertWorkItem", string(item(hash, fmt.Sprintf(`"Settings":%s,"Result":%s,"LastError":%s,"Status":%s,"AttemptNumber":%s,"Unknown":%s`, value, value, value, value, value, value))))
		write("QP_UpdateWorkItem", fmt.Sprintf(`{"WorkItemHash":%q,"Patch":{"Priority":%s,"RunID":%s}}`, hash, value, value))
		write("QP_AppendEvent", fmt.Sprintf(`{"Event":{"WorkItemHash":%q,"EventGUID":"guid-%d","EventType":"t","Payload":%s,"FromStatus":%s}}`, hash, i, value, value))
		write("QP_InsertAttempt", fmt.Sprintf(`{"Attempt":{"WorkItemHash":%q,"AttemptNumber":1,"BeaconID":"b","ErrorMessage":%s}}`, hash, value))
		manifests[hash] = fmt.Sprintf(`{"Manifest":{"Hash":%q,"OperationName":%s,"Output":%s,"Unknown":%s}}`, hash, value, value, value)
	}
	for _, key := range keys {
		write("QP_UpsertWorkItem", string(mustJSON(map[string]any{"WorkItem": map[string]any{"WorkItemHash": key}})))
		manifests[key] = string(mustJSON(map[string]any{"Manifest": map[string]any{"Hash": key}}))
	}
	for _, key := range slices.Sorted(maps.Keys(manifests)) { // as an export has them, so that they are listed alike everywhere
		write("MS_UpsertManifest", manifests[key])
	}
	stages(t, h, func(stage string, h *e2e.Host) {
		t.Log(stage)
		client := h.Client()
		defer client.Close()
		client.Settle(t)
		e2e.Compare(t, client, m)
	})
}

func mustJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

func TestWhatIsNotAllowedIsRefusedByFieldLimitAndSize(t *testing.T) {
	t.Parallel()
	h := e2e.Start(t)
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for name, c := range map[string]struct {
		settings    string
		code, field string
		limit, size int64
	}{
		"a key of 513 code points": {string(item(strings.Repeat("ü", 513), "")), "too_large", "WorkItemHash", 512, 513},
		"no key":                   {`{"WorkItem":{"Status":"Running"}}`, "invalid", "WorkItemHash", 0, 0},
		"an empty key":             {`{"WorkItem":{"WorkItemHash":""}}`, "invalid", "WorkItemHash", 0, 0},
		"a key that is null":       {`{"WorkItem":{"WorkItemHash":null}}`, "invalid", "WorkItemHash", 0, 0},
		"a key with NUL":           {`{"WorkItem":{"WorkItemHash":"a\u0000"}}`, "invalid", "WorkItemHash", 0, 0},
		"a key with a surrogate":   {`{"WorkItem":{"WorkItemHash":"a\ud800"}}`, "invalid", "WorkItemHash", 0, 0},
		"a depth of 401":           {string(item("w", `"Settings":`+deep(400))), "too_large", "", 400, 401},
		"a member twice":           {string(item("w", `"Status":"a","Status":"b"`)), "invalid", "Status", 0, 0},
		"bytes that are no UTF-8":  {string(item("w", "\"Status\":\"\xff\"")), "invalid", "", 0, 0},
		"no record":                {`{}`, "invalid", "WorkItem", 0, 0},
		"a record that is null":    {`{"WorkItem":null}`, "invalid", "WorkItem", 0, 0},
		"a record that is a list":  {`{"WorkItem":[]}`, "invalid", "WorkItem", 0, 0},
	} {
		status, text := post(t, h, "application/json", e2e.Line("QP_UpsertWorkItem", []byte(c.settings)))
		var a e2e.Answer
		if err := json.Unmarshal(text, &a); err != nil {
			t.Errorf("%s: %v in %s", name, err, text)
			continue
		}
		code := a.Code == c.code || c.limit != 0 && a.Code == "invalid"
		if status/100 != 4 || a.Success || !code || !strings.HasSuffix(a.Field, c.field) || a.Field == "" && c.field != "" || a.Limit != c.limit || a.Size != c.size || a.Reason == "" {
			t.Errorf("%s is answered %d: %s", name, status, text)
		}
	}
	client := h.Client()
	defer client.Close()
	e2e.Compare(t, client, model.New(model.Options{}))
}

// sized is a work item whose record has exactly so many bytes, nearly all of them Settings.
func sized(hash string, size int) (settings []byte, body string) {
	empty := len(item(hash, `"Settings":""`)) - len(`{"WorkItem":}`)
	body = `"Settings":"` + strings.Repeat("x", size-empty) + `"`
	return item(hash, body), body
}

func TestTheLargestRecordIsKeptAndOneByteMoreIsRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("sends records of 64 MiB")
	}
	t.Parallel()
	h := e2e.Start(t)
	client := h.Client()
	defer client.Close()

	settings, _ := sized("w", 64*mebibyte+1)
	if a := client.Do(t, "QP_UpsertWorkItem", settings); a.Status != 413 || a.Code != "too_large" || a.Field == "" || a.Limit != 64*mebibyte || a.Size != 64*mebibyte+1 {
		t.Errorf("one byte too many is answered %d %s %s %d %d: %s", a.Status, a.Code, a.Field, a.Limit, a.Size, a.Reason)
	}
	largest, body := sized("largest", 64*mebibyte)
	if a := decided(t, h, client, "QP_UpsertWorkItem", largest); !a.Success {
		t.Fatalf("the largest record is answered %d %s: %s", a.Status, a.Code, a.Reason)
	}
	merged, half := sized("merged", 40*mebibyte)
	if a := decided(t, h, client, "QP_UpsertWorkItem", merged); !a.Success {
		t.Fatalf("40 MiB are answered %d %s: %s", a.Status, a.Code, a.Reason)
	}
	patch := fmt.Appendf(nil, `{"WorkItemHash":"merged","Patch":{"Result":"%s","Status":"Error"}}`, strings.Repeat("y", 30*mebibyte))
	if a := decided(t, h, client, "QP_UpdateWorkItem", patch); a.Success || a.Code != "too_large" {
		t.Errorf("a merged row of 70 MiB is answered %d %s: %.300s", a.Status, a.Code, a.Reason)
	}
	stages(t, h, func(stage string, h *e2e.Host) {
		client := h.Client()
		defer client.Close()
		client.Settle(t)
		for hash, want := range map[string]string{"largest": body, "merged": half} {
			// Not parsed: the race detector makes that slow.
			var status int
			var answer []byte
			e2e.Await(t, stage+" it is read in time", func() error { // so much may take a busy machine too long
				if status, answer = get(t, h, "/v1/work-items/"+hash); status == 503 {
					return fmt.Errorf("%s is answered %s", hash, answer)
				}
				return nil
			})
			if status != 200 || !bytes.Contains(answer, []byte(want)) || bytes.Contains(answer, []byte(`"Status":"Error"`)) {
				t.Errorf("%s: %s is answered %d with %d bytes: %.300s", stage, hash, status, len(answer), answer)
			}
		}
	})
}
