package core

import (
	"context"
	"sync"
	"time"

	"holdfast/ports"
)

// session is one stretch of copying, from the moment at which a follower's store is found until something breaks.
type session struct {
	w     *follower
	life  context.Context // of the follower: a Put that is not answered outlives the session
	trial *trial

	lives int // starts of the backend's process when the session began: another one may have another store
	begin start
	at    ports.Position // where the next page resumes
	limit int            // rows of the next page
	seen  uint64         // what the local store had committed at the last page,
	busy  bool           // and whether it had more at this one
	fetch sync.WaitGroup
	next  time.Time // when a key is to be put again
}

func newSession(w *follower, life context.Context) *session {
	return &session{w: w, life: life, trial: &w.trial, limit: firstLimit}
}

// Numbers of a session.
const (
	openDeadline  = 30 * time.Second // for the store to say where it is
	fetchDeadline = 10 * time.Second
	firstLimit    = 64
	headTime      = 50 * time.Millisecond  // of a page at the head,
	behindTime    = time.Second            // and of one far behind it
	tellAfter     = time.Second            // at the head, for a position that was moved without a Put
	longestYield  = 250 * time.Millisecond // between two pages while callers write
	othersEvery   = time.Second            // a look for changes of other hosts,
	strangerEvery = 5 * time.Second        // and for the first change of one that nobody knows yet
	choresAtOnce  = 32
)

// run copies until ctx ends or something breaks.
func (s *session) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer s.fetch.Wait()
	defer cancel()
	if err := s.open(ctx); err != nil {
		return err
	}
	s.w.tell(happening{kind: opened})
	pages := s.ask(ctx, s.at)
	for {
		page, err := s.await(ctx, pages)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case ports.CodeOf(err) == ports.Conflict:
			if err := s.fromZero(ctx, err); err != nil {
				return err
			}
			pages = s.ask(ctx, s.at)
			continue
		case ports.CodeOf(err).Permanent():
			return &needError{err, "use a local store that can tell what changed"}
		case err != nil: // the local store's trouble is not the follower's
			s.w.tell(happening{kind: stalled, err: ports.Wrap(ports.Unavailable, "changes of the local store", err)})
			pages = s.ask(ctx, s.at)
			continue
		}
		ahead := page.End == nil && !s.live()
		if ahead {
			pages = s.ask(ctx, page.Through)
		}
		began := s.w.host.clock()
		if err := s.put(ctx, &page); err != nil {
			return err
		}
		if err := s.chores(ctx); err != nil {
			return err
		}
		switch {
		case ahead:
		case page.End != nil:
			if err := s.rest(ctx, page.End); err != nil {
				return err
			}
			pages = s.ask(ctx, s.at)
		default: // callers write meanwhile: half of the time is theirs
			pause(ctx, min(s.w.host.clock().Sub(began), longestYield))
			pages = s.ask(ctx, s.at)
		}
	}
}

// open finds the store and decides where to resume.
func (s *session) open(ctx context.Context) error {
	w := s.w
	if !w.host.link.upToDate(ctx, w.family) {
		return ctx.Err()
	}
	s.lives = w.health().Starts
	asked, cancel := context.WithTimeout(ctx, openDeadline)
	defer cancel()
	position, err := w.Store.Position(asked, w.family.name)
	if err != nil {
		return err
	}
	if err := w.host.claim(w, position.StoreID); err != nil {
		return err
	}
	w.mu.Lock()
	known := w.mark
	known.Putting = w.doubtful // by a host before this one: what this one does it knows itself
	s.begin = startOf(known, w.met, position)
	if w.zero != "" {
		s.begin.from, s.begin.why = ports.Position{StoreID: position.StoreID}, w.zero
	}
	w.mu.Unlock()
	if err := s.checkHistory(ctx, position); err != nil {
		return err
	}
	if err := s.outwait(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	w.zero = ""
	if s.at = s.begin.from; isZero(s.at) {
		w.mark.Repaired = nil
		if !s.begin.blank {
			w.mark.Spared = nil
		}
	}
	w.doubtful = s.begin.doubtful
	w.mark.Position, w.mark.Putting, w.met, w.dirty = s.at, true, true, true
	w.stored, w.fresh = position, ports.Position{}
	w.mu.Unlock()
	if s.begin.why != "" {
		w.host.log.Info("everything is copied again", "name", w.Name, "family", w.family.name, "reason", s.begin.why)
		w.keys.retry("")
	}
	return w.remember(true)
}

// checkHistory begins at zero where the store is at a position that the local store does not know: what it holds beyond the
// host's mark is of another history.
func (s *session) checkHistory(ctx context.Context, store ports.Position) error {
	for !isZero(store) && !isZero(s.begin.from) {
		_, err := s.changes(ctx, ports.ChangesQuery{Family: s.w.family.name, After: store, Limit: 1})
		switch {
		case err == nil || ctx.Err() != nil:
			return ctx.Err()
		case ports.CodeOf(err) == ports.Conflict:
			s.begin.from, s.begin.why = ports.Position{StoreID: store.StoreID}, err.Error()
		case ports.CodeOf(err).Permanent():
			return err
		}
	}
	return ctx.Err()
}

// outwait lets a beginning at zero wait until no Put of an earlier host can take effect any more: any key may be of it.
func (s *session) outwait(ctx context.Context) error {
	if !s.begin.doubtful || !isZero(s.begin.from) {
		return nil
	}
	if wait := s.w.host.started.Add(doubtFor).Sub(s.w.host.clock()); wait > 0 {
		s.w.tell(happening{kind: awaits, detail: "waits until no Put of the host before can take effect any more"})
		pause(ctx, wait)
	}
	s.begin.doubtful = false
	return ctx.Err()
}

// fromZero begins again when the local store does not know the position: it belongs to another history.
func (s *session) fromZero(ctx context.Context, why error) error {
	if isZero(s.at) {
		return why // zero is a position of every store
	}
	w := s.w
	w.host.log.Info("everything is copied again", "name", w.Name, "family", w.family.name, "reason", why)
	s.at = ports.Position{StoreID: s.at.StoreID}
	s.begin.from = s.at
	if err := s.outwait(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	w.mark.Position, w.fresh, w.dirty = s.at, ports.Position{}, true
	w.mu.Unlock()
	w.keys.retry("")
	return w.remember(true)
}

// live says whether anything was written since the last page.
func (s *session) live() bool {
	var committed uint64
	for _, f := range s.w.host.families {
		committed += f.committed.Load()
	}
	s.busy, s.seen = committed != s.seen, committed
	return s.busy
}

// fetched is the answer to a question for changes.
type fetched struct {
	page ports.ChangePage
	err  error
}

// ask has the next page fetched while the one before it is put.
func (s *session) ask(ctx context.Context, after ports.Position) <-chan fetched {
	answer, limit := make(chan fetched, 1), s.limit*s.w.slots().lanes()
	s.fetch.Go(func() {
		page, err := s.changes(ctx, ports.ChangesQuery{Family: s.w.family.name, After: after, Limit: limit})
		answer <- fetched{page, err}
	})
	return answer
}

// changes asks the local store, once it is there and has what it once had.
func (s *session) changes(ctx context.Context, q ports.ChangesQuery) (ports.ChangePage, error) {
	if !s.w.host.link.upToDate(ctx, s.w.family) {
		return ports.ChangePage{}, ctx.Err()
	}
	limited, cancel := context.WithTimeout(ctx, fetchDeadline)
	defer cancel()
	page, err := s.w.host.link.Store.Changes(limited, q)
	if err != nil && ports.CodeOf(err) != ports.Conflict {
		pause(ctx, firstPause)
	}
	return page, err
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func (s *session) await(ctx context.Context, pages <-chan fetched) (ports.ChangePage, error) {
	select {
	case f := <-pages:
		return f.page, f.err
	case <-ctx.Done():
		return ports.ChangePage{}, ctx.Err()
	}
}

// put puts a page and moves the position over it.
func (s *session) put(ctx context.Context, page *ports.ChangePage) error {
	w := s.w
	began, after := w.host.clock(), s.at
	s.missRemovals(page)
	send, recopy := s.sort(groupRows(page.Rows))
	s.begin.blank = false
	if s.begin.doubtful {
		// A Put of the host before this one may still be on its way with any of these keys.
		w.keys.doubt(send, "a host ended while a Put had no answer", began)
		s.next = time.Time{}
		s.begin.doubtful = !after.Covers(s.begin.reached)
	}
	u := ofCatchUp
	if page.End != nil {
		u = ofHead
	}
	through := page.Through
	through.StoreID = s.at.StoreID
	for _, key := range recopy {
		if err := s.copyKey(ctx, key, u); err != nil {
			return err
		}
	}
	if err := s.putAll(ctx, send, u, &through); err != nil {
		return err
	}
	if err := w.keys.keep(); err != nil {
		return needing(err)
	}
	s.at = through
	w.advance(through, s.begin.doubtful)
	s.adapt(len(page.Rows), w.host.clock().Sub(began), page.End != nil || s.busy)
	return w.remember(through.StoreID == "")
}

// sort gives the groups that are put, and the keys that are copied whole: those that a person gave up, which changed again.
func (s *session) sort(groups []group) (send []group, recopy []string) {
	for i := range groups {
		g := &groups[i]
		switch s.w.keys.kind(g.key) {
		case ports.RefusedKey, ports.PoisonKey:
			s.w.keys.moved(g)
		case ports.DiscardedKey:
			recopy = append(recopy, g.key)
		default:
			send = append(send, *g)
		}
	}
	return send, recopy
}

// missRemovals notices that the local store has forgotten removals which the follower's store never heard of.
func (s *session) missRemovals(page *ports.ChangePage) {
	w := s.w
	w.mu.Lock()
	if s.begin.blank && w.mark.Spared == nil && len(page.Dropped) > 0 {
		w.mark.Spared, w.dirty = page.Dropped, true
	}
	missed := false
	for host, seq := range page.Dropped {
		missed = missed || seq > s.at.Seqs[host] && seq > w.mark.Spared[host]
	}
	news := missed && !w.mark.Doubtful
	if news {
		w.mark.Doubtful, w.dirty = true, true
	}
	w.mu.Unlock()
	if news {
		w.host.log.Warn("a backend may have records that were removed while it was away; it answers no reads until it was verified",
			"name", w.Name, "family", w.family.name)
	}
}

// adapt makes the next page as large as the store takes in the time that a page may have.
func (s *session) adapt(rows int, took time.Duration, head bool) {
	target := behindTime
	if head {
		target = headTime
	}
	switch {
	case took > target:
		s.limit = max(1, s.limit/2)
	case rows >= s.limit && took < target/2:
		s.limit = min(2*s.limit, ports.MaxBatchEntries)
	}
}

// advance moves the position.
func (w *follower) advance(p ports.Position, doubtful bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mark.Position, w.dirty, w.doubtful = p, true, doubtful
}

// rest is the follower at the head: it has everything, and waits for more.
func (s *session) rest(ctx context.Context, end *ports.Position) error {
	w := s.w
	w.mu.Lock()
	if w.fresh = *end; end.Seqs == nil {
		w.fresh.Seqs = map[string]uint64{}
	}
	w.mark.FreshMs, w.dirty = w.host.clock().UnixMilli(), true
	w.mu.Unlock()
	w.tell(happening{kind: caughtUp})
	mine, look := w.host.hostID, w.host.clock().Add(strangerEvery)
	if len(end.Seqs) > 1 {
		look = w.host.clock().Add(othersEvery)
	}
	if s.untold() {
		look = w.host.clock().Add(tellAfter)
	}
	for {
		moved := w.family.moved.wait()
		now := w.host.clock()
		if w.family.committed.Load() > end.Seqs[mine] {
			return nil
		}
		if !now.Before(look) {
			return s.tellStore(ctx)
		}
		timer := time.NewTimer(max(min(s.next.Sub(now), look.Sub(now)), 0))
		select {
		case <-moved:
		case <-w.poke:
			s.next = time.Time{}
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := w.remember(false); err != nil {
			return err
		}
		if err := s.chores(ctx); err != nil {
			return err
		}
	}
}

// tellStore tells the store a position that was moved without a Put, so that its next session need not go back.
func (s *session) tellStore(ctx context.Context) error {
	if !s.untold() {
		return nil
	}
	at := s.at
	return s.putChunk(ctx, chunk{}, ofHead, &at)
}

func (s *session) untold() bool {
	return s.at.StoreID != "" && !isZero(s.at) && !s.w.storedAt().Covers(s.at)
}

// chores copies keys again that are due: what a person wants tried, and what was in doubt for long enough.
func (s *session) chores(ctx context.Context) error {
	w := s.w
	select {
	case <-w.poke:
		s.next = time.Time{}
	default:
	}
	for {
		now := w.host.clock()
		if now.Before(s.next) {
			return nil
		}
		keys, next := w.keys.due(now, choresAtOnce)
		s.next = now.Add(next)
		for _, key := range keys {
			if err := s.copyKey(ctx, key, ofCatchUp); err != nil {
				return err
			}
		}
		if len(keys) == 0 {
			return nil
		}
	}
}

// copyKey brings one key to its present state, and settles it. The local store's trouble leaves it for later.
func (s *session) copyKey(ctx context.Context, key string, u urgency) error {
	w := s.w
	sent := w.host.clock()
	w.keys.tried(key)
	q, put := ports.ChangesQuery{Family: w.family.name, Key: key}, false
	for done := false; !done; {
		page, err := s.changes(ctx, q)
		if err != nil {
			s.later(key)
			return ctx.Err()
		}
		done = page.End != nil
		var at *ports.Position
		if done && !isZero(s.at) {
			at = &s.at
		}
		groups := groupRows(page.Rows)
		for i := range groups {
			groups[i].more = !done
		}
		if err := s.putAll(ctx, groups, u, at); err != nil {
			if !w.keys.failed(key) {
				w.keys.retry(key)
			}
			return err
		}
		if w.keys.failed(key) {
			return nil // refused again, or for another reason
		}
		put = put || len(page.Rows) > 0
		q.After = page.Through
	}
	if put {
		w.repaired(s.at)
	}
	return w.keys.settle(sent, key)
}

// later has a key copied in a moment.
func (s *session) later(key string) {
	s.w.keys.retry(key)
	s.next = s.w.host.clock().Add(othersEvery)
}

// repaired notes that a key was put outside the order of changes.
func (w *follower) repaired(at ports.Position) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mark.Repaired, w.dirty = at.Seqs, true
}
