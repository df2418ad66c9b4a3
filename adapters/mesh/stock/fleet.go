package stock

// Many beacons at once, half with sockets and half polling, each with some of ten capabilities: what a hub is loaded with.
// Each work says in its settings what shall become of it.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"
)

// Fate is what becomes of a work of a fleet.
type Fate string

// The fates.
const (
	FateDone  Fate = "done"
	FateFail  Fate = "fail"
	FateNever Fate = "never" // nothing is ever reported
	FateTwice Fate = "twice" // the success is reported twice
	FateLate  Fate = "late"  // the success is reported after the deadline
)

// FleetConfig says how large a fleet is. Zero values are the ones in brackets.
type FleetConfig struct {
	ServerURL     string
	Beacons       int           // [20]
	Capabilities  int           // [10]
	Each          int           // capabilities of one beacon [3]
	MaxConcurrent int           // [4]
	PollInterval  time.Duration // [20 ms]
	Lateness      time.Duration // [20 ms]
	Clock         Clock
}

// Fleet is many beacons.
type Fleet struct {
	config  FleetConfig
	Beacons []*Beacon // the even ones have sockets

	mu   sync.Mutex
	done map[int]int // how often each work was done, by its number
}

// NewFleet makes the beacons.
func NewFleet(config FleetConfig) *Fleet {
	orDefault(&config.Beacons, 20)
	orDefault(&config.Capabilities, 10)
	orDefault(&config.Each, 3)
	orDefault(&config.MaxConcurrent, 4)
	orDefault(&config.PollInterval, 20*time.Millisecond)
	orDefault(&config.Lateness, 20*time.Millisecond)
	f := &Fleet{config: config, done: map[int]int{}}
	for n := range config.Beacons {
		var actions []Action
		for i := range config.Each {
			actions = append(actions, Action{Capability: f.Capability(n*config.Each + i), Name: "Do", Do: f.do})
		}
		b := NewBeacon(BeaconConfig{
			ServerURL: config.ServerURL, Name: fmt.Sprintf("fleet-%03d", n), Actions: actions, MaxConcurrent: config.MaxConcurrent,
			ForceHTTP: n%2 == 1, PollInterval: config.PollInterval, Clock: config.Clock,
		})
		b.Misbehave(f.fate)
		f.Beacons = append(f.Beacons, b)
	}
	return f
}

// Start registers all of them.
func (f *Fleet) Start(ctx context.Context) error {
	results := make(chan error, len(f.Beacons))
	for _, b := range f.Beacons {
		go func() { results <- b.Start(ctx) }()
	}
	var all []error
	for range f.Beacons {
		all = append(all, <-results)
	}
	return errors.Join(all...)
}

// Kill ends all of them.
func (f *Fleet) Kill() {
	var all sync.WaitGroup
	for _, b := range f.Beacons {
		all.Go(b.Kill)
	}
	all.Wait()
}

// Capability is the n-th capability, counted around.
func (f *Fleet) Capability(n int) string {
	return fmt.Sprintf("Fleet%d", n%f.config.Capabilities)
}

// load is what a work of a fleet says.
type load struct {
	N    int
	Fate Fate
}

// Settings are those of the n-th work.
func (f *Fleet) Settings(n int, fate Fate) json.RawMessage { return encode(load{n, fate}) }

// FateOf is a mix: of a hundred works ten fail, two are never reported, two are reported late, and four twice.
func FateOf(n int) Fate {
	switch n % 100 {
	case 13, 63:
		return FateNever
	case 31, 81:
		return FateLate
	case 7, 27, 57, 77:
		return FateTwice
	default:
		if n%10 == 9 {
			return FateFail
		}
		return FateDone
	}
}

func (f *Fleet) do(_ context.Context, w *Work) (any, error) {
	var l load
	if err := json.Unmarshal(w.Settings, &l); err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.done[l.N]++
	f.mu.Unlock()
	if l.Fate == FateFail {
		return nil, fmt.Errorf("work %d fails", l.N)
	}
	return map[string]any{"N": l.N, "Capability": w.Capability}, nil
}

func (f *Fleet) fate(w *Work) Fault {
	var l load
	if json.Unmarshal(w.Settings, &l) != nil {
		return Fault{}
	}
	switch l.Fate {
	case FateNever:
		return Fault{Mute: true}
	case FateTwice:
		return Fault{Twice: true}
	case FateLate:
		return Fault{Late: f.config.Lateness}
	default:
		return Fault{}
	}
}

// Done counts how often each work was done, by its number.
func (f *Fleet) Done() map[int]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.done)
}
