package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/e2e"
	"holdfast/internal/hostile"
)

// Hostile plugins as the local store, which alone decides writes: what was acknowledged waits in the journal, callers are told
// so, and once the fault is over everything is as if it had never been.

// trial is a fault of a local store.
type trial struct {
	fault  hostile.Fault
	shows  time.Duration // from the fault to its evidence
	told   string        // in the status of the local store; "" for one that harms nobody
	killed bool          // it shows at the next start, so the plugin is killed
	mended bool          // it ends when a plugin that is well is installed; else by itself
}

// commitLimit is how long a batch may take, and the look at the store that follows.
const commitLimit = 7 * time.Second

func TestAFaultyLocalStoreLosesNothing(t *testing.T) {
	t.Parallel()
	for name, trials := range map[string][]trial{
		"that does not start again": {
			{hostile.FreezeBefore, unready, `printed no handshake within 10s`, true, true},
			{hostile.FreezeIn, unready, `printed no handshake within 10s; it printed \\"1\|1\|unix\|/tmp/\\" to stdout instead`, true, true},
			{hostile.ExitBefore, 0, `exited with code 3 before its handshake.*the tape is torn`, true, true},
			{hostile.SpeaksTwo, 0, `speaks protocol 1000`, true, true},
			{hostile.SpeaksOther, 0, `refused Describe`, true, true},
			{hostile.AnotherKind, 0, `of the kind \\"postgres\\"`, true, true},
			{hostile.OtherOptions, 0, `needs dsn`, true, true},
			{hostile.NoPowers, 0, `LocalStore|local store`, true, true},
			{hostile.NoFamilies, 0, ``, true, true},
			{hostile.MuteOpen, time.Second, `has not said for 1s what it holds`, true, false},
			{hostile.ExitLater, 2 * time.Second, `exited with code 0`, false, false},
			{hostile.Litter, 0, `ended by signal 9`, false, false},
		},
		"that goes wrong": {
			{hostile.Mute, commitLimit, `waiting-for-beacon|LastError`, false, false},
			{hostile.Stopped, commitLimit, `waiting-for-beacon|LastError`, false, true},
			{hostile.ForkInside, commitLimit, `waiting-for-beacon|LastError`, false, false},
			{hostile.DieOnWrite, 0, `exited with code 3`, false, false},
			{hostile.LateShort, 0, ``, false, false},
			{hostile.LateLong, commitLimit, `waiting-for-beacon|LastError`, false, false},
			{hostile.AnswerTwice, 0, `out of its order`, false, false},
			{hostile.WrongBatch, 0, `out of its order`, false, false},
			{hostile.WrongDecisions, 0, `not in the batch`, false, false},
			{hostile.Garbage, 0, ``, false, false},
			{hostile.WrongKey, 0, ``, false, false},
			{hostile.Flood, 0, ``, false, false},
			{hostile.EatMemory, 2 * time.Second, `used .* of memory, the limit is 300 MiB`, false, false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all []*court
			for _, tr := range trials {
				all = append(all, open(t, tr))
			}
			for _, c := range all {
				c.begin(t)
			}
			for _, c := range all {
				c.goWrong(t)
			}
			awaitTold(t, all)
			for _, c := range all {
				c.mend(t)
			}
			awaitBack(t, all)
			for _, c := range all { // before the others are held against anything, they need the machine no more
				c.live.End()
				c.reads.end(t)
			}
			for _, c := range all {
				c.judge(t)
			}
		})
	}
}

// court is a host whose local store is on trial.
type court struct {
	trial
	program hostile.Program
	host    *e2e.Host
	live    *e2e.Workload
	reads   *readers
	text    string // what the status tells

	toldAt, mendedAt, backAt time.Time
}

func open(t *testing.T, tr trial) *court {
	t.Helper()
	c := &court{trial: tr, program: plant(t, tr.fault)[tr.fault]}
	c.host = e2e.StartWith(t, e2e.Setup{Config: fmt.Sprintf("backend \"sqlite\" \"local\" {\n  local        = true\n  plugin       = %q\n  memory_limit = \"300MiB\"\n}\n", c.program.Path)})
	historyOf(t, c.host).write("old", false)
	return c
}

// begin lets callers and readers begin.
func (c *court) begin(t *testing.T) {
	t.Helper()
	c.reads = startReaders(t, c.host, 1)
	c.reads.away = true
	c.live = e2e.StartWorkload(t, c.host.Client(), 200*time.Millisecond)
}

func (c *court) goWrong(t *testing.T) {
	t.Helper()
	if err := c.program.Begin(); err != nil {
		t.Fatal(err)
	}
	if c.killed {
		c.host.Signal(t.Context(), "local", syscall.SIGKILL)
	}
}

// awaitTold waits until the status of every host tells the fault.
func awaitTold(t *testing.T, all []*court) {
	t.Helper()
	deadline := time.Now().Add(unready + 10*time.Second)
	for waits := true; waits && time.Now().Before(deadline); {
		waits = false
		for _, c := range all {
			texts, took, err := backendTexts(c.host)
			if err != nil || took > busy {
				t.Errorf("%s: a status took %s: %v", c.fault, took, err)
			}
			if c.toldAt.IsZero() && c.told != "" {
				c.text = texts["local"]
				if regexp.MustCompile(c.told).MatchString(c.text) {
					c.toldAt = time.Now()
				} else {
					waits = true
				}
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
	for _, c := range all {
		seen := c.program.Seen()
		switch {
		case len(seen) == 0:
			t.Errorf("%s never went wrong", c.fault)
		case c.told != "" && c.toldAt.IsZero():
			t.Errorf("the status does not tell of %s: %s", c.fault, c.text)
		case c.told != "" && c.toldAt.Sub(seen[0]) > c.shows+tellIn+busy:
			t.Errorf("%s was told after %s", c.fault, c.toldAt.Sub(seen[0]))
		case c.told != "":
			t.Logf("%s was told after %s: %s", c.fault, c.toldAt.Sub(seen[0]).Round(time.Millisecond), c.text)
		}
	}
}

// mend ends the fault.
func (c *court) mend(t *testing.T) {
	t.Helper()
	c.mendedAt = time.Now()
	if !c.mended {
		if err := c.program.End(); err != nil {
			t.Fatal(err)
		}
		return
	}
	good := filepath.Join(filepath.Dir(c.host.Command().Path), "plugins", "holdfast-backend-sqlite")
	if err := os.Link(good, c.program.Path+".new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(c.program.Path+".new", c.program.Path); err != nil {
		t.Fatal(err)
	}
}

// backIn is how long a store may take that is well again: until its next start, or until its silent process is replaced.
func (c *court) backIn() time.Duration {
	switch {
	case c.shows > 0 && c.fault != hostile.ExitLater: // it froze, and may have just begun to
		return unready + backIn
	case !c.mended:
		return 2 * backIn // a plugin that died often is started ever more slowly
	}
	return backIn
}

const backIn = 5 * time.Second

// awaitBack waits until every store has what waits for it.
func awaitBack(t *testing.T, all []*court) {
	t.Helper()
	for waits := true; waits; {
		waits = false
		for _, c := range all {
			if !c.backAt.IsZero() {
				continue
			}
			s, err := c.host.Status(t.Context())
			backlog := uint64(0)
			for _, f := range s.Families {
				backlog += f.Backlog
			}
			switch {
			case err == nil && s.Ready && s.Backends[0].State == "bootstrapped" && backlog == 0:
				c.backAt = time.Now()
			case time.Since(c.mendedAt) > 4*backIn+unready:
				t.Fatalf("%s: the store does not come back: %v %+v", c.fault, err, s)
			default:
				waits = true
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
	for _, c := range all {
		if took := c.backAt.Sub(c.mendedAt); took > c.backIn()+busy {
			t.Errorf("%s: the store came back after %s", c.fault, took)
		}
	}
}

// judge waits until the store has everything, and holds it against what was acknowledged.
func (c *court) judge(t *testing.T) {
	t.Helper()
	c.live.Client.Settle(t)
	for _, f := range c.live.Failures {
		t.Errorf("%s: a write was not acknowledged: %s", c.fault, f)
	}
	if c.live.Slowest > e2e.CallerLimit {
		t.Errorf("%s: a caller waited %s", c.fault, c.live.Slowest)
	}
	if list := must(t, c.host, "unsettled", "list"); len(c.live.Failures) == 0 {
		t.Logf("%s: %d writes, %d deferred, slowest %s; %d reads, slowest %s; there again after %s; %.100s", c.fault, c.live.Writes, c.live.Deferred,
			c.live.Slowest.Round(time.Millisecond), c.reads.n, c.reads.slowest.Round(time.Millisecond), c.backAt.Sub(c.mendedAt).Round(time.Millisecond), list)
	}
	c.live.Check()
	if s := passed(t, c.host); lost(s) != 0 {
		t.Errorf("%s: a lost range is told: %+v", c.fault, s.Families)
	}
	began := time.Now()
	c.host.Stop(t)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("%s: the stop took %s", c.fault, took)
	}
}
