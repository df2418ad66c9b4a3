package core

import (
	"context"
	"errors"
	"sync"
	"time"

	"holdfast/ports"
)

// link is the connection to the local store: it finds the store, decides whether it may go on with it, and keeps both
// families committing until something breaks; then it begins again.
type link struct {
	*Host
	Local
	name  string
	nonce string // of this start of the host

	mu      sync.Mutex
	phase   phase
	told    appearance
	storeID string
	powers  ports.Description
	downC   chan struct{} // closed while the store is known to be down
	back    chan struct{} // closed when it is back
	choice  bool          // accepting the store is what it waits for
	accept  acceptance
	poke    chan struct{}

	owed  map[*family]uint64 // families of which writes waited when it was opened, and how far each was
	shy   bool               // something failed since it last took a write, or had none to take
	stuck bool               // it was opened last, lives, and took no write

	lastErr   string // what went wrong last, and when
	lastErrAt time.Time

	targets map[ports.Family]uint64 // heads of the journals when the store was opened: it has what it once had from there on
}

// phase is where the connection stands.
type phase string

const (
	waiting  phase = "waiting-for-beacon" // not reachable now
	opening  phase = "bootstrapping"      // schema, position
	ready    phase = "bootstrapped"       // takes changes
	needsOne phase = "error"              // needs a person
)

func newLink(h *Host, l Local) *link {
	k := &link{Host: h, Local: l, name: l.Name, phase: waiting, told: appearance{phase: waiting, detail: "not started yet", since: h.clock(), gone: h.clock()}, downC: make(chan struct{}), back: make(chan struct{}), poke: make(chan struct{}, 1)}
	close(k.downC)
	return k
}

// down gives a channel that is closed while the store is known to be down.
func (k *link) down() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.downC
}

// enter notes a phase and tells those who wait when the store went down or came back.
func (k *link) enter(p phase, detail, remedy string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	wasUp, isUp := k.phase == ready, p == ready
	k.phase = p
	k.tell(p, detail, remedy)
	switch {
	case isUp && !wasUp:
		k.downC = make(chan struct{})
		close(k.back)
	case wasUp && !isUp:
		close(k.downC)
		k.back = make(chan struct{})
	}
}

// hint says what the store is waited for, while it is not there.
func (k *link) hint(detail string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.phase == waiting || k.phase == opening {
		k.told.detail = detail
	}
}

// aim notes how far the store must come before anybody may take it for the truth: it may have gone back.
func (k *link) aim() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.targets = map[ports.Family]uint64{}
	for name, f := range k.families {
		k.targets[name] = f.head()
	}
}

// upToDate waits until the store is there and has what it once had. It says false when ctx ended first.
func (k *link) upToDate(ctx context.Context, f *family) bool {
	for {
		moved := f.moved.wait()
		k.mu.Lock()
		up, target, back := k.phase == ready, k.targets[f.name], k.back
		k.mu.Unlock()
		if up && f.committed.Load() >= target {
			return true
		}
		if up {
			back = nil
		}
		select {
		case <-back:
		case <-moved:
		case <-ctx.Done():
			return false
		}
	}
}

// store is the StoreID of the local store; "" before it was opened.
func (k *link) store() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.storeID
}

func (k *link) now() (phase, string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.phase, k.told.detail
}

// restart has the store's process replaced, where that is possible.
func (k *link) restart(reason string) {
	if k.Restart != nil {
		k.Restart(reason)
	}
}

// health is what is known of the store's process.
func (k *link) health() Health {
	if k.Health == nil {
		return Health{Running: true}
	}
	return k.Health()
}

// watch ends when the process has died or is another one: while nothing is written, no commit notices, and what the next one
// finds on its disk may be an older copy.
func (k *link) watch(ctx context.Context, life int) error {
	tick := time.NewTicker(watchTick)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if h := k.health(); !h.Running || h.Starts != life {
			return ports.Errorf(ports.BackendGone, k.name, "the process of the local store is gone")
		}
	}
}

// Pauses between tries, and how long one try may take.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
	openLimit  = 30 * time.Second // of Stand and Open, which may have to create or mend a store
	watchTick  = 250 * time.Millisecond
)

// run keeps the store connected until ctx ends.
func (k *link) run(ctx context.Context) {
	pause := firstPause
	for ctx.Err() == nil {
		life := k.health().Starts
		marks, err := k.open(ctx)
		mute, opened := ports.CodeOf(err) == ports.Deadline, err == nil
		switch {
		case opened && k.health().Starts != life:
			continue // the process was started meanwhile; which one was opened nobody knows
		case opened:
			k.aim()
			for f, mark := range marks {
				k.families[f].reached(mark.Seq)
			}
			k.opened()
			k.enter(ready, "", "")
			began := k.clock()
			if err = k.commit(ctx, marks, life); refusesWrite(err) {
				continue // the store lives; the write that it refuses is being isolated
			}
			if k.clock().Sub(began) > lastPause {
				pause = firstPause
			}
		}
		if ctx.Err() != nil {
			return
		}
		k.failed(err, life)
		if mute {
			k.replaceMute(ctx)
		}
		k.ails(opened && ports.CodeOf(err) != ports.BackendGone)
		k.enter(stands(err, opened))
		k.logAway(err)
		select {
		case <-time.After(pause):
		case <-k.poke:
		case <-ctx.Done():
		}
		pause = min(pause*2, lastPause)
	}
}

// stands is the state that an error leads to: of a store that was opened, and of one that could not be.
func stands(err error, opened bool) (p phase, detail, remedy string) {
	const mend = "mend what it says; the host goes on by itself then"
	var need *needError
	why, code := ports.AsError(err), ports.CodeOf(err)
	switch {
	case errors.As(err, &need):
		return needsOne, need.Error(), need.remedy
	case why.Field == ports.FieldObstacle:
		return needsOne, why.Message, mend
	case code == ports.Unauthorized, !opened && (code.Permanent() || code == ports.Internal):
		return needsOne, err.Error(), mend
	}
	return waiting, err.Error(), ""
}

// failed lets the status say what went wrong, also when it is over. What only follows from the end of a process is left out:
// how it ended says more.
func (k *link) failed(err error, life int) {
	if h := k.health(); ports.CodeOf(err) == ports.BackendGone && k.Health != nil || h.Starts != life {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lastErr, k.lastErrAt = err.Error(), k.clock()
}

// replaceMute has the process replaced when it cannot be opened in time and says nothing to a probe either. No batch is sent to it,
// so nothing else would ever find out.
func (k *link) replaceMute(ctx context.Context) {
	probe, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for name := range k.families {
		if err := k.Store.Probe(probe, name); ports.CodeOf(err) != ports.Deadline || ctx.Err() != nil {
			return
		}
	}
	k.restart("neither its opening nor a probe is answered")
}

// refusesWrite says whether a commit ended because the store will never take one of the writes.
func refusesWrite(err error) bool {
	code := ports.CodeOf(err)
	return code.Permanent() && code != ports.Conflict
}

// commit runs both families until one of them fails, or the process is another one than at the opening.
func (k *link) commit(ctx context.Context, marks map[ports.Family]ports.Mark, life int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make(chan error, len(k.families)+1)
	go func() { errs <- k.watch(ctx, life) }()
	for f, family := range k.families {
		go func() { errs <- family.committer.run(ctx, k.Store, marks[f].Epoch, marks[f].Seq) }()
	}
	first := <-errs
	cancel()
	if ports.AsError(first).Op == opSetAside {
		first = &needError{first, "look at `holdfast unsettled list`; retry or discard what is there"}
	}
	if !refusesWrite(first) {
		k.enter(stands(first, true))
	}
	for range k.families {
		<-errs //nolint:errcheck // the first one is the reason
	}
	return first
}
