package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"holdfast/ports"
)

func withTokens(c *Config) {
	c.Loopback = false
	c.Tokens = []Token{{"viewer", "read", "see"}, {"hub", "write", "send"}, {"ops", "admin", "rule"}}
}

// everything is a good request to every route, with the least role that may send it.
var everything = []struct {
	method, path, body string
	role               Role
}{
	{"POST", "/v1/actions", upsert, RoleWrite},
	{"POST", "/v1/actions", `{"Action":"QP_GetEvents","Settings":{"WorkItemHash":"a"}}`, RoleRead},
	{"GET", "/v1/work-items", "", RoleRead},
	{"GET", "/v1/work-items/a", "", RoleRead},
	{"GET", "/v1/work-items/a/events", "", RoleRead},
	{"GET", "/v1/work-items/a/attempts", "", RoleRead},
	{"GET", "/v1/manifests", "", RoleRead},
	{"GET", "/v1/manifests/a", "", RoleRead},
	{"GET", "/v1/export", "", RoleRead},
	{"GET", "/v1/status", "", RoleRead},
	{"GET", "/v1/writes/queue/7", "", RoleRead},
	{"GET", "/v1/unsettled", "", RoleRead},
	{"POST", "/v1/unsettled/queue/retry", `{"Key":"a"}`, RoleAdmin},
	{"POST", "/v1/unsettled/manifest/discard", `{"Key":"a"}`, RoleAdmin},
	{"POST", "/v1/unsettled/manifest/retry", `{"Backend":"mirror","All":true}`, RoleAdmin},
	{"GET", "/v1/backends", "", RoleRead},
	{"POST", "/v1/backends/mirror/resync", "", RoleAdmin},
	{"POST", "/v1/backends/mirror/resync", `{"Exact":true}`, RoleAdmin},
	{"POST", "/v1/backends/mirror/adopt", "", RoleAdmin},
	{"POST", "/v1/verify", `{"A":"local","B":"mirror"}`, RoleRead},
	{"POST", "/v1/copy", `{"From":"local","To":"mirror"}`, RoleAdmin},
	{"POST", "/v1/assignment", `{"Clear":true}`, RoleAdmin},
	{"POST", "/v1/local/accept", `{"Adopt":true}`, RoleAdmin},
	{"POST", "/v1/prune", `{"OlderThan":"720h"}`, RoleAdmin},
	{"GET", "/metrics", "", RoleRead},
	{"GET", "/livez", "", RoleNone},
	{"GET", "/readyz", "", RoleNone},
	{"GET", "/", "", RoleNone},
}

func TestEachRoleMayDoWhatItIsFor(t *testing.T) {
	t.Parallel()
	for _, who := range []struct {
		name, secret string
		role         Role
	}{{"nobody", "", RoleNone}, {"a stranger", "seed", RoleNone}, {"viewer", "see", RoleRead}, {"hub", "send", RoleWrite}, {"ops", "rule", RoleAdmin}} {
		c := serve(t, &fakeHost{}, withTokens)
		c.token = who.secret
		for _, ask := range everything {
			got := c.send(ask.method, ask.path, typeJSON, ask.body)
			switch {
			case ask.role <= who.role:
				if got.status != http.StatusOK {
					t.Errorf("%s: %s %s: %d %s", who.name, ask.method, ask.path, got.status, got.body)
				}
			case who.role == RoleNone:
				if got.status != http.StatusUnauthorized || !strings.HasPrefix(got.header.Get("WWW-Authenticate"), "Bearer") || got.member(t, "Code") != "unauthorized" {
					t.Errorf("%s: %s %s: %d %s", who.name, ask.method, ask.path, got.status, got.body)
				}
			default:
				if got.status != http.StatusForbidden || !strings.Contains(got.body, "the role "+ask.role.String()) {
					t.Errorf("%s: %s %s: %d %s", who.name, ask.method, ask.path, got.status, got.body)
				}
			}
			if who.secret != "" && strings.Contains(got.body, who.secret+"\"") {
				t.Errorf("%s: the secret is in %s", who.name, got.body)
			}
		}
	}
}

func TestAReadersWritesInAStreamAreRefusedLineByLine(t *testing.T) {
	t.Parallel()
	c := serve(t, &fakeHost{}, withTokens)
	c.token = "see"
	got := c.send("POST", "/v1/actions", typeNDJSON, line(1)+`{"Action":"QP_GetEvents","Settings":{"WorkItemHash":"a"}}`)
	answers := strings.Split(strings.TrimSpace(got.body), "\n")
	if len(answers) != 2 || !strings.Contains(answers[0], `"Code":"unauthorized"`) || !strings.Contains(answers[1], `"Success":true`) {
		t.Errorf("%s", got.body)
	}
}

func TestACallIsMadeInTheNameOfItsToken(t *testing.T) {
	t.Parallel()
	c := serve(t, &fakeHost{}, withTokens)
	c.token = "send"
	c.send("POST", "/v1/actions", typeJSON, upsert)
	open := serve(t, &fakeHost{})
	open.send("POST", "/v1/actions", typeJSON, upsert)
	if who, nobody := c.host.begun()[0].Source, open.host.begun()[0].Source; who.Actor != "hub" || who.Origin != ports.OriginHTTP || nobody.Actor != "anonymous" {
		t.Errorf("%q, %q", who.Actor, nobody.Actor)
	}
}

func TestAnOpenHostIsForThisMachineOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []Config{{}, {Tokens: []Token{{"a", "owner", "x"}}}, {Tokens: []Token{{"a", "read", ""}}, Loopback: true}} {
		if _, err := New(c); ports.CodeOf(err) != ports.Invalid {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestOtherSitesCannotUseAnOpenHostThroughABrowser(t *testing.T) {
	t.Parallel()
	c := serve(t, &fakeHost{})
	for _, ask := range []struct {
		name    string
		headers []string
		want    int
	}{
		{"curl", nil, 200},
		{"the page itself", []string{"Origin", c.server.URL, "Sec-Fetch-Site", "same-origin"}, 200},
		{"another site", []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, 403},
		{"another port", []string{"Origin", "http://127.0.0.1:1", "Sec-Fetch-Site", "same-site"}, 403},
		{"an old browser", []string{"Origin", "https://evil.example"}, 403},
		{"a sandboxed frame", []string{"Origin", "null"}, 403},
		{"a name that points here", []string{"Host", "evil.example"}, 421},
		{"localhost", []string{"Host", "LOCALHOST:8420"}, 200},
		{"the other loopback", []string{"Host", "[::1]:8420"}, 200},
	} {
		if got := c.send("POST", "/v1/actions", typeJSON, upsert, ask.headers...); got.status != ask.want {
			t.Errorf("%s: %d %s", ask.name, got.status, got.body)
		}
	}
	if got := c.send("GET", "/v1/status", "", "", "Host", "evil.example"); got.status != http.StatusMisdirectedRequest {
		t.Errorf("a read under a foreign name: %d %s", got.status, got.body)
	}
}

func TestThePageRunsNothingButItself(t *testing.T) {
	t.Parallel()
	got := serve(t, &fakeHost{}).get("/")
	policy := got.header.Get("Content-Security-Policy")
	for _, must := range []string{"default-src 'none'", "script-src 'sha256-", "style-src 'sha256-", "connect-src 'self'"} {
		if !strings.Contains(policy, must) {
			t.Errorf("the policy lacks %s: %s", must, policy)
		}
	}
	for _, mustNot := range []string{"innerHTML", "document.write", "http://", "https://", " onclick", " style=", "eval("} {
		if strings.Contains(got.body, mustNot) {
			t.Errorf("the page has %q", mustNot)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Count(got.body, "<script") != 1 || strings.Count(got.body, "<style") != 1 {
		t.Errorf("more than one script or style, or %s", policy)
	}
}
