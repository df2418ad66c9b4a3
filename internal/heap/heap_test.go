package heap

import (
	"runtime"
	"testing"
)

var garbage []byte

// collections counts how often the collector ran while so many megabytes became garbage.
func collections(megabytes int) uint32 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range megabytes * 16 {
		garbage = make([]byte, 1<<16)
	}
	runtime.ReadMemStats(&after)
	return after.NumGC - before.NumGC
}

func TestASmallProcessCollectsSeldom(t *testing.T) { //nolint:paralleltest // it counts what the whole process does
	runtime.GC()
	without := collections(1024)
	Floor()
	runtime.GC()
	if with := collections(1024); 2*with > without {
		t.Errorf("with a floor the collector runs %d times for 1 GiB, without one %d times", with, without)
	}
}
