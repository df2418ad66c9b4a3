package stock

// A beacon client: its configuration, and the order in which it starts, reconnects and stops. What the stock client leaves
// undone is left undone here: a hub that takes the socket and closes it without a word leaves it waiting for ever, a 404 on a
// heartbeat does not make it register again, and a socket that came back does not end the polling that replaced it.

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// maxReconnectDelay bounds the doubling of ReconnectInterval; reauthorize is the wait after a refused 401 reconnect.
const (
	maxReconnectDelay = 300 * time.Second
	reauthorize       = 10 * time.Second
)

// BeaconConfig is what the stock client is configured with, and what a test adds to it. Zero values are the stock defaults.
type BeaconConfig struct {
	ServerURL     string // only its host and port count
	Name          string // beacon-worker
	UserName      string // Name
	Password      string
	JoinSecret    string
	Actions       []Action // in the order in which they are declared
	Capabilities  []string // offered without an action, behind those of Actions
	MaxConcurrent int      // 1
	Tags          map[string]any
	Contexts      map[string]any
	Operations    []any
	BindAddresses []any
	SharedMounts  []any
	HostID        string // node-1
	ForceHTTP     bool   // polls, and never tries a socket
	TLS           *tls.Config
	Dial          func(ctx context.Context, network, address string) (net.Conn, error) // nil: the machine's network

	PollInterval      time.Duration // 5 s
	HeartbeatInterval time.Duration // 30 s
	ReconnectInterval time.Duration // 10 s, doubled with each attempt up to 300 s

	Clock Clock             // Wall
	Log   func(line string) // nil is silence
}

// Beacon is one process of a beacon client. Start it once; end it with Stop or Kill.
type Beacon struct {
	config BeaconConfig
	http   *http.Client

	life context.Context
	end  context.CancelFunc
	all  sync.WaitGroup

	mu             sync.Mutex
	dead           bool
	id             string
	cookie         string
	running        bool
	authenticating bool
	reconnecting   bool // a reconnect waits for its time
	attempts       int
	useSocket      bool
	socket         *socket
	poller, beater func() // end the newest of each
	active         int
	counts         BeaconCounts
	changed        chan struct{} // closed at every change
	frozen         chan struct{} // open while frozen, nil when not
	misbehave      func(*Work) Fault
	inHand         []*Work // not done yet, in the order in which they came
}

// BeaconCounts is what a beacon did so far.
type BeaconCounts struct {
	Registered int // registrations that were answered
	Sockets    int // sockets that opened
	Reconnects int // attempts
	Polls      int // sent
	Beats      int // heartbeats sent
	Taken      int // works begun
	Dropped    int // works pushed while every slot was taken: the stock client forgets them
	Reported   int // reports sent, by either way
	Unheard    int // reports that the hub refused or did not get
}

// BeaconState is how a beacon is at one moment.
type BeaconState struct {
	BeaconCounts

	ID        string
	Running   bool // it registered once
	Connected bool // its socket is open
	Polling   bool
	Active    int // works in hand
}

// NewBeacon makes a beacon that does nothing yet.
func NewBeacon(config BeaconConfig) *Beacon {
	orDefault(&config.Name, "beacon-worker")
	orDefault(&config.UserName, config.Name)
	orDefault(&config.HostID, "node-1")
	orDefault(&config.MaxConcurrent, 1)
	orDefault(&config.PollInterval, 5*time.Second)
	orDefault(&config.HeartbeatInterval, 30*time.Second)
	orDefault(&config.ReconnectInterval, 10*time.Second)
	if config.Clock == nil {
		config.Clock = Wall()
	}
	if config.Log == nil {
		config.Log = func(string) {}
	}
	life, end := context.WithCancel(context.Background())
	return &Beacon{
		config: config, life: life, end: end, useSocket: !config.ForceHTTP, changed: make(chan struct{}),
		http: &http.Client{
			// The stock client knows no bound; ours keeps a test with a slow hub from running out of files.
			Transport: &http.Transport{
				DisableCompression: true, MaxIdleConnsPerHost: 16, MaxConnsPerHost: 16, TLSClientConfig: config.TLS, DialContext: config.Dial,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

func orDefault[T comparable](value *T, fallback T) {
	var zero T
	if *value == zero {
		*value = fallback
	}
}

// Twin is another process with the same configuration, and so the same name; not started.
func (b *Beacon) Twin() *Beacon { return NewBeacon(b.config) }

// Start authenticates and registers. It returns when the hub has registered the beacon, when the beacon gives up, or with the
// error of ctx: a hub that closes the socket without registering the beacon is never told from one that takes its time. After
// an error the beacon may still be alive; Kill ends it.
func (b *Beacon) Start(ctx context.Context) error {
	result := make(chan error, 1)
	b.spawn(func() {
		if err := b.authenticate(); err != nil {
			result <- err
			return
		}
		if b.config.ForceHTTP {
			result <- b.startPolling()
			return
		}
		b.connect(func(err error) {
			if err != nil {
				b.config.Log("no socket (" + err.Error() + "), polling")
				b.change(func() { b.useSocket = false })
				err = b.startPolling()
			}
			result <- err
		})
	})
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stop says goodbye as the stock client does, over the socket and then again over HTTP, and ends.
func (b *Beacon) Stop(ctx context.Context) error {
	s := b.leave()
	b.mu.Lock()
	b.running = false
	id := b.id
	b.mu.Unlock()
	b.endPolling()
	b.endBeating()
	if s != nil {
		if id != "" {
			s.send(b.life, map[string]any{"Action": "Deregister", "BeaconID": id})
		}
		s.close()
	}
	var err error
	if id != "" {
		_, err = b.request(ctx, http.MethodDelete, "/Beacon/"+id, nil)
	}
	b.Kill()
	return err
}

// Kill ends the beacon as kill -9 does: nothing is said, and what it was doing is gone.
func (b *Beacon) Kill() {
	b.die()
	b.all.Wait()
	b.http.CloseIdleConnections()
}

// die is Kill without waiting for the end.
func (b *Beacon) die() {
	b.change(func() { b.dead, b.running = true, false })
	b.end()
	b.DropSocket()
	b.Thaw()
}

// spawn runs f as long as the beacon lives.
func (b *Beacon) spawn(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.dead {
		b.all.Go(f)
	}
}

// State is how the beacon is now.
func (b *Beacon) State() BeaconState {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state()
}

func (b *Beacon) state() BeaconState {
	return BeaconState{
		BeaconCounts: b.counts, ID: b.id, Running: b.running, Connected: b.socket != nil, Polling: b.poller != nil,
		Active: b.active,
	}
}

// Await returns when the state is as wanted, or with the error of ctx.
func (b *Beacon) Await(ctx context.Context, wanted func(BeaconState) bool) error {
	for {
		b.mu.Lock()
		ok, changed := wanted(b.state()), b.changed
		b.mu.Unlock()
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

// change does f with the lock held and wakes who awaits something.
func (b *Beacon) change(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
	close(b.changed)
	b.changed = make(chan struct{})
}

// registration is the body of a registration, by either way.
func (b *Beacon) registration() map[string]any {
	body := map[string]any{
		"Name":          b.config.Name,
		"Capabilities":  capabilities(b.config),
		"ActionSchemas": schemas(b.config.Actions),
		"MaxConcurrent": b.config.MaxConcurrent,
		"Tags":          orEmpty(b.config.Tags),
		"HostID":        b.config.HostID,
		"SharedMounts":  append([]any{}, b.config.SharedMounts...),
	}
	if b.config.JoinSecret != "" {
		body["JoinSecret"] = b.config.JoinSecret
	}
	if len(b.config.Contexts) > 0 {
		body["Contexts"] = b.config.Contexts
	}
	if len(b.config.Operations) > 0 {
		body["Operations"] = b.config.Operations
	}
	if len(b.config.BindAddresses) > 0 {
		body["BindAddresses"] = b.config.BindAddresses
	}
	return body
}

func orEmpty(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

// registered keeps the id that the hub gave.
func (b *Beacon) registered(id string) {
	b.change(func() {
		b.id = id
		b.counts.Registered++
	})
}

// register registers over HTTP.
func (b *Beacon) register() error {
	answer, err := b.request(b.life, http.MethodPost, "/Beacon/Register", b.registration())
	if err != nil {
		return err
	}
	var record struct{ BeaconID string }
	if json.Unmarshal(answer, &record) != nil {
		return errors.New("the answer to a registration is no object")
	}
	b.registered(record.BeaconID)
	return nil
}
