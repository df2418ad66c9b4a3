package acceptance

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/e2e"
	"holdfast/internal/model"
)

// A follower that was away comes back to everything that it missed, by itself, while writes go on.

// awayWays are the ways in which a follower can be away. begin takes it away, end lets it come back.
var awayWays = map[string]struct{ begin, end func(m *mirrored) }{
	"its process is killed and does not start again": {
		func(m *mirrored) { m.host.Hold(m.T, "mirror") },
		func(m *mirrored) { m.host.Free(m.T, "mirror") },
	},
	"its process is frozen": {
		func(m *mirrored) { m.signal("mirror", syscall.SIGSTOP) },
		func(*mirrored) {}, // the host replaces it
	},
	"its file cannot be used": {
		func(m *mirrored) {
			m.host.Hold(m.T, "mirror")
			for suffix := range store(m.T, m.host.File("mirror")) {
				m.rename(m.host.File("mirror")+suffix, m.host.File("aside")+suffix)
			}
			if err := os.Mkdir(m.host.File("mirror"), 0o700); err != nil {
				m.Fatal(err)
			}
			m.host.Free(m.T, "mirror")
			m.awaitAway("mirror", "mirror.db")
		},
		func(m *mirrored) {
			if err := os.Remove(m.host.File("mirror")); err != nil {
				m.Fatal(err)
			}
			for suffix := range store(m.T, m.host.File("aside")) {
				m.rename(m.host.File("aside")+suffix, m.host.File("mirror")+suffix)
			}
		},
	},
}

func (m *mirrored) rename(from, to string) {
	m.Helper()
	if err := os.Rename(from, to); err != nil {
		m.Fatal(err)
	}
}

func (m *mirrored) signal(name string, signal syscall.Signal) {
	m.Helper()
	if !m.host.Signal(m.Context(), name, signal) {
		m.Fatalf("%s has no process", name)
	}
}

// awaitAway waits until the status says that a follower takes nothing, and why.
func (m *mirrored) awaitAway(name, why string) {
	m.Helper()
	e2e.Await(m.T, name+" is told to be away", func() error {
		b, err := m.host.Backend(m.Context(), name)
		if err == nil && (b.State == "bootstrapped" || b.State == "bootstrapping" || !strings.Contains(b.Detail, why)) {
			err = fmt.Errorf("it is %s: %s", b.State, b.Detail)
		}
		return err
	})
}

func TestAFollowerThatWasAwayForManyChangesBecomesEqualWhileWritesGoOn(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("writes many changes")
	}
	for name, away := range awayWays {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := startMirrored(t, "mirror")
			m.change("before", 500)
			m.host.AwaitEqual(t)

			away.begin(m)
			live := e2e.StartWorkload(t, m.host.Client(), 20*time.Millisecond)
			m.change("meanwhile", rounds(5000))
			away.end(m)
			m.host.AwaitCopied(t)
			m.change("after", 500)
			live.End()
			m.host.AwaitCopied(t) // what a frozen process was doing is in doubt for a minute, which is waited for elsewhere
			m.host.Verify(t, "local", "mirror")

			m.client.Answered()
			compareTheirs(t, m.client, m.model)
			live.Check()
			if by := m.client.Answered(); by["mirror"] == 0 {
				t.Errorf("reads are answered by %v, and none by the mirror", by)
			}
			if live.Slowest > e2e.CallerLimit {
				t.Errorf("a caller waited %s", live.Slowest)
			}
			for _, f := range live.Failures {
				t.Errorf("a write was not acknowledged: %s", f)
			}
			m.countsWith(live.Model)
		})
	}
}

// countsWith holds the number of all records against the model and another one beside it.
func (m *mirrored) countsWith(other *model.Model) {
	m.Helper()
	ours, theirs, got := m.model.Counts(), other.Counts(), m.client.Counts(m.T)
	want := model.Counts{
		Items: ours.Items + theirs.Items, Events: ours.Events + theirs.Events,
		Attempts: ours.Attempts + theirs.Attempts, Manifests: ours.Manifests + theirs.Manifests,
	}
	if got != want {
		m.Errorf("the local store counts %+v, want %+v", got, want)
	}
}
