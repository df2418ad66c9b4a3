package reference

import (
	"maps"
	"slices"
	"testing"

	"holdfast/ports"
)

func TestTheOldestTombstonesGoAndAreToldAsDropped(t *testing.T) {
	t.Parallel()
	h := newDisk().halves[ports.Manifest]
	h.room = 2
	for i, key := range []string{"a", "b", "a", "c", "d"} { // a goes twice: its first removal is no longer the newest one
		at := place{kind: ports.KindManifest, key: key}
		h.set(at, &held{})
		h.remove(at, ports.Change{Host: "host", Seq: uint64(i + 1)})
	}
	var left []string
	for at := range h.gone {
		left = append(left, at.key)
	}
	slices.Sort(left)
	if want := map[string]uint64{"host": 3}; !slices.Equal(left, []string{"c", "d"}) || !maps.Equal(h.dropped, want) {
		t.Errorf("left are %v, dropped is %v, want %v", left, h.dropped, want)
	}
}
