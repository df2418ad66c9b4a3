package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/ports"
)

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
			var m byFamily[map[string]*positionEntry]
			ok(t, strictly(must(os.ReadFile(path)), &m))
			for _, name := range names {
				delete(m.Queue, name)
			}
			ok(t, os.WriteFile(path, must(render(m)), 0o644)) // to the letter what the host would write
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
