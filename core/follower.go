package core

import (
	"context"
	"errors"
	"sync"
	"time"

	"holdfast/ports"
)

// follower keeps one family of one backend equal to the local store. It has two goroutines: watch probes the backend and
// drives the state machine; follow copies, one session after the other, whenever the machine says that it is worth while.
//
//	probe, health --> condition.step --> begin, end, restart
//	session: Position -> where to resume -> Changes -> Put -> position -> ... until nothing is left: fresh
type follower struct {
	Follower
	*backend
	host   *Host
	family *family
	keys   unsettled
	trial  trial

	mu       sync.Mutex
	cond     condition
	mark     ports.FollowerMark // how far it is; Position is behind every change that was put
	met      bool               // mark says something
	stored   ports.Position     // what its store was told last
	fresh    ports.Position     // the local store's position when nothing was left to copy
	ends     context.CancelFunc // of the session; nil without one
	ended    chan struct{}      // closed when the session has ended; nil without one
	held     int                // somebody else writes to the store: no session begins
	doubtful bool               // an earlier host may still be putting keys that are not behind yet
	zero     string             // why the next session begins at zero; "" otherwise
	kept     time.Time          // when mark was last written to the host's state,
	dirty    bool               // and whether it changed since
	sample   moment             // for its age
	copied   uint64
	only     *int64
	lastErr  string
	lastErrs time.Time

	begin chan struct{} // a session may begin
	poke  chan struct{} // a key is to be copied, or a copier waits for no reason
	late  sync.WaitGroup
}

// backend is what the followers of one backend share.
type backend struct {
	company company

	mu      sync.Mutex
	known   bool
	powers  ports.Description
	budget  *budget
	storeID string
}

// slots is what the backend takes at a time; nil: no limit.
func (b *backend) slots() *budget {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.budget
}

// relearn has the backend asked again what it is: another process may be another version.
func (b *backend) relearn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known = false
}

// description is what the backend said of itself; ok is false before it did.
func (b *backend) description() (d ports.Description, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.powers, b.known
}

// moment is a position of the local store, and when it had it.
type moment struct {
	at  time.Time
	seq uint64
}

func newFollower(h *Host, c Follower, shared *backend, f *family) (*follower, error) {
	w := &follower{
		Follower: c, backend: shared, host: h, family: f,
		keys:  unsettled{name: c.Name, family: f.name, state: h.state},
		begin: make(chan struct{}, 1), poke: make(chan struct{}, 1),
	}
	now := h.clock()
	w.cond = condition{mode: modeWaiting, since: now, heard: now, detail: "not reached yet"}
	w.sample = moment{at: now}
	var err error
	if w.mark, w.met, err = h.state.Follower(c.Name, f.name); err != nil {
		return nil, err
	}
	w.doubtful = w.mark.Putting
	if w.mark.FreshMs != 0 {
		w.sample.at = time.UnixMilli(w.mark.FreshMs)
	}
	return w, w.keys.load()
}

// Numbers of a follower.
const (
	probeEvery    = 2 * time.Second
	probeAway     = 500 * time.Millisecond // while it is not reachable
	probeDeadline = time.Second
	lagSeqs       = 1000
	lagAge        = 2 * time.Second
)

// run follows until ctx ends; then nothing of it runs any more and its position is remembered.
func (w *follower) run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { w.watch(ctx) })
	wg.Go(func() { w.follow(ctx) })
	wg.Wait()
	w.late.Wait()
	w.mu.Lock()
	if _, inDoubt, _ := w.keys.count(); inDoubt == 0 && !w.doubtful && w.mark.Putting {
		w.mark.Putting, w.dirty = false, true
	}
	w.mu.Unlock()
	if err := w.remember(true); err != nil {
		w.host.log.Error("remember how far a follower is", "name", w.Name, "family", w.family.name, "error", err)
	}
}

// watch probes.
func (w *follower) watch(ctx context.Context) {
	tick := time.NewTicker(watchTick)
	defer tick.Stop()
	next, life := w.host.clock(), -1
	for {
		health := w.health()
		now := w.host.clock()
		switch {
		case !health.Running && health.Starts == 0 && health.Detail == "": // it starts for the first time
		case !health.Running && health.GivenUp:
			w.tell(happening{kind: givenUp, detail: health.Detail})
		case !health.Running:
			w.tell(happening{kind: gone, detail: health.Detail})
			next = now
		case life >= 0 && health.Starts != life:
			w.backend.relearn()
			w.tell(happening{kind: gone, detail: "its process was started again"})
			next = now
		case !now.Before(next):
			w.probe(ctx)
			if next = w.host.clock().Add(probeEvery); !w.mode().up() {
				next = w.host.clock().Add(probeAway)
			}
		}
		if health.Running {
			life = health.Starts
		}
		w.age()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (w *follower) health() Health {
	if w.Health == nil {
		return Health{Running: true}
	}
	return w.Health()
}

// probe asks whether the backend could take a write, and whether it still is the store that it was.
func (w *follower) probe(ctx context.Context) {
	if !w.describe(ctx) {
		return
	}
	limited, cancel := context.WithTimeout(ctx, probeDeadline)
	defer cancel()
	slots := w.slots()
	if err := slots.take(limited, ofProbe); err != nil {
		w.sayProbe(ctx, err)
		return
	}
	defer slots.give()
	err := w.Store.Probe(limited, w.family.name)
	w.sayProbe(ctx, err)
	if err == nil && w.mode().takes() {
		w.checkStore(limited)
	}
}

// sayProbe tells the machine how a probe ended; ctx is that of the host.
func (w *follower) sayProbe(ctx context.Context, err error) {
	switch code := ports.CodeOf(err); {
	case err == nil:
		w.tell(happening{kind: answered})
	case ctx.Err() != nil: // the host stops
	case code == ports.Deadline || code == ports.Canceled:
		w.tell(happening{kind: missed})
	case code == ports.BackendGone:
		w.tell(happening{kind: gone, detail: err.Error()})
	default:
		w.tell(happening{kind: declined, err: err})
	}
}

// checkStore ends the session when another store stands where the follower's was, or one that has less.
func (w *follower) checkStore(ctx context.Context) {
	w.mu.Lock()
	stored := w.stored
	w.mu.Unlock()
	at, err := w.Store.Position(ctx, w.family.name)
	if err == nil && stored.StoreID != "" && (at.StoreID != stored.StoreID || !at.Covers(stored)) {
		w.tell(happening{kind: gone, detail: "another store stands in its place, or an older copy of it"})
	}
}

// describe learns what the backend is; it says false while nobody knows, or when it does not keep the family.
func (w *follower) describe(ctx context.Context) bool {
	description, known := w.description()
	if !known {
		limited, cancel := context.WithTimeout(ctx, probeDeadline)
		defer cancel()
		var err error
		if description, err = w.Store.Describe(limited); err != nil {
			w.sayProbe(ctx, err)
			return false
		}
		w.backend.mu.Lock()
		if !w.known {
			if w.powers.Slots != description.Slots {
				w.budget = newBudget(description.Slots)
			}
			w.powers, w.known = description, true
		}
		w.backend.mu.Unlock()
	}
	for _, f := range description.Families {
		if f == w.family.name {
			return true
		}
	}
	w.tell(happening{kind: notKept})
	return false
}

// tell drives the state machine.
func (w *follower) tell(e happening) {
	e.at = w.host.clock()
	w.mu.Lock()
	before := w.cond
	var do effects
	w.cond, do = w.cond.step(e)
	after := w.cond
	if after.mode != before.mode && after.detail != "" && !after.mode.takes() {
		w.lastErr, w.lastErrs = after.detail, e.at
	}
	if do.end && w.ends != nil {
		w.ends()
	}
	w.mu.Unlock()
	w.logChange(before, after, e.at)
	if do.restart && w.Restart != nil {
		w.Restart(after.detail)
	}
	if do.begin {
		notify(w.begin)
	}
}

// logChange says what an operator wants to know: that a follower went away or needs somebody, and that it is back.
func (w *follower) logChange(before, after condition, at time.Time) {
	log := w.host.log.With("name", w.Name, "family", w.family.name)
	switch {
	case after.mode == before.mode:
	case after.mode == modeError:
		log.Error("a backend needs somebody; the others go on", "reason", after.detail, "remedy", after.remedy)
	case before.mode.takes() && !after.mode.up():
		log.Warn("a backend is away; it is brought up to date when it is back", "reason", after.detail)
	case after.mode == modeReady && before.mode == modeCopying && at.Sub(w.host.started) > quietOutage:
		log.Info("a backend has everything")
	}
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (w *follower) mode() mode {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cond.mode
}

// age keeps the time since which the follower has not had everything, and says when that is too long.
func (w *follower) age() {
	now, committed := w.host.clock(), w.family.committed.Load()
	w.mu.Lock()
	has := w.fresh.Seqs[w.host.hostID]
	if has >= w.sample.seq && w.cond.mode.takes() && w.fresh.Seqs != nil {
		w.sample = moment{now, committed}
	}
	old := now.Sub(w.sample.at)
	behind := committed > has && (committed-has > lagSeqs || old > lagAge)
	w.mu.Unlock()
	if behind {
		w.tell(happening{kind: fellBehind, detail: "behind the local store"})
	}
}

// follow runs sessions.
func (w *follower) follow(ctx context.Context) {
	for {
		select {
		case <-w.begin:
		case <-ctx.Done():
			return
		}
		session, ok := w.enter(ctx)
		if !ok {
			continue
		}
		err := newSession(w, ctx).run(session)
		stop := session.Err() != nil
		w.leave()
		var need *needError
		switch {
		case ctx.Err() != nil:
			return
		case stop:
			w.tell(happening{kind: stopped})
		case errors.As(err, &need):
			w.tell(happening{kind: needs, detail: need.Error(), remedy: need.remedy})
		default:
			w.tell(happening{kind: broke, err: err})
		}
	}
}

// needError ends a session that only a person can mend.
type needError struct {
	error
	remedy string
}

func (e *needError) Unwrap() error { return e.error }

// needing says that the host's state takes no more unsettled keys.
func needing(err error) error {
	return &needError{err, "mend the store, then run `holdfast unsettled retry` for it; see `holdfast unsettled list`"}
}

// enter begins a session unless somebody holds the store.
func (w *follower) enter(ctx context.Context) (context.Context, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held > 0 || w.cond.mode != modeOpening {
		return nil, false
	}
	ctx, w.ends = context.WithCancel(ctx)
	w.ended = make(chan struct{})
	return ctx, true
}

func (w *follower) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends()
	close(w.ended)
	w.ends, w.ended = nil, nil
}

// keepEvery is how often the host's state learns how far a follower is, which knows it itself.
const keepEvery = 2 * time.Second

// remember writes the mark to the host's state: now and then, or at once.
func (w *follower) remember(now bool) error {
	w.mu.Lock()
	at := w.host.clock()
	mark := w.mark
	if !now && at.Sub(w.kept) < keepEvery || !w.dirty || !w.met {
		w.mu.Unlock()
		return nil
	}
	w.kept, w.dirty = at, false
	w.mu.Unlock()
	return w.host.state.SetFollower(w.Name, w.family.name, mark)
}
