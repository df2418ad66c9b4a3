package core

import (
	"context"
	"sync"
	"time"

	"holdfast/ports"
)

// session is one stretch of copying, from the moment at which a follower's store is found until something breaks.
type session struct {
	w    *follower
	life context.Context // of the follower: a Put that is not answered outlives the session

	lives int // starts of the backend's process when the session began: another one may have another store
	begin start
	at    ports.Position // where the next page resumes
	pace  pace
	asked time.Time // when a page was last asked for at the head
	fetch sync.WaitGroup
	next  time.Time // when a key is to be put again

	overtaken bool // keys were put out of order since the page in work was asked for: the one behind it may have older states of them
}

func newSession(w *follower, life context.Context) *session {
	return &session{w: w, life: life, pace: pace{limit: firstLimit}}
}

// Numbers of a session.
const (
	openDeadline  = 30 * time.Second // for the store to say where it is,
	silentOpen    = time.Second      // after which the status says that it is waited for
	fetchDeadline = 10 * time.Second
	tellAfter     = time.Second     // at the head, for a position that was moved without a Put
	othersEvery   = time.Second     // a look for changes of other hosts,
	strangerEvery = 5 * time.Second // and for the first change of one that nobody knows yet
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
		s.pace.look(s.w.family.committed.Load(), s.at.Seqs[s.w.host.hostID])
		ahead := page.End == nil && !s.pace.yields()
		if s.overtaken = false; ahead {
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
		case ahead && s.overtaken:
			pages = s.ask(ctx, s.at)
		case ahead:
		case page.End != nil:
			if err := s.rest(ctx, page.End); err != nil {
				return err
			}
			pause(ctx, headGap-s.w.host.clock().Sub(s.asked))
			s.asked = s.w.host.clock()
			pages = s.ask(ctx, s.at)
		default: // callers write meanwhile
			pause(ctx, s.pace.rest(s.w.host.clock().Sub(began)))
			pages = s.ask(ctx, s.at)
		}
	}
}

// fetched is the answer to a question for changes.
type fetched struct {
	page ports.ChangePage
	err  error
}

// ask has the next page fetched while the one before it is put.
func (s *session) ask(ctx context.Context, after ports.Position) <-chan fetched {
	answer, limit := make(chan fetched, 1), s.pace.rows()*s.w.slots().lanes()
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
	if d <= 0 {
		return
	}
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
		if s.at.StoreID != "" {
			s.begin.doubtful = !after.Covers(s.begin.reached) // the rest is fenced by the position
		} else {
			s.begin.doubtful = began.Before(w.host.started.Add(doubtFor))
		}
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
	s.revive(send)
	if err := w.keys.keep(); err != nil {
		return needing(err)
	}
	s.at = through
	w.advance(through, s.begin.doubtful)
	s.pace.took(len(page.Rows), w.host.clock().Sub(began), page.End != nil)
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

// advance moves the position.
func (w *follower) advance(p ports.Position, doubtful bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mark.Position, w.dirty, w.doubtful = p, true, doubtful
}
