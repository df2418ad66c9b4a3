package journal

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"holdfast/ports"
)

// flaky is a Disk whose syncs can be counted, held up and made to fail.
type flaky struct {
	mu    sync.Mutex
	fail  func(f *os.File) bool
	hold  chan struct{} // when set, a sync waits for it
	held  chan struct{} // told when one waits
	errno syscall.Errno // what a failed sync says; EIO when not set
	syncs atomic.Int64
}

func (f *flaky) disk() Disk {
	return Disk{Sync: func(file *os.File) error {
		f.mu.Lock()
		hold, fail := f.hold, f.fail != nil && f.fail(file)
		f.mu.Unlock()
		if hold != nil {
			f.held <- struct{}{}
			<-hold
		}
		f.syncs.Add(1)
		if fail {
			return &os.PathError{Op: "fdatasync", Path: file.Name(), Err: cmp.Or(f.errno, syscall.EIO)}
		}
		return syncFile(file)
	}}
}

func (f *flaky) failing(fail func(*os.File) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = fail
}

// nextFails lets the next sync fail and no other.
func (f *flaky) nextFails() {
	var once atomic.Bool
	f.failing(func(*os.File) bool { return !once.Swap(true) })
}

func TestAllWhoWaitShareOneSync(t *testing.T) {
	t.Parallel()
	f := &flaky{held: make(chan struct{}, 1)}
	o := roomy(t.TempDir())
	o.SegmentBytes, o.Disk = 1<<20, f.disk()
	j := opened(t, o)
	put(t, j, sample("first"))

	hold := make(chan struct{})
	f.mu.Lock()
	f.hold = hold
	f.mu.Unlock()
	receipts := []ports.Receipt{}
	add := func(n int) {
		for i := range n {
			r, err := j.Append([]ports.Entry{sample(fmt.Sprint(i))})
			if err != nil {
				t.Fatal(err)
			}
			receipts = append(receipts, r)
		}
	}
	before := f.syncs.Load()
	add(1)
	<-f.held // the disk is busy with that one
	add(500)
	f.mu.Lock()
	f.hold = nil
	f.mu.Unlock()
	close(hold)
	for _, r := range receipts {
		if err := r.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := f.syncs.Load() - before; n != 2 {
		t.Errorf("%d syncs for one write and the 500 that waited behind it", n)
	}
}

func TestAFailedSyncClosesTheSegmentAndAcknowledgesNothingOfIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := &flaky{}
	o := roomy(dir)
	o.SegmentBytes, o.Disk = 1<<20, f.disk()
	j := opened(t, o)
	fill(t, j, 10)

	f.nextFails()
	r, err := j.Append([]ports.Entry{sample("failed"), sample("failed too")})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Wait(t.Context()); ports.CodeOf(err) != ports.Unavailable {
		t.Fatalf("the failed sync was answered with %v", err)
	}
	if b := j.Bounds(); b.Head != 10 || b.Fault != "" {
		t.Errorf("after the failure: %+v", b)
	}
	if got, lost := readAll(t, j, 0); !slices.Equal(seqs(got), span(1, 10)) || lost != nil {
		t.Errorf("before anything else was written: %v, lost %v", seqs(got), lost)
	}
	after := put(t, j, sample("after"))
	if after[0].Seq != 13 {
		t.Errorf("the next entry got %d", after[0].Seq)
	}
	if n := len(segmentFiles(t, dir)); n != 2 {
		t.Errorf("%d segments, want the closed one and a new one", n)
	}
	want := append(span(1, 10), 13)
	for _, when := range []string{"while open", "after a restart"} {
		got, lost := readAll(t, j, 0)
		if !slices.Equal(seqs(got), want) || lost != nil {
			t.Errorf("%s: %v, lost %v", when, seqs(got), lost)
		}
		closed(t, j)
		j = opened(t, roomy(dir))
	}
	if d := j.Bounds().Damaged; len(d) > 0 {
		t.Errorf("damaged %v", d)
	}
}

func TestNoSyncIsTriedAgainOnAFileWhoseSyncFailed(t *testing.T) {
	t.Parallel()
	f := &flaky{}
	o := roomy(t.TempDir())
	o.Disk = f.disk()
	j := opened(t, o)
	fill(t, j, 3)
	var mu sync.Mutex
	broken := map[uintptr]bool{} // by descriptor: the segment stays open while it is used
	var again []string
	count := 0
	f.failing(func(file *os.File) bool {
		mu.Lock()
		defer mu.Unlock()
		count++
		if count == 1 {
			broken[file.Fd()] = true
			return true
		}
		if info, err := file.Stat(); err == nil && broken[file.Fd()] && info.Size() > headerBytes {
			again = append(again, file.Name())
		}
		delete(broken, file.Fd())
		return false
	})
	r, err := j.Append([]ports.Entry{sample("failed")})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Wait(t.Context()); err == nil {
		t.Fatal("the failed sync was acknowledged")
	}
	fill(t, j, 20)
	if len(again) > 0 {
		t.Errorf("synced again: %v", again)
	}
}

func TestWhileNoSegmentCanBeOpenedNothingIsAcceptedAndLaterItGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := &flaky{}
	o := roomy(dir)
	o.Disk = f.disk()
	j := opened(t, o)
	fill(t, j, 5)
	f.failing(func(*os.File) bool { return true })
	r, err := j.Append([]ports.Entry{sample("failed")})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Wait(t.Context()); err == nil {
		t.Fatal("the failed sync was acknowledged")
	}
	eventually(t, "a fault is told", func() bool { return j.Bounds().Fault != "" })
	appended := j.Bounds().Appended
	if _, err := j.Append([]ports.Entry{sample("refused")}); ports.CodeOf(err) != ports.Unavailable {
		t.Fatalf("appending while the disk is broken: %v", err)
	}
	if j.Bounds().Appended != appended {
		t.Error("a refused entry got a Seq")
	}
	if got, lost := readAll(t, j, 0); !slices.Equal(seqs(got), span(1, 5)) || lost != nil {
		t.Errorf("reading while the disk is broken: %v, lost %v", seqs(got), lost)
	}
	f.failing(nil)
	eventually(t, "the fault is gone", func() bool { return j.Bounds().Fault == "" })
	put(t, j, sample("after"))
	closed(t, j)
	j = opened(t, roomy(dir))
	if got, lost := readAll(t, j, 0); !slices.Equal(seqs(got), []uint64{1, 2, 3, 4, 5, 7}) || lost != nil {
		t.Errorf("after a restart: %v, lost %v", seqs(got), lost)
	}
}

func TestAWriteToAFullDiskFailsAsFullAndLeavesNoTornEntry(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := &flaky{errno: syscall.ENOSPC}
	o := roomy(dir)
	o.Disk = f.disk()
	j := opened(t, o)
	fill(t, j, 5)
	f.nextFails()
	r, err := j.Append([]ports.Entry{sample("failed")})
	if err != nil {
		t.Fatal(err)
	}
	err = r.Wait(t.Context())
	if ports.CodeOf(err) != ports.Full || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), dir) {
		t.Errorf("answered with %v", err)
	}
	put(t, j, sample("after"))
}

func TestTheFreeSpaceOfTheDiskIsLeftAlone(t *testing.T) {
	t.Parallel()
	var free atomic.Int64
	var looks atomic.Int64
	free.Store(100 << 20)
	o := roomy(t.TempDir())
	o.Reserve = 10 << 20
	o.Disk.Space = func(string) (int64, int64, error) { looks.Add(1); return free.Load(), 1 << 30, nil }
	j := opened(t, o)
	fill(t, j, 10)
	free.Store(10<<20 + 1000)
	eventually(t, "the disk was looked at again", func() bool {
		_, err := j.Append([]ports.Entry{sized("big", 4000)})
		return ports.CodeOf(err) == ports.Full && ports.AsError(err).Limit == 10<<20
	})
	if b := j.Bounds(); b.Reserve != 10<<20 || b.Free > 10<<20+1000 {
		t.Errorf("%+v", b)
	}
	before := looks.Load()
	for range 1000 {
		_, _ = j.Append([]ports.Entry{sized("big", 4000)})
	}
	if n := looks.Load() - before; n > 100 {
		t.Errorf("the disk was looked at %d times for 1000 appends", n)
	}
	free.Store(100 << 20)
	eventually(t, "there is room again, without an append", func() bool { return !j.Bounds().Full })
	put(t, j, sample("after"))
}

func TestWhenTheFreeSpaceIsNotKnownTheLimitHolds(t *testing.T) {
	t.Parallel()
	o := Options{Dir: t.TempDir(), Family: ports.Queue}
	o.Disk.Space = func(string) (int64, int64, error) { return 0, 0, syscall.EIO }
	j := opened(t, o)
	put(t, j, sample("a"))
	if b := j.Bounds(); b.Limit != mostLimit || b.Reserve != 0 || b.Full {
		t.Errorf("%+v", b)
	}
}

func TestWhatWaitsForASlowDiskIsBounded(t *testing.T) {
	t.Parallel()
	f := &flaky{held: make(chan struct{}, 1), hold: make(chan struct{})}
	o := roomy(t.TempDir())
	o.Disk = f.disk()
	j := opened(t, o)
	e := sized("large", 32<<20)
	var err error
	n := 0
	for ; err == nil && n < 100; n++ {
		_, err = j.Append([]ports.Entry{e}) // the record is not copied
	}
	if ports.CodeOf(err) != ports.Unavailable || n > maxWaiting/(32<<20)+1 {
		t.Errorf("after %d entries of 32 MiB: %v", n, err)
	}
	f.failing(func(*os.File) bool { return true }) // so that they need not be written
	hold := f.hold
	f.mu.Lock()
	f.hold = nil
	f.mu.Unlock()
	close(hold)
}

func TestARemovedFileIsNoPlaceToPromiseAnything(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only on Linux does a sync look whether the file still has a name")
	}
	dir := t.TempDir()
	j := opened(t, roomy(dir))
	write := func() error {
		receipt, err := j.Append([]ports.Entry{{Action: ports.UpsertWorkItem, Class: ports.Live, Key: "k", Record: []byte("{}")}})
		if err != nil {
			return err
		}
		return receipt.Wait(t.Context())
	}
	ok(t, write())
	ok(t, os.RemoveAll(filepath.Join(dir, "journal")))
	if err := write(); ports.CodeOf(err) != ports.Unavailable || !strings.Contains(err.Error(), "removed") {
		t.Errorf("a write into a file that is gone: %v", err)
	}
}
