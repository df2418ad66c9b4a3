package meadowproxy

import (
	"context"
	"errors"
	"io"
	"runtime/debug"
	"slices"
	"sync"

	"holdfast/ports"
)

// Backend is the backend. Make it with New.
type Backend struct {
	dial func(ports.Configuration) (ports.Mesh, error)

	mu      sync.Mutex
	drained bool
	closed  bool
	halves  map[ports.Family]*half
	mesh    ports.Mesh
	end     context.CancelFunc
	work    sync.WaitGroup // watching, bootstraps
	puts    sync.WaitGroup
}

var (
	_ ports.Backend        = (*Backend)(nil)
	_ ports.Configurer     = (*Backend)(nil)
	_ ports.ItemReader     = (*Backend)(nil)
	_ ports.EventReader    = (*Backend)(nil)
	_ ports.AttemptReader  = (*Backend)(nil)
	_ ports.ManifestReader = (*Backend)(nil)
	_ ports.Drainer        = (*Backend)(nil)
)

// New makes a backend, which reaches the databeacons through what dial gives: sdk.Mesh in a plugin.
func New(dial func(ports.Configuration) (ports.Mesh, error)) *Backend { return &Backend{dial: dial} }

// Configure takes the options and begins to watch the mesh; see ports.Configurer.
func (b *Backend) Configure(_ context.Context, c ports.Configuration) error {
	s, err := parseOptions(c.Options)
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
		return ports.Errorf(ports.Invalid, "meadowproxy: configure", "is called once, before anything else")
	}
	life, end := context.WithCancel(context.Background())
	binder := newBinder(life, &b.work, mesh, func(ctx context.Context, s2 seat, slots int) (*binding, error) {
		return fit(ctx, mesh, s2, slots, s.timeout)
	})
	b.mesh, b.end, b.halves = mesh, end, map[ports.Family]*half{}
	for _, f := range ports.Families {
		b.halves[f] = &half{family: f, binder: binder, timeout: s.timeout, desk: make(chan struct{}, 1)}
	}
	b.work.Go(binder.watch)
	return nil
}

// slots is how many works a stock databeacon takes. It does one at a time; the others wait there and not here, so that a read goes
// in between two batches.
const slots = 3

// Describe says what the backend is. Which database it is the assignment says later, and Probe tells.
func (b *Backend) Describe(context.Context) (ports.Description, error) {
	return ports.Description{
		Kind: "meadowproxy", Version: version(), Summary: "history in any database behind a retold-databeacon, through its MeadowProxy capability",
		Families: slices.Clone(ports.Families), Options: slices.Clone(options), OptOuts: slices.Clone(optOuts), Slots: slots,
	}, nil
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// half gives a family's half.
func (b *Backend) half(f ports.Family) (*half, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch h := b.halves[f]; {
	case b.closed:
		return nil, errDrained
	case b.halves == nil:
		return nil, ports.Errorf(ports.Unavailable, "meadowproxy", "is not configured yet")
	case h == nil:
		return nil, ports.InField(ports.Invalid, "Family", "%q is none; there are %s and %s", f, ports.Queue, ports.Manifest)
	default:
		return h, nil
	}
}

var errDrained = ports.Errorf(ports.Unavailable, "meadowproxy", "the backend is being stopped and takes no more work")

// enter lets a Put in, unless the backend is being stopped.
func (b *Backend) enter(f ports.Family) (*half, error) {
	h, err := b.half(f)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.drained {
		return nil, errDrained
	}
	b.puts.Add(1)
	return h, nil
}

// Probe asks the database whether it takes a write; see ports.Backend. Where nothing is assigned the error is in the field
// Assignment, while tables and endpoints are made in the field Bootstrap.
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
	return h.probe(ctx)
}

// Position says which store keeps a family, and how far it is; see ports.Backend.
func (b *Backend) Position(ctx context.Context, f ports.Family) (ports.Position, error) {
	h, err := b.half(f)
	if err != nil {
		return ports.Position{}, err
	}
	return h.position(ctx)
}

// Put makes rows durable in the database that is assigned; see ports.Backend.
func (b *Backend) Put(ctx context.Context, batch ports.Batch) (ports.Applied, error) {
	h, err := b.enter(batch.Family)
	if err != nil {
		return ports.Applied{}, err
	}
	defer b.puts.Done()
	line := h.line()
	at, err := h.ready(ctx)
	if err != nil {
		return ports.Applied{}, err
	}
	done, err := h.put(ctx, at, &batch, line)
	return ports.Applied{Done: done}, h.heed(at, err)
}

// Drain finishes what was begun; see ports.Drainer.
func (b *Backend) Drain(ctx context.Context) error {
	b.mu.Lock()
	b.drained = true
	b.mu.Unlock()
	ended := make(chan struct{})
	b.work.Go(func() {
		b.puts.Wait()
		close(ended)
	})
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ports.Wrap(ports.CodeOf(ctx.Err()), "meadowproxy: drain", ctx.Err())
	}
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
	var fault error
	if closer, ok := mesh.(io.Closer); ok {
		fault = closer.Close()
	}
	return ports.Wrap(ports.Internal, "meadowproxy: close", errors.Join(fault))
}
