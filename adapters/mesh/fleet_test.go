package mesh

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"holdfast/adapters/mesh/stock"
	"holdfast/core"
	"holdfast/ports"
)

// whole says whether the long form of the tests is asked for.
func whole() bool { return os.Getenv("HOLDFAST_SOAK") != "" }

// fleetTimeout is the patience of callers whose work is not reported in time, in milliseconds.
const fleetTimeout = 400

// Stock beacons, half of them on sockets and half polling, of ten capabilities, do what outside callers dispatch, with
// failures, silences and late reports: each work ends once, no slot is lost, and all of it is history.
func TestAFleetDoesEachWorkOnceAndAllOfItIsRecorded(t *testing.T) {
	config, works, callers := stock.FleetConfig{Beacons: 20}, 2000, 60
	if whole() {
		config, works, callers = stock.FleetConfig{Beacons: 200, PollInterval: 200 * time.Millisecond}, 20_000, 200
	}
	host := history(t)
	s := serve(t, Config{Core: Over(host), Timing: Timing{Grace: time.Second, Linger: time.Second}})
	config.ServerURL = s.url
	fleet := stock.NewFleet(config)
	t.Cleanup(fleet.Kill)
	if err := fleet.Start(within(t, 3*testPatience)); err != nil {
		t.Fatal(err)
	}

	began := time.Now()
	results := s.order(fleet, works, callers)
	ordered := time.Since(began)

	eventually(t, "every slot back", func() bool { return s.state() == tally{} })
	s.recorded()
	recorded := time.Since(began)
	for n, times := range fleet.Done() {
		if times != 1 {
			t.Errorf("work %d was done %d times", n, times)
		}
	}
	for _, b := range fleet.Beacons {
		if n := b.State().Dropped; n != 0 {
			t.Errorf("a beacon was pushed %d works beyond its slots", n)
		}
	}
	status := s.hub.Status()
	if status.Unrecorded != 0 {
		t.Errorf("%d writes were lost", status.Unrecorded)
	}
	checkHistory(t, host, results)
	t.Logf("%d works done in %s, recorded after %s, checked after %s: %+v", works, ordered, recorded, time.Since(began), status)
}

// order has works done by so many callers at a time, and counts their answers by what was wished and what came.
func (s *stand) order(fleet *stock.Fleet, works, callers int) map[string]int {
	var wait sync.WaitGroup
	next := make(chan int)
	var mu sync.Mutex
	results := map[string]int{}
	for range callers {
		wait.Go(func() {
			for n := range next {
				fate, timeout := stock.FateOf(n), 120_000
				if fate == stock.FateLate || fate == stock.FateNever {
					timeout = fleetTimeout
				}
				a, err := request(s.url, "POST", "/Beacon/Work/Dispatch", map[string]any{
					"Capability": fleet.Capability(n), "Action": "Do", "Settings": fleet.Settings(n, fate), "TimeoutMs": timeout,
				})
				result := fmt.Sprintf("%s %d", fate, a.status)
				if err != nil {
					result = err.Error()
				}
				mu.Lock()
				results[result]++
				mu.Unlock()
			}
		})
	}
	for n := range works {
		next <- n
	}
	close(next)
	wait.Wait()
	return results
}

// checkHistory holds what was recorded against what the callers were answered, item by item.
func checkHistory(t *testing.T, host *core.Host, results map[string]int) {
	t.Helper()
	want := map[string]int{}
	for result, n := range results {
		switch result {
		case "done 200", "twice 200", "late 200": // on a slow machine the deadline is later still
			want["Complete"] += n
		case "fail 500":
			want["Error"] += n
		case "late 500", "never 500":
			want["Timeout"] += n
		default:
			t.Errorf("%d callers got %q", n, result)
		}
	}
	got := map[string]int{}
	var after *ports.Cursor
	for {
		a := host.Items(context.Background(), ports.ItemQuery{Limit: 500, After: after})
		for _, item := range rows(t, a) {
			status := item["Status"].(string)
			got[status]++
			checkItem(t, host, item["WorkItemHash"].(string), status, item["DispatchedAt"] != nil)
		}
		if a.Cursor == "" {
			break
		}
		var err error
		if after, err = ports.ParseCursor(a.Cursor); err != nil {
			t.Fatal(err)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("recorded %v, answered %v", got, want)
	}
}

// checkItem says what is missing from an item's history.
func checkItem(t *testing.T, host *core.Host, hash, status string, started bool) {
	t.Helper()
	want, end := []string{"enqueued"}, "failed"
	if started {
		want = append(want, "dispatched")
	}
	if status == "Complete" {
		end = "completed"
	}
	if events := kinds(t, host, hash); !slices.Equal(events, append(want, end)) {
		t.Errorf("%s, %s: the events are %v", hash, status, events)
	}
	list := rows(t, host.Attempts(context.Background(), ports.AttemptQuery{Key: hash, Limit: 10}))
	if started != (len(list) == 1) || started && list[0]["Outcome"] != status {
		t.Errorf("%s, %s: the attempts are %v", hash, status, list)
	}
}
