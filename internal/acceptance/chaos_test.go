package acceptance

import (
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/e2e"
)

// Everything that may happen to a host with two mirrors, at random, under load.

// blow is one thing that happens. Those of stores happen while the host is down.
type blow struct {
	name string
	do   func(c *chaos)
}

// chaos is a host with two mirrors and copies of its files from before.
type chaos struct {
	*mirrored
	random *rand.Rand
	older  map[string]map[string][]byte // by backend
}

func (c *chaos) mirror() string { return []string{"one", "two"}[c.random.IntN(2)] }

func (c *chaos) wait(most time.Duration) {
	<-time.After(time.Duration(c.random.Int64N(int64(most))))
}

// down does something to a backend's file between two starts of the host, and keeps a copy of it at times.
func (c *chaos) down(name string, do func(path string)) {
	c.Helper()
	if c.random.IntN(2) == 0 {
		c.host.Stop(c.T)
	} else {
		c.host.Kill()
		c.host.Gone(c.T)
	}
	was := store(c.T, c.host.File(name))
	do(c.host.File(name))
	if c.random.IntN(2) == 0 {
		c.older[name] = was
	}
	c.host.Restart(c.T)
}

func (c *chaos) wipe(name string) { c.down(name, func(path string) { place(c.T, path, nil) }) }

func (c *chaos) goBack(name string) {
	c.down(name, func(path string) {
		if c.older[name] != nil {
			place(c.T, path, c.older[name])
		}
	})
}

var blows = []blow{
	{"a mirror dies", func(c *chaos) { c.host.Signal(c.Context(), c.mirror(), syscall.SIGKILL) }},
	{"the local store dies", func(c *chaos) { c.host.Signal(c.Context(), "local", syscall.SIGKILL) }},
	{"a mirror is frozen", func(c *chaos) {
		name := c.mirror()
		b, err := c.host.Backend(c.Context(), name)
		if err != nil || b.PID == 0 || syscall.Kill(b.PID, syscall.SIGSTOP) != nil {
			return // it is dead already
		}
		c.wait(5 * time.Second)
		_ = syscall.Kill(b.PID, syscall.SIGCONT) // it may have been replaced
	}},
	{"a mirror is away", func(c *chaos) {
		name := c.mirror()
		c.host.Hold(c.T, name)
		c.wait(3 * time.Second)
		c.host.Free(c.T, name)
	}},
	{"the host dies", func(c *chaos) { c.host.Kill(); c.host.Restart(c.T) }},
	{"a mirror is wiped", func(c *chaos) { c.wipe(c.mirror()) }},
	{"a mirror goes back", func(c *chaos) { c.goBack(c.mirror()) }},
	{"the local store is wiped", func(c *chaos) {
		c.wipe("local")
		delete(c.older, "local") // which would be another store now, and is a person's to decide
	}},
	{"the local store goes back", func(c *chaos) { c.goBack("local") }},
	{"a mirror is copied again", func(c *chaos) {
		if out, code := c.host.Run(c.T, "resync", c.mirror()); code != 0 {
			c.Errorf("resync: exit code %d, %s", code, out)
		}
	}},
}

func TestWhateverHappensAllBecomeEqualAndNothingIsLost(t *testing.T) {
	t.Parallel()
	if os.Getenv("HOLDFAST_SOAK") == "" {
		t.Skip("is long; run it with HOLDFAST_SOAK=1")
	}
	for range 10 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			c := &chaos{startMirrored(t, "one", "two"), rand.New(rand.NewPCG(seed, 0)), map[string]map[string][]byte{}}
			live := e2e.StartWorkload(t, c.host.Client(), 20*time.Millisecond)
			for range 15 {
				c.wait(2 * time.Second)
				b := blows[c.random.IntN(len(blows))]
				t.Logf("%s: %s", time.Now().Format(time.TimeOnly), b.name)
				b.do(c)
			}
			live.End()
			live.Client.Settle(t)
			c.host.AwaitEqual(t)
			c.host.Verify(t, "local", "one")
			c.host.Verify(t, "local", "two")
			live.Check()
			if s := passed(t, c.host); lost(s) != 0 {
				t.Errorf("a lost range is told: %+v", s.Families)
			}
			t.Logf("%d writes, %d of them deferred, slowest answer %s", live.Writes, live.Deferred, live.Slowest.Round(time.Millisecond))
		})
	}
}
