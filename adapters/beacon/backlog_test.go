package beacon

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/adapters/mesh/stock"
	"holdfast/core"
	"holdfast/ports"
)

// A beacon that was away for long, and is slow: 25 ms for each work, 4 at a time. In a time of their own, as storms are.

// behindLAN is a stage whose beacon is not there yet.
func behindLAN(t *testing.T) (*stage, *troupe) {
	t.Helper()
	net := newLAN()
	s := &stage{t: t, hub: serveHubOn(t, net), store: stock.NewPersistence(), settle: settled}
	players := newTroupe(t, stock.BeaconConfig{
		ServerURL: "http://127.0.0.1:1", Dial: net.Dial, Name: "archive", MaxConcurrent: 4, Actions: s.store.Actions(),
	})
	t.Cleanup(players.end)
	return s, players
}

// writesf makes one write, which must be answered at once.
func (s *stage) writesf(action ports.Action, format string, values ...any) {
	s.t.Helper()
	began := time.Now()
	a := s.host.Do(s.t.Context(), core.Call{Action: action, Settings: fmt.Appendf(nil, format, values...)})
	if took := time.Since(began); !a.Success() || took > 100*time.Millisecond {
		s.t.Fatalf("answered after %s: %s", took, a.AppendJSON(nil))
	}
}

func TestABacklogDrainsAfterOneReconnectAndWhatIsLiveDoesNotWaitForIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const items = 600
		s, players := behindLAN(t)
		faults := 0
		s.asked = func(_ ports.Family, _ time.Time, err error) {
			if err != nil && players.front() != nil {
				faults++
			}
		}
		arrived := make(chan struct{}, 1)
		s.store.Watch(func(w stock.Write) {
			if w.Action == "MS_UpsertManifest" {
				select {
				case arrived <- struct{}{}:
				default: // it came twice
				}
			}
		})
		s.start(s.hub)
		for i := range items {
			s.writesf(ports.UpsertWorkItem, `{"WorkItem":{"WorkItemHash":"w%d","Status":"Pending"}}`, i)
			s.writesf(ports.AppendEvent, `{"Event":{"WorkItemHash":"w%d","EventType":"enqueued"}}`, i)
			s.writesf(ports.UpdateWorkItem, `{"WorkItemHash":"w%d","Patch":{"Status":"Complete"}}`, i)
		}
		players.feel(stock.Slow(25 * time.Millisecond))
		players.enter(t.Context())
		began, longest, live := time.Now(), time.Duration(0), 0
		for ; s.follower(ports.Queue).Phase != "ready"; live++ {
			s.writesf(ports.UpsertManifest, `{"Manifest":{"Hash":"r%d"}}`, live)
			s.writesf(ports.UpsertWorkItem, `{"WorkItem":{"WorkItemHash":"live","N":%d}}`, live)
			sent := time.Now()
			select {
			case <-arrived: // before the next one is written
			case <-time.After(time.Minute):
				t.Fatalf("a manifest is not at the beacon; it is told as %+v", s.host.Status().Backends)
			}
			if live > 0 { // the first one waits until the beacon is known
				longest = max(longest, time.Since(sent))
			}
			pause(t.Context(), 250*time.Millisecond)
			if time.Since(began) > 10*time.Minute {
				t.Fatalf("the backlog never drains; it is told as %+v", s.follower(ports.Queue))
			}
		}
		took := time.Since(began)
		s.await(func(w core.FollowerStatus) bool { return w.Phase == "ready" && w.Behind == 0 })
		if n := len(s.store.Holds().Items); n != items+1 {
			t.Errorf("the beacon has %d work items, want %d", n, items+1)
		}
		// An item, a look for its events and one event are three works; three slots of four do 120 in a second.
		if most := 2 * 3 * items * 25 * time.Millisecond / 3; took > most {
			t.Errorf("it took %s, want %s at most", took, most)
		}
		if longest > time.Second {
			t.Errorf("what was live in the other family took %s to the beacon", longest)
		}
		if at := players.front().State(); at.Sockets != 1 || at.Registered != 1 || faults > 0 {
			t.Errorf("the beacon connected %d times and registered %d times, and %d calls went wrong; want one, one and none", at.Sockets, at.Registered, faults)
		}
		t.Logf("%d changes in %s beside %d live writes of each family; a manifest was there after %s at most", 3*items, took, live, longest)
	})
}
