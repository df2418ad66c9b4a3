package mesh

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"holdfast/ports"
)

// quickHash is a hash that costs a test no time.
func quickHash(password string) string { return newHash(password, 10).String() }

var ann = []User{{Name: "ann", Password: quickHash("secret")}}

func (s *stand) login(user, password string) (cookie string) {
	s.t.Helper()
	a := s.call("POST", "/1.0/Authenticate", map[string]any{"UserName": user, "Password": password})
	if a.status != 200 || a.body["LoggedIn"] != true {
		s.t.Fatalf("login: %d %s", a.status, a.text)
	}
	cookie, _, _ = strings.Cut(a.header.Get("Set-Cookie"), ";") // as a stock client keeps it
	if cookie != "SessionID="+a.body["SessionID"].(string) {
		s.t.Fatalf("the cookie is %q, the answer %s", cookie, a.text)
	}
	return cookie
}

func TestALoginGivesASessionAndAWrongOneSaysSo(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{Users: []User{ann[0], {Name: "b/ob", Password: quickHash("se cret/")}}})
	for _, c := range [][2]string{{"ann", "wrong"}, {"nobody", "secret"}, {"", ""}, {"ann", ""}} {
		a := s.call("POST", "/1.0/Authenticate", map[string]any{"UserName": c[0], "Password": c[1]})
		if a.status != 200 || a.body["LoggedIn"] != false || a.body["Error"] == "" || a.header.Get("Set-Cookie") != "" {
			t.Errorf("%v: %d %s", c, a.status, a.text)
		}
	}
	for range 2 { // the second is known by its last success
		cookie := s.login("ann", "secret")
		if a := s.call("GET", "/1.0/CheckSession", nil, cookie); a.body["LoggedIn"] != true || a.body["UserID"] != "ann" {
			t.Errorf("got %s", a.text)
		}
	}
	cookie := s.login("ann", "secret")
	if a := s.call("POST", "/1.0/Deauthenticate", nil, cookie); a.body["LoggedIn"] != false {
		t.Errorf("got %s", a.text)
	}
	if a := s.call("GET", "/Beacon", nil, cookie); a.status != 401 {
		t.Errorf("after the end of the session: %d", a.status)
	}
	if a := s.call("POST", "/1.0/Authenticate", map[string]any{"username": "ann", "password": "secret"}); a.body["LoggedIn"] != true {
		t.Errorf("in lower case: %s", a.text)
	}
	if a := s.call("GET", "/1.0/Authenticate/b%2Fob/se%20cret%2F", nil); a.status != 200 || a.body["UserID"] != "b/ob" || a.header.Get("Set-Cookie") == "" {
		t.Errorf("in the path: %d %s", a.status, a.text)
	}
	if a := s.call("GET", "/1.0/Authenticate/ann/se%20cret%2F", nil); a.status != 200 || a.body["LoggedIn"] != false || a.header.Get("Set-Cookie") != "" {
		t.Errorf("wrongly in the path: %d %s", a.status, a.text)
	}
}

func TestASecuredHubServesOnlyWhatIsExemptWithoutASession(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{Users: ann, JoinSecret: "join"})
	cookie := s.login("ann", "secret")
	for _, row := range routes {
		path := strings.ReplaceAll(row.path, "*", "x")
		if a := s.call(row.method, path, nil); (a.status == 401) != !row.exempt || !row.exempt && (a.body["LoggedIn"] != false || a.body["Error"] != "Authentication required.") {
			t.Errorf("%s %s: %d %s", row.method, path, a.status, a.text)
		}
		if row.path == "/1.0/Deauthenticate" {
			continue // it would end the session
		}
		if a := s.call(row.method, path, nil, cookie); a.status == 401 && !strings.Contains(a.text, "register again") {
			t.Errorf("%s %s with a session: %d %s", row.method, path, a.status, a.text)
		}
	}
	if a := s.call("GET", "/status", nil); a.body["AuthMode"] != "authenticated" {
		t.Errorf("the status is %s", a.text)
	}
}

// The same cases over both transports: who may register, and what a refusal looks like.
func TestWhoMayRegisterIsTheSameQuestionOnBothTransports(t *testing.T) {
	t.Parallel()
	register := map[string]any{"Action": "BeaconRegister", "Name": "worker", "Capabilities": []string{"Shell"}}
	with := func(secret string) map[string]any {
		more := maps.Clone(register)
		more["JoinSecret"] = secret
		return more
	}
	for _, c := range []struct {
		name   string
		config Config
		cookie string // "good", "bad" or ""
		frame  map[string]any
		http   int
		socket string // "registered", "401" before the upgrade, "rejected" behind it
	}{
		{"open", Config{}, "", register, 200, "registered"},
		{"users, a session", Config{Users: ann}, "good", register, 200, "registered"},
		{"users, none", Config{Users: ann}, "", register, 401, "401"},
		{"users, a session that is over", Config{Users: ann}, "bad", register, 401, "401"},
		{"users, a secret that nobody asked for", Config{Users: ann}, "", with("join"), 401, "401"},
		{"both, a session", Config{Users: ann, JoinSecret: "join"}, "good", register, 200, "registered"},
		{"both, the secret", Config{Users: ann, JoinSecret: "join"}, "", with("join"), 401, "registered"},
		{"both, a wrong secret", Config{Users: ann, JoinSecret: "join"}, "", with("joint"), 401, "rejected"},
		{"both, nothing", Config{Users: ann, JoinSecret: "join"}, "", register, 401, "rejected"},
		{"both, a session that is over", Config{Users: ann, JoinSecret: "join"}, "bad", with("join"), 401, "401"},
		{"a secret alone", Config{JoinSecret: "join"}, "", with("join"), 401, "registered"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, c.config)
			var cookies []string
			switch c.cookie {
			case "good":
				cookies = []string{s.login("ann", "secret")}
			case "bad":
				cookies = []string{"SessionID=6a0c3b8e-0000-4000-8000-000000000000"}
			}
			if a := s.call("POST", "/Beacon/Register", c.frame, cookies...); a.status != c.http {
				t.Errorf("over HTTP: %d %s", a.status, a.text)
			}
			if got := s.joins(c.frame, cookies...); got != c.socket {
				t.Errorf("over a socket: %s, want %s", got, c.socket)
			}
		})
	}
}

// joins says how the registration over a socket ends.
func (s *stand) joins(frame map[string]any, cookies ...string) string {
	p, err := s.tryDial(cookies...)
	if err != nil {
		return err.Error()[:3]
	}
	p.say(frame)
	got, err := p.hear()
	if err != nil {
		return err.Error()
	}
	if got["EventType"] == "BeaconRegistered" {
		return "registered"
	}
	if got["EventType"] != "BeaconRejected" || got["Reason"] == "" {
		return fmt.Sprint(got)
	}
	if _, err := p.hear(); websocket.CloseStatus(err) != rejected {
		return "rejected, but then " + err.Error()
	}
	return "rejected"
}

func TestAFrameCountsOnlyAfterItsSocketWasLetIn(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{Users: ann, JoinSecret: "join"})
	cookie := s.login("ann", "secret")
	good := s.dial(cookie)
	good.register("worker", 1, "Shell")
	got := s.later(within(t, testPatience), shell("worker"))
	hash, _ := good.work()
	stranger := s.dial()
	stranger.complete(hash, map[string]any{"forged": true})
	stranger.say(map[string]any{"Action": "BeaconRegister", "Name": "worker", "Capabilities": []string{"Shell"}, "JoinSecret": "guess"})
	if frame := stranger.expect("BeaconRejected"); strings.Contains(fmt.Sprint(frame), "guess") {
		t.Errorf("the refusal repeats the secret: %v", frame)
	}
	good.complete(hash, map[string]any{"forged": false})
	if r := <-got; r.err != nil || string(r.answer.Outputs) != `{"forged":false}` {
		t.Errorf("got %+v", r)
	}
}

func TestASessionEndsAfterItsTime(t *testing.T) {
	t.Parallel()
	now := newHand(noon)
	s := serve(t, Config{Users: ann, Clock: now.read})
	cookie := s.login("ann", "secret")
	now.move(23 * time.Hour)
	if a := s.call("GET", "/Beacon", nil, cookie); a.status != 200 {
		t.Errorf("after 23 hours: %d", a.status)
	}
	now.move(time.Hour)
	if a := s.call("GET", "/Beacon", nil, cookie); a.status != 401 {
		t.Errorf("after 24 hours: %d", a.status)
	}
	s.hub.tick()
	if n := len(s.hub.access.sessions); n != 0 {
		t.Errorf("%d sessions are kept", n)
	}
}

func TestSessionsHaveALimitAndTheOldestGoes(t *testing.T) {
	t.Parallel()
	now := newHand(noon)
	s := serve(t, Config{Users: ann, Clock: now.read, Limits: Limits{Sessions: 2}})
	var cookies []string
	for range 3 {
		now.move(time.Second)
		cookies = append(cookies, s.login("ann", "secret"))
	}
	for i, want := range []int{401, 200, 200} {
		if a := s.call("GET", "/Beacon", nil, cookies[i]); a.status != want {
			t.Errorf("session %d: %d", i, a.status)
		}
	}
}

func TestNoPasswordSecretOrSessionIsInALogOrAnAnswer(t *testing.T) {
	t.Parallel()
	var log logged
	s := serve(t, Config{Users: []User{{"ann", "hunter2hunter2"}}, JoinSecret: "join-me-please", Logger: log.logger()})
	cookie := s.login("ann", "hunter2hunter2")
	s.call("POST", "/1.0/Authenticate", map[string]any{"UserName": "ann", "Password": "hunter2hunter3"})
	p := s.dial()
	p.say(map[string]any{"Action": "BeaconRegister", "Name": "worker", "Capabilities": []string{"Shell"}, "JoinSecret": "join-me-please"})
	p.expect("BeaconRegistered")
	s.call("POST", "/Beacon/Register", map[string]any{"Name": "other", "Capabilities": []string{"Shell"}, "JoinSecret": "join-me-please"}, cookie)
	all := ""
	for _, path := range []string{"/Beacon", "/Beacon/Capabilities", "/Beacon/Actions", "/Beacon/Queue", "/status"} {
		all += s.call("GET", path, nil, cookie).text
	}
	s.hub.Close()
	for _, secret := range []string{"hunter2", "join-me-please", strings.TrimPrefix(cookie, "SessionID=")} {
		if strings.Contains(all, secret) || strings.Contains(log.String(), secret) {
			t.Errorf("%q is told", secret)
		}
	}
}

func TestHashesAreReadBackAndOddOnesRefused(t *testing.T) {
	t.Parallel()
	made := newHash("secret", 1000)
	read, err := readHash(User{"ann", made.String()})
	if err != nil || !read.fits("secret") || read.fits("Secret") {
		t.Errorf("%v", err)
	}
	for _, odd := range []User{{"ann", ""}, {"", "secret"}, {"ann", scheme + "$1$a"}, {"ann", scheme + "$x$AAAA$AAAA"}, {"ann", scheme + "$1$AAAA$AAAA"}, {"ann", scheme + "$99999999999$AAAA$AAAA"}} {
		if _, err := New(Config{Users: []User{odd}}); ports.CodeOf(err) != ports.Invalid || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v: %v", odd, err)
		}
	}
	if _, err := New(Config{Users: []User{ann[0], ann[0]}}); err == nil {
		t.Error("one user twice was taken")
	}
}

func TestAnOpenHubIsForThisMachineAlone(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{}); ports.CodeOf(err) != ports.Invalid {
		t.Errorf("it was opened to all: %v", err)
	}
	s := serve(t, Config{})
	for name, c := range map[string]struct {
		host, origin string
		status       int
	}{
		"a page of another site":        {"", "http://evil.example", 403},
		"a name that points here":       {"evil.example", "", 421},
		"this machine, without a page":  {"", "", 200},
		"this machine under its number": {"127.0.0.1:1", "", 200},
	} {
		r, err := http.NewRequest(http.MethodPost, s.url+"/Beacon/Register", strings.NewReader(`{"Name":"x","Capabilities":[]}`))
		if err != nil {
			t.Fatal(err)
		}
		if c.host != "" {
			r.Host = c.host
		}
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != c.status {
			t.Errorf("%s: %d", name, response.StatusCode)
		}
	}
	options := &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {"http://evil.example"}}}
	_, response, err := websocket.Dial(within(t, testPatience), "ws"+strings.TrimPrefix(s.url, "http"), options)
	if err == nil || response.StatusCode != http.StatusForbidden {
		t.Errorf("a socket of another site's page: %v", err)
	}
}
