package httpapi

import (
	"io"
	"net/http"
	"testing"

	"holdfast/ports"
)

func exported() []ports.Page {
	return []ports.Page{
		{Rows: []ports.Row{
			{Kind: ports.KindItem, Key: "a", Body: []byte(`{"WorkItemHash":"a"}`), First: ports.First{ReceivedAt: "2026", OrderKey: "1-1-h", Actor: `o"ps`}},
			{Kind: ports.KindEvent, Key: "a", Body: []byte(`{"WorkItemHash":"a","EventGUID":"g"}`)},
			{Kind: ports.KindItem, Key: "gone", Gone: true},
		}},
		{Rows: []ports.Row{{Kind: ports.KindAttempt, Key: "a", Body: []byte(`{"WorkItemHash":"a","AttemptNumber":1}`)}}},
	}
}

// exportOf reads an export and what its trailer says.
func exportOf(t *testing.T, c *client, path string) (body, rows string) {
	t.Helper()
	got, err := http.Get(c.server.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), got.Trailer.Get(RowsTrailer)
}

func TestAnExportIsTheLinesThatWouldMakeTheHistory(t *testing.T) {
	t.Parallel()
	c := serve(t, &fakeHost{pages: exported()})
	want := `{"Action":"QP_UpsertWorkItem","Settings":{"WorkItem":{"WorkItemHash":"a"}}}
{"Action":"QP_AppendEvent","Settings":{"Event":{"WorkItemHash":"a","EventGUID":"g"}}}
{"Action":"QP_InsertAttempt","Settings":{"Attempt":{"WorkItemHash":"a","AttemptNumber":1}}}
`
	if body, rows := exportOf(t, c, "/v1/export"); body != want || rows != "3" {
		t.Errorf("%s rows\n%s", rows, body)
	}
	stamped := `{"Action":"QP_UpsertWorkItem","Settings":{"WorkItem":{"WorkItemHash":"a"},"Stamp":{"ReceivedAt":"2026","OrderKey":"1-1-h","Actor":"o\"ps"}}}
{"Action":"QP_AppendEvent","Settings":{"Event":{"WorkItemHash":"a","EventGUID":"g"},"Stamp":{}}}
{"Action":"QP_InsertAttempt","Settings":{"Attempt":{"WorkItemHash":"a","AttemptNumber":1},"Stamp":{}}}
`
	body, _ := exportOf(t, c, "/v1/export?family=queue&stamps=true")
	if body != stamped {
		t.Errorf("%s", body)
	}
	again := serve(t, &fakeHost{})
	again.send("POST", "/v1/actions", typeNDJSON, body)
	for i, call := range again.host.begun() {
		if want := []ports.Action{ports.UpsertWorkItem, ports.AppendEvent, ports.InsertAttempt}[i]; call.Action != want {
			t.Errorf("line %d is taken back as %s", i+1, call.Action)
		}
	}
}

func TestAnExportThatBreaksOffSaysSo(t *testing.T) {
	t.Parallel()
	broken := ports.Errorf(ports.BackendGone, "export", "the plugin died")
	c := serve(t, &fakeHost{pages: exported(), pageErr: broken})
	body, rows := exportOf(t, c, "/v1/export?family=queue")
	if want := `{"Error":{"Code":"backend_gone","Reason":"export: the plugin died"}}` + "\n"; rows != "" || body[len(body)-len(want):] != want {
		t.Errorf("%q rows\n%s", rows, body)
	}
	first := serve(t, &fakeHost{pageErr: broken})
	if got := first.get("/v1/export"); got.status != http.StatusServiceUnavailable || got.member(t, "Code") != "backend_gone" {
		t.Errorf("%d %s", got.status, got.body)
	}
}
