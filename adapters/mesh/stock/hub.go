package stock

// A hub as Ultravisor 1.3.24 is one towards beacons: what it is configured with, and its beginning and end. One lock guards
// all of it, as the one thread does there: what happens in one call happens at once, and in the order of the calls.
//
// What is wrong there is wrong here: a closing socket removes its beacon, also when a newer socket serves it; pollers get no
// work of the free pool once the scheduler has seen it; a retry keeps its slot; nothing ever times out but a dispatch; an
// affinity binds a key to a beacon whatever it can do; writes have no second backend.

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// HubConfig is what a hub is configured with. Zero values are the stock defaults.
type HubConfig struct {
	Name string // UltravisorHubInstanceID; ""

	// Secured is UltravisorNonPromiscuous.
	Secured         bool
	BootstrapSecret string // UltravisorBootstrapAuthSecret
	// Auth stands for an Authentication beacon that is connected; nil: one must register, else every login fails.
	Auth *Auth

	BridgeTimeout time.Duration // of each write and read of history; 5 s
	FlushTimeout  time.Duration // of each call of a flush; as BridgeTimeout
	AffinityTTL   time.Duration // 1 h
	NoLocalStore  bool          // nothing is kept while no beacon keeps it
	Ticking       bool          // Tick and HealthTick come by the clock; else when they are called

	Clock Clock             // Wall
	Log   func(line string) // nil is silence
}

// Auth is what an Authentication beacon would decide.
type Auth struct {
	Users      map[string]string // passwords by name
	JoinSecret string
}

// Hub is one process of the hub. Serve it as an http.Handler; end it with Close.
type Hub struct {
	config HubConfig
	life   context.Context
	end    context.CancelFunc
	all    sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	changed  chan struct{} // closed at every change
	beacons  []*record     // in the order of registration
	sockets  map[string]*hubSocket
	queue    *list.List // of *WorkItem, in the order of arrival
	byHash   map[string]*list.Element
	counter  int
	lastID   int64 // the milliseconds of the newest BeaconID
	bindings map[string]*Binding
	waiters  map[string]*waiter
	sessions map[string]string // user by session
	catalog  []catalogEntry
	bridge   bridge
	meddling map[string]*meddling // by the name of the beacon
}

// NewHub makes a hub without beacons.
func NewHub(config HubConfig) *Hub {
	orDefault(&config.BridgeTimeout, 5*time.Second)
	orDefault(&config.FlushTimeout, config.BridgeTimeout)
	orDefault(&config.AffinityTTL, time.Hour)
	if config.Clock == nil {
		config.Clock = Wall()
	}
	if config.Log == nil {
		config.Log = func(string) {}
	}
	life, end := context.WithCancel(context.Background())
	h := &Hub{
		config: config, life: life, end: end, changed: make(chan struct{}), sockets: map[string]*hubSocket{}, queue: list.New(),
		byHash: map[string]*list.Element{}, bindings: map[string]*Binding{}, waiters: map[string]*waiter{},
		sessions: map[string]string{}, meddling: map[string]*meddling{},
	}
	h.bridge.init()
	if config.Ticking {
		h.every(scheduleEvery, h.Tick)
		h.every(healthEvery, h.HealthTick)
	}
	return h
}

func (h *Hub) every(interval time.Duration, tick func()) {
	h.all.Go(func() {
		for pause(h.life, h.config.Clock, interval) {
			tick()
		}
	})
}

// Close ends the hub as a crash does: sockets break, callers get nothing.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	for _, s := range h.sockets {
		s.end()
	}
	h.mu.Unlock()
	h.end()
	h.all.Wait()
}

// Restart is the end of the process and the beginning of the next, at the same address: sockets break, beacons and sessions
// are forgotten, callers are told nothing useful, works wait again, and bindings, the local store and what was flushed remain.
// Runs whose end was told to a beacon are taken for failed.
// A beacon that polls goes on with an id that nobody knows.
func (h *Hub) Restart() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.sockets {
		s.beaconID = ""
		s.end()
	}
	h.sockets, h.beacons, h.sessions = map[string]*hubSocket{}, nil, map[string]string{}
	for hash := range h.waiters {
		h.settle(hash, Outcome{Err: errors.New("the hub was restarted")})
	}
	h.bridge.reload(h.stamp())
	for item := range h.items() {
		if item.Status == "Running" || item.Status == "Assigned" {
			item.Status, item.AssignedBeaconID, item.ClaimedAt = "Pending", nil, nil
		}
	}
	h.note()
}

// spawn runs f as long as the hub lives; the lock must be held.
func (h *Hub) spawn(f func()) {
	if !h.closed {
		h.all.Go(f)
	}
}

// note wakes who awaits something; the lock must be held.
func (h *Hub) note() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// Await returns when the state is as wanted, or with the error of ctx.
func (h *Hub) Await(ctx context.Context, wanted func(HubState) bool) error {
	for {
		h.mu.Lock()
		ok, changed := wanted(h.state()), h.changed
		h.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// HubState is how a hub is at one moment.
type HubState struct {
	Beacons  []BeaconRecord
	Sockets  int
	Waiting  int // works that nobody has begun: Pending, Assigned, RetryScheduled
	Running  int
	Bindings []Binding
	Sweeps   []Sweep // flushes that ended
	Flushing int     // flushes that go on
	Calls    int     // writes and reads of history that wait for their answer
	Failures int     // those that got none, or one without Success
	Local    int     // writes that went into the local store
}

// Beacon finds a beacon by its name; nil when it is not there.
func (s HubState) Beacon(name string) *BeaconRecord {
	for i := range s.Beacons {
		if s.Beacons[i].Name == name {
			return &s.Beacons[i]
		}
	}
	return nil
}

// State is how the hub is now.
func (h *Hub) State() HubState {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state()
}

func (h *Hub) state() HubState {
	s := HubState{
		Sockets: len(h.sockets), Sweeps: append([]Sweep{}, h.bridge.sweeps...), Flushing: len(h.bridge.flushing),
		Calls: h.bridge.calls, Failures: h.bridge.failures, Local: h.bridge.localWrites,
	}
	for _, b := range h.beacons {
		s.Beacons = append(s.Beacons, b.BeaconRecord.clone())
	}
	for _, b := range h.bindings {
		s.Bindings = append(s.Bindings, *b)
	}
	for item := range h.items() {
		switch item.Status {
		case "Pending", "Assigned", "RetryScheduled":
			s.Waiting++
		case "Running", "Dispatched":
			s.Running++
		}
	}
	return s
}

func (h *Hub) now() time.Time { return h.config.Clock.Now() }
func (h *Hub) stamp() string  { return iso(h.now()) }
