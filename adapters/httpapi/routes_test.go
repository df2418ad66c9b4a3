package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/core"
	"holdfast/ports"
)

func TestASingleActionIsAnsweredByItsSituation(t *testing.T) {
	t.Parallel()
	for want, answer := range map[int]core.Answer{
		200: {Seq: 1},
		202: {Situation: core.Deferred, Seq: 1},
		404: {Situation: core.NotFound},
		409: {Situation: core.Refused, Err: ports.Errorf(ports.Conflict, "", "it is so already")},
		422: {Situation: core.SetAside, Err: ports.Errorf(ports.Internal, "", "a defect")},
		507: core.Refusal(ports.Errorf(ports.Full, "journal", "is full")),
		503: {Situation: core.Unavailable},
	} {
		c := serve(t, &fakeHost{answer: func(core.Call, int) core.Answer { return answer }})
		got := c.send("POST", "/v1/actions", "application/json; charset=utf-8", upsert)
		if got.status != want || got.member(t, "Success") != answer.Success() || got.header.Get("Content-Type") != typeJSON {
			t.Errorf("%d: %d %s", want, got.status, got.body)
		}
	}
}

func TestEveryMistakeIsAnEnvelopeThatSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	c := serve(t, &fakeHost{})
	for _, ask := range []struct {
		method, path, contentType, body string
		status                          int
		code, reason                    string
	}{
		{"POST", "/v1/actions", typeJSON, `{"Action":`, 400, "invalid", "not valid JSON"},
		{"POST", "/v1/actions", typeJSON, ``, 400, "invalid", "not a JSON object"},
		{"POST", "/v1/actions", typeJSON, `{"Action":"QP_Nothing","Settings":{}}`, 400, "invalid", "QP_UpsertWorkItem"},
		{"POST", "/v1/actions", typeJSON, `{"Action":"QP_GetWorkItemByHash","Action":"QP_UpsertWorkItem","Settings":{}}`, 400, "invalid", "Action: stands twice"},
		{"POST", "/v1/actions", "text/plain", upsert, 415, "invalid", "application/json for one action or application/x-ndjson"},
		{"POST", "/v1/actions", "", upsert, 415, "invalid", "application/x-ndjson"},
		{"GET", "/v1/actions", "", "", 405, "invalid", "it takes POST"},
		{"DELETE", "/v1/work-items/a", "", "", 405, "invalid", "it takes GET"},
		{"GET", "/v1/nothing", "", "", 404, "not_found", "no such path"},
		{"GET", "/v1/work-items/", "", "", 404, "not_found", "no such path"},
		{"GET", "/v1/work-items?limit=501", "", "", 400, "invalid", "501 is more than 500"},
		{"GET", "/v1/work-items?limit=1000000000", "", "", 400, "invalid", "more than 500"},
		{"GET", "/v1/work-items?limit=0", "", "", 400, "invalid", "from 1 to 500"},
		{"GET", "/v1/work-items?limit=-1", "", "", 400, "invalid", "from 1 to 500"},
		{"GET", "/v1/work-items?limit=abc", "", "", 400, "invalid", `"abc"`},
		{"GET", "/v1/work-items?limit=1&limit=2", "", "", 400, "invalid", "2 times"},
		{"GET", "/v1/work-items?statsu=Error", "", "", 400, "invalid", `did you mean "status"?`},
		{"GET", "/v1/work-items?color=red", "", "", 400, "invalid", "there is status, capability"},
		{"GET", "/v1/work-items?cursor=zzz", "", "", 400, "invalid", "is not one of ours"},
		{"GET", "/v1/work-items?since=yesterday", "", "", 400, "invalid", "24h"},
		{"GET", "/v1/work-items?order=up", "", "", 400, "invalid", "neither asc nor desc"},
		{"GET", "/v1/work-items?order_by=LastEvent", "", "", 400, "invalid", "is no column"},
		{"GET", "/v1/work-items?order_by=lasterror", "", "", 400, "invalid", `did you mean "LastError"?`},
		{"GET", "/v1/work-items?bodies=maybe", "", "", 400, "invalid", "neither true nor false"},
		{"GET", "/v1/work-items?action=%ff", "", "", 400, "invalid", "UTF-8"},
		{"GET", "/v1/work-items?%zz", "", "", 400, "invalid", "not well formed"},
		{"GET", "/v1/work-items/a?bodies=true", "", "", 400, "invalid", "is no parameter here; there are none"},
		{"GET", "/v1/work-items/a%00b", "", "", 400, "invalid", "NUL"},
		{"GET", "/v1/work-items/" + strings.Repeat("x", 513), "", "", 413, "too_large", "has 513 code points"},
		{"GET", "/v1/work-items/absent", "", "", 404, "", ""},
		{"GET", "/v1/manifests?capability=x", "", "", 400, "invalid", "is no parameter here"},
		{"GET", "/v1/export?family=items", "", "", 400, "invalid", "neither queue nor manifest"},
		{"GET", "/v1/writes/items/1", "", "", 400, "invalid", "neither queue nor manifest"},
		{"GET", "/v1/writes/queue/-1", "", "", 400, "invalid", "a whole number from 1"},
		{"GET", "/v1/status?count=true", "", "", 400, "invalid", `did you mean "counts"?`},
		{"POST", "/v1/unsettled/queue/retry", typeJSON, `{}`, 400, "invalid", "Key: is missing"},
		{"POST", "/v1/unsettled/queue/retry", typeJSON, `{"Kye":"a"}`, 400, "invalid", "Kye"},
		{"POST", "/v1/unsettled/events/retry", typeJSON, `{"Key":"a"}`, 400, "invalid", "neither queue nor manifest"},
		{"POST", "/v1/unsettled/queue/discard", typeJSON, `{"Key":"absent"}`, 404, "not_found", "nothing set aside"},
		{"POST", "/v1/unsettled/queue/retry", typeJSON, `{"Backend":"miror","Key":"a"}`, 404, "not_found", "Backend: no backend is called \"miror\"; there is history, mirror"},
		{"POST", "/v1/unsettled/queue/retry", typeJSON, `{"Backend":"mirror"}`, 400, "invalid", "Key: is missing"},
		{"POST", "/v1/unsettled/queue/retry", typeJSON, `{"Backend":"mirror","Key":"a","All":true}`, 400, "invalid", "exclude each other"},
		{"POST", "/v1/unsettled/queue/retry", typeJSON, `{"Backend":"history","All":true}`, 400, "invalid", "is not the local store"},
		{"POST", "/v1/unsettled/queue/discard", typeJSON, `{"Backend":"mirror","All":true}`, 400, "invalid", "one Key at a time"},
		{"GET", "/v1/unsettled?backend=nobody", "", "", 404, "not_found", "there is history, mirror"},
		{"GET", "/v1/unsettled?after=a", "", "", 400, "invalid", "name its backend and its family"},
		{"GET", "/v1/unsettled?backend=mirror&after=a", "", "", 400, "invalid", "name its backend and its family"},
		{"GET", "/v1/unsettled?limit=501", "", "", 400, "invalid", "501 is more than 500"},
		{"GET", "/v1/unsettled?bakend=mirror", "", "", 400, "invalid", `did you mean "backend"?`},
		{"GET", "/v1/backends?x=1", "", "", 400, "invalid", "there are none"},
		{"POST", "/v1/backends/nobody/resync", typeJSON, ``, 404, "not_found", "there is history, mirror"},
		{"POST", "/v1/backends/mirror/resync", typeJSON, `{"Confirm":3}`, 400, "invalid", "goes with Exact"},
		{"POST", "/v1/backends/mirror/resync", typeJSON, `{"Exact":true,"Confirm":-1}`, 400, "invalid", "goes with Exact"},
		{"POST", "/v1/backends/nobody/adopt", typeJSON, ``, 404, "not_found", "there is history, mirror"},
		{"POST", "/v1/verify", typeJSON, `{"A":"history"}`, 400, "invalid", "B: is missing"},
		{"POST", "/v1/verify", typeJSON, `{"A":"history","B":"local"}`, 400, "invalid", "the same backend as A"},
		{"POST", "/v1/verify", typeJSON, `{"A":"history","B":"nobody"}`, 404, "not_found", "B: no backend"},
		{"POST", "/v1/copy", typeJSON, `{"From":"x","To":"mirror"}`, 404, "not_found", "From: no backend"},
		{"GET", "/v1/copy", "", "", 405, "invalid", "it takes POST"},
		{"POST", "/v1/prune", typeJSON, `{}`, 400, "invalid", "720h"},
		{"POST", "/v1/prune", typeJSON, `{"OlderThan":"-1h"}`, 400, "invalid", "above zero"},
		{"POST", "/v1/prune", typeJSON, `{"OlderThan":"30 days"}`, 400, "invalid", "720h"},
		{"POST", "/v1/prune", typeJSON, strings.Repeat(" ", maxOrder+1), 413, "too_large", "the limit is 65536"},
	} {
		got := c.send(ask.method, ask.path, ask.contentType, ask.body)
		code, _ := got.member(t, "Code").(string)
		reason, _ := got.member(t, "Reason").(string)
		if got.status != ask.status || code != ask.code || !strings.Contains(reason, ask.reason) || got.member(t, "Success") != false {
			t.Errorf("%s %.60s: %d %s", ask.method, ask.path, got.status, got.body)
		}
	}
	if got := c.send("PUT", "/v1/prune", "", ""); got.header.Get("Allow") != "POST" {
		t.Errorf("Allow is %q", got.header.Get("Allow"))
	}
}

func TestABodyOverTheLimitIsRefusedWithItsSize(t *testing.T) {
	t.Parallel()
	c := serve(t, &fakeHost{})
	size := ports.MaxLineBytes + 1
	got := c.send("POST", "/v1/actions", typeJSON, strings.Repeat(" ", size))
	if got.status != 413 || got.member(t, "Field") != "body" || got.member(t, "Limit") != float64(ports.MaxLineBytes) || got.member(t, "Size") != float64(size) {
		t.Errorf("%d %s", got.status, got.body)
	}
	bomb := zipped(strings.Repeat(" ", size))
	if got := c.send("POST", "/v1/actions", typeJSON, bomb, "Content-Encoding", "gzip"); got.status != 413 || got.member(t, "Limit") != float64(ports.MaxLineBytes) {
		t.Errorf("unpacked: %d %s", got.status, got.body)
	}
	large := `{"Action":"QP_AppendEvent","Settings":{"p":"` + strings.Repeat("x", 5*medium) + `"}}`
	for _, headers := range [][]string{nil, {"Content-Encoding", "gzip"}} {
		body := large
		if headers != nil {
			body = zipped(large)
		}
		if got := c.send("POST", "/v1/actions", typeJSON, body, headers...); got.status != 200 {
			t.Errorf("%v: %d %s", headers, got.status, got.body)
		}
	}
	for _, call := range c.host.begun() {
		if len(call.Settings) != len(`{"p":""}`)+5*medium {
			t.Errorf("%d bytes arrived", len(call.Settings))
		}
	}
	if !c.api.budget.TryAcquire(maxInWork) {
		t.Error("a part of the budget was not given back")
	}
}

func TestALargeRecordWaitsForItsPartOfTheBudget(t *testing.T) {
	t.Parallel()
	c := serve(t, &fakeHost{})
	if !c.api.budget.TryAcquire(maxInWork) {
		t.Fatal("the budget is not whole")
	}
	large := `{"Action":"QP_AppendEvent","Settings":{"p":"` + strings.Repeat("x", 2*small) + `"}}`
	answered := make(chan reply, 1)
	go func() { answered <- c.send("POST", "/v1/actions", typeJSON, large) }()
	if got := c.send("POST", "/v1/actions", typeJSON, upsert); got.status != 200 {
		t.Errorf("a small one waits too: %d", got.status)
	}
	select {
	case got := <-answered:
		t.Fatalf("it did not wait: %d", got.status)
	default:
	}
	c.api.budget.Release(maxInWork)
	if got := <-answered; got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestFiltersReachTheHost(t *testing.T) {
	t.Parallel()
	cursor := ports.Cursor{Sort: "2026", Key: "a"}
	for path, want := range map[string]any{
		"/v1/work-items": ports.ItemQuery{Desc: true, Limit: 50},
		"/v1/work-items?status=Error,Failed&status=Stalled&capability=Shell&action=Run&run_id=r&run_hash=h&operation_hash=o&assigned_beacon_id=b&affinity_key=k&error=no+route&since=2026-01-02T03:04:05%2B01:00&until=2026-02-01T00:00:00Z&order=asc&limit=500&bodies=true": ports.ItemQuery{
			Filter: ports.ItemFilter{Status: []string{"Error", "Failed", "Stalled"}, Capability: "Shell", Action: "Run", RunID: "r", RunHash: "h", OperationHash: "o",
				AssignedBeaconID: "b", AffinityKey: "k", ErrorText: "no route", From: "2026-01-02T02:04:05.000000000Z", To: "2026-02-01T00:00:00.000000000Z"},
			Limit: 500, Bodies: true},
		"/v1/work-items?order_by=Priority":                          ports.ItemQuery{OrderBy: "Priority", Desc: true, Limit: 50},
		"/v1/work-items?order_by=EnqueuedAt&order=asc":              ports.ItemQuery{Limit: 50},
		"/v1/work-items?cursor=" + cursor.Token():                   ports.ItemQuery{Desc: true, Limit: 50, After: &cursor},
		"/v1/work-items/a/events":                                   ports.EventQuery{Key: "a", Limit: 50},
		"/v1/work-items/a/events?order=desc&limit=7&bodies=1":       ports.EventQuery{Key: "a", Limit: 7, Desc: true, Bodies: true},
		"/v1/work-items/a/attempts?limit=8":                         ports.AttemptQuery{Key: "a", Limit: 8},
		"/v1/manifests?status=Complete&operation_hash=o&order=desc": ports.ManifestQuery{Status: []string{"Complete"}, OperationHash: "o", Desc: true, Limit: 50},
		"/v1/manifests?since=1970-01-01T00:00:01Z":                  ports.ManifestQuery{From: "00000000001000", Desc: true, Limit: 50},
	} {
		c := serve(t, &fakeHost{})
		got := c.get(path)
		if got.status != 200 || len(c.host.queries) != 1 {
			t.Errorf("%s: %d %s", path, got.status, got.body)
			continue
		}
		if diff := cmp.Diff(want, c.host.queries[0]); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

func TestSinceMayBeADurationBack(t *testing.T) {
	t.Parallel()
	c := serve(t, &fakeHost{})
	before := ports.KeyOfTime(time.Now().Add(-24 * time.Hour))
	c.get("/v1/work-items?since=24h")
	after := ports.KeyOfTime(time.Now().Add(-24 * time.Hour))
	if from := c.host.queries[0].(ports.ItemQuery).Filter.From; from < before || from > after {
		t.Errorf("%s is not between %s and %s", from, before, after)
	}
}

func TestAKeyMayHoldAnyCharacter(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"/", "//", "a/b", "a//b", "..", ".", "a b", "a?b=c", "a#b", "50%", "ä€🙂", "<script>", "{x}", "a\nb", `"\`, "events"} {
		c := serve(t, &fakeHost{})
		escaped := strings.ReplaceAll(url.PathEscape(key), ".", "%2E")
		for _, path := range []string{"/v1/work-items/%s", "/v1/manifests/%s"} {
			if got := c.get(fmt.Sprintf(path, escaped)); got.status != 200 {
				t.Errorf("%q: %d %s", key, got.status, got.body)
			}
		}
		if diff := cmp.Diff([]any{key, key}, c.host.queries); diff != "" {
			t.Errorf("%q: %s", key, diff)
		}
	}
}

func TestOperation(t *testing.T) {
	t.Parallel()
	host := &fakeHost{asides: []core.AsideStatus{{Family: ports.Queue, Seq: 9, Key: "a", Code: ports.Conflict}}, pruned: ports.Pruned{Items: 4}}
	c := serve(t, host)
	for _, ask := range []struct{ method, path, body, want string }{
		{"GET", "/v1/status", "", `"HostID":"host"`},
		{"GET", "/v1/status?counts=true", "", `"Survey":{"Counts":{"WorkItem":7}`},
		{"GET", "/v1/writes/Manifest/4711", "", `"Write":{"Family":"Manifest","Seq":4711,"State":"decided"}`},
		{"GET", "/v1/unsettled", "", `"Unsettled":[{"Family":"Queue","Seq":9`},
		{"POST", "/v1/unsettled/queue/retry", `{"Key":"a"}`, `"Retried":3`},
		{"POST", "/v1/unsettled/manifest/discard", `{"Key":"a"}`, `"Discarded":{"Family":"Manifest","Seq":9`},
		{"POST", "/v1/local/accept", ``, `"Success":true`},
		{"POST", "/v1/local/accept", `{"Adopt":true}`, `"Success":true`},
		{"POST", "/v1/prune", `{"OlderThan":"720h"}`, `"Pruned":{"Items":4,"Events":0,"Attempts":0,"Manifests":0,"More":false}`},
		{"GET", "/livez", "", `"Success":true`},
		{"GET", "/readyz", "", `"Success":true`},
	} {
		got := c.send(ask.method, ask.path, typeJSON, ask.body)
		if got.status != 200 || !strings.Contains(got.body, ask.want) || got.member(t, "Success") != true {
			t.Errorf("%s %s: %d %s", ask.method, ask.path, got.status, got.body)
		}
	}
	age := time.Since(host.queries[len(host.queries)-1].(time.Time))
	if diff := cmp.Diff([]any{[2]string{"Queue", "a"}, false, true}, host.queries[:3]); diff != "" || age.Round(time.Minute) != 720*time.Hour {
		t.Errorf("%s, %v", diff, age)
	}
	host.notReady = ports.Errorf(ports.Unavailable, "local store", "is away")
	if got := c.get("/readyz"); got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "is away") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestPruningStopsInTimeAndSaysThatThereIsMore(t *testing.T) {
	t.Parallel()
	c := serve(t, &fakeHost{pruned: ports.Pruned{Items: 500}, pruneFor: time.Hour})
	c.api.pruneTime = 20 * time.Millisecond
	got := c.send("POST", "/v1/prune", typeJSON, `{"OlderThan":"1h"}`)
	if got.status != 200 || !strings.Contains(got.body, `"Items":500`) || !strings.Contains(got.body, `"More":true`) {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestMetricsTellWhatTheStatusTells(t *testing.T) {
	t.Parallel()
	c := serve(t, &fakeHost{})
	c.get("/v1/status")
	got := c.get("/metrics").body
	for _, want := range []string{
		`holdfast_build_info{version="1.2.3"} 1`,
		`holdfast_ready 1`,
		`holdfast_writes_accepted_total{family="queue"} 12`,
		`holdfast_writes_total{family="queue",outcome="already_present"} 1`,
		`holdfast_backlog_rows{family="queue"} 2`,
		`holdfast_backlog_age_seconds{family="queue"} 1.5`,
		`holdfast_journal_bytes{family="queue"} 100`,
		`holdfast_set_aside{family="queue"} 1`,
		`holdfast_lost_rows{family="queue"} 3`,
		`holdfast_backend_up{backend="history",kind="sqlite"} 1`,
		`holdfast_backend_state{backend="history",kind="sqlite",state="bootstrapped"} 1`,
		`holdfast_backend_state{backend="history",kind="sqlite",state="error"} 0`,
		`holdfast_backend_up{backend="mirror",kind="sqlite"} 1`,
		`holdfast_follower_state{backend="mirror",family="queue",state="bootstrapped"} 1`,
		`holdfast_follower_state{backend="mirror",family="queue",state="error"} 0`,
		`holdfast_follower_state{backend="mirror",family="manifest",state="error"} 1`,
		`holdfast_follower_behind{backend="mirror",family="queue"} 6`,
		`holdfast_follower_behind_seconds{backend="mirror",family="queue"} 2.5`,
		`holdfast_follower_unsettled{backend="mirror",family="queue",kind="refused"} 2`,
		`holdfast_follower_unsettled{backend="mirror",family="queue",kind="in_doubt"} 1`,
		`holdfast_follower_unsettled{backend="mirror",family="manifest",kind="discarded"} 3`,
		`holdfast_follower_rows_copied_total{backend="mirror",family="queue"} 9`,
		`holdfast_follower_suspect{backend="mirror",family="queue"} 1`,
		`holdfast_http_request_seconds_count{class="2xx",route="GET /v1/status"} 1`,
		`go_goroutines`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s", want)
		}
	}
}
