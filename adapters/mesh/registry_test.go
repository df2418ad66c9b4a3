package mesh

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/ports"
)

func named(name string) registration {
	return registration{name: name, capabilities: []string{"Shell"}, maxConcurrent: 1, opaque: map[string]json.RawMessage{}, size: 100}
}

func TestABeaconIDIsMadeOfTheNameAndIsNobodyElses(t *testing.T) {
	t.Parallel()
	g := newRegistry(Limits{}.withUsual())
	ids := map[string]bool{}
	for name, want := range map[string]string{"worker": "worker", "DB1": "db1", "db-1": "db-1", "Db 1": "db-1", "büro": "b-ro"} {
		b, _, err := g.register(named(name), 0, "", noon)
		if err != nil || ids[b.id] {
			t.Fatalf("%s: %v", name, err)
		}
		ids[b.id] = true
		if want = "bcn-" + want + "-"; b.id[:len(want)] != want {
			t.Errorf("%s became %s", name, b.id)
		}
	}
	if len(ids) != 5 {
		t.Errorf("the ids are %v", ids)
	}
}

func TestARegistrationChangesWhatItSaysAndKeepsTheRest(t *testing.T) {
	t.Parallel()
	g := newRegistry(Limits{}.withUsual())
	first := named("worker")
	first.opaque["Tags"], first.opaque["Contexts"] = json.RawMessage(`{"a":1}`), json.RawMessage(`{"c":1}`)
	b, _, _ := g.register(first, 7, "", noon)
	id, session, since := b.id, b.session, b.registeredAt
	again := named("worker")
	again.opaque["Tags"] = json.RawMessage(`{"a":2}`)
	again.capabilities = []string{"Other"}
	b, _, _ = g.register(again, 0, "", noon.Add(time.Second)) // over HTTP, while the socket is up
	if b.id != id || b.session != session || !b.registeredAt.Equal(since) || b.current != 7 {
		t.Errorf("it is another one: %+v", b)
	}
	if string(b.opaque["Tags"]) != `{"a":2}` || string(b.opaque["Contexts"]) != `{"c":1}` || b.capabilities[0] != "Other" {
		t.Errorf("it says %v %v", b.opaque, b.capabilities)
	}
}

func TestFullRegistriesForgetWhoIsAwayAndRefuseTheRest(t *testing.T) {
	t.Parallel()
	now := newHand(noon)
	s := serve(t, Config{Clock: now.read, Limits: Limits{Beacons: 2}})
	away := s.beacon("away", 1, "Shell")
	s.beacon("here", 1, "Shell")
	if a := s.call("POST", "/Beacon/Register", map[string]any{"Name": "third", "Capabilities": []string{}}); a.status != 503 || a.body["Code"] != "full" {
		t.Errorf("a third one: %d %s", a.status, a.text)
	}
	p := s.dial()
	p.say(map[string]any{"Action": "BeaconRegister", "Name": "third", "Capabilities": []string{}})
	if frame := p.expect("BeaconRejected"); frame["Code"] != "full" {
		t.Errorf("a third one: %v", frame)
	}
	_ = away.conn.CloseNow()
	eventually(t, "the first to be Offline", func() bool { return s.call("GET", "/Beacon/"+away.id, nil).body["Status"] == "Offline" })
	if a := s.call("POST", "/Beacon/Register", map[string]any{"Name": "third", "Capabilities": []string{}}); a.status != 200 {
		t.Errorf("in place of one that is away: %d %s", a.status, a.text)
	}
	if a := s.call("GET", "/Beacon/"+away.id, nil); a.status != 404 {
		t.Errorf("that one: %d", a.status)
	}
}

func TestTheBytesOfAllRegistrationsHaveALimit(t *testing.T) {
	t.Parallel()
	g := newRegistry(Limits{BeaconBytes: 250}.withUsual())
	large := named("b")
	large.size = 200
	for _, c := range []struct {
		r    registration
		want ports.Code
	}{{named("a"), ""}, {large, ports.Full}, {named("b"), ""}, {large, ports.Full}, {named("c"), ports.Full}} {
		if _, _, err := g.register(c.r, 0, "", noon); ports.CodeOf(err) != c.want {
			t.Errorf("%s of %d bytes: %v", c.r.name, c.r.size, err)
		}
	}
	g.forget(g.byName["a"])
	if g.bytes != 100 {
		t.Errorf("%d bytes are counted", g.bytes)
	}
}

func TestSilentPollersGoOfflineAndComeBackWithAnotherSession(t *testing.T) {
	t.Parallel()
	now := newHand(noon)
	s := serve(t, Config{Clock: now.read})
	id := s.call("POST", "/Beacon/Register", map[string]any{"Name": "poller", "Capabilities": []string{"Shell"}}).body["BeaconID"].(string)
	state := func() (status string, session uint64) {
		known, err := s.hub.Watch(within(t, testPatience), 0)
		if err != nil {
			t.Fatal(err)
		}
		return s.call("GET", "/Beacon/"+id, nil).body["Status"].(string), known.List[0].Session
	}
	_, first := state()
	now.move(59 * time.Second)
	s.hub.tick()
	if status, _ := state(); status != "Online" {
		t.Errorf("after 59 s it is %s", status)
	}
	s.call("POST", "/Beacon/"+id+"/Heartbeat", map[string]any{})
	now.move(59 * time.Second)
	s.hub.tick()
	if status, session := state(); status != "Online" || session != first {
		t.Errorf("59 s after a heartbeat it is %s in session %d", status, session)
	}
	now.move(2 * time.Second)
	s.hub.tick()
	if status, _ := state(); status != "Offline" {
		t.Errorf("after 61 s it is %s", status)
	}
	if _, err := s.hub.Dispatch(within(t, testPatience), shell("poller")); ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("it was given work: %v", err)
	}
	s.call("POST", "/Beacon/Work/Poll", map[string]any{"BeaconID": id})
	if status, session := state(); status != "Online" || session == first {
		t.Errorf("after a poll it is %s in session %d", status, session)
	}
	now.move(25 * time.Hour)
	s.hub.tick()
	now.move(time.Hour)
	s.hub.tick()
	if a := s.call("GET", "/Beacon/"+id, nil); a.status != 404 {
		t.Errorf("after a day it is %d", a.status)
	}
}

// Whatever comes and goes: the current socket is the newest open one of its Name, a beacon with an open socket is not lost, and
// every table tells the same.
func TestWhateverComesAndGoesEachNameIsKnownByItsNewestSocket(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		g := newRegistry(Limits{SocketsPerBeacon: 3}.withUsual())
		open := map[uint64]string{} // who registered over which socket
		var order []uint64
		next := uint64(0)
		lose := func(conn uint64) {
			g.lost(conn)
			delete(open, conn)
			order = slices.DeleteFunc(order, func(c uint64) bool { return c == conn })
		}
		name := rapid.SampledFrom([]string{"a", "b", "c"})
		r.Repeat(map[string]func(*rapid.T){
			"socket": func(r *rapid.T) {
				next++
				n := name.Draw(r, "name")
				_, dropped, err := g.register(named(n), next, "", noon)
				if err != nil {
					r.Fatal(err)
				}
				open[next] = n
				order = append(order, next)
				if dropped != 0 {
					lose(dropped)
				}
			},
			"http": func(r *rapid.T) { _, _, _ = g.register(named(name.Draw(r, "name")), 0, "", noon) },
			"again": func(r *rapid.T) {
				if len(order) > 0 {
					conn := rapid.SampledFrom(order).Draw(r, "conn")
					_, _, _ = g.register(named(open[conn]), conn, "", noon)
					order = append(slices.DeleteFunc(order, func(c uint64) bool { return c == conn }), conn)
				}
			},
			"lost": func(r *rapid.T) {
				if len(order) > 0 {
					lose(rapid.SampledFrom(order).Draw(r, "conn"))
				}
			},
			"goodbye": func(r *rapid.T) {
				if b := g.byName[name.Draw(r, "name")]; b != nil {
					for _, conn := range b.conns {
						delete(open, conn)
						order = slices.DeleteFunc(order, func(c uint64) bool { return c == conn })
					}
					g.forget(b)
				}
			},
			"": func(r *rapid.T) {
				if len(g.byName) != len(g.byID) || len(g.byConn) != len(open) {
					r.Fatalf("%d names, %d ids, %d sockets of %d", len(g.byName), len(g.byID), len(g.byConn), len(open))
				}
				for conn, n := range open {
					b := g.byName[n]
					if b == nil || g.byConn[conn] != b || !b.online {
						r.Fatalf("%s has an open socket and is lost", n)
					}
				}
				for _, b := range g.byName {
					if n := len(b.conns); n > 0 && b.current != b.conns[n-1] {
						r.Fatalf("%s: %d is current of %v", b.name, b.current, b.conns)
					}
				}
			},
		})
	})
}

// Two sockets of one name, the first closed while the second comes: what is left is always the second.
func TestOverManyReplacedSocketsTheBeaconStaysOnTheNewest(t *testing.T) {
	t.Parallel()
	rounds := 60
	if whole() {
		rounds = 500
	}
	s := serve(t, Config{})
	last := s.beacon("b1", 1, "Shell")
	id := last.id
	for round := range rounds {
		older := last
		if last = s.beacon("b1", 1, "Shell"); last.id != id {
			t.Fatalf("round %d: the id is %s", round, last.id)
		}
		go func() { _ = older.conn.CloseNow() }()
		got := s.later(within(t, testPatience), shell("b1"))
		hash, _ := last.work()
		last.complete(hash, map[string]any{})
		if r := <-got; r.err != nil {
			t.Fatalf("round %d: %v", round, r.err)
		}
	}
	eventually(t, "one socket", func() bool { return s.sockets() == 1 })
	if a := s.call("GET", "/Beacon/"+id, nil); a.body["Status"] != "Online" || fmt.Sprint(a.body["CurrentWorkItems"]) != "[]" {
		t.Errorf("it is %s", a.text)
	}
}

func TestAPollerWhoseSocketIsTakenForOpenGetsItsWork(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{Timing: Timing{Ping: 50 * time.Millisecond}})
	b := s.beacon("worker", 1, "Shell") // half open, says the poller: it answers no ping
	register := map[string]any{"Name": "worker", "Capabilities": []string{"Shell"}, "MaxConcurrent": 1}
	if a := s.call("POST", "/Beacon/Register", register); a.body["BeaconID"] != b.id {
		t.Errorf("it is %s", a.text)
	}
	s.muted("worker")
	poll := map[string]any{"BeaconID": b.id}
	got := s.later(within(t, testPatience), shell("worker"))
	var item map[string]any
	eventually(t, "work", func() bool {
		item, _ = s.call("POST", "/Beacon/Work/Poll", poll).body["WorkItem"].(map[string]any)
		return item != nil
	})
	s.call("POST", "/Beacon/Work/"+item["WorkItemHash"].(string)+"/Complete", map[string]any{})
	if r := <-got; r.err != nil {
		t.Error(r.err)
	}
	b.say(map[string]any{"Action": "BeaconHeartbeat", "BeaconID": b.id}) // and it lives after all
	eventually(t, "its socket to take over", func() bool { return s.session("worker") == 3 })
	got = s.later(within(t, testPatience), shell("worker"))
	hash, _ := b.work()
	b.complete(hash, map[string]any{})
	if r := <-got; r.err != nil {
		t.Error(r.err)
	}
	s.muted("worker")
	s.call("POST", "/Beacon/Work/Poll", poll)
	_ = b.conn.CloseNow() // and now it is seen
	eventually(t, "its end", func() bool { return s.sockets() == 0 })
	if a := s.call("GET", "/Beacon/"+b.id, nil); a.body["Status"] != "Online" {
		t.Errorf("it is %s", a.text)
	}
}

// muted waits until the socket of a beacon has left a ping without an answer.
func (s *stand) muted(name string) {
	s.t.Helper()
	eventually(s.t, "a ping without an answer", func() (mute bool) {
		s.hub.look(func() { mute = s.hub.works.mutes(name) })
		return mute
	})
}

func (s *stand) session(name string) (session uint64) {
	s.hub.look(func() { session = s.hub.registry.byName[name].session })
	return session
}

// A stock client that had a 401 polls for ever beside its good socket.
func TestABeaconThatPollsBesideAGoodSocketIsPushedToAllTheSame(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	b := s.beacon("worker", 1, "Shell")
	before := s.session("worker")
	for range 3 {
		if a := s.call("POST", "/Beacon/Work/Poll", map[string]any{"BeaconID": b.id}); a.text != `{"WorkItem":null}` {
			t.Errorf("the poll: %d %s", a.status, a.text)
		}
		got := s.later(within(t, testPatience), shell("worker"))
		hash, _ := b.work()
		b.complete(hash, map[string]any{})
		if r := <-got; r.err != nil {
			t.Error(r.err)
		}
	}
	if now := s.session("worker"); now != before {
		t.Errorf("session %d became %d", before, now)
	}
}
