package core

import (
	"slices"
	"sync"
	"testing"
	"time"

	"holdfast/ports"
)

// While one page is put, the next one is fetched already.
func TestAKeyThatIsPutOutOfOrderDoesNotGoBackWithThePageThatWasFetchedBefore(t *testing.T) {
	t.Parallel()
	playWith(t, withFollower(nil), func(t *testing.T, s *stage) {
		s.catchesUp("m1", 10*time.Second)
		m := s.mirror("m1")
		m.change(func(m *mirror) { m.back = 0 })
		m.kill(nil)
		s.many(40, "before") // each is an item and an event: more than the first page
		s.does(upsert("w", "Pending"), Done)
		s.many(100, "behind")
		var mu sync.Mutex
		var seqs []uint64
		puts := 0
		m.suffers(func(b *ports.Batch) putFate {
			mu.Lock()
			defer mu.Unlock()
			puts++
			for _, row := range b.Rows {
				if row.Key == "w" {
					seqs = append(seqs, row.Change.Seq)
				}
			}
			return putFate{after: 200 * time.Millisecond}
		})
		m.start()
		if !s.until(10*time.Second, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return puts > 0
		}) {
			t.Fatal("nothing is put")
		}
		now := s.does(upsert("w", "Complete"), Done).Seq
		w := s.host.follower("m1", ports.Queue)
		w.keys.doubt([]group{{key: "w", first: now, last: now}}, "for the sake of the test", s.host.clock())
		w.keys.allOver()
		w.poke <- struct{}{}
		s.catchesUp("m1", time.Minute)
		if !slices.IsSorted(seqs) || len(seqs) == 0 || seqs[len(seqs)-1] != now {
			t.Errorf("the states of w came in the order %v, the last one is %d", seqs, now)
		}
	})
}
