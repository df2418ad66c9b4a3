package mesh

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/core"
	"holdfast/ports"
)

// recorded waits until everything that a hub has to record is in the history, and decided there.
func (s *stand) recorded() {
	s.t.Helper()
	eventuallyWithin(s.t, 10*testPatience, "an empty recorder", func() bool { return s.hub.record.waiting() == 0 })
	eventuallyWithin(s.t, 10*testPatience, "a read that is fresh", func() bool {
		a := s.hub.core.Items(context.Background(), ports.ItemQuery{Limit: 1})
		return a.Success() && !a.Stale
	})
}

// dispatched asks for a work as an outside caller does.
func (s *stand) dispatched(body map[string]any) <-chan answer {
	done := make(chan answer, 1)
	go func() {
		a, err := request(s.url, "POST", "/Beacon/Work/Dispatch", body)
		if err != nil {
			a.text = err.Error()
		}
		done <- a
	}()
	return done
}

// kinds are the types of a work's events, in their order.
func kinds(t *testing.T, host *core.Host, hash string) (list []string) {
	t.Helper()
	for _, e := range rows(t, host.Events(context.Background(), ports.EventQuery{Key: hash, Limit: 100, Bodies: true})) {
		list = append(list, e["EventType"].(string))
	}
	return list
}

func TestWhatAnOutsideCallerHasDoneIsRecordedFromItsStartToItsEnd(t *testing.T) {
	t.Parallel()
	host := history(t)
	s := serve(t, Config{Core: Over(host)})
	b := s.beacon("worker", 4, "Shell")
	for _, c := range []struct {
		name            string
		report          func(hash string)
		timeout         int
		status, outcome string
		http            int
		result          string
	}{
		{"a success", func(hash string) { b.complete(hash, map[string]any{"ExitCode": 0}) }, 20000, "Complete", "Complete", 200, `{"Outputs":{"ExitCode":0},"Log":["done"]}`},
		{"a failure", func(hash string) {
			b.say(map[string]any{"Action": "WorkError", "WorkItemHash": hash, "ErrorMessage": "no such file", "Log": []string{"tried"}})
		}, 20000, "Error", "Error", 500, `{"Error":"no such file","Log":["tried"]}`},
		{"a silence", func(string) {}, 100, "Timeout", "Timeout", 500, ""},
	} {
		got := s.dispatched(map[string]any{"Capability": "Shell", "Action": "Execute", "Settings": map[string]any{"Command": "uname"}, "TimeoutMs": c.timeout})
		hash, _ := b.work()
		c.report(hash)
		if a := <-got; a.status != c.http || a.body["Success"] != (c.http == 200) {
			t.Errorf("%s: %d %s", c.name, a.status, a.text)
		}
		s.recorded()
		item := host.Item(context.Background(), hash)
		var row map[string]any
		if err := json.Unmarshal(item.Value, &row); err != nil {
			t.Fatalf("%s: %v %v", c.name, err, item.Err)
		}
		if row["Status"] != c.status || row["Capability"] != "Shell" || row["AssignedBeaconID"] != b.id || row["AttemptNumber"] != 1.0 || row["CompletedAt"] == nil || row["DispatchedAt"] == nil {
			t.Errorf("%s: the item is %s", c.name, item.Value)
		}
		if c.result != "" && !strings.Contains(string(item.Value), `"Result":`+c.result) {
			t.Errorf("%s: the result is %v", c.name, row["Result"])
		}
		want := []string{"enqueued", "dispatched", map[string]string{"Complete": "completed"}[c.status]}
		if want[2] == "" {
			want[2] = "failed"
		}
		if got := kinds(t, host, hash); !slices.Equal(got, want) {
			t.Errorf("%s: the events are %v", c.name, got)
		}
		times := []any{row["EnqueuedAt"], row["DispatchedAt"], row["CompletedAt"]}
		for i, e := range rows(t, host.Events(context.Background(), ports.EventQuery{Key: hash, Limit: 10})) {
			if e["EmittedAt"] != times[i] {
				t.Errorf("%s: the event %v was emitted at %v, not at %v", c.name, e["EventType"], e["EmittedAt"], times[i])
			}
		}
		attempts := rows(t, host.Attempts(context.Background(), ports.AttemptQuery{Key: hash, Limit: 10}))
		if len(attempts) != 1 || attempts[0]["Outcome"] != c.outcome || attempts[0]["BeaconID"] != b.id {
			t.Errorf("%s: the attempts are %v", c.name, attempts)
		}
		if a := s.call("GET", "/Beacon/Work/"+hash+"/Events", nil); a.status != 200 || len(a.body["Events"].([]any)) != 3 {
			t.Errorf("%s: its events are %d %s", c.name, a.status, a.text)
		}
	}
	if n := s.hub.record.lost.Load(); n != 0 {
		t.Errorf("%d writes were lost", n)
	}
}

func TestWorkOfExemptCapabilitiesIsNeverRecordedAndItsSecretsAreNowhere(t *testing.T) {
	t.Parallel()
	host := history(t)
	var log logged
	s := serve(t, Config{Core: Over(host), Logger: log.logger()})
	b := s.beacon("auth", 8, "Authentication", "MeadowProxy", "QueuePersistence", "ManifestStore", "DataBeaconSchema", "DataBeaconManagement")
	const secret = "correct-horse-battery-staple"
	for _, capability := range []string{"Authentication", "MeadowProxy", "QueuePersistence", "ManifestStore", "DataBeaconSchema", "DataBeaconManagement"} {
		got := s.dispatched(map[string]any{"Capability": capability, "Action": "AUTH_Login", "Settings": map[string]any{"Username": "ann", "Password": secret}})
		hash, _ := b.work()
		if live := s.call("GET", "/Beacon/Queue?include=history", nil); strings.Contains(live.text, secret) {
			t.Errorf("%s: the queue shows the password", capability)
		}
		b.say(map[string]any{"Action": "WorkError", "WorkItemHash": hash, "ErrorMessage": "wrong"})
		<-got
		s.recorded()
		if a := host.Item(context.Background(), hash); a.Situation != core.NotFound {
			t.Errorf("%s was recorded: %s", capability, a.Value)
		}
		if events := kinds(t, host, hash); len(events) != 0 {
			t.Errorf("%s has events: %v", capability, events)
		}
	}
	if n := len(rows(t, host.Items(context.Background(), ports.ItemQuery{Limit: 10}))); n != 0 {
		t.Errorf("%d items were recorded", n)
	}
	if strings.Contains(log.String(), secret) {
		t.Error("the log has the password")
	}
}

func TestACallerThatGoesAwayTakesBackWhatHadNotStarted(t *testing.T) {
	t.Parallel()
	host := history(t)
	s := serve(t, Config{Core: Over(host)})
	b := s.beacon("worker", 1, "Shell")
	first := s.dispatched(map[string]any{"Capability": "Shell"})
	running, _ := b.work()
	ctx, leave := context.WithCancel(context.Background())
	w, err := s.hub.order([]byte(`{"Capability":"Shell"}`), open)
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan error, 1)
	go func() {
		_, err := s.hub.carry(within(t, testPatience), ctx, w)
		gone <- err
	}()
	eventually(t, "the second to wait", func() bool { return s.state().waiting == 1 })
	leave()
	if err := <-gone; ports.CodeOf(err) != ports.Canceled {
		t.Errorf("got %v", err)
	}
	b.complete(running, map[string]any{})
	<-first
	s.recorded()
	if got := kinds(t, host, w.Hash); !slices.Equal(got, []string{"enqueued", "canceled"}) {
		t.Errorf("its events are %v", got)
	}
	if a := host.Item(context.Background(), w.Hash); !strings.Contains(string(a.Value), `"Status":"Canceled"`) {
		t.Errorf("it is %s", a.Value)
	}
}

func TestAResultThatHistoryCannotHoldLosesOnlyItself(t *testing.T) {
	t.Parallel()
	host := history(t)
	var log logged
	s := serve(t, Config{Core: Over(host), Logger: log.logger()})
	b := s.beacon("worker", 1, "Shell")
	got := s.dispatched(map[string]any{"Capability": "Shell"})
	hash, _ := b.work()
	deep := strings.Repeat(`{"a":`, 500) + "1" + strings.Repeat("}", 500)
	b.say(`{"Action":"WorkComplete","WorkItemHash":"` + hash + `","Outputs":` + deep + `,"Log":[]}`)
	if a := <-got; a.status != 200 {
		t.Errorf("the caller got %d", a.status)
	}
	s.recorded()
	if a := host.Item(context.Background(), hash); !strings.Contains(string(a.Value), `"Status":"Complete"`) || !strings.Contains(string(a.Value), `"Result":{"Omitted":"`) {
		t.Errorf("it is %s", a.Value)
	}
	if !strings.Contains(log.String(), "cannot be kept; the rest of it is recorded: work="+hash) {
		t.Errorf("the log does not name it: %s", log.String())
	}
	if got := kinds(t, host, hash); !slices.Equal(got, []string{"enqueued", "dispatched", "completed"}) {
		t.Errorf("its events are %v", got)
	}
}

// door is a Core whose Door refuses for a while.
type door struct {
	Core
	refuse chan struct{} // closed when it takes everything
	asked  chan struct{}
}

func (d *door) Begin(call core.Call) Promise {
	select {
	case <-d.refuse:
		return d.Core.Begin(call)
	default:
	}
	select {
	case d.asked <- struct{}{}:
	default:
	}
	return refusing{}
}

type refusing struct{}

func (refusing) Wait(context.Context) core.Answer {
	return core.Answer{Situation: core.Unavailable, Err: ports.Errorf(ports.Full, "journal", "no room")}
}

func TestWhatTheDoorCannotTakeNowIsRecordedInOrderWhenItCan(t *testing.T) {
	t.Parallel()
	host := history(t)
	d := &door{Core: Over(host), refuse: make(chan struct{}), asked: make(chan struct{}, 1)}
	s := serve(t, Config{Core: d})
	b := s.beacon("worker", 1, "Shell")
	got := s.dispatched(map[string]any{"Capability": "Shell"})
	hash, _ := b.work()
	b.complete(hash, map[string]any{})
	if a := <-got; a.status != 200 {
		t.Errorf("the caller got %d %s", a.status, a.text)
	}
	<-d.asked
	close(d.refuse)
	s.recorded()
	if got := kinds(t, host, hash); !slices.Equal(got, []string{"enqueued", "dispatched", "completed"}) {
		t.Errorf("its events are %v", got)
	}
}

func TestWithoutADoorWorkIsDoneAllTheSame(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	b := s.beacon("worker", 1, "Shell")
	got := s.dispatched(map[string]any{"Capability": "Shell", "TimeoutMs": 20000})
	hash, _ := b.work()
	b.complete(hash, map[string]any{"n": 1})
	if a := <-got; a.status != 200 || a.body["WorkItemHash"] != hash {
		t.Errorf("got %d %s", a.status, a.text)
	}
	began := time.Now()
	if a := s.call("POST", "/Beacon/Work/Dispatch", map[string]any{"Capability": "Nobody", "TimeoutMs": 50}); a.status != 500 || time.Since(began) < 50*time.Millisecond {
		t.Errorf("a capability of nobody: %d %s", a.status, a.text)
	}
}

func TestAHubThatStopsWhileTheDoorIsShutSaysWhatItCouldNotRecord(t *testing.T) {
	t.Parallel()
	d := &door{Core: Over(history(t)), refuse: make(chan struct{}), asked: make(chan struct{}, 1)}
	hub, err := New(Config{Core: d, Loopback: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- hub.Run(ctx) }()
	w := &work{Work: shell(""), patient: true, record: &recording{}}
	asked := within(t, 50*time.Millisecond)
	if _, err := hub.carry(asked, asked, w); ports.CodeOf(err) != ports.Deadline {
		t.Errorf("got %v", err)
	}
	<-d.asked
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	if s := hub.Status(); s.Unrecorded != 4 {
		t.Errorf("%d writes are told as unrecorded", s.Unrecorded)
	}
}

func TestNewWorksWaitWhileTooMuchWaitsToBeRecorded(t *testing.T) {
	t.Parallel()
	r := newRecorder(nil, nil)
	r.queue = make([]record, maxRecords)
	if err := r.room(within(t, 10*time.Millisecond)); ports.CodeOf(err) != ports.Full {
		t.Errorf("got %v", err)
	}
	roomy := make(chan error, 1)
	go func() { roomy <- r.room(within(t, testPatience)) }()
	r.drop(1)
	if err := <-roomy; err != nil {
		t.Error(err)
	}
}
