package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/core"
	"holdfast/ports"
)

func TestTheBackendsAreThoseOfTheStatus(t *testing.T) {
	t.Parallel()
	c := serve(t, &fakeHost{})
	var body struct{ Backends []core.BackendStatus }
	if err := json.Unmarshal([]byte(c.get("/v1/backends").body), &body); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c.host.Status().Backends, body.Backends); diff != "" {
		t.Error(diff)
	}
}

func unsettledKey(backend string, f ports.Family, name string) core.UnsettledStatus {
	return core.UnsettledStatus{Backend: backend, Family: f, Key: name, Kind: ports.RefusedKey, Code: ports.TooLarge, Reason: "too large for it", First: 3, Last: 8}
}

func TestUnsettledShowsWhatIsSetAsideAndTheKeysOfEveryFollower(t *testing.T) {
	t.Parallel()
	host := &fakeHost{
		asides: []core.AsideStatus{{Family: ports.Queue, Seq: 9, Key: "a"}, {Family: ports.Manifest, Seq: 4, Key: "m"}},
		keys:   []core.UnsettledStatus{unsettledKey("mirror", ports.Queue, "a"), unsettledKey("mirror", ports.Queue, "b"), unsettledKey("mirror", ports.Manifest, "m")},
	}
	c := serve(t, host)
	for path, want := range map[string][]string{
		"":                                             {"aside a", "aside m", "a", "b", "m"},
		"?family=queue":                                {"aside a", "a", "b"},
		"?backend=mirror":                              {"a", "b", "m"},
		"?backend=history":                             {"aside a", "aside m"},
		"?backend=local&family=manifest":               {"aside m"},
		"?backend=mirror&limit=1":                      {"a", "m", "more"},
		"?backend=mirror&limit=2":                      {"a", "b", "m"},
		"?backend=mirror&family=queue&after=a":         {"b"},
		"?backend=mirror&family=queue&after=b":         nil,
		"?backend=mirror&family=queue&limit=1&after=":  {"a", "more"},
		"?backend=mirror&family=queue&limit=1&after=a": {"b"},
	} {
		var body unsettledBody
		got := c.get("/v1/unsettled" + path)
		if err := json.Unmarshal([]byte(got.body), &body); err != nil || got.status != http.StatusOK || !strings.Contains(got.body, `"Unsettled":[`) || !strings.Contains(got.body, `"Keys":[`) {
			t.Fatalf("%s: %v in %d %s", path, err, got.status, got.body)
		}
		var shown []string
		for _, a := range body.Unsettled {
			shown = append(shown, "aside "+a.Key)
		}
		for _, k := range body.Keys {
			shown = append(shown, k.Key)
		}
		if body.More {
			shown = append(shown, "more")
		}
		if diff := cmp.Diff(want, shown); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

func TestOrdersAboutUnsettledKeysReachTheirBackend(t *testing.T) {
	t.Parallel()
	c := serve(t, &fakeHost{})
	for _, ask := range []struct {
		path, body, want string
		asked            any
	}{
		{"queue/retry", `{"Backend":"mirror","Key":"a"}`, `"Retried":5`, [3]string{"mirror", "Queue", "a"}},
		{"manifest/retry", `{"Backend":"mirror","All":true}`, `"Retried":5`, [3]string{"mirror", "Manifest", ""}},
		{"queue/discard", `{"Backend":"mirror","Key":"a"}`, `"Discarded":{"Backend":"mirror","Family":"Queue","Key":"a"}`, [3]string{"mirror", "Queue", "a"}},
		{"queue/retry", `{"Backend":"history","Key":"a"}`, `"Retried":3`, [2]string{"Queue", "a"}},
		{"queue/retry", `{"Backend":"local","Key":"a"}`, `"Retried":3`, [2]string{"Queue", "a"}},
		{"queue/discard", `{"Backend":"history","Key":"a"}`, `"Discarded":{"Family":"Queue","Seq":9`, nil},
	} {
		c.host.queries = nil
		got := c.send("POST", "/v1/unsettled/"+ask.path, typeJSON, ask.body)
		if got.status != http.StatusOK || !strings.Contains(got.body, ask.want) {
			t.Errorf("%s %s: %d %s", ask.path, ask.body, got.status, got.body)
		}
		if ask.asked != nil && (len(c.host.queries) != 1 || !cmp.Equal(ask.asked, c.host.queries[0])) {
			t.Errorf("%s %s: asked for %v", ask.path, ask.body, c.host.queries)
		}
	}
}

func TestResyncCopiesAgainAndRemovesOnlyWhatWasCounted(t *testing.T) {
	t.Parallel()
	c := serve(t, &fakeHost{})
	for _, ask := range []struct {
		body   string
		status int
		want   string
		asked  any
	}{
		{"", 200, `{"Available":true,"Success":true}`, "resync mirror"},
		{`{"Exact":false}`, 200, `{"Available":true,"Success":true}`, "resync mirror"},
		{`{"Exact":true}`, 200, `"Exactness":{"Backend":"mirror","OnlyThere":3,"Removed":0}`, int64(-1)},
		{`{"Exact":true,"Confirm":3}`, 200, `"Exactness":{"Backend":"mirror","OnlyThere":3,"Removed":3}`, int64(3)},
		{`{"Exact":true,"Confirm":0}`, 409, `3 records are only in mirror, not 0; nothing was removed`, int64(0)},
	} {
		c.host.queries = nil
		got := c.send("POST", "/v1/backends/mirror/resync", typeJSON, ask.body)
		if got.status != ask.status || !strings.Contains(got.body, ask.want) || len(c.host.queries) != 1 || c.host.queries[0] != ask.asked {
			t.Errorf("%s: %d %s, asked for %v", ask.body, got.status, got.body, c.host.queries)
		}
	}
}

// lastingOrders are the orders whose answer is a stream of progress.
var lastingOrders = []struct{ path, body, outcome string }{
	{"/v1/verify", `{"A":"local","B":"mirror"}`, `"Verification":{"A":"history","B":"mirror","Compared":7`},
	{"/v1/copy", `{"From":"mirror","To":"history"}`, `"Copied":{"From":"mirror","To":"history","Looked":9`},
	{"/v1/backends/mirror/adopt", ``, `"Adopted":{"Backend":"mirror","Looked":4`},
	{"/v1/backends/mirror/resync", `{"Exact":true,"Confirm":3}`, `"Exactness":{"Backend":"mirror","OnlyThere":3,"Removed":3}`},
}

// soon has lines sent without waiting long.
func soon(c *client) *client {
	c.api.tellEvery = time.Millisecond
	return c
}

func TestWhatLastsTellsHowFarItIsAndThenItsOutcome(t *testing.T) {
	t.Parallel()
	for _, order := range lastingOrders {
		t.Run(order.path, func(t *testing.T) {
			t.Parallel()
			told, goOn := make(chan struct{}), make(chan struct{})
			c := soon(serve(t, &fakeHost{work: func(_ context.Context, tell func(core.Progress)) error {
				tell(core.Progress{Family: ports.Queue, Looked: 40, Changed: 2})
				close(told)
				<-goOn
				return nil
			}}))
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.server.URL+order.path, strings.NewReader(order.body))
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.server.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer got.Body.Close()
			lines := bufio.NewScanner(got.Body)
			<-told
			for lines.Scan() && !strings.Contains(lines.Text(), "40") { // a sign of life may come before
			}
			if lines.Text() != `{"Progress":{"Family":"Queue","Looked":40,"Changed":2}}` || got.Header.Get("Content-Type") != typeNDJSON {
				t.Errorf("%s: %s", got.Header.Get("Content-Type"), lines.Text())
			}
			close(goOn)
			last := ""
			for lines.Scan() {
				last = lines.Text()
			}
			if !strings.HasPrefix(last, `{"Available":true,"Success":true,`) || !strings.Contains(last, order.outcome) {
				t.Errorf("it ends with %s", last)
			}
		})
	}
}

func TestWhatEndsAtOnceHasOneLine(t *testing.T) {
	t.Parallel()
	c := serve(t, &fakeHost{})
	for _, order := range lastingOrders {
		got := c.send("POST", order.path, typeJSON, order.body)
		if got.status != http.StatusOK || strings.Count(got.body, "\n") != 1 || !strings.Contains(got.body, order.outcome) || got.header.Get("Content-Type") != typeNDJSON {
			t.Errorf("%s: %d %s", order.path, got.status, got.body)
		}
	}
}

func TestWhatFailsBeforeItBeganIsAnsweredAsAnyOrder(t *testing.T) {
	t.Parallel()
	c := serve(t, &fakeHost{work: func(context.Context, func(core.Progress)) error {
		return ports.Errorf(ports.Unimplemented, "verify", "mirror cannot be walked")
	}})
	got := c.send("POST", "/v1/verify", typeJSON, `{"A":"local","B":"mirror"}`)
	if got.status != http.StatusNotImplemented || got.member(t, "Code") != "unimplemented" || got.header.Get("Content-Type") != typeJSON {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestWhatFailsInTheMiddleEndsWithAnErrorLine(t *testing.T) {
	t.Parallel()
	c := serve(t, &fakeHost{})
	soon(c).host.work = func(_ context.Context, tell func(core.Progress)) error {
		tell(core.Progress{Looked: 1})
		<-time.After(50 * time.Millisecond) // a line or more
		return ports.Errorf(ports.BackendGone, "copy", "the plugin died")
	}
	got := c.send("POST", "/v1/copy", typeJSON, `{"From":"local","To":"mirror"}`)
	lines := strings.Split(strings.TrimSpace(got.body), "\n")
	if got.status != http.StatusOK || len(lines) < 2 || lines[len(lines)-1] != `{"Available":false,"Success":false,"Code":"backend_gone","Reason":"copy: the plugin died"}` {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestWhatLastsEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	c := soon(serve(t, &fakeHost{work: func(ctx context.Context, _ func(core.Progress)) error {
		<-ctx.Done()
		close(ended)
		return ctx.Err()
	}}))
	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.server.URL+"/v1/verify", strings.NewReader(`{"A":"local","B":"mirror"}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	leave()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("the work goes on for nobody")
	}
}

func TestACallerOfALastingOrderMayCloseItsHalf(t *testing.T) {
	t.Parallel()
	begun, goOn := make(chan struct{}), make(chan struct{})
	c := soon(serve(t, &fakeHost{work: func(ctx context.Context, _ func(core.Progress)) error {
		close(begun)
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		return ctx.Err()
	}}))
	conn, err := net.Dial("tcp", c.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := `{"A":"local","B":"mirror"}`
	fmt.Fprintf(conn, "POST /v1/verify HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	<-begun
	lines := bufio.NewScanner(conn)
	for range 3 { // some lines after the half was closed
		for lines.Scan() && !strings.Contains(lines.Text(), `"Progress"`) {
		}
	}
	close(goOn)
	outcome := ""
	for lines.Scan() {
		if strings.Contains(lines.Text(), `"Available"`) {
			outcome = lines.Text()
		}
	}
	if !strings.Contains(outcome, `"Success":true,"Verification"`) {
		t.Errorf("it ends with %q", outcome)
	}
}

func TestAHostThatStopsEndsWhatLasts(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	c := soon(serve(t, &fakeHost{work: func(ctx context.Context, tell func(core.Progress)) error {
		tell(core.Progress{Looked: 1})
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	}}))
	answered := make(chan reply, 1)
	go func() { answered <- c.send("POST", "/v1/copy", typeJSON, `{"From":"local","To":"mirror"}`) }()
	<-begun
	c.api.Drain()
	got := <-answered
	if lines := strings.Split(strings.TrimSpace(got.body), "\n"); !strings.Contains(lines[len(lines)-1], `"Code":"unavailable","Reason":"the host is stopping`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := c.send("POST", "/v1/copy", typeJSON, `{"From":"local","To":"mirror"}`); got.status != http.StatusServiceUnavailable {
		t.Errorf("a new one: %d %s", got.status, got.body)
	}
}

func TestOnlySomeWorksLastAtATime(t *testing.T) {
	t.Parallel()
	begun, goOn := make(chan struct{}, maxLasting), make(chan struct{})
	c := serve(t, &fakeHost{work: func(context.Context, func(core.Progress)) error {
		begun <- struct{}{}
		<-goOn
		return nil
	}})
	answered := make(chan reply, maxLasting)
	for range maxLasting {
		go func() { answered <- c.send("POST", "/v1/verify", typeJSON, `{"A":"local","B":"mirror"}`) }()
		<-begun
	}
	if got := c.send("POST", "/v1/verify", typeJSON, `{"A":"local","B":"mirror"}`); got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "wait for one of them") {
		t.Errorf("%d %s", got.status, got.body)
	}
	close(goOn)
	for range maxLasting {
		if got := <-answered; got.status != http.StatusOK {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	if got := c.send("POST", "/v1/verify", typeJSON, `{"A":"local","B":"mirror"}`); got.status != http.StatusOK {
		t.Errorf("afterwards: %d %s", got.status, got.body)
	}
}
