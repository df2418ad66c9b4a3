package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/e2e"
)

// Followers that die and freeze at random moments under load. A plugin that keeps dying is started again later and later, so
// several hosts share the blows; and since a key whose Put had no answer is in doubt for a minute, they wait together.

const blowsAtOnce = 10

// evidence is the time in which a blow shows: a death at once, silence at the probe after next; statusLimit is the time from
// then to the status.
const (
	silenceShows = 3 * time.Second
	statusLimit  = 2 * time.Second
	slack        = time.Second // of a busy machine
)

// positionKept is when the host's state has learned how far a new mirror is. A host that dies before copies everything again,
// a minute later, when nothing of its end can take effect any more.
const positionKept = 5 * time.Second

// mirrorUnderLoad is one of the hosts.
type mirrorUnderLoad struct {
	*testing.T
	host *e2e.Host
	load *e2e.Workload
}

func startMirrorsUnderLoad(t *testing.T, n int) (all []*mirrorUnderLoad) {
	for range n {
		host := e2e.StartWith(t, e2e.Mirrored("mirror"))
		all = append(all, &mirrorUnderLoad{t, host, e2e.StartWorkload(t, host.Client(), 20*time.Millisecond)})
	}
	return all
}

// blow kills or freezes the mirror, once it follows, and holds the status to its time.
func (m *mirrorUnderLoad) blow(freeze bool) {
	m.Helper()
	m.awaitState("the mirror follows", 30*time.Second, "bootstrapped")
	<-time.After(rand.N(300 * time.Millisecond))
	before, err := m.host.Backend(m.Context(), "mirror")
	if err != nil || before.PID == 0 {
		m.Fatalf("the mirror has the process %d: %v", before.PID, err)
	}
	signal, shows := syscall.SIGKILL, time.Duration(0)
	if freeze {
		signal, shows = syscall.SIGSTOP, silenceShows
	}
	struck := time.Now()
	if err := syscall.Kill(before.PID, signal); err != nil {
		m.Fatal(err)
	}
	m.awaitWithin(fmt.Sprintf("the status shows %s of the mirror", signal), shows+statusLimit+slack, func() error {
		b, err := m.host.Backend(m.Context(), "mirror")
		if err != nil || b.State != "bootstrapped" || b.Starts > before.Starts {
			return err
		}
		for _, f := range b.Followers {
			if f.Suspect || f.LastErrorAt.After(struck) {
				return nil
			}
		}
		return fmt.Errorf("it is %s: %+v", b.State, b.Followers)
	})
	if freeze && rand.IntN(2) == 0 {
		_ = syscall.Kill(before.PID, syscall.SIGCONT) // else the host replaces it
	}
}

func (m *mirrorUnderLoad) awaitState(what string, limit time.Duration, state string) {
	m.Helper()
	m.awaitWithin(what, limit, func() error {
		b, err := m.host.Backend(m.Context(), "mirror")
		if err == nil && b.State != state {
			err = fmt.Errorf("it is %s: %s", b.State, b.Detail)
		}
		return err
	})
}

func (m *mirrorUnderLoad) awaitWithin(what string, limit time.Duration, try func() error) {
	m.Helper()
	ctx, cancel := context.WithTimeout(m.Context(), limit)
	defer cancel()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			m.Fatalf("not within %s: %s: %v", limit, what, err)
		}
	}
}

// ends holds everything that was acknowledged against the local store and its mirror.
func (m *mirrorUnderLoad) ends() {
	m.Helper()
	m.host.AwaitEqual(m)
	m.host.Verify(m, "local", "mirror")
	m.load.Client.Answered()
	m.load.Check()
	if by := m.load.Client.Answered(); len(by) != 1 || by["mirror"] == 0 {
		m.Errorf("reads are answered by %v, want the mirror alone", by)
	}
	m.Logf("%d writes, %d of them deferred, slowest answer %s", m.load.Writes, m.load.Deferred, m.load.Slowest.Round(time.Millisecond))
	if n := m.host.Plugins(); n != 2 {
		m.Errorf("%d plugin processes are there, want 2", n)
	}
}

func TestDeathsAndSilencesOfFollowersAndDeathsOfTheirHostsCostNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("kills and freezes for a while")
	}
	t.Parallel()
	for range rounds() / 2 / blowsAtOnce {
		hosts := append(followersDie(t), hostsDie(t)...)
		for _, m := range hosts {
			m.ends()
			m.host.Stop(t)
		}
	}
}

// followersDie strikes followers alone: no caller notices.
func followersDie(t *testing.T) []*mirrorUnderLoad {
	hosts := startMirrorsUnderLoad(t, 3)
	for n := range blowsAtOnce {
		hosts[n%len(hosts)].blow(n%5 == 4)
	}
	for _, m := range hosts {
		m.load.End()
		if m.load.Slowest > e2e.CallerLimit {
			t.Errorf("a caller waited %s", m.load.Slowest)
		}
		for _, f := range m.load.Failures {
			t.Errorf("a write was not acknowledged: %s", f)
		}
	}
	return hosts
}

// hostsDie strikes hosts whose followers copy.
func hostsDie(t *testing.T) []*mirrorUnderLoad {
	hosts := startMirrorsUnderLoad(t, 2)
	for _, m := range hosts {
		m.awaitState("the mirror copies", 30*time.Second, "bootstrapped")
	}
	<-time.After(positionKept)
	for n := range blowsAtOnce {
		m := hosts[n%len(hosts)]
		m.awaitState("the mirror copies", 2*time.Minute, "bootstrapped")
		<-time.After(rand.N(200 * time.Millisecond))
		m.host.Kill()
		if n%2 == 0 {
			m.host.Gone(t)
		}
		m.host.Restart(t)
	}
	for _, m := range hosts {
		m.load.End()
		m.load.Client.Settle(t)
	}
	return hosts
}
