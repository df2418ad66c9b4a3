package acceptance

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"holdfast/adapters/mesh/stock"
	"holdfast/internal/e2e"
)

// A host whose history is kept behind a native beacon as well, and whatever becomes of that beacon, under load. The random runs of
// the same troubles are those of adapters/beacon; here the processes are real ones.

// archived is a beacon that keeps history, and its host.
type archived struct {
	*testing.T
	host  *e2e.Host
	store *stock.Persistence
	now   *stock.Beacon
}

// come starts a process of the beacon.
func (k *archived) come() {
	k.Helper()
	b := k.store.Beacon(stock.BeaconConfig{ServerURL: k.host.URL, Name: "archive", MaxConcurrent: 4, ReconnectInterval: 100 * time.Millisecond})
	k.Cleanup(b.Kill)
	ctx, cancel := context.WithTimeout(k.Context(), 30*time.Second)
	defer cancel()
	if err := b.Start(ctx); err != nil {
		k.Fatal(err)
	}
	k.now = b
}

// told waits until the status says of the beacon what is so, and gives how long that took.
func (k *archived) told(what string, is func(f e2e.FollowerStatus) bool) time.Duration {
	k.Helper()
	began := time.Now()
	e2e.Await(k.T, what, func() error {
		b, err := k.host.Backend(k.Context(), "beacon")
		if err != nil {
			return err
		}
		for _, f := range b.Followers {
			if !is(f) {
				return fmt.Errorf("%s is %s (%s): %s", f.Family, f.State, f.Phase, f.Detail)
			}
		}
		return nil
	})
	return time.Since(began)
}

func away(f e2e.FollowerStatus) bool    { return f.State == "waiting-for-beacon" }
func ailing(f e2e.FollowerStatus) bool  { return f.Suspect || away(f) }
func working(f e2e.FollowerStatus) bool { return f.State == "bootstrapped" && !f.Suspect }

// busyMachine is what a busy machine adds to what is promised.
const busyMachine = 3 * time.Second

func TestWhateverBecomesOfABeaconCallersAndTheStatusKnowNothingTooLate(t *testing.T) {
	t.Parallel()
	const config = `
backend "sqlite" "local" {
  local = true
}
backend "beacon" "beacon" {}
`
	k := &archived{T: t, host: e2e.StartWith(t, e2e.Setup{Config: config}), store: stock.NewPersistence()}
	k.come()
	k.told("a beacon that is there", working)
	live := e2e.StartWorkload(t, k.host.Client(), 50*time.Millisecond)
	const (
		known  = 2 * time.Second                     // after a connection closed, or an answer was a refusal
		silent = 2*time.Second + time.Second + known // a probe, its deadline, and
	)
	for _, c := range []struct {
		name     string
		does     func()
		is       func(f e2e.FollowerStatus) bool // what the status says then; nil: nothing
		within   time.Duration
		recovers func()
	}{
		{"killed", func() { k.now.Kill() }, away, known, k.come},
		{"frozen", func() { k.now.Freeze() }, ailing, silent, func() { k.now.Thaw() }},
		{"slow", func() { k.now.Misbehave(stock.Slow(25 * time.Millisecond)) }, nil, 0, func() { k.now.Misbehave(nil) }},
		{"answering errors", func() { k.now.Misbehave(stock.Always(stock.Fault{Error: "database is locked"})) }, away, known, func() { k.now.Misbehave(nil) }},
		{"answering late", func() { k.now.Misbehave(stock.Always(stock.Fault{Late: 200 * time.Millisecond})) }, ailing, silent, func() { k.now.Misbehave(nil) }},
		{"renamed", func() {
			_ = k.now.Stop(t.Context()) // it says goodbye twice, and is not known the second time
		}, away, known, k.come},
		{"replaced", func() {
			old := k.now
			k.come()
			old.Kill()
		}, nil, 0, func() {}},
	} {
		c.does()
		took := time.Duration(0)
		if c.is != nil {
			took = k.told(c.name, c.is)
		} else {
			before := k.store.Writes()
			e2e.Await(t, "writes to it as it is", func() error {
				if n := k.store.Writes() - before; n < 50 {
					return fmt.Errorf("it took %d", n)
				}
				return nil
			})
		}
		if took > c.within+busyMachine {
			t.Errorf("%s: the status told of it after %s, want %s", c.name, took, c.within)
		}
		c.recovers()
		t.Logf("%s: told after %s, and well again after %s", c.name, took.Round(time.Millisecond), k.told("well again", working).Round(time.Millisecond))
	}
	live.End()
	if os.Getenv("HOLDFAST_SOAK") != "" { // a key in doubt takes a minute
		k.host.AwaitEqual(t)
	} else {
		k.host.AwaitCopied(t)
	}
	e2e.Await(t, "reads are answered by the beacon too", func() error {
		live.Client.Answered()
		live.Check()
		if by := live.Client.Answered(); by["beacon"] == 0 {
			return fmt.Errorf("they are answered by %v", by)
		}
		return nil
	})
	for _, failure := range live.Failures {
		t.Errorf("a write was not acknowledged: %s", failure)
	}
	if live.Slowest > callerLimit {
		t.Errorf("a caller waited %s", live.Slowest)
	}
	events := 0
	for _, list := range k.store.Holds().Events {
		events += len(list)
	}
	if want := live.Model.Counts().Events; events != want {
		t.Errorf("the beacon has %d events, want %d", events, want)
	}
	t.Logf("%d writes, %d of them deferred, slowest answer %s", live.Writes, live.Deferred, live.Slowest.Round(time.Millisecond))
}
