package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"holdfast/internal/model"
)

// T is what these helpers need of a test: a testing.TB and a rapid.T both have it.
type T interface {
	Helper()
	Context() context.Context
	Errorf(format string, args ...any)
	Error(args ...any)
	Fatalf(format string, args ...any)
	Fatal(args ...any)
}

// Client talks to a host as a caller does.
type Client struct {
	url  string
	http *http.Client

	mu       sync.Mutex
	answered map[string]int
}

// Client gives a caller of the host.
func (h *Host) Client() *Client { return NewClient(h.URL) }

// NewClient gives a caller of whatever answers at a URL.
func NewClient(url string) *Client {
	return &Client{url: url, http: &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
}

// Answered tells how many answers each backend has given since this was asked last. That there is nothing is always said by
// the local store, and not counted.
func (c *Client) Answered() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.answered
	c.answered = nil
	return all
}

func (c *Client) count(backend string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answered == nil {
		c.answered = map[string]int{}
	}
	c.answered[backend]++
}

// Close lets go of idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Answer is the envelope of every answer.
type Answer struct {
	Available, Success                                                  bool
	NotFound, AlreadyPresent, AlreadyAbsent, Ignored, Expired, Deferred bool
	SetAside, Stale, Incomplete, More                                   bool
	Code, Refused, Reason, Field, Backend, Cursor                       string
	Seq                                                                 uint64
	Limit, Size                                                         int64

	WorkItem, Manifest                     json.RawMessage
	WorkItems, Events, Attempts, Manifests []json.RawMessage

	Status int           `json:"-"` // of HTTP
	Took   time.Duration `json:"-"`
}

// Line is one action as NDJSON has it, without its end.
func Line(action string, settings json.RawMessage) []byte {
	return fmt.Appendf(nil, `{"Action":%q,"Settings":%s}`, action, settings)
}

// Send makes one call. key is its Idempotency-Key, "" for none. An error means that there was no answer.
func (c *Client) Send(ctx context.Context, key, action string, settings json.RawMessage) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/v1/actions", bytes.NewReader(Line(action, settings)))
	if err != nil {
		return Answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	return c.do(req)
}

// Do is Send for a host that must answer.
func (c *Client) Do(t T, action string, settings json.RawMessage) Answer {
	t.Helper()
	a, err := c.Send(t.Context(), "", action, settings)
	if err != nil {
		t.Fatalf("%s: %v", action, err)
	}
	return a
}

// Get reads a path with a query.
func (c *Client) Get(ctx context.Context, path string, query url.Values) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+path+"?"+query.Encode(), nil)
	if err != nil {
		return Answer{}, err
	}
	return c.do(req)
}

func (c *Client) do(req *http.Request) (a Answer, err error) {
	began := time.Now()
	res, err := c.http.Do(req)
	if err != nil {
		return a, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return a, fmt.Errorf("%s %s answers %s: %w", req.Method, req.URL.Path, res.Status, err)
	}
	a.Status, a.Took = res.StatusCode, time.Since(began)
	if !a.NotFound {
		c.count(a.Backend)
	}
	return a, nil
}

// Settle waits until the local store has everything that was acknowledged.
func (c *Client) Settle(t T) {
	t.Helper()
	if err := await(func() error { return c.backlog(t.Context()) }); err != nil {
		t.Fatalf("the local store does not catch up: %v", err)
	}
}

// Counts asks the host how much there is.
func (c *Client) Counts(t T) model.Counts {
	t.Helper()
	s, err := askStatus(t.Context(), c.http, c.url, "?counts=true")
	if err != nil {
		t.Fatal(err)
	}
	n := s.Survey.Counts
	return model.Counts{Items: n["WorkItem"], Events: n["Event"], Attempts: n["Attempt"], Manifests: n["Manifest"]}
}

// backlog is an error while writes wait for the local store.
func (c *Client) backlog(ctx context.Context) error {
	status, err := askStatus(ctx, c.http, c.url, "")
	if err != nil {
		return err
	}
	if !status.Ready || len(status.Families) != 2 {
		return fmt.Errorf("%d families, ready %v: %s", len(status.Families), status.Ready, status.Detail)
	}
	for _, f := range status.Families {
		if f.Backlog > 0 {
			return fmt.Errorf("%s is at %d of %d", f.Family, f.Committed, f.Head)
		}
	}
	return nil
}

// Stream sends NDJSON under a stream's name and gives the answers that came, in order. A body or an answer that breaks off
// is an error.
func (c *Client) Stream(ctx context.Context, name string, lines io.Reader) ([]Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/v1/actions", io.NopCloser(lines))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	req.Header.Set("Holdfast-Stream", name)
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1000))
		return nil, fmt.Errorf("the stream is answered %s: %s", res.Status, text)
	}
	var answers []Answer
	for d := json.NewDecoder(res.Body); ; {
		var a Answer
		switch err := d.Decode(&a); {
		case err == io.EOF:
			return answers, nil
		case err != nil:
			return answers, err
		}
		answers = append(answers, a)
	}
}

// read is Get for a host that must answer, if not at once: on a machine that is busy a read may run out of its time.
func (c *Client) read(t T, path string, query url.Values) (a Answer) {
	t.Helper()
	err := await(func() (err error) {
		if a, err = c.Get(t.Context(), path, query); err == nil && !a.Available {
			err = fmt.Errorf("it is answered %d: %s %s", a.Status, a.Code, a.Reason)
		}
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return a
}

// pages reads a list to its end, page after page.
func (c *Client) pages(t T, path string, query url.Values, of func(Answer) []json.RawMessage) []model.Object {
	t.Helper()
	var all []model.Object
	for range 10_000 {
		a := c.read(t, path, query)
		if !a.Success || a.Stale || a.Incomplete {
			t.Fatalf("%s answers %d: success %v, stale %v, incomplete %v, %s", path, a.Status, a.Success, a.Stale, a.Incomplete, a.Reason)
		}
		for _, text := range of(a) {
			all = append(all, record(t, path, text))
		}
		if !a.More {
			return all
		}
		if a.Cursor == "" {
			t.Fatalf("%s says More without a Cursor", path)
		}
		query.Set("cursor", a.Cursor)
	}
	t.Fatalf("%s has no end", path)
	return nil
}

func record(t T, path string, text json.RawMessage) model.Object {
	t.Helper()
	r, err := model.ParseObject(text)
	if err != nil {
		t.Fatalf("%s: a record %v", path, err)
	}
	return r
}

// Items reads all work items, newest first, whole.
func (c *Client) Items(t T) []model.Object {
	t.Helper()
	return c.pages(t, "/v1/work-items", url.Values{"bodies": {"true"}, "limit": {"200"}}, func(a Answer) []json.RawMessage { return a.WorkItems })
}

// Events reads the events of a work item in their order.
func (c *Client) Events(t T, hash string) []model.Object {
	t.Helper()
	return c.pages(t, "/v1/work-items/"+url.PathEscape(hash)+"/events", url.Values{"bodies": {"true"}, "limit": {"3"}}, func(a Answer) []json.RawMessage { return a.Events })
}

// Attempts reads the attempts of a work item by number.
func (c *Client) Attempts(t T, hash string) []model.Object {
	t.Helper()
	return c.pages(t, "/v1/work-items/"+url.PathEscape(hash)+"/attempts", url.Values{"limit": {"2"}}, func(a Answer) []json.RawMessage { return a.Attempts })
}

// Manifests reads all manifests, newest first, whole.
func (c *Client) Manifests(t T) []model.Object {
	t.Helper()
	return c.pages(t, "/v1/manifests", url.Values{"bodies": {"true"}, "limit": {"50"}}, func(a Answer) []json.RawMessage { return a.Manifests })
}
