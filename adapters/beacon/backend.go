package beacon

import (
	"context"
	"errors"
	"io"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"holdfast/ports"
)

// Backend is the backend. Make it with New.
type Backend struct {
	dial   func(ports.Configuration) (ports.Mesh, error)
	clock  func() time.Time
	settle time.Duration

	mu      sync.Mutex
	drained bool
	closed  bool
	halves  map[ports.Family]*half
	mesh    ports.Mesh
	end     context.CancelFunc
	work    sync.WaitGroup // watching, comparing
	puts    sync.WaitGroup
}

var (
	_ ports.Backend        = (*Backend)(nil)
	_ ports.Configurer     = (*Backend)(nil)
	_ ports.ItemReader     = (*Backend)(nil)
	_ ports.EventReader    = (*Backend)(nil)
	_ ports.ManifestReader = (*Backend)(nil)
	_ ports.Drainer        = (*Backend)(nil)
)

// settled is how long a beacon that answers may still take for what it was sent before and has not answered.
const settled = 1500 * time.Millisecond

// New makes a backend, which reaches the beacons through what dial gives: sdk.Mesh in a plugin.
func New(dial func(ports.Configuration) (ports.Mesh, error)) *Backend {
	return &Backend{dial: dial, clock: time.Now, settle: settled}
}

// capabilities are what a beacon offers for each family.
var capabilities = map[ports.Family]string{ports.Queue: "QueuePersistence", ports.Manifest: "ManifestStore"}

// Configure takes the options, reads the ledger and begins to watch the mesh; see ports.Configurer.
func (b *Backend) Configure(_ context.Context, c ports.Configuration) error {
	s, err := parseOptions(c.Options)
	if err != nil {
		return err
	}
	l, err := openLedger(ledgerPath(c))
	if err != nil {
		return err
	}
	mesh, err := b.dial(c)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.halves != nil || b.closed {
		return ports.Errorf(ports.Invalid, "beacon: configure", "is called once, before anything else")
	}
	life, end := context.WithCancel(context.Background())
	fleet := newFleet(mesh)
	b.mesh, b.end, b.halves = mesh, end, map[ports.Family]*half{}
	for f, capability := range capabilities {
		b.halves[f] = &half{
			family: f, capability: capability, settings: &s, fleet: fleet, ledger: l, clock: b.clock, settle: b.settle, life: life, work: &b.work,
			known: newKnown(), locks: locks{held: map[string]chan struct{}{}}, turns: newTurns(), page: l.page(f),
		}
	}
	b.work.Go(func() { fleet.run(life) })
	return nil
}

// half gives a family's half.
func (b *Backend) half(f ports.Family) (*half, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch h := b.halves[f]; {
	case b.closed:
		return nil, errDrained
	case b.halves == nil:
		return nil, ports.Errorf(ports.Unavailable, "beacon", "is not configured yet")
	case h == nil:
		return nil, ports.InField(ports.Invalid, "Family", "%q is none; there are %s and %s", f, ports.Queue, ports.Manifest)
	default:
		return h, nil
	}
}

// Describe says what the backend is; which families there are its beacons say later, and Probe tells.
func (b *Backend) Describe(context.Context) (ports.Description, error) {
	return ports.Description{
		Kind: "beacon", Version: version(), Summary: "history behind a native beacon that offers QueuePersistence, ManifestStore or both",
		Families: slices.Clone(ports.Families), Options: slices.Clone(options), OptOuts: slices.Clone(optOuts),
	}, nil
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// Probe asks the family's beacon for a record that cannot be there; see ports.Backend. A family that no connected beacon offers is
// Unavailable, one whose beacon does not know the actions is Unimplemented.
func (b *Backend) Probe(ctx context.Context, f ports.Family) error {
	h, err := b.half(f)
	if err != nil {
		return err
	}
	b.mu.Lock()
	drained := b.drained
	b.mu.Unlock()
	if drained {
		return errDrained
	}
	at, err := h.ready(ctx)
	if err == nil {
		_, _, err = at.record(ctx, ports.ClassProbe, "holdfast-probe-"+h.generation())
	}
	return h.missed(at.name, err)
}

// patientProbes is how many probes in a row a beacon may leave unanswered before it is away: the host would soon take this
// process for the one that hangs, and start it anew for nothing.
const patientProbes = 2

// missed counts the probes that a beacon leaves unanswered.
func (h *half) missed(name string, err error) error {
	if ports.CodeOf(err) != ports.Deadline {
		h.misses.Store(0)
		return err
	}
	if h.misses.Add(1) <= patientProbes {
		return err
	}
	return ports.Errorf(ports.Unavailable, "beacon", "the beacon %q is connected and does not answer", name)
}

// Position says how far a family's store is, once it was found to be the one that it was; see ports.Backend.
func (b *Backend) Position(ctx context.Context, f ports.Family) (ports.Position, error) {
	h, err := b.half(f)
	if err != nil {
		return ports.Position{}, err
	}
	if _, err := h.ready(ctx); err != nil {
		return ports.Position{}, err
	}
	return h.position(), nil
}

// Close ends what is under way; see ports.Backend.
func (b *Backend) Close() error {
	b.mu.Lock()
	was := b.closed
	b.closed, b.drained = true, true
	end, mesh := b.end, b.mesh
	b.mu.Unlock()
	if was || end == nil {
		return nil
	}
	end()
	b.work.Wait()
	var faults []error
	for _, h := range b.halves {
		faults = append(faults, h.leave())
	}
	if closer, ok := mesh.(io.Closer); ok {
		faults = append(faults, closer.Close())
	}
	return ports.Wrap(ports.Internal, "beacon: close", errors.Join(faults...))
}
