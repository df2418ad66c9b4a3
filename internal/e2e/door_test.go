package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"holdfast/adapters/httpapi"
	"holdfast/adapters/journal"
	"holdfast/core"
	"holdfast/internal/e2e"
	"holdfast/internal/model"
	"holdfast/ports"
)

// within is a whole host in the test's process: HTTP, Door, journals on disk, and a local store in memory.
func within(t *testing.T, store ports.LocalStore) *e2e.Client {
	t.Helper()
	dir := t.TempDir()
	state, err := journal.OpenState(dir, journal.StateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = state.Close() })
	journals := map[ports.Family]ports.Journal{}
	for _, f := range ports.Families {
		j, err := journal.Open(journal.Options{Dir: dir, Family: f})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = j.Close() })
		journals[f] = j
	}
	host, err := core.New(core.Config{
		Ack: core.AckLocal, State: state, Journals: journals, Logger: hclog.NewNullLogger(),
		Local: core.Local{Name: "local", Kind: "memory", Store: store, Health: func() core.Health { return core.Health{Running: true} }},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- host.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
	api, err := httpapi.New(httpapi.Config{Host: httpapi.Over(host), Loopback: true, Logger: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(nil)
	server.Config = api.Server()
	server.Start()
	t.Cleanup(server.Close)
	client := e2e.NewClient(server.URL)
	t.Cleanup(client.Close)
	deadline := time.After(10 * time.Second)
	for host.Ready() != nil {
		select {
		case <-time.After(time.Millisecond):
		case <-deadline:
			t.Fatal(host.Ready())
		}
	}
	return client
}

// toldBy gives what an answer tells, as the model's answers do.
func toldBy(a e2e.Answer) model.Answer {
	return model.Answer{
		Success: a.Success, NotFound: a.NotFound, AlreadyPresent: a.AlreadyPresent, AlreadyAbsent: a.AlreadyAbsent, Ignored: a.Ignored, Expired: a.Expired,
		Code: a.Code, Refused: a.Refused,
	}
}

func plain(a model.Answer) model.Answer {
	a.Reason, a.EventID = "", ""
	return a
}

// statusOf is the HTTP status of a single call's answer.
func statusOf(a model.Answer) int {
	switch {
	case a.NotFound:
		return http.StatusNotFound
	case a.Code == "":
		return http.StatusOK
	}
	return map[string]int{"invalid": http.StatusBadRequest, "too_large": http.StatusRequestEntityTooLarge, "conflict": http.StatusConflict}[a.Code]
}

func TestTheDoorAnswersTheRecordedStreamAsTheModelSays(t *testing.T) {
	t.Parallel()
	client := within(t, newMemory())
	recorded(t).checkAnswers(t, client)
	e2e.Compare(t, client, recorded(t).model)
}

func TestTheDoorAndTheModelAgreeOnHardActions(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	item := func(members string) string { return `{"WorkItem":{"WorkItemHash":"w"` + members + `}}` }
	cases := map[string][][2]string{
		"depth":           {{"QP_UpsertWorkItem", item(`,"a":` + deep(399))}, {"QP_UpsertWorkItem", item(`,"a":` + deep(400))}},
		"long key":        {{"QP_UpsertWorkItem", `{"WorkItem":{"WorkItemHash":"` + strings.Repeat("é", 512) + `"}}`}, {"QP_UpsertWorkItem", `{"WorkItem":{"WorkItemHash":"` + strings.Repeat("é", 513) + `"}}`}},
		"no key":          {{"QP_UpsertWorkItem", `{"WorkItem":{}}`}, {"QP_UpsertWorkItem", `{"WorkItem":{"WorkItemHash":""}}`}, {"QP_UpsertWorkItem", `{"WorkItem":{"WorkItemHash":null}}`}, {"QP_UpdateWorkItem", `{"Patch":{}}`}, {"MS_RemoveManifest", `{}`}, {"MS_UpsertManifest", `{"Manifest":{}}`}},
		"odd key":         {{"QP_UpsertWorkItem", `{"WorkItem":{"WorkItemHash":"a\u0000"}}`}, {"QP_UpsertWorkItem", `{"WorkItem":{"WorkItemHash":"\ud800"}}`}, {"QP_UpsertWorkItem", `{"WorkItem":{"WorkItemHash":"/ ?#%2F😀"}}`}},
		"no record":       {{"QP_UpsertWorkItem", `{}`}, {"QP_UpsertWorkItem", `{"WorkItem":null}`}, {"QP_UpsertWorkItem", `{"WorkItem":[]}`}, {"QP_UpdateWorkItem", `{"WorkItemHash":"w"}`}},
		"twice":           {{"QP_UpsertWorkItem", item(`,"a":1,"a":2`)}, {"QP_UpsertWorkItem", item(`,"a":1,"\u0061":2`)}, {"QP_UpsertWorkItem", item(`,"a":{"b":1,"b":2}`)}},
		"attempt numbers": {{"QP_UpsertWorkItem", item(``)}, {"QP_InsertAttempt", `{"Attempt":{"WorkItemHash":"w","AttemptNumber":-7}}`}, {"QP_InsertAttempt", `{"Attempt":{"WorkItemHash":"w","AttemptNumber":1.5}}`}, {"QP_InsertAttempt", `{"Attempt":{"WorkItemHash":"w","AttemptNumber":"2"}}`}, {"QP_InsertAttempt", `{"Attempt":{"WorkItemHash":"w","AttemptNumber":null,"BeaconID":"b"}}`}, {"QP_UpdateAttemptOutcome", `{"WorkItemHash":"w","Patch":{"Outcome":"O"}}`}, {"QP_UpdateAttemptOutcome", `{"WorkItemHash":"w","AttemptNumber":3,"Patch":{"Outcome":"O"}}`}},
		"renaming":        {{"QP_UpsertWorkItem", item(``)}, {"QP_UpdateWorkItem", `{"WorkItemHash":"w","Patch":{"WorkItemHash":"v"}}`}, {"QP_UpdateWorkItem", `{"WorkItemHash":"w","Patch":{"WorkItemHash":"w","a":1}}`}, {"QP_UpdateWorkItem", `{"WorkItemHash":"w","Patch":{"WorkItemHash":null}}`}},
		"events":          {{"QP_AppendEvent", `{"Event":{"WorkItemHash":"w","EventGUID":"g","Payload":{"a":1.0}}}`}, {"QP_AppendEvent", `{"Event":{"WorkItemHash":"w","EventGUID":"\u0067","Payload":{"a":1.0}}}`}, {"QP_AppendEvent", `{"Event":{"WorkItemHash":"w","EventGUID":"g","Payload":{"a":1}}}`}, {"QP_AppendEvent", `{"Event":{"WorkItemHash":"w","EventGUID":null}}`}, {"QP_AppendEvent", `{"Event":{"WorkItemHash":"w","EventGUID":""}}`}},
		"flushed events":  {{"QP_AppendEvent", `{"Event":{"WorkItemHash":"w","IDBeaconWorkItemEvent":1}}`}, {"QP_UpsertWorkItem", item(`,"IDBeaconWorkItem":1,"Deleted":0`)}, {"QP_AppendEvent", `{"Event":{"WorkItemHash":"w","IDBeaconWorkItemEvent":1,"CreateDate":null}}`}, {"QP_AppendEvent", `{"Event":{"WorkItemHash":"w","IDBeaconWorkItemEvent":1}}`}, {"QP_AppendEvent", `{"Event":{"WorkItemHash":"w","IDBeaconWorkItemEvent":2}}`}},
		"flush refused":   {{"QP_UpsertWorkItem", `{"WorkItem":{"IDBeaconWorkItem":1}}`}, {"QP_AppendEvent", `{"Event":{"IDBeaconWorkItemEvent":1}}`}, {"MS_UpsertManifest", `{"Manifest":{"Live":true,"Hash":""}}`}},
		"ignored":         {{"QP_UpsertWorkItem", item(`,"Capability":"MeadowProxy"`)}, {"QP_UpdateWorkItem", `{"WorkItemHash":"w","Patch":{"a":1}}`}, {"QP_AppendEvent", `{"Event":{"WorkItemHash":"w"}}`}, {"QP_UpdateAttemptOutcome", `{"WorkItemHash":"w","Patch":{"Capability":"Shell"}}`}, {"QP_UpsertWorkItem", item(`,"Status":"S"`)}},
		"ignored payload": {{"QP_AppendEvent", `{"Event":{"WorkItemHash":"w","Payload":{"Capability":"Authentication"}}}`}, {"QP_UpsertWorkItem", item(``)}},
		"ignored patch":   {{"QP_UpdateWorkItem", `{"WorkItemHash":"w","Patch":{"Settings":{"a":1,"Capability":"ManifestStore"}}}`}, {"QP_UpsertWorkItem", item(``)}},
		"odd values":      {{"QP_UpsertWorkItem", item(`,"Health":-0,"Priority":1e2,"Status":7,"Settings":{ "a" : "\u003c" },"Result":null,"LastError":"\ud800","":0,"$raw":1,"<&>":"<&>"`)}},
		"manifests":       {{"MS_UpsertManifest", `{"Manifest":{"Hash":"r","Output":{ "a":1.0}}}`}, {"MS_UpsertManifest", `{"Manifest":{"Live":false,"Hash":"r","Output":{},"Log":["<"]}}`}, {"MS_RemoveManifest", `{"RunHash":"r"}`}, {"MS_RemoveManifest", `{"RunHash":"r"}`}, {"MS_UpsertManifest", `{"Manifest":{"Live":false,"Hash":"r"}}`}, {"MS_UpsertManifest", `{"Manifest":{"Hash":"r"}}`}},
	}
	for name, actions := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, store ports.LocalStore) {
				client := within(t, store)
				m := model.New(model.Options{})
				for _, a := range actions {
					settings := json.RawMessage(a[1])
					want, got := plain(m.Apply(a[0], settings)), client.Do(t, a[0], settings)
					if told := toldBy(got); told != want || got.Status != statusOf(want) {
						t.Errorf("%s %s\nis answered %+v (%d, %s)\nwant        %+v", a[0], fmt.Sprintf("%.300s", a[1]), told, got.Status, got.Reason, want)
					}
				}
				e2e.Compare(t, client, m)
			})
		})
	}
}
