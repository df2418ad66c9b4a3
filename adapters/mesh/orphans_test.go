package mesh

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/core"
	"holdfast/ports"
)

// severed is the core of a hub that is killed: nothing of it arrives any more.
type severed struct {
	Core
	cut atomic.Bool
}

func (s *severed) Begin(call core.Call) Promise {
	if s.cut.Load() {
		return refusing{}
	}
	return s.Core.Begin(call)
}

// killed leaves a work behind that a beacon had, and one that waited for it.
func killed(t *testing.T, host *core.Host) (running, waiting string) {
	t.Helper()
	c := &severed{Core: Over(host)}
	s := serve(t, Config{Core: c})
	b := s.beacon("worker", 1, "Shell")
	s.dispatched(map[string]any{"Capability": "Shell"})
	running, _ = b.work()
	s.dispatched(map[string]any{"Capability": "Shell", "AffinityKey": "worker"})
	eventually(t, "the second to wait", func() bool { return s.state().waiting == 1 })
	s.recorded()
	c.cut.Store(true)
	for _, item := range rows(t, host.Items(context.Background(), ports.ItemQuery{Limit: 10})) {
		if hash := item["WorkItemHash"].(string); hash != running {
			waiting = hash
		}
	}
	return running, waiting
}

// item reads one from the history.
func item(t *testing.T, host *core.Host, hash string) (item map[string]any) {
	t.Helper()
	a := host.Item(context.Background(), hash)
	if err := json.Unmarshal(a.Value, &item); err != nil {
		t.Fatalf("%s: %v %v", hash, err, a.Err)
	}
	return item
}

func TestWorksThatWereUnderWayWhenTheHubWasKilledAreEndedByItsNextStart(t *testing.T) {
	t.Parallel()
	host := history(t)
	running, waiting := killed(t, host)
	others := map[string]string{"of another host": `,"HubStart":"another/` + newGUID() + `"`, "of a stock hub": ""}
	for hash, start := range others {
		text := fmt.Sprintf(`{"WorkItem":{"WorkItemHash":%q,"Capability":"Shell","Status":"Running","EnqueuedAt":"2026-11-30T12:00:00.000Z"%s}}`, hash, start)
		if a := host.Do(context.Background(), core.Call{Action: ports.UpsertWorkItem, Settings: []byte(text)}); !a.Success() {
			t.Fatal(a.Err)
		}
	}
	s := serve(t, Config{Core: Over(host), Timing: Timing{Grace: 50 * time.Millisecond}})
	b := s.beacon("worker", 1, "Shell")
	s.dispatched(map[string]any{"Capability": "Shell"})
	live, _ := b.work()
	for hash, want := range map[string][]string{running: {"enqueued", "dispatched", "failed"}, waiting: {"enqueued", "failed"}} {
		eventually(t, "its end", func() bool { return item(t, host, hash)["Status"] == "Error" })
		s.recorded()
		row := item(t, host, hash)
		if row["CompletedAt"] == nil || !strings.Contains(row["LastError"].(string), "the hub stopped before it was reported") {
			t.Errorf("%s is %v", hash, row)
		}
		if got := kinds(t, host, hash); !slices.Equal(got, want) {
			t.Errorf("%s: the events are %v", hash, got)
		}
		attempts := rows(t, host.Attempts(context.Background(), ports.AttemptQuery{Key: hash, Limit: 10}))
		if len(attempts) != len(want)-2 || len(attempts) == 1 && (attempts[0]["Outcome"] != "Error" || attempts[0]["BeaconID"] != row["AssignedBeaconID"]) {
			t.Errorf("%s: the attempts are %v", hash, attempts)
		}
		if a := s.call("POST", "/Beacon/Work/"+hash+"/Complete", map[string]any{}); a.status != 400 || a.body["Code"] != "conflict" {
			t.Errorf("%s: a report after that: %d %s", hash, a.status, a.text)
		}
	}
	others[live] = ""
	for hash := range others {
		if status := item(t, host, hash)["Status"]; status != "Running" {
			t.Errorf("%s is %v", hash, status)
		}
	}
	if n := s.hub.Status().Unrecorded; n != 0 {
		t.Errorf("%d writes were lost", n)
	}
}

func TestAReportThatComesSoonAfterTheHubWasKilledIsTheEndOfItsWork(t *testing.T) {
	t.Parallel()
	host := history(t)
	running, _ := killed(t, host)
	s := serve(t, Config{Core: Over(host), Timing: Timing{Grace: time.Hour}})
	eventually(t, "what was left open", func() (found bool) {
		s.hub.look(func() { found = s.hub.orphans[running] != nil })
		return found
	})
	s.beacon("another", 1, "Shell").complete(running, map[string]any{"n": 0}) // not its work
	if a := s.call("POST", "/Beacon/Work/"+running+"/Complete", map[string]any{"Outputs": map[string]any{"n": 1}}); a.status != 200 {
		t.Errorf("the report: %d %s", a.status, a.text)
	}
	if a := s.call("POST", "/Beacon/Work/"+running+"/Complete", map[string]any{}); a.status != 400 {
		t.Errorf("a second one: %d %s", a.status, a.text)
	}
	s.recorded()
	if row := item(t, host, running); row["Status"] != "Complete" || fmt.Sprint(row["Result"]) != "map[Log:[] Outputs:map[n:1]]" {
		t.Errorf("it is %v", row)
	}
	if got := kinds(t, host, running); !slices.Equal(got, []string{"enqueued", "dispatched", "completed"}) {
		t.Errorf("its events are %v", got)
	}
}

func TestAReportOverASocketEndsAWorkOfTheKilledHubToo(t *testing.T) {
	t.Parallel()
	host := history(t)
	running, _ := killed(t, host)
	s := serve(t, Config{Core: Over(host), Timing: Timing{Grace: time.Hour}})
	eventually(t, "what was left open", func() (found bool) {
		s.hub.look(func() { found = s.hub.orphans[running] != nil })
		return found
	})
	s.beacon("worker", 1, "Shell").complete(running, map[string]any{"n": 1})
	eventually(t, "its end", func() bool { return item(t, host, running)["Status"] == "Complete" })
}

// behind is a core whose local store is away for a while.
type behind struct {
	Core
	asked atomic.Int32
}

func (b *behind) Items(ctx context.Context, q ports.ItemQuery) core.Answer {
	switch b.asked.Add(1) {
	case 1:
		return core.Answer{Situation: core.Unavailable, Err: ports.Errorf(ports.Unavailable, "local", "is starting")}
	case 2:
		return core.Answer{Stale: true, Value: []byte("[]")}
	}
	return b.Core.Items(ctx, q)
}

func TestTheHistoryIsAskedAgainWhatAnEarlierStartLeftOpen(t *testing.T) {
	t.Parallel()
	host := history(t)
	running, _ := killed(t, host)
	serve(t, Config{Core: &behind{Core: Over(host)}, Timing: Timing{Grace: time.Millisecond}})
	eventually(t, "its end", func() bool { return item(t, host, running)["Status"] == "Error" })
}

func TestAHubThatStopsSoonAfterItsStartEndsWhatTheOneBeforeLeftOpen(t *testing.T) {
	t.Parallel()
	host := history(t)
	running, _ := killed(t, host)
	hub, err := New(Config{Core: Over(host), Loopback: true, Timing: Timing{Grace: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- hub.Run(ctx) }()
	eventually(t, "what was left open", func() (found bool) {
		hub.look(func() { found = hub.orphans[running] != nil })
		return found
	})
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	eventually(t, "its end", func() bool { return item(t, host, running)["Status"] == "Error" })
}
