package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"holdfast/internal/e2e"
)

// rounds is how often something is killed; the soak is long.
func rounds() int {
	if os.Getenv("HOLDFAST_SOAK") != "" {
		return 200
	}
	return 20
}

// deathsEach is how many deaths of its plugin one host sees: a plugin that keeps dying is started again later and later.
const deathsEach = 4

func TestEveryAcknowledgedWriteOutlivesThePluginsDeaths(t *testing.T) {
	if testing.Short() {
		t.Skip("kills plugins for a while")
	}
	for host := range rounds() / deathsEach {
		t.Run(fmt.Sprintf("host %d", host+1), pluginDeaths)
	}
}

func pluginDeaths(t *testing.T) {
	host := e2e.Start(t)
	w := e2e.StartWorkload(t, host.Client(), 5*time.Millisecond)
	end := time.After(time.Minute)
	for killed := 0; killed < deathsEach; {
		select {
		case <-time.After(rand.N(300 * time.Millisecond)):
			killed += min(1, host.KillPlugins())
		case <-end:
			t.Fatalf("only %d plugins could be killed: they do not come back", killed)
		}
	}
	w.Client.Settle(t)
	<-time.After(rand.N(300 * time.Millisecond)) // some writes behind the last death
	w.End()
	w.Client.Settle(t)
	w.Check()
	t.Logf("%d writes, %d of them deferred, slowest answer %s", w.Writes, w.Deferred, w.Slowest.Round(time.Millisecond))
	if w.Slowest > e2e.CallerLimit {
		t.Errorf("a caller waited %s", w.Slowest)
	}
	for _, f := range w.Failures {
		t.Errorf("a write was not acknowledged: %s", f)
	}
	if n := host.Plugins(); n != 1 {
		t.Errorf("%d plugin processes are there, want 1", n)
	}
}

func TestEveryAcknowledgedWriteOutlivesTheHostsDeaths(t *testing.T) {
	if testing.Short() {
		t.Skip("kills hosts for a while")
	}
	host := e2e.Start(t)
	w := e2e.StartWorkload(t, host.Client(), 5*time.Millisecond)
	for killed := range rounds() {
		<-time.After(rand.N(500 * time.Millisecond))
		host.Kill()
		if killed%3 == 0 {
			host.Gone(t) // a plugin whose host died ends by itself
		}
		host.Restart(t)
	}
	w.End()
	w.Client.Settle(t)
	w.Check()
	t.Logf("%d writes, %d deaths, %d calls without acknowledgment, slowest answer %s", w.Writes, rounds(), len(w.Failures), w.Slowest.Round(time.Millisecond))
	if n := host.Plugins(); n != 1 {
		t.Errorf("%d plugin processes are there, want 1", n)
	}
}
