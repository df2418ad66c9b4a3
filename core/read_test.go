package core

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/ports"
)

func TestAReadWaitsForTheWritesBeforeItAndThenSaysStale(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		commit, waits time.Duration
		stale         bool
	}{
		{0, 0, false},
		{200 * time.Millisecond, 200 * time.Millisecond, false},
		{300 * time.Millisecond, freshWait, true},
	} {
		playWith(t, func(s *stage) { s.config.Ack = AckJournaled }, func(t *testing.T, s *stage) {
			s.does(upsert("a", "Pending"), Deferred)
			synctest.Wait()
			s.store.suffers(func(*ports.CommitBatch) fate { return fate{after: c.commit} })
			s.does(patch("a", "Complete"), Deferred)
			began := time.Now()
			got := s.item("a")
			want := "Complete"
			if c.stale {
				want = "Pending"
			}
			if took := time.Since(began); got.Stale != c.stale || got.WorkItem["Status"] != want || took != c.waits {
				t.Errorf("after %s it reads %+v in %s", c.commit, got, took)
			}
		})
	}
}

func TestAReadOfAKeyDoesNotWaitForTheWritesOfOthers(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.does(upsert("a", "Pending"), Done)
		s.store.suffers(func(*ports.CommitBatch) fate { return fate{after: time.Minute} })
		s.host.Begin(upsert("b", "Pending"))
		s.host.Begin(call(ports.UpsertManifest, `{"Manifest":{"Hash":"m"}}`))
		began := time.Now()
		s.status("a", "Pending")
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %s", took)
		}
		if got := s.item("b"); !got.Stale || !got.NotFound {
			t.Errorf("the other key reads %+v", got)
		}
		if a := s.host.Items(t.Context(), ports.ItemQuery{Limit: 5}); !a.Stale || a.Situation != Done {
			t.Errorf("a list is answered %s", a.AppendJSON(nil))
		}
		if a := s.host.Attempts(t.Context(), ports.AttemptQuery{Key: "a"}); a.Stale || string(a.Value) != "[]" {
			t.Errorf("the attempts are answered %s", a.AppendJSON(nil))
		}
	})
}

func TestAfterAStartAReadOfAnyKeyWaitsForTheBacklog(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.does(upsert("a", "Pending"), Done)
		s.store.back = 0
		s.store.kill(nil)
		s.does(patch("a", "Complete"), Deferred)
		s.end()
		s.store.start()
		s.store.suffers(func(*ports.CommitBatch) fate { return fate{after: 100 * time.Millisecond} })
		s.begin()
		synctest.Wait()
		s.status("a", "Complete")
	})
}

func TestWithoutAStoreAReadIsNotAvailableAndItsPayloadIsEmpty(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.does(upsert("a", "Pending"), Done)
		s.store.back = 0
		s.store.kill(nil)
		why := `,"Code":"unavailable","Reason":"memory: the process is gone"`
		for want, a := range map[string]Answer{
			`{"Available":false,"Success":false` + why + `,"WorkItem":null}`: s.host.Item(t.Context(), "a"),
			`{"Available":false,"Success":false` + why + `,"WorkItems":[]}`:  s.host.Items(t.Context(), ports.ItemQuery{}),
			`{"Available":false,"Success":false` + why + `,"Events":[]}`:     s.host.Events(t.Context(), ports.EventQuery{Key: "a"}),
			`{"Available":false,"Success":false` + why + `,"Attempts":[]}`:   s.host.Attempts(t.Context(), ports.AttemptQuery{Key: "a"}),
			`{"Available":false,"Success":false` + why + `,"Manifest":null}`: s.host.Manifest(t.Context(), "a"),
			`{"Available":false,"Success":false` + why + `,"Manifests":[]}`:  s.host.Manifests(t.Context(), ports.ManifestQuery{}),
		} {
			if got := string(a.AppendJSON(nil)); got != want || a.HTTPStatus() != 503 {
				t.Errorf("%d %s\nwant %s", a.HTTPStatus(), got, want)
			}
		}
	})
}

func TestAMuteStoreHoldsNoReaderLong(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.store.mute = true
		began := time.Now()
		if a := s.host.Item(t.Context(), "a"); a.Situation != Unavailable || a.HTTPStatus() != 503 {
			t.Errorf("the answer is %s", a.AppendJSON(nil))
		}
		if took := time.Since(began); took > patience {
			t.Errorf("it took %s", took)
		}
	})
}

func TestTheReadActionsKeepTheHabitsOfTheBridges(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.does(upsert("a", "Pending"), Done)
		s.does(call(ports.InsertAttempt, `{"Attempt":{"WorkItemHash":"a","BeaconID":"b"}}`), Done)
		s.does(call(ports.UpsertManifest, `{"Manifest":{"Hash":"m","Output":{}}}`), Done)
		for settings, want := range map[request]string{
			{ports.GetWorkItemByHash, `{"WorkItemHash":"a"}`}: `{"Available":true,"Success":true,"Backend":"local","WorkItem":{"WorkItemHash":"a","Status":"Pending"}}`,
			{ports.GetWorkItemByHash, `{"WorkItemHash":"z"}`}: `{"Available":true,"Success":false,"NotFound":true,"Backend":"local","WorkItem":null}`,
			{ports.GetWorkItemByHash, `{}`}:                   `{"Available":true,"Success":false,"Code":"invalid","Reason":"WorkItemHash: is missing or no text","Field":"WorkItemHash","WorkItem":null}`,
			{ports.ListWorkItems, `{"Filter":{"Limit":1e9}}`}: `{"Available":true,"Success":false,"Code":"invalid","Reason":"Limit: is not a whole number","Field":"Limit","WorkItems":[]}`,
			{ports.ListWorkItems, `{}`}:                       `{"Available":true,"Success":true,"Backend":"local","WorkItems":[{"WorkItemHash":"a","Status":"Pending"}]}`,
			{ports.GetEvents, `{"WorkItemHash":"a"}`}:         `{"Available":true,"Success":true,"Backend":"local","Events":[]}`,
			{ports.ListAttempts, `{"WorkItemHash":"a"}`}:      `{"Available":true,"Success":true,"Backend":"local","Attempts":[{"WorkItemHash":"a","AttemptNumber":1,"BeaconID":"b"}]}`,
			{ports.GetManifest, `{"RunHash":"z"}`}:            `{"Available":true,"Success":false,"NotFound":true,"Backend":"local","Manifest":null}`,
		} {
			if got := string(s.host.Do(t.Context(), call(settings.action, "%s", settings.settings)).AppendJSON(nil)); got != want {
				t.Errorf("%s %s\nis answered %s\nwant        %s", settings.action, settings.settings, got, want)
			}
		}
	})
}

// request is an action with its settings.
type request struct {
	action   ports.Action
	settings string
}

func TestWhatAListAsksFor(t *testing.T) {
	t.Parallel()
	for settings, want := range map[request]string{
		{ports.ListWorkItems, `{}`}:                                                                         "500",
		{ports.ListWorkItems, `{"Filter":{"Limit":0}}`}:                                                     "500",
		{ports.ListWorkItems, `{"Filter":{"Limit":-3}}`}:                                                    "1",
		{ports.ListWorkItems, `{"Filter":{"Limit":99999}}`}:                                                 "5000",
		{ports.ListWorkItems, `{"Limit":7}`}:                                                                "7",
		{ports.ListWorkItems, `{"Filter":{"Status":"A"}}`}:                                                  "500 status [A]",
		{ports.ListWorkItems, `{"Filter":{"Status":["A","B",7]}}`}:                                          "500 status [A B]",
		{ports.ListWorkItems, `{"Filter":{"Status":""}}`}:                                                   "500",
		{ports.ListWorkItems, `{"Filter":{"Capability":"C","RunID":"R","AssignedBeaconID":"B","Other":1}}`}: "500 C R B",
		{ports.ListWorkItems, `{"Filter":{"OrderBy":"-EnqueuedAt"}}`}:                                       "500 desc",
		{ports.ListWorkItems, `{"Filter":{"OrderBy":"Priority DESC"}}`}:                                     "500 by Priority desc",
		{ports.ListWorkItems, `{"Filter":{"OrderBy":"Priority ASC"}}`}:                                      "500 by Priority",
		{ports.ListManifests, `{"Filter":{"OperationHash":"O","Status":"S"}}`}:                              "100 status [S] O",
		{ports.ListManifests, `{"Filter":{"Limit":2000}}`}:                                                  "1000",
	} {
		c := call(settings.action, "%s", settings.settings)
		q, err := parseRead(&c)
		got := fmt.Sprint(q.limit)
		if q.filter.Status != nil {
			got += fmt.Sprint(" status ", q.filter.Status)
		}
		for _, text := range []string{q.filter.Capability, q.filter.RunID, q.filter.AssignedBeaconID, q.filter.OperationHash} {
			if text != "" {
				got += " " + text
			}
		}
		if q.orderBy != "" {
			got += " by " + q.orderBy
		}
		if q.desc {
			got += " desc"
		}
		if err != nil || got != want {
			t.Errorf("%s %s asks for %q, want %q: %v", settings.action, settings.settings, got, want, err)
		}
	}
}

func TestEventsShowTheirOrderKeyUnlessTheirCallerGaveOne(t *testing.T) {
	t.Parallel()
	first := ports.First{OrderKey: "k"}
	for _, c := range []struct {
		kind       ports.Kind
		body, want string
	}{
		{ports.KindEvent, `{"a":1}`, `{"a":1,"OrderKey":"k"}`},
		{ports.KindEvent, `{}`, `{"OrderKey":"k"}`},
		{ports.KindEvent, `{"OrderKey":7}`, `{"OrderKey":7}`},
		{ports.KindEvent, `{"Payload":{"OrderKey":7}}`, `{"Payload":{"OrderKey":7},"OrderKey":"k"}`},
		{ports.KindManifest, `{"Hash":"m"}`, `{"Hash":"m","OrderKey":"k"}`},
		{ports.KindItem, `{"a":1}`, `{"a":1}`},
		{ports.KindAttempt, `{"a":1}`, `{"a":1}`},
	} {
		if got := string(shown(ports.Row{Kind: c.kind, Body: []byte(c.body), First: first})); got != c.want {
			t.Errorf("%s %s is shown as %s, want %s", c.kind, c.body, got, c.want)
		}
	}
}
