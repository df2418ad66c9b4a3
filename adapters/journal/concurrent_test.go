package journal

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"holdfast/ports"
)

func TestReadersAndTrimmingKeepUpWithManyAppenders(t *testing.T) {
	t.Parallel()
	o := roomy(t.TempDir())
	o.SegmentBytes = 20 << 10
	j := opened(t, o)
	const appenders = 16
	each := rounds(2000)
	var mu sync.Mutex
	keys := map[uint64]string{}
	var wg sync.WaitGroup
	for a := range appenders {
		wg.Go(func() {
			for i := range each {
				e := put(t, j, sample(fmt.Sprintf("%d-%d", a, i)))
				mu.Lock()
				keys[e[0].Seq] = e[0].Key
				mu.Unlock()
			}
		})
	}
	var head sync.Mutex
	moved := sync.NewCond(&head)
	j.Notify(func(uint64) {
		head.Lock()
		defer head.Unlock()
		moved.Broadcast()
	})
	total := uint64(appenders * each)
	readers := make([]map[uint64]string, 3)
	positions := make([]atomic.Uint64, len(readers))
	for r := range readers {
		readers[r] = map[uint64]string{}
		wg.Go(func() {
			for after := uint64(0); after < total; {
				head.Lock()
				for j.Bounds().Head == after {
					moved.Wait()
				}
				head.Unlock()
				s, err := j.Read(after, 50, 64<<10)
				if err != nil || s.Lost != nil {
					t.Errorf("reader %d after %d: lost %v, %v", r, after, s.Lost, err)
					return
				}
				for _, e := range s.Entries {
					readers[r][e.Seq] = e.Key
				}
				after = s.Through
				positions[r].Store(after)
				if r == 0 {
					through := after
					for i := range positions {
						through = min(through, positions[i].Load())
					}
					if err := j.Trim(through); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	for r := range readers {
		for seq := uint64(1); seq <= total; seq++ {
			if readers[r][seq] != keys[seq] || keys[seq] == "" {
				t.Fatalf("reader %d saw %q at %d, written was %q", r, readers[r][seq], seq, keys[seq])
			}
		}
	}
}

func TestAReaderBehindATrimIsToldWhatIsGone(t *testing.T) {
	t.Parallel()
	o := roomy(t.TempDir())
	o.SegmentBytes = 5 << 10
	j := opened(t, o)
	total := uint64(rounds(5000))
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range total {
			put(t, j, sample(fmt.Sprint(i)))
			if err := j.Trim(i); err != nil {
				t.Error(err)
			}
		}
	})
	var there, gone []uint64
	for after := uint64(0); after < total && !t.Failed(); {
		s, err := j.Read(after, 7, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		there = append(there, seqs(s.Entries)...)
		for _, l := range s.Lost {
			gone = append(gone, span(l.From, l.To)...)
		}
		after = s.Through
	}
	wg.Wait()
	all := slices.Sorted(slices.Values(slices.Concat(there, gone)))
	if !slices.Equal(all, span(1, total)) {
		t.Errorf("%d there and %d gone of %d", len(there), len(gone), total)
	}
	if d := j.Bounds().Damaged; len(d) > 0 {
		t.Errorf("trimmed segments were taken for damaged ones: %v", d)
	}
}

func TestEntriesOfOneAppendStayTogetherAndInOrder(t *testing.T) {
	t.Parallel()
	o := roomy(t.TempDir())
	o.SegmentBytes = 8 << 10 // so that one append needs several groups
	j := opened(t, o)
	var wg sync.WaitGroup
	for a := range 8 {
		wg.Go(func() {
			for range 10 {
				batch := make([]ports.Entry, 40)
				for i := range batch {
					batch[i] = sample(fmt.Sprint(a))
				}
				put(t, j, batch...)
				for i := range batch {
					if batch[i].Seq != batch[0].Seq+uint64(i) {
						t.Errorf("%v", seqs(batch))
						return
					}
				}
			}
		})
	}
	wg.Wait()
	if got, lost := readAll(t, j, 0); len(got) != 3200 || lost != nil {
		t.Errorf("%d entries, lost %v", len(got), lost)
	}
}
