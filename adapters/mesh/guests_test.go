package mesh

import (
	"strings"
	"testing"
	"time"

	"holdfast/adapters/mesh/stock"
)

// asGuest logs in as a stock client without a login does.
func (s *stand) asGuest(name string) (cookie string) {
	s.t.Helper()
	a := s.call("POST", "/1.0/Authenticate", map[string]any{"UserName": name, "Password": ""})
	if a.status != 200 || a.body["LoggedIn"] != nil || a.header.Get("Set-Cookie") == "" {
		s.t.Fatalf("login: %d %s", a.status, a.text)
	}
	cookie, _, _ = strings.Cut(a.header.Get("Set-Cookie"), ";")
	return cookie
}

func registration1(name, secret string) map[string]any {
	return map[string]any{"Action": "BeaconRegister", "Name": name, "Capabilities": []string{"Shell"}, "MaxConcurrent": 2, "JoinSecret": secret}
}

func TestAGuestMayDoNothingBeforeItShowsTheSecret(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{Users: ann, JoinSecret: "join"})
	cookie := s.asGuest("worker")
	for _, row := range routes {
		body := map[string]any{"Name": "worker", "Capabilities": []string{"Shell"}, "JoinSecret": "guess"}
		if a := s.call(row.method, strings.ReplaceAll(row.path, "*", "x"), body, cookie); (a.status == 401) != !row.exempt {
			t.Errorf("%s %s: %d %s", row.method, row.path, a.status, a.text)
		}
		cookie = s.asGuest("worker") // some end the session
	}
	if a := s.call("GET", "/1.0/CheckSession", nil, cookie); a.body["LoggedIn"] != false {
		t.Errorf("a guest counts as logged in: %s", a.text)
	}
	if got := s.joins(registration1("worker", "guess"), cookie); got != "rejected" {
		t.Errorf("with a wrong secret its socket is %s", got)
	}
}

func TestAGuestIsTheBeaconThatItShowedTheSecretForAndNoOther(t *testing.T) {
	t.Parallel()
	for _, over := range []string{"socket", "http"} {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			s := serve(t, Config{Users: ann, JoinSecret: "join"})
			user := s.login("ann", "secret")
			other := s.call("POST", "/Beacon/Register", map[string]any{"Name": "other", "Capabilities": []string{"Shell"}}, user).body["BeaconID"].(string)
			cookie := s.asGuest("worker")
			if over == "http" {
				if a := s.call("POST", "/Beacon/Register", registration1("worker", "join"), cookie); a.status != 200 {
					t.Fatalf("to register: %d %s", a.status, a.text)
				}
			} else {
				p := s.dial(cookie)
				p.say(registration1("worker", "join"))
				p.expect("BeaconRegistered")
			}
			id := s.hub.registry.byName["worker"].id
			if a := s.call("POST", "/Beacon/"+id+"/Heartbeat", nil, cookie); a.status != 200 {
				t.Errorf("its heartbeat: %d %s", a.status, a.text)
			}
			for _, c := range [][2]string{{"POST", "/Beacon/" + other + "/Heartbeat"}, {"GET", "/Beacon"}, {"POST", "/Beacon/Work/Dispatch"}, {"GET", "/Manifest"}, {"GET", "/Beacon/" + id}} {
				if a := s.call(c[0], c[1], nil, cookie); a.status != 401 {
					t.Errorf("%v: %d %s", c, a.status, a.text)
				}
			}
			if a := s.call("POST", "/Beacon/Work/Poll", map[string]any{"BeaconID": other}, cookie); a.status != 401 {
				t.Errorf("another's work: %d %s", a.status, a.text)
			}
			if a := s.call("DELETE", "/Beacon/"+other, nil, cookie); a.status != 404 {
				t.Errorf("another's goodbye: %d %s", a.status, a.text)
			}
			got := s.later(within(t, testPatience), shell("other"))
			hash := ""
			eventuallyWithin(t, testPatience, "the other's work", func() bool {
				if item, ok := s.call("POST", "/Beacon/Work/Poll", map[string]any{"BeaconID": other}, user).body["WorkItem"].(map[string]any); ok {
					hash = item["WorkItemHash"].(string)
				}
				return hash != ""
			})
			if a := s.call("POST", "/Beacon/Work/"+hash+"/Complete", map[string]any{"Outputs": map[string]any{"forged": true}}, cookie); a.status != 400 {
				t.Errorf("another's report: %d %s", a.status, a.text)
			}
			s.call("POST", "/Beacon/Work/"+hash+"/Complete", map[string]any{"Outputs": map[string]any{"forged": false}}, user)
			if r := <-got; r.err != nil || string(r.answer.Outputs) != `{"forged":false}` {
				t.Errorf("got %+v", r)
			}
		})
	}
}

// A client whose socket is down reports over HTTP, and is not sent to log in again for it.
func TestAReportOfAGuestCountsWhileItsSocketIsDown(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{Users: ann, JoinSecret: "join"})
	user, cookie := s.login("ann", "secret"), s.asGuest("worker")
	p := s.dial(cookie)
	p.say(registration1("worker", "join"))
	p.expect("BeaconRegistered")
	got := make(chan answer, 1)
	go func() {
		a, _ := request(s.url, "POST", "/Beacon/Work/Dispatch", map[string]any{"Capability": "Shell", "TimeoutMs": 10_000}, user)
		got <- a
	}()
	hash, _ := p.work()
	_ = p.conn.CloseNow()
	if a := s.call("POST", "/Beacon/Work/"+hash+"/Progress", map[string]any{"Percent": 50}, cookie); a.status != 200 {
		t.Errorf("its word of progress: %d %s", a.status, a.text)
	}
	if a := s.call("POST", "/Beacon/Work/"+hash+"/Complete", map[string]any{"Outputs": map[string]any{"done": 1}}, cookie); a.status != 200 {
		t.Errorf("its report: %d %s", a.status, a.text)
	}
	if a := <-got; a.status != 200 || !strings.Contains(a.text, `{"done":1}`) {
		t.Errorf("the caller got %d %s", a.status, a.text)
	}
}

// A stock client with a join secret and no login polls, and takes work.
func TestAStockClientPollsWithTheJoinSecretAlone(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{Users: ann, JoinSecret: "join"})
	b := stock.NewBeacon(stock.BeaconConfig{ServerURL: s.url, Name: "poller", JoinSecret: "join", ForceHTTP: true, Clock: stock.Hurry(100), Actions: []stock.Action{echoing("C")}})
	t.Cleanup(b.Kill)
	if err := b.Start(within(t, testPatience)); err != nil {
		t.Fatal(err)
	}
	a := s.call("POST", "/Beacon/Work/Dispatch", map[string]any{"Capability": "C", "Settings": map[string]any{"a": 1}, "TimeoutMs": 10_000}, s.login("ann", "secret"))
	if a.status != 200 || !strings.Contains(a.text, `"a":1`) {
		t.Errorf("a work for it: %d %s", a.status, a.text)
	}
}

func TestGuestsEndAndHaveALimitOfTheirOwn(t *testing.T) {
	t.Parallel()
	now := newHand(noon)
	s := serve(t, Config{Users: ann, JoinSecret: "join", Clock: now.read, Limits: Limits{Sessions: 3}})
	user, cookie := s.login("ann", "secret"), s.asGuest("worker")
	if a := s.call("POST", "/Beacon/Register", registration1("worker", "join"), cookie); a.status != 200 {
		t.Fatalf("to register: %d %s", a.status, a.text)
	}
	id := s.hub.registry.byName["worker"].id
	beats := func() int { return s.call("POST", "/Beacon/"+id+"/Heartbeat", nil, cookie).status }
	for range 10 {
		now.move(time.Second)
		s.asGuest("stranger")
	}
	if n := len(s.hub.access.guests); n != 3 || beats() != 200 || s.call("GET", "/Beacon", nil, user).status != 200 {
		t.Errorf("strangers drove out who is known: %d guests", n)
	}
	now.move(guestWait)
	s.hub.tick()
	if n := len(s.hub.access.guests); n != 1 || beats() != 200 {
		t.Errorf("%d guests are kept", n)
	}
	now.move(24 * time.Hour)
	s.hub.tick()
	if n := len(s.hub.access.guests); n != 0 || beats() != 401 {
		t.Errorf("%d guests are kept for ever", n)
	}
}
