package journal

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"holdfast/ports"
)

// clock is a time that only the test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) forward(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// told opens a state and gives what it logs.
func told(t testing.TB, dir string, c *clock) (*State, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	s, err := OpenState(dir, StateOptions{Now: c.Now, Logger: hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Info, Mutex: &sync.Mutex{}})})
	ok(t, err)
	s.db.NoSync = true // nobody cuts the power
	t.Cleanup(func() { _ = s.Close() })
	return s, &log
}

// killed lets go of a state's file without what Close does.
func killed(t testing.TB, s *State) {
	t.Helper()
	ok(t, s.db.Close())
}

func mirrored(t testing.TB, file string) map[string]map[string]any {
	t.Helper()
	var m map[string]map[string]any
	ok(t, json.Unmarshal(must(os.ReadFile(file)), &m))
	return m
}

// copiedTo gives the Seq that the mirror shows for a follower of Queue; 0 for none.
func copiedTo(t testing.TB, dir, name string) uint64 {
	t.Helper()
	var file byFamily[map[string]*positionEntry]
	ok(t, strictly(must(os.ReadFile(filepath.Join(dir, positionsName))), &file))
	if e := file.Queue[name]; e != nil {
		return e.Seqs["host"]
	}
	return 0
}

func TestTheMirrorsShowWhatPeopleMayRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, _ := told(t, dir, newClock())
	ok(t, s.Close())
	for _, name := range []string{positionsName, assignmentsName} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is there before there is anything to show", name)
		}
	}
	s, _ = told(t, dir, newClock())
	ok(t, s.SetFollower("mirror <1>", ports.Queue, ports.FollowerMark{Position: ports.Position{StoreID: "S", Epoch: "E", Seqs: map[string]uint64{"host": 1<<63 + 1}}}))
	ok(t, s.SetAssignment(ports.Manifest, &ports.Assignment{BeaconID: "bcn", IDBeaconConnection: 3, AssignedAt: "2026-01-01T00:00:00Z"}))
	ok(t, s.Close())
	for name, want := range map[string]string{
		positionsName: `{
  "Queue": {
    "mirror <1>": {
      "StoreID": "S",
      "Epoch": "E",
      "Seqs": {
        "host": 9223372036854775809
      },
      "At": "2026-01-01T00:00:00Z"
    }
  },
  "Manifest": {}
}
`,
		assignmentsName: `{
  "Queue": null,
  "Manifest": {
    "BeaconID": "bcn",
    "IDBeaconConnection": 3,
    "AssignedAt": "2026-01-01T00:00:00Z"
  }
}
`,
	} {
		file := filepath.Join(dir, name)
		if got := string(must(os.ReadFile(file))); got != want {
			t.Error(cmp.Diff(want, got))
		}
		if mode := must(os.Stat(file)).Mode(); mode != 0o600 {
			t.Errorf("%s is %v", name, mode)
		}
	}
}

func TestAHostThatDiesBeforeItsMirrorsAreWrittenForgetsNothing(t *testing.T) {
	t.Parallel()
	first := &ports.Assignment{BeaconID: "first", IDBeaconConnection: 1, AssignedAt: "then"}
	second := &ports.Assignment{BeaconID: "second", IDBeaconConnection: 2, AssignedAt: "now"}
	for _, before := range []string{"with the files of before", "without any file"} {
		t.Run(before, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c := newClock()
			s, _ := told(t, dir, c)
			if before == "with the files of before" {
				ok(t, s.SetFollower("old", ports.Queue, markAt(1)))
				ok(t, s.SetAssignment(ports.Queue, first))
				ok(t, s.SetAssignment(ports.Manifest, first))
			}
			s.positions.closed, s.assignments.closed = true, true // from here on nothing is written
			ok(t, s.SetFollower("old", ports.Queue, markAt(2)))
			ok(t, s.SetFollower("new", ports.Queue, markAt(3)))
			ok(t, s.SetAssignment(ports.Queue, second))
			ok(t, s.SetAssignment(ports.Manifest, nil))
			killed(t, s)
			for range 2 {
				s, log := told(t, dir, c)
				if a, b := position(t, s, "old", ports.Queue), position(t, s, "new", ports.Queue); a != 2 || b != 3 {
					t.Errorf("at %d and %d: %s", a, b, log)
				}
				if got := must(s.Assignment(ports.Queue)); cmp.Diff(second, got) != "" {
					t.Error(cmp.Diff(second, got))
				}
				if got := must(s.Assignment(ports.Manifest)); got != nil {
					t.Errorf("%+v", got)
				}
				ok(t, s.Close())
				if a, b := copiedTo(t, dir, "old"), copiedTo(t, dir, "new"); a != 2 || b != 3 {
					t.Errorf("the file shows %d and %d", a, b)
				}
				if m := mirrored(t, filepath.Join(dir, assignmentsName)); m["Queue"]["BeaconID"] != "second" || m["Manifest"] != nil {
					t.Errorf("the file shows %v", m)
				}
			}
		})
	}
}

func TestAMirrorThatCannotBeWrittenIsSaidOnceAndStopsNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := newClock()
	s, log := told(t, dir, c)
	path := filepath.Join(dir, positionsName)
	ok(t, os.MkdirAll(filepath.Join(path, "full"), 0o700)) // no file can take its place
	for i := range uint64(5) {
		ok(t, s.SetFollower("mirror", ports.Queue, markAt(i+1)))
		c.forward(time.Second)
	}
	if n := strings.Count(log.String(), "cannot be written"); n != 1 {
		t.Errorf("said %d times: %s", n, log)
	}
	ok(t, os.RemoveAll(path))
	ok(t, s.SetFollower("mirror", ports.Queue, markAt(6)))
	if got := copiedTo(t, dir, "mirror"); got != 6 || !strings.Contains(log.String(), "written again") {
		t.Errorf("the file shows %d: %s", got, log)
	}
	ok(t, os.Remove(path))
	ok(t, os.MkdirAll(filepath.Join(path, "full"), 0o700))
	c.forward(time.Second)
	ok(t, s.SetFollower("mirror", ports.Queue, markAt(7)))
	ok(t, s.Close())
	if n := strings.Count(log.String(), "cannot be written"); n != 2 {
		t.Errorf("said %d times: %s", n, log)
	}
}
