package core

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
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
	rivals   rivalry            // what others put to its store
	kept     time.Time          // when mark was last written to the host's state,
	dirty    bool               // and whether it changed since
	had      sample             // the local store's position that it last had, and when: for its age
	copied   uint64
	pruned   int64 // records that its own retention removed
	only     *int64
	logged   map[string]time.Time // what the log had last, and when
	lastErr  string
	lastErrs time.Time
	opened   time.Time     // when a session first knew where to resume since the last assignment; zero: none did
	eager    time.Time     // until when it is probed often
	stores   uint64        // how often its store may have become another one
	look     chan struct{} // closed when the look at its store that is under way is over; nil without one

	begin chan struct{} // a session may begin
	poke  chan struct{} // a key is to be copied at once
	now   chan struct{} // a probe is due
	late  sync.WaitGroup

	unanswered atomic.Int64 // Puts that nobody waits for any more
}

func newFollower(h *Host, c Follower, shared *backend, f *family) (*follower, error) {
	w := &follower{
		Follower: c, backend: shared, host: h, family: f,
		keys:  unsettled{name: c.Name, family: f.name, state: h.state},
		begin: make(chan struct{}, 1), poke: make(chan struct{}, 1), now: make(chan struct{}, 1),
	}
	now := h.clock()
	w.cond = condition{mode: modeWaiting, since: now, heard: now, detail: "not reached yet"}
	w.had = sample{at: now}
	var err error
	if w.mark, w.met, err = h.state.Follower(c.Name, f.name); err != nil {
		return nil, err
	}
	w.doubtful = w.mark.Putting
	if w.mark.FreshMs != 0 {
		w.had.at = time.UnixMilli(w.mark.FreshMs)
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
	eagerFor      = 5 * time.Second // after an assignment it is probed as if it were away
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

// tell drives the state machine.
func (w *follower) tell(e happening) {
	e.at = w.host.clock()
	w.mu.Lock()
	before := w.cond
	var do effects
	w.cond, do = w.cond.step(e)
	after := w.cond
	switch {
	case e.kind == assigned: // what was wrong with the keeper before is not wrong with this one
		w.lastErr, w.lastErrs, w.opened, w.eager = "", time.Time{}, time.Time{}, e.at.Add(eagerFor)
		w.stores++
	case e.kind == opened && after.mode == modeCopying && w.opened.IsZero():
		w.opened = e.at
	case after.mode != before.mode && after.detail != "" && after.mode.ails():
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

// logChange says what an operator wants to know: that a follower went away or needs somebody, and that it is back. One that comes
// and goes is not told each time; the status counts.
func (w *follower) logChange(before, after condition, at time.Time) {
	log := w.host.log.With("name", w.Name, "family", w.family.name)
	switch {
	case after.mode == before.mode:
	case after.mode.public() == needsOne && w.mayTell("error "+after.detail, at):
		log.Error("a backend needs somebody; the others go on", "reason", after.detail, "remedy", after.remedy)
	case before.mode.public() != needsOne && after.mode.ails() && after.detail != "" && w.mayTell("away", at):
		log.Warn("a backend is away; it is brought up to date when it is back", "reason", after.detail)
	case after.mode == modeReady && before.mode == modeCopying && at.Sub(w.host.started) > quietOutage && w.mayTell("back", at):
		log.Info("a backend has everything")
	}
}

// tellAgain is how long the same is not told again in the log.
const tellAgain = 5 * time.Minute

func (w *follower) mayTell(what string, at time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last, told := w.logged[what]; told && at.Sub(last) < tellAgain {
		return false
	}
	if w.logged == nil || len(w.logged) > 16 {
		w.logged = map[string]time.Time{}
	}
	w.logged[what] = at
	return true
}

func (w *follower) mode() mode {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cond.mode
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

// needing says that the host's state takes no more unsettled keys; any other fault of it may pass.
func needing(err error) error {
	if ports.AsError(err).Limit == 0 {
		return err
	}
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
	w.stores++
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
