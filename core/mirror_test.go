package core

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"holdfast/ports"
)

// mirror is a follower for tests: a disk, which is a map, and a process in front of it that dies, hangs, refuses and lies on
// command. What it does wrong by itself, or is asked to do wrongly by the host, it remembers as a fault.
type mirror struct {
	shelf
	mu   sync.Mutex
	name string
	disk *mirrorDisk
	run  *mirrorRun    // nil while the process is down
	back time.Duration // how long it is down after a death; 0: until start

	fate    func(b *ports.Batch) putFate
	probe   error
	mute    bool             // Put, Probe, Position and reads answer nothing at all
	delays  time.Duration    // of every read
	ponders time.Duration    // between looking where it is and saying so
	stale   bool             // reads fail with Unavailable
	lie     func(*ports.Row) // what it makes of a row that is read

	families   []ports.Family
	slots      int
	noPosition bool // it cannot hold one
	lost       bool // it does not say where it is
	contained  bool // nothing of a Put outlives its process
	unfenced   bool // it takes a Put wherever it is, as a store does that cannot check its position with the rows
	keyOnly    bool // it lists nothing
	wary       bool // it answers no reads after its disk became another one, until it is asked where it is
	prunes     bool // it can prune
	fickle     bool // it calls itself another store each time
	loose      bool // it looks at Batch.After when a Put comes, not when a late one takes effect

	reads  func(f ports.Family, key string) bool // whether the host would read a key here now; nil: it would
	doubts func(f ports.Family, key string) bool // whether a Put of a key may still be under way, as far as the host knows
	faults []string
	busy   map[ports.Family]map[string]int // keys of Puts that are under way
	calls  map[string]int                  // under way, by what is asked
	lives  int                             // of the disk: what is late for one of them is lost with it

	unseen map[ports.Family]bool // its disk became another one, and was not asked where it is since

	pruned     []time.Time   // before which it was asked to prune
	pruneErr   error         // of the next calls of Prune
	pausePrune time.Duration // of every call

	called, starts, deaths, puts, rows, looks int
}

// mirrorRun is one life of the process.
type mirrorRun struct {
	gone  chan struct{} // closed when it dies
	stuck chan struct{} // closed when it hangs: no Put is answered from then on
}

func newMirror(name string) *mirror {
	m := &mirror{name: name, disk: newMirrorDisk(name + "-1"), back: 20 * time.Millisecond, families: ports.Families, busy: map[ports.Family]map[string]int{}, calls: map[string]int{}}
	m.shelf = shelf{m.kept}
	for _, f := range ports.Families {
		m.busy[f] = map[string]int{}
	}
	m.start()
	return m
}

// follower is the mirror as a Host is told of it.
func (m *mirror) follower() Follower {
	return Follower{Name: m.name, Kind: "mirror", Store: m, Health: m.health, Restart: func(string) { m.kill(nil) }}
}

// change changes something of the mirror.
func (m *mirror) change(edit func(m *mirror)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	edit(m)
}

// suffers sets what becomes of Puts from now on; nil: they are taken.
func (m *mirror) suffers(fate func(*ports.Batch) putFate) {
	m.change(func(m *mirror) { m.fate = fate })
}

// kill ends the process; with is what happens to its disk meanwhile.
func (m *mirror) kill(with func(d *mirrorDisk) *mirrorDisk) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.die()
	if with != nil {
		m.replace(with(m.disk))
	}
}

// becomes replaces the disk under the running process, as an operator does with a remote database.
func (m *mirror) becomes(d *mirrorDisk) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replace(d)
}

func (m *mirror) replace(d *mirrorDisk) {
	m.disk = d
	m.lives++
	m.unseen = map[ports.Family]bool{ports.Queue: true, ports.Manifest: true}
}

func (m *mirror) die() {
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

func (m *mirror) start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.run == nil {
		m.starts++
		m.run = &mirrorRun{gone: make(chan struct{}), stuck: make(chan struct{})}
	}
}

func (m *mirror) health() Health {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Health{Running: m.run != nil, Starts: m.starts}
}

// end kills the process for good.
func (m *mirror) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.back = 0
	m.die()
}

func (m *mirror) look() *mirrorDisk {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.disk.copied()
}

// found gives what went wrong so far.
func (m *mirror) found() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.faults)
}

func (m *mirror) fault(what string) {
	if len(m.faults) < 20 {
		m.faults = append(m.faults, m.name+": "+what)
	}
}

func late(ctx context.Context) error {
	return ports.Wrap(ports.CodeOf(ctx.Err()), "mirror", ctx.Err())
}

// serve is how every call begins: it gives the process, and makes the caller of a mute one wait.
func (m *mirror) serve(ctx context.Context) (*mirrorRun, error) {
	m.mu.Lock()
	r, mute := m.run, m.mute
	m.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return nil, late(ctx)
	case r == nil:
		return nil, ports.Errorf(ports.BackendGone, "mirror", "the process is gone")
	case mute:
		return nil, m.never(ctx, r)
	}
	return r, nil
}

// never answers: until the caller gives up or the process dies.
func (m *mirror) never(ctx context.Context, r *mirrorRun) error {
	select {
	case <-ctx.Done():
		return late(ctx)
	case <-r.gone:
		return ports.Errorf(ports.BackendGone, "mirror", "the process is gone")
	}
}

// waits lets time pass for a call.
func (m *mirror) waits(ctx context.Context, r *mirrorRun, d time.Duration) error {
	if d == 0 {
		return nil
	}
	pause := time.NewTimer(d)
	defer pause.Stop()
	select {
	case <-pause.C:
		return nil
	case <-ctx.Done():
		return late(ctx)
	case <-r.gone:
		return ports.Errorf(ports.BackendGone, "mirror", "the process is gone")
	}
}

// slot takes a place among the calls under way, and gives what returns it.
func (m *mirror) slot(what string) func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls[what]++
	sum := 0
	for _, n := range m.calls {
		sum += n
	}
	if m.slots > 0 && sum > m.slots {
		m.fault(fmt.Sprintf("more calls at a time than it has slots: %v", m.calls))
	}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.calls[what]--
	}
}

func (m *mirror) Describe(context.Context) (ports.Description, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := ports.Description{
		Kind: "mirror", Families: m.families, Slots: m.slots, Contained: m.contained,
		Powers: []string{"ItemReader", "EventReader", "AttemptReader", "ManifestReader", "Exporter"},
	}
	if m.prunes {
		d.Powers = append(d.Powers, "Pruner")
	}
	return d, nil
}

func (m *mirror) Probe(ctx context.Context, _ ports.Family) error {
	defer m.slot("probe")()
	if _, err := m.serve(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.probe
}

func (m *mirror) Position(ctx context.Context, f ports.Family) (ports.Position, error) {
	r, err := m.serve(ctx)
	if err != nil {
		return ports.Position{}, err
	}
	m.mu.Lock()
	lost := m.lost
	m.mu.Unlock()
	if lost {
		if err := m.waits(ctx, r, time.Hour); err != nil {
			return ports.Position{}, err
		}
	}
	at, takes := m.standing(f)
	return at, m.waits(ctx, r, takes)
}

// standing is where the disk is, and how long it takes to say so.
func (m *mirror) standing(f ports.Family) (at ports.Position, takes time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.noPosition {
		return at, 0
	}
	delete(m.unseen, f)
	at = m.disk.position(f)
	if m.called++; m.fickle {
		at.StoreID = fmt.Sprintf("%s, called %d", at.StoreID, m.called)
	}
	return at, m.ponders
}

func (m *mirror) Close() error { return nil }

// kept are the rows of some kinds, from a process that lives.
func (m *mirror) kept(ctx context.Context, kinds ...ports.Kind) ([]ports.Row, error) {
	defer m.slot("read")()
	r, err := m.serve(ctx)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	pause, stale := m.delays, m.stale
	m.looks++
	m.mu.Unlock()
	if err := m.waits(ctx, r, pause); err != nil {
		return nil, err
	}
	if stale {
		return nil, ports.Errorf(ports.Unavailable, "mirror", "not now")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.wary && m.unseen[kinds[0].Family()] {
		return nil, ports.Errorf(ports.Unavailable, "mirror", "another store stands here")
	}
	rows := m.disk.list(kinds...)
	for i := range rows {
		if m.lie != nil {
			m.lie(&rows[i])
		}
	}
	return rows, nil
}

func (m *mirror) Items(ctx context.Context, q ports.ItemQuery) (ports.Page, error) {
	if err := m.lists(); err != nil {
		return ports.Page{}, err
	}
	return m.shelf.Items(ctx, q)
}

func (m *mirror) Manifests(ctx context.Context, q ports.ManifestQuery) (ports.Page, error) {
	if err := m.lists(); err != nil {
		return ports.Page{}, err
	}
	return m.shelf.Manifests(ctx, q)
}

func (m *mirror) Export(ctx context.Context, q ports.ExportQuery) (ports.Page, error) {
	if err := m.lists(); err != nil {
		return ports.Page{}, err
	}
	return m.shelf.Export(ctx, q)
}

func (m *mirror) lists() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.keyOnly {
		return ports.Errorf(ports.Unimplemented, "mirror", "it is read by key only")
	}
	return nil
}
