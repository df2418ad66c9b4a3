package mesh

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"holdfast/core"
	"holdfast/ports"
)

// A fleet of beacons, half of them on sockets and half polling, of ten capabilities. What a work's settings ask for, it does:
// succeed, fail, or report after its caller has given up, or never.

// whole says whether the long form of the tests is asked for.
func whole() bool { return os.Getenv("HOLDFAST_SOAK") != "" }

// wish is what a work asks its beacon to do.
func wish() string {
	switch n := rand.IntN(30); {
	case n < 4:
		return "fail"
	case n < 5:
		return "late"
	case n < 6:
		return "never"
	}
	return "succeed"
}

const fleetTimeout = 400 // ms, of works that are to be late

// member is one beacon of the fleet. It never takes more than its slots, and says so if it is given more.
type member struct {
	s        *stand
	name     string
	slots    int
	holding  atomic.Int64
	overrun  *atomic.Int64
	handle   sync.WaitGroup
	seen     *sync.Map // hashes that were delivered
	repeated *atomic.Int64
}

// do does a work and reports it by one of the functions.
func (m *member) do(ctx context.Context, item map[string]any, complete, fail func(hash string)) {
	if m.holding.Add(1) > int64(m.slots) {
		m.overrun.Add(1)
	}
	hash := item["WorkItemHash"].(string)
	if _, twice := m.seen.LoadOrStore(hash, true); twice {
		m.repeated.Add(1)
	}
	m.handle.Go(func() {
		switch item["Settings"].(map[string]any)["Wish"] {
		case "succeed":
			m.holding.Add(-1)
			complete(hash)
		case "fail":
			m.holding.Add(-1)
			fail(hash)
		case "late":
			pause(ctx, fleetTimeout*3/2*time.Millisecond)
			m.holding.Add(-1)
			complete(hash)
		default: // it will never be heard of again, and the hub gives its slot away
			pause(ctx, fleetTimeout*time.Millisecond)
			m.holding.Add(-1)
		}
	})
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// overSocket serves until ctx ends.
func (m *member) overSocket(ctx context.Context, capabilities []string) {
	p := m.s.beacon(m.name, m.slots, capabilities...)
	defer func() { _ = p.conn.CloseNow() }()
	defer m.handle.Wait()
	report := func(frame map[string]any) {
		text, _ := json.Marshal(frame)
		_ = p.conn.Write(context.Background(), websocket.MessageText, text)
	}
	for {
		_, text, err := p.conn.Read(ctx)
		if err != nil {
			return
		}
		var frame map[string]any
		_ = json.Unmarshal(text, &frame)
		if frame["EventType"] == "WorkItem" {
			m.do(ctx, frame["WorkItem"].(map[string]any),
				func(hash string) {
					report(map[string]any{"Action": "WorkComplete", "WorkItemHash": hash, "Outputs": map[string]any{"Success": true}, "Log": []string{}})
				},
				func(hash string) {
					report(map[string]any{"Action": "WorkError", "WorkItemHash": hash, "ErrorMessage": "as wished", "Log": []string{}})
				})
		}
	}
}

// polling serves until ctx ends.
func (m *member) polling(ctx context.Context, capabilities []string) {
	defer m.handle.Wait()
	a, err := request(m.s.url, "POST", "/Beacon/Register", map[string]any{"Name": m.name, "Capabilities": capabilities, "MaxConcurrent": m.slots})
	if err != nil || a.status != 200 {
		m.s.t.Errorf("register: %v %s", err, a.text)
		return
	}
	report := func(path string, body any) { _, _ = request(m.s.url, "POST", path, body) }
	for ctx.Err() == nil {
		if m.holding.Load() < int64(m.slots) {
			got, err := request(m.s.url, "POST", "/Beacon/Work/Poll", map[string]any{"BeaconID": a.body["BeaconID"]})
			if err != nil {
				return
			}
			if item, some := got.body["WorkItem"].(map[string]any); some {
				m.do(ctx, item,
					func(hash string) {
						report("/Beacon/Work/"+hash+"/Complete", map[string]any{"Outputs": map[string]any{"Success": true}})
					},
					func(hash string) {
						report("/Beacon/Work/"+hash+"/Error", map[string]any{"ErrorMessage": "as wished"})
					})
				continue
			}
		}
		pause(ctx, 20*time.Millisecond)
	}
}

func TestAFleetDoesEachWorkOnceAndAllOfItIsRecorded(t *testing.T) {
	beacons, works, callers := 20, 2000, 60
	if whole() {
		beacons, works, callers = 200, 20_000, 200
	}
	host := history(t)
	s := serve(t, Config{Core: Over(host), Timing: Timing{Grace: 2 * fleetTimeout * time.Millisecond}})
	ctx, stop := context.WithCancel(context.Background())
	var fleet sync.WaitGroup
	defer fleet.Wait()
	defer stop()
	var overrun, repeated atomic.Int64
	var seen sync.Map
	for i := range beacons {
		m := &member{s: s, name: fmt.Sprintf("beacon-%03d", i), slots: 1 + i%4, overrun: &overrun, seen: &seen, repeated: &repeated}
		capabilities := []string{fmt.Sprint("Capability", i/2%10), fmt.Sprint("Capability", (i/2+3)%10)}
		serve := m.overSocket
		if i%2 == 1 {
			serve = m.polling
		}
		fleet.Go(func() { serve(ctx, capabilities) })
	}
	eventually(t, "the fleet", func() bool {
		known, err := s.hub.Watch(context.Background(), 0)
		return err == nil && len(known.List) == beacons
	})

	results := s.order(works, callers)

	eventually(t, "every slot back", func() bool { return s.state() == tally{} })
	s.recorded()
	if n := overrun.Load(); n != 0 {
		t.Errorf("%d works came beyond a beacon's slots", n)
	}
	if n := repeated.Load(); n != 0 {
		t.Errorf("%d works were delivered twice", n)
	}
	if n := s.hub.record.lost.Load(); n != 0 {
		t.Errorf("%d writes were lost", n)
	}
	checkHistory(t, host, results)
	t.Logf("%d works: %d completed, %d failed, %d timed out, %d late reports", works, s.hub.counts.completed.Load(),
		s.hub.counts.failed.Load(), s.hub.counts.timedOut.Load(), s.hub.counts.late.Load())
}

// order has works done by so many callers at a time, and counts their answers by what was wished and what came.
func (s *stand) order(works, callers int) map[string]int {
	var wait sync.WaitGroup
	next := make(chan int)
	var mu sync.Mutex
	results := map[string]int{}
	for range callers {
		wait.Go(func() {
			for i := range next {
				wish := wish()
				timeout := 60_000
				if wish == "late" || wish == "never" {
					timeout = fleetTimeout
				}
				a, err := request(s.url, "POST", "/Beacon/Work/Dispatch", map[string]any{
					"Capability": fmt.Sprint("Capability", i%10), "Settings": map[string]any{"Wish": wish, "n": i}, "TimeoutMs": timeout,
				})
				result := fmt.Sprintf("%s %d", wish, a.status)
				if err != nil {
					result = err.Error()
				}
				mu.Lock()
				results[result]++
				mu.Unlock()
			}
		})
	}
	for i := range works {
		next <- i
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
		case "succeed 200":
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
			hash, status := item["WorkItemHash"].(string), item["Status"].(string)
			got[status]++
			checkItem(t, host, hash, status, item["DispatchedAt"] != nil)
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
	events := kinds(t, host, hash)
	want := []string{"enqueued"}
	if started {
		want = append(want, "dispatched")
	}
	end := "failed"
	if status == "Complete" {
		end = "completed"
	}
	if want = append(want, end); !slices.Equal(events, want) {
		t.Errorf("%s, %s: the events are %v", hash, status, events)
	}
	list := rows(t, host.Attempts(context.Background(), ports.AttemptQuery{Key: hash, Limit: 10}))
	if started != (len(list) == 1) || started && list[0]["Outcome"] != status {
		t.Errorf("%s, %s: the attempts are %v", hash, status, list)
	}
}
