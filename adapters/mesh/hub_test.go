package mesh

import (
	"context"
	"testing"
	"time"

	"github.com/coder/websocket"

	"holdfast/ports"
)

func shell(beacon string) ports.Work {
	return ports.Work{Beacon: beacon, Capability: "Shell", Action: "Execute", Settings: []byte(`{"Command":"uname"}`), Class: ports.ClassLive}
}

// later dispatches in the background.
type reply struct {
	answer ports.WorkAnswer
	err    error
}

func (s *stand) later(ctx context.Context, w ports.Work) <-chan reply {
	done := make(chan reply, 1)
	go func() {
		a, err := s.hub.Dispatch(ctx, w)
		done <- reply{a, err}
	}()
	return done
}

func TestABeaconIsPushedWorkAndItsAnswerComesBack(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	b := s.beacon("worker", 2, "Shell")
	got := s.later(within(t, testPatience), shell("worker"))
	hash, item := b.work()
	if len(item) != 9 || item["Settings"].(map[string]any)["Command"] != "uname" || item["Settings"].(map[string]any)["QueueMetadata"] == nil {
		t.Errorf("the work is %v", item)
	}
	b.complete(hash, map[string]any{"Success": true})
	if r := <-got; r.err != nil || string(r.answer.Outputs) != `{"Success":true}` || r.answer.Beacon != "worker" || r.answer.Log[0] != "done" {
		t.Errorf("got %+v", r)
	}
}

func TestAPollerGetsWorkAndItsAnswerComesBack(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	id := s.call("POST", "/Beacon/Register", map[string]any{"Name": "poller", "Capabilities": []string{"Shell"}, "MaxConcurrent": 1}).body["BeaconID"]
	if got := s.call("POST", "/Beacon/Work/Poll", map[string]any{"BeaconID": id}); got.text != `{"WorkItem":null}` {
		t.Fatalf("got %s", got.text)
	}
	for _, to := range []string{"poller", ""} { // by name, and from the pool
		got := s.later(within(t, testPatience), shell(to))
		var item map[string]any
		eventually(t, "work", func() bool {
			item, _ = s.call("POST", "/Beacon/Work/Poll", map[string]any{"BeaconID": id}).body["WorkItem"].(map[string]any)
			return item != nil
		})
		hash := item["WorkItemHash"].(string)
		if a := s.call("POST", "/Beacon/Work/"+hash+"/Complete", map[string]any{"Outputs": map[string]any{"n": 1}}); a.status != 200 || a.body["Status"] != "Completed" {
			t.Errorf("got %d %s", a.status, a.text)
		}
		if r := <-got; r.err != nil || string(r.answer.Outputs) != `{"n":1}` {
			t.Errorf("got %+v", r)
		}
		if a := s.call("POST", "/Beacon/Work/"+hash+"/Complete", map[string]any{}); a.status != 400 || a.body["Code"] != "conflict" {
			t.Errorf("a second report: %d %s", a.status, a.text)
		}
	}
	if a := s.call("POST", "/Beacon/Work/wi-never/Error", map[string]any{}); a.status != 400 || a.body["Code"] != "not_found" {
		t.Errorf("a report about nothing: %d %s", a.status, a.text)
	}
}

func TestAStrangerIsToldToRegister(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	for _, path := range []string{"/Beacon/Work/Poll", "/Beacon/bcn-x-1/Heartbeat"} {
		if a := s.call("POST", path, map[string]any{"BeaconID": "bcn-x-1"}); a.status != 401 {
			t.Errorf("%s: %d %s", path, a.status, a.text)
		}
	}
}

func TestABeaconKeepsItsIDAndAnOlderSocketNeverRemovesItsSuccessor(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	older := s.beacon("worker", 1, "Shell")
	newer := s.beacon("worker", 1, "Shell")
	if older.id != newer.id {
		t.Errorf("%s became %s", older.id, newer.id)
	}
	_ = older.conn.CloseNow()
	eventually(t, "the older socket's end", func() bool { return s.sockets() == 1 })
	got := s.later(within(t, testPatience), shell("worker"))
	hash, _ := newer.work()
	newer.complete(hash, map[string]any{})
	if r := <-got; r.err != nil {
		t.Error(r.err)
	}
	_ = newer.conn.CloseNow()
	eventually(t, "the beacon to be Offline", func() bool { return s.call("GET", "/Beacon/"+newer.id, nil).body["Status"] == "Offline" })
	if again := s.beacon("worker", 1, "Shell"); again.id != newer.id {
		t.Errorf("%s became %s", newer.id, again.id)
	}
}

func (s *stand) sockets() int {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return len(s.hub.sockets)
}

func TestOfTwoProgramsWithOneNameTheOlderTakesOverWhenTheNewerGoes(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	older := s.beacon("worker", 1, "Shell")
	newer := s.beacon("worker", 1, "Shell")
	_ = newer.conn.CloseNow()
	eventually(t, "the newer socket's end", func() bool { return s.sockets() == 1 })
	got := s.later(within(t, testPatience), shell("worker"))
	hash, _ := older.work()
	older.complete(hash, map[string]any{})
	if r := <-got; r.err != nil {
		t.Error(r.err)
	}
}

func TestASocketThatBreaksLeavesTheOutcomeUnknown(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	b := s.beacon("worker", 1, "Shell")
	sentOne := s.later(within(t, testPatience), shell("worker"))
	hash, _ := b.work()
	waitingOne := s.later(within(t, testPatience), shell("worker"))
	eventually(t, "the second to wait", func() bool { return s.state().waiting == 1 })
	_ = b.conn.CloseNow()
	if r := <-sentOne; ports.CodeOf(r.err) != ports.BackendGone {
		t.Errorf("what was sent: %v", r.err)
	}
	if r := <-waitingOne; ports.CodeOf(r.err) != ports.Unavailable {
		t.Errorf("what waited: %v", r.err)
	}
	if _, err := s.hub.Dispatch(within(t, testPatience), shell("worker")); ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("what came after: %v", err)
	}
	if a := s.call("POST", "/Beacon/Work/"+hash+"/Complete", map[string]any{}); a.status != 400 || a.body["Code"] != "conflict" {
		t.Errorf("the report over HTTP: %d %s", a.status, a.text)
	}
}

// state is a copy of the counts that tests look at.
type tally struct{ waiting, live, held int }

func (s *stand) state() tally {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	n := tally{waiting: s.hub.works.waiting, live: len(s.hub.works.live)}
	for _, b := range s.hub.works.berths {
		n.held += len(b.held)
	}
	return n
}

func TestWatchTellsWhoIsThere(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	known, err := s.hub.Watch(within(t, testPatience), 0)
	if err != nil || len(known.List) != 0 {
		t.Fatal(known, err)
	}
	b := s.beacon("worker", 3, "Shell")
	if known, err = s.hub.Watch(within(t, testPatience), known.Version); err != nil || len(known.List) != 1 {
		t.Fatal(known, err)
	}
	first := known.List[0]
	if first.Name != "worker" || first.ID != b.id || !first.Online || first.MaxConcurrent != 3 || first.Capabilities[0] != "Shell" {
		t.Errorf("it is %+v", first)
	}
	_ = b.conn.CloseNow()
	for known.List[0].Online {
		if known, err = s.hub.Watch(within(t, testPatience), known.Version); err != nil {
			t.Fatal(err)
		}
	}
	s.beacon("worker", 3, "Shell")
	for !known.List[0].Online {
		if known, err = s.hub.Watch(within(t, testPatience), known.Version); err != nil {
			t.Fatal(err)
		}
	}
	if known.List[0].Session == first.Session {
		t.Error("the session is the same")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if _, err := s.hub.Watch(ctx, known.Version); ports.CodeOf(err) != ports.Deadline {
		t.Errorf("got %v", err)
	}
}

func TestABeaconThatSaysGoodbyeIsForgotten(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	for name, goodbye := range map[string]func(b *peer){
		"over its socket": func(b *peer) {
			b.say(map[string]any{"Action": "Deregister", "BeaconID": b.id})
			b.expect("Deregistered")
		},
		"over HTTP": func(b *peer) {
			if a := s.call("DELETE", "/Beacon/"+b.id, nil); a.status != 200 || a.body["Status"] != "Deregistered" {
				t.Errorf("got %d %s", a.status, a.text)
			}
		},
	} {
		b := s.beacon(name, 1, "Shell")
		got := s.later(within(t, testPatience), shell(name))
		b.work()
		goodbye(b)
		if r := <-got; ports.CodeOf(r.err) != ports.BackendGone {
			t.Errorf("%s: its work: %v", name, r.err)
		}
		if a := s.call("GET", "/Beacon/"+b.id, nil); a.status != 404 {
			t.Errorf("%s: it is %d %s", name, a.status, a.text)
		}
		if a := s.call("DELETE", "/Beacon/"+b.id, nil); a.status != 404 {
			t.Errorf("%s: a second goodbye: %d %s", name, a.status, a.text)
		}
		if name == "over its socket" {
			b.register(name, 1, "Shell") // over the socket that it still has
		} else if _, err := b.hear(); websocket.CloseStatus(err) != websocket.StatusGoingAway { // so that its client connects again
			t.Errorf("%s: its socket: %v", name, err)
		}
	}
}

// In a rolling restart the older process says goodbye when the newer one is at work already, over both transports.
func TestTheGoodbyeOfAnOlderProgramLeavesItsSuccessorAndItsWork(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	older := s.beacon("worker", 1, "Shell")
	newer := s.beacon("worker", 1, "Shell")
	got := s.later(within(t, testPatience), shell("worker"))
	hash, _ := newer.work()
	if a := s.call("DELETE", "/Beacon/"+older.id, nil); a.status != 200 { // it may be heard first
		t.Errorf("got %d %s", a.status, a.text)
	}
	older.say(map[string]any{"Action": "Deregister", "BeaconID": older.id})
	older.expect("Deregistered")
	_ = older.conn.CloseNow()
	if a := s.call("DELETE", "/Beacon/"+older.id, nil); a.status != 200 || a.body["Status"] != "Deregistered" {
		t.Errorf("got %d %s", a.status, a.text)
	}
	newer.complete(hash, map[string]any{})
	if r := <-got; r.err != nil {
		t.Errorf("its work: %v", r.err)
	}
	if a := s.call("GET", "/Beacon/"+newer.id, nil); a.body["Status"] != "Online" {
		t.Errorf("the successor is %d %s", a.status, a.text)
	}
	newer.say(map[string]any{"Action": "Deregister", "BeaconID": newer.id})
	newer.expect("Deregistered")
	if a := s.call("GET", "/Beacon/"+newer.id, nil); a.status != 404 {
		t.Errorf("after its own goodbye it is %d %s", a.status, a.text)
	}
}

func TestASocketThatRegistersAnotherNameLeavesTheFirst(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	b := s.beacon("first", 1, "Shell")
	id := b.id
	got := s.later(within(t, testPatience), shell("first"))
	b.work()
	b.register("second", 1, "Shell")
	if r := <-got; ports.CodeOf(r.err) != ports.BackendGone {
		t.Errorf("the work of the first: %v", r.err)
	}
	if a := s.call("GET", "/Beacon/"+id, nil); a.body["Status"] != "Offline" {
		t.Errorf("the first is %s", a.text)
	}
	got = s.later(within(t, testPatience), shell("second"))
	hash, _ := b.work()
	b.complete(hash, map[string]any{})
	if r := <-got; r.err != nil {
		t.Error(r.err)
	}
}
