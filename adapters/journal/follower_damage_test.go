package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"holdfast/ports"
)

// followed fills a state with two followers, and gives the file and the host's id.
func followed(t testing.TB, dir string, keys int) (file, id string) {
	t.Helper()
	s := state(t, dir)
	s.db.NoSync = true
	id = must(s.Host()).ID
	for i := range 3 {
		ok(t, s.PushNonce(fmt.Sprint("nonce-", i+1)))
	}
	for _, name := range []string{"mirror-1", "mirror-2"} {
		for _, f := range ports.Families {
			for i := range keys {
				u := refused(fmt.Sprintf("%s-%s-item-%03d", name, f, i))
				u.Reason = "because of " + u.Key
				ok(t, s.SetUnsettled(name, f, []ports.Unsettled{u}))
			}
			ok(t, s.SetFollower(name, f, markAt(4711)))
		}
	}
	ok(t, s.SetCopyMark("copied from", "copied to", ports.Queue, &ports.CopyMark{Copied: 7}))
	ok(t, s.SetAssignment(ports.Queue, &ports.Assignment{BeaconID: "the beacon", IDBeaconConnection: 3, AssignedAt: "2025"}))
	ok(t, s.Close())
	return filepath.Join(dir, stateName), id
}

func TestAFollowerWhoseUnsettledKeysAreNotAllThereBeginsFromZero(t *testing.T) {
	t.Parallel()
	text := func(what string) func(t *testing.T, b []byte, id string) []byte {
		return func(t *testing.T, b []byte, id string) []byte {
			if what == "" {
				what = id
			}
			if !bytes.Contains(b, []byte(what)) {
				t.Fatalf("%q is not in the file", what)
			}
			return bytes.ReplaceAll(b, []byte(what), bytes.Repeat([]byte{'x'}, len(what)))
		}
	}
	all := []string{"mirror-1 Queue", "mirror-1 Manifest", "mirror-2 Queue", "mirror-2 Manifest"}
	const n = 200
	tests := []struct {
		name   string
		change func(t *testing.T, b []byte, id string) []byte
		aside  bool
		kept   []string // positions
		lost   int      // unsettled keys of mirror-2's Queue that may be gone
	}{
		{"nothing", func(_ *testing.T, b []byte, _ string) []byte { return b }, false, all, 0},
		{"the host's id", text(""), true, nil, 0},
		{"a nonce", text("nonce-2"), true, nil, 0},
		{"a reason", text("because of mirror-2-Queue-item-007"), false, all, 0},
		{"a key", func(t *testing.T, b []byte, _ string) []byte {
			return bytes.ReplaceAll(b, []byte("mirror-2mirror-2-Queue-item-007"), []byte("mirror-2mirror-2-Queue-item-00x"))
		}, true, []string{"mirror-1 Manifest", "mirror-2 Manifest"}, 1},
		{"a key's follower", func(t *testing.T, b []byte, _ string) []byte {
			return bytes.ReplaceAll(b, []byte("mirror-2mirror-2-Queue-item-199"), []byte("mirror-3mirror-2-Queue-item-199"))
		}, true, []string{"mirror-1 Manifest", "mirror-2 Manifest"}, 1},
		{"the end of a page of keys", func(t *testing.T, b []byte, _ string) []byte {
			p := must(openPages(bytes.NewReader(b), int64(len(b))))
			w := pageWalk{pages: p, bucket: func(string, uint64) {}, visit: func(string, []byte, []byte) {}, problem: func(_ string, err error) { t.Fatal(err) }}
			w.run()
			changed := 0
			for id := uint64(2); id < p.count; id++ {
				pg := b[id*p.pageSize : (id+1)*p.pageSize]
				if binary.NativeEndian.Uint16(pg[8:]) == leafPage && bytes.Contains(pg, []byte("mirror-2mirror-2-Queue-item-199")) {
					binary.NativeEndian.PutUint16(pg[10:], binary.NativeEndian.Uint16(pg[10:])-1)
					changed++
				}
			}
			if changed == 0 {
				t.Fatal("the page is not in the file")
			}
			return b
		}, true, []string{"mirror-1 Queue", "mirror-1 Manifest", "mirror-2 Manifest"}, 1},
		{"all positions", text(`"StoreID":"S"`), true, nil, 0},
		{"what the mirror shows", text(`{"Queue":["mirror-1"`), true, nil, 0},
		{"the assignment", text("the beacon"), true, all, 0},
		{"a copy's mark", text(`"Copied":7`), true, all, 0},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file, id := followed(t, dir, n)
			rewrite(t, file, func(b []byte) []byte { return c.change(t, b, id) })
			for _, when := range []string{"at once", "after another restart"} {
				s := state(t, dir)
				if (len(s.Damaged()) == 1) != c.aside {
					t.Errorf("damaged %q", s.Damaged())
				}
				for _, name := range []string{"mirror-1", "mirror-2"} {
					for _, f := range ports.Families {
						want := uint64(0)
						if slices.Contains(c.kept, name+" "+string(f)) {
							want = 4711
						}
						if got := position(t, s, name, f); got != want {
							t.Errorf("%s: %s of %s is at %d", when, f, name, got)
						}
						least := n
						if name == "mirror-2" && f == ports.Queue {
							least -= c.lost
						}
						if got := unsettled(t, s, name, f, 70); len(got) < least || len(got) > n {
							t.Errorf("%s: %s of %s has %d unsettled keys", when, f, name, len(got))
						}
					}
				}
				if c.name == "a reason" {
					got := must(s.Unsettled("mirror-2", ports.Queue, "mirror-2-Queue-item-006", 1))[0]
					if got.Key != "mirror-2-Queue-item-007" || got.Kind != ports.InDoubt || got.Code != ports.Internal || got.Reason == "" {
						t.Errorf("the damaged one is told as %+v", got)
					}
				}
				want := &ports.Assignment{BeaconID: "the beacon", IDBeaconConnection: 3, AssignedAt: "2025"}
				if got := must(s.Assignment(ports.Queue)); cmp.Diff(want, got) != "" { // the file still says so
					t.Error(when, cmp.Diff(want, got))
				}
				if got := must(s.CopyMark("copied from", "copied to", ports.Queue)); (got != nil) != (c.name != "a copy's mark" && c.name != "the host's id" && c.name != "a nonce") {
					t.Errorf("%s: the copy's mark is %+v", when, got)
				}
				ok(t, s.Close())
			}
		})
	}
}

// Whatever is damaged: as long as a follower has a position, each key that was unsettled is still known as such.
func TestNoDamageLetsAnUnsettledKeyVanishBehindAPosition(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const n = 60
	file, _ := followed(t, dir, n)
	s := state(t, dir)
	ok(t, s.PushNonce("behind everything")) // so that the meta page before this one knows everything too
	ok(t, s.Close())
	content := must(os.ReadFile(file))
	p := must(openPages(bytes.NewReader(content), int64(len(content))))
	content = content[:p.count*p.pageSize]
	rapid.Check(t, func(r *rapid.T) {
		b := slices.Clone(content)
		for range rapid.IntRange(1, 3).Draw(r, "places") {
			at := rapid.IntRange(0, len(b)-1).Draw(r, "at")
			if rapid.Bool().Draw(r, "in a header") {
				at = at/int(p.pageSize)*int(p.pageSize) + rapid.IntRange(0, 200).Draw(r, "at")
			}
			with := rapid.Byte().Draw(r, "with")
			for i := at; i < min(len(b), at+rapid.IntRange(1, 40).Draw(r, "length")); i++ {
				b[i] = with
			}
		}
		if rapid.IntRange(0, 3).Draw(r, "a page of another time") == 0 {
			from := rapid.IntRange(2, int(p.count)-1).Draw(r, "from") * int(p.pageSize)
			to := rapid.IntRange(2, int(p.count)-1).Draw(r, "to") * int(p.pageSize)
			id := slices.Clone(b[to : to+8])
			copy(b[to:to+int(p.pageSize)], b[from:from+int(p.pageSize)])
			copy(b[to:], id)
		}
		dir := must(os.MkdirTemp(t.TempDir(), ""))
		ok(t, os.WriteFile(filepath.Join(dir, stateName), b, 0o600))
		s, err := OpenState(dir, StateOptions{})
		if err != nil {
			r.Fatal(err)
		}
		defer s.Close()
		for _, name := range []string{"mirror-1", "mirror-2"} {
			for _, f := range ports.Families {
				_, known, err := s.Follower(name, f)
				if err != nil {
					r.Fatal(err)
				}
				keys := unsettled(t, s, name, f, 100)
				if known && len(keys) != n {
					r.Fatalf("%s of %s has a position and %d unsettled keys", f, name, len(keys))
				}
				for i := range n {
					if key := fmt.Sprintf("%s-%s-item-%03d", name, f, i); known && !slices.Contains(keys, key) {
						r.Fatalf("%s is gone", key)
					}
				}
			}
		}
	})
}
