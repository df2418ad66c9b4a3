package acceptance

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"holdfast/internal/e2e"
)

// readers read what was written before, and hold it against what it was then.
type readers struct {
	stop    context.CancelFunc
	all     sync.WaitGroup
	mu      sync.Mutex
	n       int
	slowest time.Duration
	faults  map[string]int
	away    bool // nobody may be there who could answer
}

func startReaders(t *testing.T, h *e2e.Host, n int) *readers {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &readers{stop: cancel, faults: map[string]int{}}
	client := h.Client()
	t.Cleanup(client.Close)
	t.Cleanup(func() { cancel(); r.all.Wait() })
	paths := []string{"/v1/work-items"} // the list changes, and is only to be had
	wanted := map[string]e2e.Answer{}
	for i := range 10 {
		paths = append(paths, fmt.Sprintf("/v1/work-items/old-%d", i), fmt.Sprintf("/v1/work-items/old-%d/events", i), fmt.Sprintf("/v1/work-items/old-%d/attempts", i), fmt.Sprintf("/v1/manifests/run-old-%d", i))
	}
	for _, path := range paths[1:] {
		a, err := client.Get(t.Context(), path, nil)
		if err != nil || !a.Success {
			t.Fatalf("%s: %v %+v", path, err, a)
		}
		wanted[path] = a
	}
	for range n {
		r.all.Go(func() {
			for ctx.Err() == nil {
				path := paths[rand.IntN(len(paths))]
				began := time.Now()
				a, err := client.Get(context.Background(), path, url.Values{})
				r.note(path, &a, err, time.Since(began), wanted[path])
				select {
				case <-time.After(10 * time.Millisecond):
				case <-ctx.Done():
				}
			}
		})
	}
	return r
}

func (r *readers) note(path string, a *e2e.Answer, err error, took time.Duration, want e2e.Answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	r.slowest = max(r.slowest, took)
	switch {
	case err != nil:
		r.faults[err.Error()]++
	case !a.Success && !a.Available && a.Reason != "" && r.away:
	case !a.Success:
		r.faults[fmt.Sprintf("%s is answered %d %s %s by %q", path, a.Status, a.Code, a.Reason, a.Backend)]++
	case path != "/v1/work-items" && a.Stale && !r.away:
		r.faults["an old record is said to be stale by "+a.Backend]++
	case path != "/v1/work-items" && !(bytes.Equal(a.WorkItem, want.WorkItem) && bytes.Equal(a.Manifest, want.Manifest) && same(a.Events, want.Events) && same(a.Attempts, want.Attempts)):
		r.faults[fmt.Sprintf("%s is answered otherwise by %s: %s%s%s%s", path, a.Backend, a.WorkItem, a.Manifest, a.Events, a.Attempts)]++
	}
}

func same[T ~[]byte](a, b []T) bool {
	return slices.EqualFunc(a, b, func(x, y T) bool { return bytes.Equal(x, y) })
}

// end stops them and tells what they found.
func (r *readers) end(t *testing.T) {
	t.Helper()
	r.stop()
	r.all.Wait()
	for fault, n := range r.faults {
		t.Errorf("%d reads: %s", n, fault)
	}
	if r.slowest > e2e.CallerLimit {
		t.Errorf("a reader waited %s", r.slowest)
	}
}
