package core

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"holdfast/ports"
)

// memory is a local store for tests: a disk, which is a map, and a process in front of it, which dies, hangs, refuses and
// answers late on command. What a write does is up to ports.Decide, as in every local store.
type memory struct {
	shelf
	mu    sync.Mutex
	disk  *disk
	run   *run          // nil while the process is down
	back  time.Duration // how long it is down after a death; 0: until start
	fate  func(b *ports.CommitBatch) fate
	probe error
	stand error
	mute  bool // reads, Stand, Open and Probe answer nothing at all
	flaws flaws

	prunes     []ports.Pruned // what the next calls of Prune give
	pruneHangs bool

	starts, deaths, sent, stood, asked int
}

// run is one life of the process.
type run struct {
	gone chan struct{} // closed when it dies
	last chan struct{} // closed when everything that was asked of it so far is done
	host string        // "" before Open
}

// fate is what becomes of a batch.
type fate struct {
	kind  fateKind
	err   error         // of a refused one
	after time.Duration // it waits that long first, and all behind it wait with it
}

type fateKind int

const (
	takes   fateKind = iota // it is decided
	dies                    // the process dies before it takes effect
	loses                   // it takes effect, and the process dies before it answers
	refuses                 // it takes no effect; the answer is err, but for a late twin
	hangs                   // it and all behind it wait until the process is killed
	silent                  // it takes no effect and is never answered; others are
)

func newMemory() *memory {
	m := &memory{disk: newDisk("store-1"), back: 20 * time.Millisecond}
	m.shelf = shelf{m.committed}
	m.start()
	return m
}

// on gives batches that hold an entry of the key a fate.
func on(key string, f fate) func(*ports.CommitBatch) fate {
	return func(b *ports.CommitBatch) fate {
		if slices.ContainsFunc(b.Entries, func(e ports.Entry) bool { return e.Key == key }) {
			return f
		}
		return fate{}
	}
}

// suffers sets what becomes of batches from now on; nil: they are decided.
func (m *memory) suffers(fate func(*ports.CommitBatch) fate) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fate = fate
}

// kill ends the process; with is what happens to its disk meanwhile.
func (m *memory) kill(with func(d *disk) *disk) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.die()
	if with != nil {
		m.disk = with(m.disk)
	}
}

func (m *memory) die() {
	if m.run == nil {
		return
	}
	m.deaths++
	close(m.run.gone)
	m.run = nil
	if m.back > 0 {
		time.AfterFunc(m.back, m.start)
	}
}

func (m *memory) start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.run == nil {
		m.starts++
		m.run = &run{gone: make(chan struct{}), last: make(chan struct{})}
		close(m.run.last)
	}
}

func (m *memory) health() Health {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Health{Running: m.run != nil, Starts: m.starts}
}

// end kills the process for good.
func (m *memory) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.back = 0
	m.die()
}

func (m *memory) look() *disk {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.disk.copied()
}

var errGone = ports.Errorf(ports.BackendGone, "memory", "the process is gone")

// alive gives the process; a mute one makes the caller wait.
func (m *memory) alive(ctx context.Context) (*run, error) {
	m.mu.Lock()
	r, mute := m.run, m.mute
	m.mu.Unlock()
	switch {
	case r == nil:
		return nil, errGone
	case mute:
		select {
		case <-ctx.Done():
			return nil, ports.Wrap(ports.CodeOf(ctx.Err()), "memory", ctx.Err())
		case <-r.gone:
			return nil, errGone
		}
	}
	return r, nil
}

// job is something that is asked of the process; it is a ports.Pending.
type job struct {
	done      chan struct{}
	decisions []ports.Decision
	err       error
}

func (j *job) Wait(ctx context.Context) ([]ports.Decision, error) {
	select {
	case <-j.done:
		return j.decisions, j.err
	case <-ctx.Done():
		return nil, ports.Wrap(ports.CodeOf(ctx.Err()), "memory", ctx.Err())
	}
}

// ask puts something in line.
func (m *memory) ask(r *run, f fate, do func() ([]ports.Decision, error)) *job {
	m.mu.Lock()
	defer m.mu.Unlock()
	j := &job{done: make(chan struct{}), err: errGone}
	before := r.last
	if f.kind != silent {
		r.last = j.done
	}
	go m.work(r, j, before, f, do)
	return j
}

func (m *memory) work(r *run, j *job, before <-chan struct{}, f fate, do func() ([]ports.Decision, error)) {
	defer close(j.done)
	if f.kind == hangs || f.kind == silent {
		<-r.gone
		return
	}
	select {
	case <-before:
	case <-r.gone:
		return
	}
	select {
	case <-time.After(f.after):
	case <-r.gone:
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.run != r:
	case f.kind == dies:
		m.die()
	default:
		decisions, err := do()
		if f.kind == loses {
			m.die()
			return
		}
		j.decisions, j.err = decisions, err
	}
}

func (m *memory) Describe(context.Context) (ports.Description, error) {
	return ports.Description{Kind: "memory", Families: ports.Families, Powers: []string{"LocalStore", "Pruner", "Exporter", "ItemReader", "EventReader", "AttemptReader", "ManifestReader"}}, nil
}

func (m *memory) Probe(ctx context.Context, _ ports.Family) error {
	if _, err := m.alive(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.probe
}

func (m *memory) Position(ctx context.Context, f ports.Family) (ports.Position, error) {
	r, err := m.alive(ctx)
	if err != nil {
		return ports.Position{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.disk.position(r.host, f), nil
}

func (m *memory) Put(ctx context.Context, b ports.Batch) (applied ports.Applied, _ error) {
	r, err := m.alive(ctx)
	if err != nil {
		return applied, err
	}
	_, err = m.ask(r, fate{}, func() (_ []ports.Decision, err error) {
		applied.Done, err = m.disk.put(b.Rows)
		return nil, err
	}).Wait(ctx)
	return applied, err
}

func (m *memory) Prune(ctx context.Context, _ ports.PruneQuery) (ports.Pruned, error) {
	m.mu.Lock()
	hangs := m.pruneHangs
	m.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return ports.Pruned{}, ports.Wrap(ports.CodeOf(ctx.Err()), "memory", ctx.Err())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.prunes) == 0 {
		return ports.Pruned{}, nil
	}
	step := m.prunes[0]
	m.prunes = m.prunes[1:]
	return step, nil
}

func (m *memory) Close() error { return nil }

func (m *memory) Stand(ctx context.Context, hostID string) (ports.Standing, error) {
	if _, err := m.alive(ctx); err != nil {
		return ports.Standing{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stood++; m.stand != nil {
		return ports.Standing{}, m.stand
	}
	return ports.Standing{StoreID: m.disk.id, Empty: len(m.disk.held) == 0, Nonce: m.disk.nonces[hostID], Marks: maps.Clone(m.disk.marks), Early: len(m.disk.early)}, nil
}

func (m *memory) Open(ctx context.Context, o ports.Opening) error {
	r, err := m.alive(ctx)
	if err != nil {
		return err
	}
	_, err = m.ask(r, fate{}, func() ([]ports.Decision, error) {
		d := m.disk
		if d.nonces[o.HostID] != o.Nonce {
			return nil, ports.Errorf(ports.Conflict, "memory", "another nonce")
		}
		d.admit(&o)
		r.host = o.HostID
		return nil, nil
	}).Wait(ctx)
	return err
}

func (m *memory) Commit(_ context.Context, b ports.CommitBatch) (ports.Pending, error) {
	m.mu.Lock()
	r, what := m.run, fate{}
	if m.fate != nil && r != nil {
		what = m.fate(&b)
	}
	if m.mute {
		what = fate{kind: hangs}
	}
	m.sent++
	m.mu.Unlock()
	if r == nil {
		return nil, errGone
	}
	return m.ask(r, what, func() ([]ports.Decision, error) {
		if what.kind == refuses && b.Through > m.disk.marks[b.Family].Seq {
			return nil, what.err
		}
		return m.disk.commit(r.host, &b)
	}), nil
}
