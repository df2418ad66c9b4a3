package journal

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/ports"
)

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
