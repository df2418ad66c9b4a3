package stock

import (
	"testing"
	"time"
)

func TestFaultsComeAsOrdered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fault Fault
		check func(t *testing.T, o Outcome, b *Beacon)
	}{
		{"error", Fault{Error: "boom"}, func(t *testing.T, o Outcome, _ *Beacon) {
			t.Helper()
			if o.Err == nil || o.Err.Error() != "boom" {
				t.Errorf("the caller was told %v", o.Err)
			}
		}},
		{"twice", Fault{Twice: true}, func(t *testing.T, o Outcome, b *Beacon) {
			t.Helper()
			awaitBeacon(t, b, "the second report", func(s BeaconState) bool { return s.Reported == 2 })
			if o.Err != nil {
				t.Error(o.Err)
			}
		}},
		{"mute", Fault{Mute: true}, func(t *testing.T, o Outcome, b *Beacon) {
			t.Helper()
			if o.Err == nil || b.State().Reported != 0 {
				t.Errorf("the caller was told %v after %d reports", o.Err, b.State().Reported)
			}
		}},
		{"late", Fault{Late: time.Second}, func(t *testing.T, o Outcome, b *Beacon) {
			t.Helper()
			awaitBeacon(t, b, "the late report", func(s BeaconState) bool { return s.Reported == 1 })
			if o.Err == nil {
				t.Error("the caller was told that all is well")
			}
		}},
		{"slow", Fault{Delay: 25 * time.Millisecond}, func(t *testing.T, o Outcome, _ *Beacon) {
			t.Helper()
			if o.Err != nil {
				t.Error(o.Err)
			}
		}},
		{"dies", Fault{Die: true}, func(t *testing.T, o Outcome, b *Beacon) {
			t.Helper()
			if o.Err == nil || b.State().Connected || b.State().Running {
				t.Errorf("the caller was told %v; the beacon is %+v", o.Err, b.State())
			}
		}},
		{"drops its socket", Fault{Drop: true}, func(t *testing.T, _ Outcome, b *Beacon) {
			t.Helper()
			awaitBeacon(t, b, "the return", func(s BeaconState) bool { return s.Registered == 2 && s.Connected })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			hub, url := open(t, HubConfig{Clock: Hurry(20)})
			b := join(t, NewBeacon(BeaconConfig{ServerURL: url, Name: "w", Actions: []Action{echo("C", "A")}, Clock: Hurry(20)}))
			b.Misbehave(Once(c.fault))
			c.check(t, hub.Dispatch(Spec{Capability: "C", Action: "A", TimeoutMs: 5000}), b)
			if c.fault.Die || c.fault.Drop {
				return
			}
			if o := hub.Dispatch(Spec{Capability: "C", Action: "A"}); o.Err != nil {
				t.Errorf("the next work came back as %v", o.Err)
			}
		})
	}
}

func TestAFrozenBeaconKeepsItsSocketAndSaysNothing(t *testing.T) {
	t.Parallel()
	hub, url := open(t, HubConfig{})
	b := join(t, NewBeacon(BeaconConfig{ServerURL: url, Name: "w", Actions: []Action{echo("C", "A")}}))
	b.Freeze()
	hash := hub.Enqueue(Spec{Capability: "C", Action: "A"})
	if s := hub.State(); s.Running != 1 || s.Beacon("w") == nil {
		t.Errorf("the hub is %+v", s)
	}
	if s := b.State(); s.Taken != 0 || !s.Connected {
		t.Errorf("the beacon is %+v", s)
	}
	b.Thaw()
	awaitHub(t, hub, "the report of "+hash, func(s HubState) bool { return s.Running == 0 })
}

func TestABeaconComesBackUnderANewID(t *testing.T) {
	t.Parallel()
	hub, url := open(t, HubConfig{})
	b := join(t, NewBeacon(BeaconConfig{ServerURL: url, Name: "w", Clock: Hurry(1000)}))
	before := b.State().ID
	hub.DropSocket("w")
	awaitBeacon(t, b, "the return", func(s BeaconState) bool { return s.Registered == 2 && s.Connected })
	if now := b.State().ID; now == before || hub.State().Beacon("w") == nil {
		t.Errorf("before %s, now %s", before, now)
	}
}

// The hazard of the stock hub: the record is gone although the newer socket is well, and nobody is told.
func TestAnOlderSocketThatClosesTakesTheBeaconWithIt(t *testing.T) {
	t.Parallel()
	hub, url := open(t, HubConfig{})
	older := join(t, NewBeacon(BeaconConfig{ServerURL: url, Name: "w", Actions: []Action{echo("C", "A")}}))
	newer := join(t, older.Twin())
	if older.State().ID != newer.State().ID {
		t.Errorf("the twins are %s and %s", older.State().ID, newer.State().ID)
	}
	older.Kill()
	awaitHub(t, hub, "the loss", func(s HubState) bool { return len(s.Beacons) == 0 })
	if s := newer.State(); !s.Connected || s.Registered != 1 {
		t.Errorf("the newer one is %+v", s)
	}
	newer.Reconnect()
	awaitHub(t, hub, "the return", func(s HubState) bool { return s.Beacon("w") != nil && s.Sockets == 1 })
}
