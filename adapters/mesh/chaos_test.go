package mesh

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"holdfast/adapters/mesh/stock"
	"holdfast/ports"
)

// Beacons whose sockets break, which freeze, die and are started again, and which report late, twice, over the other transport
// or never: each caller is answered in time, each work is done at most once, and in the end no slot is held.
func TestWhateverBreaksCallersAreAnsweredInTimeAndNoSlotIsLost(t *testing.T) {
	t.Parallel()
	works, callers := 600, 12
	if whole() {
		works = 20_000
	}
	timing := Timing{Ping: 200 * time.Millisecond, Grace: 2 * time.Second, Linger: 2 * time.Second}
	s := serve(t, Config{Timing: timing})
	var mu sync.Mutex
	done := map[int]int{}
	c := &chaos{url: s.url, do: func(_ context.Context, w *stock.Work) (any, error) {
		var settings struct{ N int }
		if err := json.Unmarshal(w.Settings, &settings); err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		done[settings.N]++
		return map[string]any{"N": settings.N}, nil
	}}
	for i := range 6 {
		c.start(t, i)
	}
	ctx, stop := context.WithCancel(context.Background())
	var trouble sync.WaitGroup
	trouble.Go(func() { c.makeTrouble(ctx, t) })

	const limit = 500 * time.Millisecond
	next := make(chan int)
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for n := range next {
				to := ""
				if n%3 > 0 {
					to = chaosName(rand.IntN(6))
				}
				began := time.Now()
				deadline, cancel := context.WithTimeout(context.Background(), limit)
				a, err := s.hub.Dispatch(deadline, ports.Work{
					Beacon: to, Capability: "Chaos", Action: "Do", Settings: fmt.Appendf(nil, `{"N":%d}`, n), Class: ports.WorkClass(n % 4),
				})
				cancel()
				if took := time.Since(began); took > limit+2*time.Second {
					t.Errorf("work %d was answered after %s", n, took)
				}
				switch code := ports.CodeOf(err); code {
				case "":
					if a.Failure == "" && string(a.Outputs) != fmt.Sprintf(`{"N":%d}`, n) {
						t.Errorf("work %d was answered %s", n, a.Outputs)
					}
				case ports.Deadline, ports.BackendGone, ports.Unavailable:
				default:
					t.Errorf("work %d: %v", n, err)
				}
			}
		})
	}
	for n := range works {
		next <- n
	}
	close(next)
	all.Wait()
	stop()
	trouble.Wait()
	eventually(t, "every slot back", func() bool { return s.state() == tally{} })
	mu.Lock()
	defer mu.Unlock()
	for n, times := range done {
		if times > 1 {
			t.Errorf("work %d was done %d times", n, times)
		}
	}
	t.Logf("%d of %d works were done: %+v", len(done), works, s.hub.Status())
	c.kill()
}

func chaosName(i int) string { return fmt.Sprint("chaos-", i) }

// chaos is six beacons in trouble.
type chaos struct {
	url string
	do  func(context.Context, *stock.Work) (any, error)

	mu      sync.Mutex
	beacons [6]*stock.Beacon
}

func (c *chaos) start(t *testing.T, i int) {
	t.Helper()
	b := stock.NewBeacon(stock.BeaconConfig{
		ServerURL: c.url, Name: chaosName(i), MaxConcurrent: 3, ForceHTTP: i == 5, PollInterval: time.Second, Clock: stock.Hurry(100),
		Actions: []stock.Action{{Capability: "Chaos", Name: "Do", Do: c.do}},
	})
	b.Misbehave(fault)
	c.mu.Lock()
	c.beacons[i] = b
	c.mu.Unlock()
	if err := b.Start(within(t, testPatience)); err != nil {
		t.Errorf("%s does not start: %v", chaosName(i), err)
	}
}

// fault is what goes wrong with a work, mostly nothing.
func fault(*stock.Work) stock.Fault {
	switch rand.IntN(30) {
	case 0:
		return stock.Fault{Error: "as it happens"}
	case 1:
		return stock.Fault{Late: 50 * time.Millisecond}
	case 2:
		return stock.Fault{Mute: true}
	case 3:
		return stock.Fault{Twice: true}
	case 4:
		return stock.Fault{Drop: true}
	case 5, 6, 7:
		return stock.Fault{Delay: time.Duration(rand.IntN(300)) * time.Millisecond}
	}
	return stock.Fault{}
}

// makeTrouble until ctx ends.
func (c *chaos) makeTrouble(ctx context.Context, t *testing.T) {
	for ctx.Err() == nil {
		i := rand.IntN(6)
		c.mu.Lock()
		b := c.beacons[i]
		c.mu.Unlock()
		switch rand.IntN(5) {
		case 0:
			b.DropSocket()
		case 1:
			b.Reconnect()
		case 2:
			b.Freeze()
			c.pause(ctx, 600)
			b.Thaw()
		case 3:
			b.Kill()
			c.start(t, i)
		case 4: // the newer one first, and both for a while
			c.start(t, i)
			c.pause(ctx, 50)
			b.Kill()
		}
		c.pause(ctx, 30)
	}
}

func (c *chaos) pause(ctx context.Context, most int) {
	timer := time.NewTimer(time.Duration(rand.IntN(most)) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (c *chaos) kill() {
	for _, b := range c.beacons {
		b.Kill()
	}
}
