package mesh

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/ports"
)

// word is what is assigned, as a core tells it.
type word struct {
	mu      sync.Mutex
	now     map[ports.Family]ports.Assignment
	changed chan struct{}
}

func newWord() *word { return &word{changed: make(chan struct{})} }

func (w *word) Assigned() (map[ports.Family]ports.Assignment, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now, w.changed
}

// says assigns a connection of d to the queue; 0 clears.
func (w *word) says(connection int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.now = nil; connection > 0 {
		w.now = map[ports.Family]ports.Assignment{ports.Queue: {BeaconID: "d", IDBeaconConnection: connection}}
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

// crowd is a mesh with so many beacons.
type crowd struct {
	mu      sync.Mutex
	version uint64
	n       int
	fails   error
	changed chan struct{}
}

func newCrowd() *crowd { return &crowd{version: 1, changed: make(chan struct{})} }

func (c *crowd) becomes(n int, fails error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	c.n, c.fails = n, fails
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *crowd) Watch(ctx context.Context, since uint64) (ports.Beacons, error) {
	for {
		c.mu.Lock()
		b, changed, fails := ports.Beacons{Version: c.version, List: make([]ports.Beacon, c.n)}, c.changed, c.fails
		c.mu.Unlock()
		if fails != nil {
			return ports.Beacons{}, fails
		}
		if b.Version != since {
			return b, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ports.Beacons{}, ctx.Err()
		}
	}
}

func (c *crowd) Dispatch(context.Context, ports.Work) (ports.WorkAnswer, error) {
	return ports.WorkAnswer{Beacon: "of the crowd"}, nil
}

func textOfBeacons(b ports.Beacons) string {
	return fmt.Sprintf("%d beacons, connection %d", len(b.List), b.Assigned[ports.Queue].IDBeaconConnection)
}

// between runs a scene in a bubble with an Assigned, over a crowd or over no mesh.
func between(t *testing.T, some bool, scene func(t *testing.T, a *Assigned, w *word, c *crowd)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, c := newWord(), newCrowd()
		w.says(1)
		var beacons ports.Mesh
		if some {
			beacons = c
		}
		a := WithAssigned(beacons, w)
		if b, err := a.Watch(t.Context(), 0); err != nil || b.Version == 0 || b.Assigned[ports.Queue].IDBeaconConnection != 1 {
			t.Errorf("before it runs it tells %+v, %v", b, err)
		}
		ctx, end := context.WithCancel(t.Context())
		ran := make(chan struct{})
		go func() {
			defer close(ran)
			a.Run(ctx)
		}()
		synctest.Wait()
		scene(t, a, w, c)
		end()
		<-ran
		if b, err := a.Watch(t.Context(), a.Now().Version); ports.CodeOf(err) != ports.Unavailable {
			t.Errorf("after its end it tells %+v, %v", b, err)
		}
	})
}

func TestAWatchHearsOfBeaconsAndOfAssignments(t *testing.T) {
	t.Parallel()
	hears := func(t *testing.T, some bool) {
		t.Helper()
		between(t, some, func(t *testing.T, a *Assigned, w *word, c *crowd) {
			b, err := a.Watch(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range []struct {
				does func()
				want string
				only bool // where there are beacons
			}{
				{func() { w.says(2) }, "0 beacons, connection 2", false},
				{func() { c.becomes(3, nil) }, "3 beacons, connection 2", true},
				{func() { w.says(0) }, "beacons, connection 0", false},
				{func() { w.says(5); w.says(6) }, "beacons, connection 6", false},
				{func() { c.becomes(0, errStopping); c.becomes(7, nil) }, "7 beacons, connection 6", true},
			} {
				if step.only && !some {
					continue
				}
				since := b.Version
				heard := make(chan ports.Beacons, 1)
				go func() {
					last := b
					for err == nil && !endsWith(textOfBeacons(last), step.want) {
						last, err = a.Watch(t.Context(), last.Version)
					}
					heard <- last
				}()
				synctest.Wait()
				step.does()
				if b = <-heard; err != nil || b.Version == since || !endsWith(textOfBeacons(b), step.want) {
					t.Fatalf("a watch hears %s (%d after %d), %v; want %s", textOfBeacons(b), b.Version, since, err, step.want)
				}
				if now := a.Now(); now.Version != b.Version {
					t.Errorf("now it is %s", textOfBeacons(now))
				}
			}
			short, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if b, err := a.Watch(short, b.Version); ports.CodeOf(err) != ports.Deadline {
				t.Errorf("without a change it tells %+v, %v", b, err)
			}
		})
	}
	t.Run("over a mesh", func(t *testing.T) { t.Parallel(); hears(t, true) })
	t.Run("over none", func(t *testing.T) { t.Parallel(); hears(t, false) })
}

func endsWith(text, end string) bool {
	return len(text) >= len(end) && text[len(text)-len(end):] == end
}

func TestNoWatchMissesTheLastChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd()
		w := newWord()
		a := WithAssigned(c, w)
		ctx, end := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { a.Run(ctx) })
		for range 8 {
			all.Go(func() {
				since := uint64(0)
				for {
					b, err := a.Watch(ctx, since)
					if err != nil {
						t.Errorf("it never hears of the last change: %v", err)
						return
					}
					if b.Version < since {
						t.Errorf("version %d comes after %d", b.Version, since)
					}
					if since = b.Version; textOfBeacons(b) == "100 beacons, connection 100" {
						return
					}
				}
			})
		}
		for i := range 100 {
			all.Go(func() { w.says(int64(i + 1)); w.says(100) })
			all.Go(func() { c.becomes(i+1, nil); c.becomes(100, nil) })
			if i%10 == 0 {
				<-time.After(time.Millisecond) // in the bubble: everybody comes to rest
			}
		}
		<-time.After(2 * time.Second)
		end()
		all.Wait()
	})
}

func TestAHostWithoutBeaconsSaysWhyNothingIsDone(t *testing.T) {
	t.Parallel()
	if _, err := WithAssigned(nil, newWord()).Dispatch(t.Context(), ports.Work{}); ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("it says %v", err)
	}
	if a, err := WithAssigned(newCrowd(), newWord()).Dispatch(t.Context(), ports.Work{}); err != nil || a.Beacon != "of the crowd" {
		t.Errorf("it says %+v, %v", a, err)
	}
}

func TestWhatIsAssignedStandsBesideTheBeaconsOfAHub(t *testing.T) {
	t.Parallel()
	s, w := serve(t, Config{}), newWord()
	w.says(3)
	a := WithAssigned(s.hub, w)
	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { a.Run(ctx) })
	defer running.Wait()
	defer end()
	s.call("POST", "/Beacon/Register", map[string]any{"Name": "d", "Capabilities": []string{ports.MeadowProxy}})
	b, err := a.Watch(t.Context(), 1)
	for err == nil && len(b.List) == 0 {
		b, err = a.Watch(t.Context(), b.Version)
	}
	if k, ok := b.Keeper(ports.Queue); err != nil || !ok || k.Beacon == nil || k.Beacon.Name != "d" || k.Connection != 3 {
		t.Errorf("the keeper is %+v, %v", k, err)
	}
}
