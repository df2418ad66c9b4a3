package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/ports"
)

// filled takes every byte of a small disk that is left.
func filled(t *testing.T, dir string) (empty func()) {
	t.Helper()
	path := filepath.Join(dir, "ballast")
	f := must(os.Create(path))
	block := make([]byte, 64<<10)
	for len(block) > 0 {
		if n, err := f.Write(block); err != nil || n < len(block) {
			block = block[:len(block)/2]
		}
	}
	ok(t, f.Close())
	return func() { ok(t, os.Remove(path)) }
}

func TestOnAFullDiskFollowersAreWhereTheyWereAndGoOnOnceThereIsSpace(t *testing.T) {
	t.Parallel()
	dir := tiny(t)
	c := newClock()
	s, log := told(t, dir, c)
	ok(t, s.SetFollower("mirror", ports.Queue, markAt(1)))
	empty := filled(t, dir)
	at, refusals := uint64(1), 0
	var keys []string
	for i := range 300 {
		c.forward(time.Second)
		err := s.SetFollower("mirror", ports.Queue, markAt(at+1))
		if err == nil {
			at++
			err = s.SetUnsettled("mirror", ports.Queue, []ports.Unsettled{refused(fmt.Sprintf("item-%03d", i))})
			if err == nil {
				keys = append(keys, fmt.Sprintf("item-%03d", i))
			}
		}
		if err != nil {
			refusals++
			if ports.CodeOf(err) != ports.Full {
				t.Fatalf("after %d: %v", i, err)
			}
		}
		if got := position(t, s, "mirror", ports.Queue); got != at {
			t.Fatalf("it is at %d instead of %d", got, at)
		}
	}
	if n := strings.Count(log.String(), "cannot be written"); n != 1 || refusals == 0 {
		t.Errorf("said %d times, refused %d times: %s", n, refusals, log)
	}
	if got := copiedTo(t, dir, "mirror"); got != 1 {
		t.Errorf("the file shows %d", got)
	}
	if got := unsettled(t, s, "mirror", ports.Queue, 7); !slices.Equal(got, keys) {
		t.Errorf("%q, want %q", got, keys)
	}
	ok(t, s.Close())
	if again, err := OpenState(dir, StateOptions{}); err == nil { // it may find room, or say that there is none
		if got := position(t, again, "mirror", ports.Queue); got != at || len(again.Damaged()) > 0 {
			t.Errorf("at %d instead of %d, damaged %q", got, at, again.Damaged())
		}
		ok(t, again.Close())
	} else if ports.CodeOf(err) != ports.Full {
		t.Errorf("%v", err)
	}
	empty()
	s, _ = told(t, dir, c)
	if got := position(t, s, "mirror", ports.Queue); got != at || len(s.Damaged()) > 0 {
		t.Errorf("at %d instead of %d, damaged %q", got, at, s.Damaged())
	}
	c.forward(time.Second)
	ok(t, s.SetFollower("mirror", ports.Queue, markAt(at+1)))
	ok(t, s.SetUnsettled("mirror", ports.Queue, []ports.Unsettled{refused("more")}))
	if got := copiedTo(t, dir, "mirror"); got != at+1 {
		t.Errorf("the file shows %d", got)
	}
}

func TestADamagedStateOnAFullDiskWaitsForSpaceAsItIs(t *testing.T) {
	t.Parallel()
	dir := tiny(t)
	file, id := followed(t, dir, 5)
	rewrite(t, file, func(b []byte) []byte {
		b = []byte(strings.ReplaceAll(string(b), "mirror-2mirror-2-Queue-item-003", "mirror-2mirror-2-Queue-item-00x"))
		return b
	})
	empty := filled(t, dir)
	for range 2 {
		if _, err := OpenState(dir, StateOptions{}); ports.CodeOf(err) != ports.Full {
			t.Fatalf("%v", err)
		}
	}
	empty()
	s := state(t, dir)
	if h := must(s.Host()); h.ID != id || len(h.Nonces) != 3 || len(s.Damaged()) != 1 {
		t.Errorf("%+v, damaged %q", h, s.Damaged())
	}
	if a, b := position(t, s, "mirror-2", ports.Queue), position(t, s, "mirror-2", ports.Manifest); a != 0 || b != 4711 {
		t.Errorf("at %d and %d", a, b)
	}
}
