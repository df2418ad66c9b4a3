package beacon

import (
	"fmt"
	"os"
	"testing"
	"time"

	"holdfast/adapters/mesh/stock"
	"holdfast/core"
	"holdfast/ports"
)

func TestTheRecordedStreamIsAtTheBeaconAsItMustBe(t *testing.T) {
	t.Parallel()
	s := play(t, 8)
	began := time.Now()
	m := s.ingest(whole, nil)
	took := time.Since(began)
	s.equal(m)
	t.Logf("written in %s, at the beacon in %s", took, time.Since(began))
	by := map[string]int{}
	for _, key := range m.Items() {
		a := s.host.Item(t.Context(), key)
		if by[a.Backend]++; a.Situation != core.Done || a.Stale {
			t.Errorf("%s is answered %s", key, a.AppendJSON(nil))
		}
	}
	if by["beacon"] < 9*by["local"] {
		t.Errorf("work items are answered by %v; want nearly all by the beacon", by)
	}
	before := s.store.Writes()
	s.ingest(whole, nil) // and once more: no event is doubled
	s.equal(m)
	t.Logf("items are read from %v; %d writes for %d actions, %d more for a second pass", by, before, whole, s.store.Writes()-before)
}

// What happens to a beacon while the recorded stream comes in.
func TestWhateverHappensToTheBeaconItEndsAsItMustBe(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		slots   int
		happens func(s *stage, line int)
	}{
		"it is killed and comes back": {8, func(s *stage, line int) {
			if line%500 == 200 {
				s.worker.Kill()
				s.connect()
			}
		}},
		"it comes back empty": {8, func(s *stage, line int) {
			if line == 700 {
				s.worker.Kill()
				s.store.Wipe()
				s.connect()
			}
		}},
		"it dies of works, done and not done": {4, func(s *stage, line int) {
			switch line % 500 {
			case 100:
				s.worker.Misbehave(stock.Nth(20, stock.Fault{Die: true}))
			case 300:
				s.worker.Misbehave(stock.Nth(20, stock.Fault{Die: true, Undone: true}))
			default:
				s.revive()
			}
		}},
		"its socket drops before it reports": {4, func(s *stage, line int) {
			if line%500 == 200 {
				s.worker.Misbehave(stock.Nth(30, stock.Fault{Drop: true}))
			}
		}},
		"it reports errors": {4, func(s *stage, line int) {
			if line%500 == 200 {
				s.worker.Misbehave(stock.Nth(30, stock.Fault{Undone: true, Error: "database is locked"}))
			}
		}},
		"it is slow for a while": {4, func(s *stage, line int) {
			switch line {
			case 300:
				s.worker.Misbehave(stock.Slow(25 * time.Millisecond))
			case 900:
				s.worker.Misbehave(nil)
			}
		}},
		"it freezes until it is missed": {4, func(s *stage, line int) {
			if line == 600 || line == 3000 {
				s.worker.Freeze()
				s.eventually("a beacon that is missed", func() bool {
					w := s.follower(ports.Queue)
					return w.Suspect || w.State == "waiting-for-beacon"
				})
				s.worker.Thaw()
			}
		}},
		"it reports twice": {4, func(s *stage, line int) {
			if line == 100 {
				s.worker.Misbehave(stock.Always(stock.Fault{Twice: true}))
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := play(t, c.slots)
			lines := 1500
			if os.Getenv("HOLDFAST_SOAK") != "" {
				lines = whole
			}
			m := s.ingest(lines, func(line int) { c.happens(s, line) })
			s.equal(m)
		})
	}
}

func TestOneRecordThatIsRefusedIsUnsettledAndNothingElse(t *testing.T) {
	t.Parallel()
	s := play(t, 8)
	s.store.RefuseKey("bad", "there is no room for the likes of you")
	s.caughtUp()
	for i := range 20 {
		for _, key := range []string{"bad", fmt.Sprint("w", i)} {
			a := s.host.Do(t.Context(), core.Call{Action: ports.UpsertWorkItem, Settings: fmt.Appendf(nil, `{"WorkItem":{"WorkItemHash":%q,"N":%d}}`, key, i)})
			if !a.Success() {
				t.Fatalf("%s", a.AppendJSON(nil))
			}
		}
	}
	s.caughtUp()
	keys, err := s.host.UnsettledKeys("beacon", ports.Queue, "", 10)
	if err != nil || len(keys) != 1 || keys[0].Key != "bad" || keys[0].Code != ports.Invalid {
		t.Errorf("unsettled are %+v, %v", keys, err)
	}
	if n := len(s.store.Holds().Items); n != 20 {
		t.Errorf("the beacon has %d items, want 20", n)
	}
	if a := s.host.Item(t.Context(), "w3"); a.Backend != "beacon" {
		t.Errorf("w3 is answered %s", a.AppendJSON(nil))
	}
	if a := s.host.Item(t.Context(), "bad"); a.Backend != "local" || a.Stale {
		t.Errorf("the refused one is answered %s", a.AppendJSON(nil))
	}
}

func TestStatusSaysThatAFamilyWaitsForABeacon(t *testing.T) {
	t.Parallel()
	s := play(t, 8)
	s.caughtUp()
	s.worker.Kill()
	s.worker = s.store.Beacon(stock.BeaconConfig{Name: "archive", ServerURL: s.client.ServerURL}, stock.ManifestFamily)
	worker := s.worker
	t.Cleanup(worker.Kill)
	if err := worker.Start(within(t)); err != nil {
		t.Fatal(err)
	}
	s.eventually("a queue that waits", func() bool { return s.follower(ports.Queue).State == "waiting-for-beacon" })
	s.eventually("manifests that are there", func() bool { return s.follower(ports.Manifest).Phase == "ready" })
	if w := s.follower(ports.Queue); w.Detail == "" {
		t.Errorf("it is told as %+v", w)
	}
}
