package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/ports"
)

func TestADamagedStateIsSetAsideAndWhatIsWholeTakenOver(t *testing.T) {
	t.Parallel()
	find := func(t *testing.T, b []byte, what string) int {
		at := bytes.Index(b, []byte(what))
		if at < 0 {
			t.Fatalf("%q is not in the file", what)
		}
		return at
	}
	everywhere := func(b []byte, what string) []byte {
		return bytes.ReplaceAll(b, []byte(what), bytes.Repeat([]byte{'x'}, len(what)))
	}
	tests := []struct {
		name     string
		change   func(t *testing.T, b []byte, id string) []byte
		aside    bool
		identity bool // is kept
		asides   bool // are kept
	}{
		{"untouched", func(_ *testing.T, b []byte, _ string) []byte { return b }, false, true, true},
		{"zeros", func(_ *testing.T, b []byte, _ string) []byte { return make([]byte, len(b)) }, true, false, false},
		{"a megabyte of zeros", func(_ *testing.T, b []byte, _ string) []byte { return make([]byte, 1<<20) }, true, false, false},
		{"text", func(*testing.T, []byte, string) []byte { return []byte(strings.Repeat("not a database ", 999)) }, true, false, false},
		{"cut to one page", func(_ *testing.T, b []byte, _ string) []byte { return b[:4096] }, true, false, false},
		{"cut to its first two pages", func(_ *testing.T, b []byte, _ string) []byte { return b[:2*os.Getpagesize()] }, true, false, false},
		{"cut to its first five pages", func(_ *testing.T, b []byte, _ string) []byte { return b[:5*os.Getpagesize()] }, true, false, false},
		{"without the last page in use", func(_ *testing.T, b []byte, _ string) []byte {
			p := must(openPages(bytes.NewReader(b), int64(len(b))))
			return b[:(p.count-1)*p.pageSize]
		}, true, false, false},
		{"grown beyond the pages in use", func(_ *testing.T, b []byte, _ string) []byte { return append(b, make([]byte, 1<<20)...) }, false, true, true},
		{"both metas gone", func(_ *testing.T, b []byte, _ string) []byte {
			clear(b[16:80])
			clear(b[4096+16 : 4096+80])
			return b
		}, true, false, false},
		{"the host's id gone from its page", func(t *testing.T, b []byte, _ string) []byte {
			at := bucketAt(t, b, "host")
			binary.NativeEndian.PutUint16(b[at+pageHeader+10:], 0)
			return b
		}, true, false, true},
		{"the newest nonce gone from its page", func(t *testing.T, b []byte, _ string) []byte {
			at := bucketAt(t, b, "nonces")
			count := b[at+pageHeader+10:]
			binary.NativeEndian.PutUint16(count, binary.NativeEndian.Uint16(count)-1)
			return b
		}, true, false, true},
		{"the host's id flipped", func(_ *testing.T, b []byte, id string) []byte { return everywhere(b, id) }, true, false, true},
		{"a nonce flipped", func(_ *testing.T, b []byte, _ string) []byte { return everywhere(b, "nonce-2") }, true, false, true},
		{"the local store flipped", func(_ *testing.T, b []byte, _ string) []byte { return everywhere(b, `"Name":"local"`) }, true, true, true},
		{"a set-aside entry flipped", func(t *testing.T, b []byte, _ string) []byte {
			find(t, b, `{"k":"item-7"}`)
			return everywhere(b, `{"k":"item-7"}`)
		}, false, true, false},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := state(t, dir)
			before := must(s.Host())
			for i := range 3 {
				ok(t, s.PushNonce(fmt.Sprint("nonce-", i+1)))
			}
			ok(t, s.SetLocal(ports.LocalMark{Name: "local", StoreID: "S"}))
			for i := range 30 {
				ok(t, s.SetAside(ports.Queue, []ports.Aside{aside(uint64(i+1), 3000)}))
			}
			ok(t, s.Close())
			file := filepath.Join(dir, stateName)
			rewrite(t, file, func(b []byte) []byte { return c.change(t, b, before.ID) })

			s = state(t, dir)
			asideFiles, _ := filepath.Glob(file + asideMark + "*")
			if (len(asideFiles) == 1) != c.aside || (len(s.Damaged()) == 1) != c.aside {
				t.Errorf("set aside %v, told %v", asideFiles, s.Damaged())
			}
			h := must(s.Host())
			if (h.ID == before.ID) != c.identity || len(h.ID) != 36 || c.identity != (len(h.Nonces) == 3) {
				t.Errorf("host %+v, before %+v", h, before)
			}
			if list := must(s.Asides(ports.Queue, 0, 100)); c.asides && (len(list) != 30 || s.asides != 30) {
				t.Errorf("%d set-aside entries, counted %d", len(list), s.asides)
			} else if i := slices.IndexFunc(list, func(a ports.Aside) bool { return a.Code == ports.Internal }); c.identity && !c.asides && (i != 6 || list[i].Entry.Seq != 7) {
				t.Errorf("the damaged entry is told as number %d", i)
			}
			ok(t, s.PushNonce("nonce-4"))
			if h := must(s.Host()); h.Nonces[0] != "nonce-4" {
				t.Errorf("%v", h.Nonces)
			}
			ok(t, s.SetLocal(ports.LocalMark{Name: "new"}))
			ok(t, s.Close())
			if again := must(state(t, dir).Host()); again.ID != h.ID {
				t.Error("the identity changed once more")
			}
		})
	}
}

// bucketAt gives the offset of a bucket's value in the page that counts; the bucket must be small enough to stand in it.
func bucketAt(t *testing.T, b []byte, name string) int {
	p := must(openPages(bytes.NewReader(b), int64(len(b))))
	root := int(p.root * p.pageSize)
	pg := must(p.read(p.root, leafPage))
	for i := range pg.count {
		key, _, _, err := pg.entry(i)
		ok(t, err)
		e := pg.body[pageHeader+i*pageElement:]
		if string(key) == name {
			return root + pageHeader + i*pageElement + int(native.Uint32(e[4:])+native.Uint32(e[8:]))
		}
	}
	t.Fatalf("there is no bucket %s on page %d", name, p.root)
	return 0
}

func TestAStateGarbledAnywhereOpens(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := state(t, dir)
	for i := range 20 {
		ok(t, s.PushNonce(fmt.Sprint(i)))
		ok(t, s.SetAside(ports.Queue, []ports.Aside{aside(uint64(i+1), 5000)}))
	}
	ok(t, s.Close())
	content := must(os.ReadFile(filepath.Join(dir, stateName)))
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			r.Fatal(err)
		}
		b := slices.Clone(content)
		for range rapid.IntRange(1, 6).Draw(r, "places") {
			at := rapid.IntRange(0, len(b)-1).Draw(r, "at")
			for i := at; i < min(len(b), at+rapid.IntRange(1, 600).Draw(r, "length")); i++ {
				b[i] ^= 0x5a
			}
		}
		if rapid.IntRange(0, 3).Draw(r, "cut") == 0 {
			b = b[:rapid.IntRange(1, len(b)).Draw(r, "length")]
		}
		if err := os.WriteFile(filepath.Join(dir, stateName), b, 0o600); err != nil {
			r.Fatal(err)
		}
		s, err := OpenState(dir, StateOptions{})
		if err != nil {
			r.Fatal(err)
		}
		defer s.Close()
		if h, err := s.Host(); err != nil || h.ID == "" {
			r.Fatalf("%+v, %v", h, err)
		}
		if err := s.PushNonce("after"); err != nil {
			r.Fatal(err)
		}
		if _, err := s.Asides(ports.Queue, 0, 1000); err != nil {
			t.Logf("the set-aside entries: %v", err)
		}
	})
}

// A file that is cut under a running host is what a failing disk looks like: its mapping faults.
func TestAStateWhoseFileFailsUnderItAnswersInTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := state(t, dir)
	ok(t, s.SetFollower("mirror", ports.Queue, markAt(1)))
	ok(t, os.Truncate(filepath.Join(dir, stateName), 0))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 2 {
			for what, call := range map[string]func() error{
				"host":        func() error { _, err := s.Host(); return err },
				"push nonce":  func() error { return s.PushNonce("a") },
				"set aside":   func() error { return s.SetAside(ports.Queue, []ports.Aside{aside(1, 10)}) },
				"position":    func() error { return s.SetFollower("mirror", ports.Queue, markAt(2)) },
				"unsettled":   func() error { _, err := s.Unsettled("mirror", ports.Queue, "", 9); return err },
				"assignments": func() error { return s.SetAssignment(ports.Queue, nil) },
			} {
				if err := call(); ports.CodeOf(err) != ports.Internal {
					t.Errorf("%s: %v", what, err)
				}
			}
		}
		if err := s.Close(); ports.CodeOf(err) != ports.Internal {
			t.Errorf("close: %v", err)
		}
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("a call does not come back")
	}
}
