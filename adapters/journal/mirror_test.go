package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
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

func TestThePositionsAreWrittenOnceASecondAndAtTheEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := newClock()
	s, _ := told(t, dir, c)
	steps := []struct {
		later time.Duration
		seq   uint64
		shown uint64
	}{
		{0, 1, 1},
		{0, 2, 1},
		{999 * time.Millisecond, 3, 1},
		{time.Millisecond, 4, 4},
		{500 * time.Millisecond, 5, 4},
		{-time.Hour, 6, 6}, // the clock was set back
		{time.Millisecond, 7, 6},
	}
	for _, step := range steps {
		c.forward(step.later)
		ok(t, s.SetFollower("mirror", ports.Queue, markAt(step.seq)))
		if got := copiedTo(t, dir, "mirror"); got != step.shown {
			t.Errorf("at %d the file shows %d instead of %d", step.seq, got, step.shown)
		}
	}
	ok(t, s.Close())
	if got := copiedTo(t, dir, "mirror"); got != 7 {
		t.Errorf("at the end the file shows %d", got)
	}
	before := must(os.Stat(filepath.Join(dir, positionsName)))
	s, _ = told(t, dir, c)
	ok(t, s.Close())
	if after := must(os.Stat(filepath.Join(dir, positionsName))); !os.SameFile(before, after) {
		t.Error("it was written again with nothing new to show")
	}
}

func TestAFollowerThatIsTakenOutOfTheFileIsCopiedFromZero(t *testing.T) {
	t.Parallel()
	const gone, kept = "taken out", "kept"
	file := func(text string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) { ok(t, os.WriteFile(path, []byte(text), 0o600)) }
	}
	remove := func(names ...string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			m := mirrored(t, path)
			for _, name := range names {
				delete(m["Queue"], name)
			}
			ok(t, os.WriteFile(path, must(json.Marshal(m)), 0o644))
		}
	}
	tests := []struct {
		name    string
		change  func(t *testing.T, path string)
		forgets []string // Queue's
		both    bool     // Manifest's too
	}{
		{"nothing was changed", func(*testing.T, string) {}, nil, false},
		{"one entry", remove(gone), []string{gone}, false},
		{"both entries", remove(gone, kept), []string{gone, kept}, false},
		{"an entry that is null", file(`{"Queue":{"taken out":null,"kept":{}},"Manifest":{"taken out":{},"kept":{}}}`), []string{gone}, false},
		{"a family that is null", file(`{"Queue":null,"Manifest":{"taken out":{},"kept":{}}}`), []string{gone, kept}, false},
		{"everything", file("{}"), []string{gone, kept}, true},
		{"the file", func(t *testing.T, path string) { ok(t, os.Remove(path)) }, []string{gone, kept}, true},
		{"a position that was moved on", func(t *testing.T, path string) {
			rewrite(t, path, func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("4711"), []byte("4712")) })
		}, nil, false},
		{"one that nobody knows", func(t *testing.T, path string) {
			m := mirrored(t, path)
			m["Queue"]["unknown"] = m["Queue"][kept]
			ok(t, os.WriteFile(path, must(json.Marshal(m)), 0o600))
		}, nil, false},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, positionsName)
			s, _ := told(t, dir, newClock())
			for _, f := range ports.Families {
				ok(t, s.SetFollower(gone, f, markAt(4711)))
				ok(t, s.SetFollower(kept, f, markAt(4711)))
				ok(t, s.SetUnsettled(gone, f, []ports.Unsettled{refused("k")}))
			}
			ok(t, s.Close())
			original := string(must(os.ReadFile(path)))
			c.change(t, path)
			for _, when := range []string{"at once", "after another restart"} {
				s, log := told(t, dir, newClock())
				told := 0
				for _, name := range []string{gone, kept} {
					for _, f := range ports.Families {
						want := uint64(4711)
						if strings.Contains(strings.Join(c.forgets, ","), name) && f == ports.Queue || c.both {
							want = 0
							told++
						}
						if got := position(t, s, name, f); got != want {
							t.Errorf("%s: %s of %q is at %d", when, f, name, got)
						}
						if line := fmt.Sprintf("backend=%q family=%s", name, f); name == gone && strings.Contains(log.String(), line) != (want == 0 && when == "at once") {
							t.Errorf("%s: the log says %s", when, log)
						}
					}
				}
				if _, known, err := s.Follower("unknown", ports.Queue); known || err != nil {
					t.Errorf("the file made up a follower: %v", err)
				}
				if got := unsettled(t, s, gone, ports.Queue, 9); len(got) != 1 || len(s.Damaged()) > 0 {
					t.Errorf("unsettled %q, damaged %q", got, s.Damaged())
				}
				ok(t, s.Close())
				if got := string(must(os.ReadFile(path))); (got == original) != (told == 0) || strings.Contains(got, "unknown") {
					t.Errorf("%s: the file is %s", when, got)
				}
			}
			// From zero again, with a host that dies before the file shows it: that is nobody's word.
			s, _ = told(t, dir, newClock())
			s.positions.tried = s.now()
			ok(t, s.SetFollower(gone, ports.Queue, markAt(1)))
			killed(t, s)
			s, _ = told(t, dir, newClock())
			if got := position(t, s, gone, ports.Queue); got != 1 {
				t.Errorf("after a kill: at %d", got)
			}
			ok(t, s.Close())
			if got := copiedTo(t, dir, gone); got != 1 {
				t.Errorf("after a kill the file shows %d", got)
			}
		})
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

func TestAnAssignmentThatAPersonChangedCounts(t *testing.T) {
	t.Parallel()
	before := ports.Assignment{BeaconID: "bcn", IDBeaconConnection: 3, AssignedAt: "2025"}
	now := "2026-01-01T00:00:00Z"
	tests := []struct {
		name     string
		text     string // "-" leaves the file, "" removes it
		queue    *ports.Assignment
		manifest *ports.Assignment
	}{
		{"not at all", "-", &before, nil},
		{"by removing the file", "", &before, nil},
		{"in its looks only", `{"Manifest":null,"Queue":{"AssignedAt":"2025","BeaconID":"bcn","IDBeaconConnection":3}}`, &before, nil},
		{"to another connection", `{"Queue":{"BeaconID":"bcn","IDBeaconConnection":4,"AssignedAt":"2025"},"Manifest":null}`,
			&ports.Assignment{BeaconID: "bcn", IDBeaconConnection: 4, AssignedAt: "2025"}, nil},
		{"to none", `{"Queue":null,"Manifest":null}`, nil, nil},
		{"for the other family", `{"Manifest":{"BeaconID":"bcn","IDBeaconConnection":3}}`, &before,
			&ports.Assignment{BeaconID: "bcn", IDBeaconConnection: 3, AssignedAt: now}},
		{"to nothing said", `{}`, &before, nil},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, assignmentsName)
			s, _ := told(t, dir, newClock())
			ok(t, s.SetAssignment(ports.Queue, &before))
			ok(t, s.Close())
			original := must(os.ReadFile(path))
			switch c.text {
			case "-":
			case "":
				ok(t, os.Remove(path))
			default:
				ok(t, os.WriteFile(path, []byte(c.text), 0o600))
			}
			for range 2 {
				s, log := told(t, dir, newClock())
				if got := must(s.Assignment(ports.Queue)); cmp.Diff(c.queue, got) != "" {
					t.Error(cmp.Diff(c.queue, got))
				}
				if got := must(s.Assignment(ports.Manifest)); cmp.Diff(c.manifest, got) != "" {
					t.Error(cmp.Diff(c.manifest, got))
				}
				if len(s.Damaged()) > 0 {
					t.Errorf("damaged %q: %s", s.Damaged(), log)
				}
				ok(t, s.Close())
				same := cmp.Diff(&before, c.queue) == "" && c.manifest == nil
				if got := must(os.ReadFile(path)); bytes.Equal(got, original) != same {
					t.Errorf("the file is %s", got)
				}
			}
		})
	}
}

func TestADamagedMirrorIsSetAsideAndForgetsNothing(t *testing.T) {
	t.Parallel()
	put := func(text string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) { ok(t, os.WriteFile(path, []byte(text), 0o600)) }
	}
	every := map[string]func(t *testing.T, path string){
		"empty":               put(""),
		"zeros":               put(strings.Repeat("\x00", 500)),
		"text":                put("not JSON"),
		"null":                put("null"),
		"a list":              put("[]"),
		"a number":            put("7"),
		"a list of the two":   put(`[{"Queue":{}},{"Manifest":{}}]`),
		"another member":      put(`{"Queue":null,"Manifest":null,"Other":null}`),
		"a family as a list":  put(`{"Queue":[],"Manifest":null}`),
		"a family as a text":  put(`{"Queue":"","Manifest":null}`),
		"an entry as a text":  put(`{"Queue":{"mirror":"","BeaconID":7},"Manifest":null}`),
		"something behind it": put(`{"Queue":null,"Manifest":null} {}`),
		"cut": func(t *testing.T, path string) {
			rewrite(t, path, func(b []byte) []byte { return b[:len(b)-20] })
		},
		"deep": put(strings.Repeat(`{"Queue":`, 100000)),
		"larger than any": func(t *testing.T, path string) {
			ok(t, os.Truncate(path, maxMirror+1))
		},
		"a directory": func(t *testing.T, path string) {
			ok(t, os.Remove(path))
			ok(t, os.MkdirAll(filepath.Join(path, "with", "more"), 0o700))
		},
		"a link to nothing": func(t *testing.T, path string) {
			ok(t, os.Remove(path))
			ok(t, os.Symlink("nothing", path))
		},
	}
	own := map[string]map[string]func(t *testing.T, path string){
		positionsName: {
			"a Seq below zero":    put(`{"Queue":{"mirror":{"StoreID":"S","Epoch":"E","Seqs":{"host":-1},"At":""}},"Manifest":{}}`),
			"a Seq as a text":     put(`{"Queue":{"mirror":{"Seqs":{"host":"1"}}},"Manifest":{}}`),
			"a Seq with a half":   put(`{"Queue":{"mirror":{"Seqs":{"host":1.5}}},"Manifest":{}}`),
			"an entry with more":  put(`{"Queue":{"mirror":{"StoreId2":"S"}},"Manifest":{}}`),
			"an entry as a list":  put(`{"Queue":{"mirror":[]},"Manifest":{}}`),
			"an entry as a truth": put(`{"Queue":{"mirror":true},"Manifest":{}}`),
		},
		assignmentsName: {
			"no beacon":             put(`{"Queue":{"IDBeaconConnection":3},"Manifest":null}`),
			"a connection below 0":  put(`{"Queue":{"BeaconID":"b","IDBeaconConnection":-3},"Manifest":null}`),
			"a connection's text":   put(`{"Queue":{"BeaconID":"b","IDBeaconConnection":"3"},"Manifest":null}`),
			"one of two is damaged": put(`{"Queue":null,"Manifest":{"BeaconID":""}}`),
		},
	}
	for name, cases := range own {
		maps.Copy(cases, every)
		for what, change := range cases {
			t.Run(name+" "+what, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				path := filepath.Join(dir, name)
				assigned := &ports.Assignment{BeaconID: "bcn", IDBeaconConnection: 3, AssignedAt: "2025"}
				s, _ := told(t, dir, newClock())
				ok(t, s.SetFollower("mirror", ports.Queue, markAt(4711)))
				ok(t, s.SetAssignment(ports.Queue, assigned))
				ok(t, s.Close())
				original := must(os.ReadFile(path))
				change(t, path)
				for _, when := range []string{"at once", "after another restart"} {
					s, log := told(t, dir, newClock())
					if got := position(t, s, "mirror", ports.Queue); got != 4711 {
						t.Errorf("%s: at %d", when, got)
					}
					if got := must(s.Assignment(ports.Queue)); cmp.Diff(assigned, got) != "" {
						t.Error(when, cmp.Diff(assigned, got))
					}
					if d := s.Damaged(); len(d) != 1 || d[0] != name+asideMark+"20260101T000000Z" {
						t.Errorf("%s: damaged %q", when, d)
					}
					if strings.Contains(log.String(), name+asideMark) != (when == "at once") {
						t.Errorf("%s: the log says %s", when, log)
					}
					ok(t, s.Close())
					if got := must(os.ReadFile(path)); !bytes.Equal(got, original) {
						t.Errorf("%s: the file is %s", when, got)
					}
				}
			})
		}
	}
}

func TestTheNewestFourDamagedMirrorsAreKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := newClock()
	for i := range 7 {
		s, _ := told(t, dir, c)
		ok(t, s.SetFollower("mirror", ports.Queue, markAt(4711)))
		ok(t, s.Close())
		ok(t, os.WriteFile(filepath.Join(dir, positionsName), []byte(fmt.Sprint(i)), 0o600))
		if i%2 == 0 {
			c.forward(time.Hour)
		}
	}
	ok(t, os.WriteFile(filepath.Join(dir, "."+positionsName+"4711"), nil, 0o600)) // a write that was cut off by a kill
	s, _ := told(t, dir, c)
	d := s.Damaged()
	if len(d) != keepAside || len(must(filepath.Glob(filepath.Join(dir, "*"+asideMark+"*")))) != keepAside {
		t.Errorf("%q", d)
	}
	if newest := must(os.ReadFile(filepath.Join(dir, d[keepAside-1]))); string(newest) != "6" {
		t.Errorf("the newest of %q has %q", d, newest)
	}
	if left := must(filepath.Glob(filepath.Join(dir, ".*"))); len(left) > 0 {
		t.Errorf("left over: %q", left)
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
