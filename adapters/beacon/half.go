package beacon

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/ports"
)

// half is one family: which beacon keeps it, whether that still is the store that it was, and how far it is.
type half struct {
	family     ports.Family
	capability string
	*settings
	fleet  *fleet
	ledger *ledger
	clock  func() time.Time
	life   context.Context // of the backend: a comparison outlives the call that began it
	work   *sync.WaitGroup
	settle time.Duration
	known  *known
	locks  locks
	turns  *turns
	misses atomic.Int32 // probes without an answer, in a row

	mu      sync.Mutex
	page    page // what the ledger has, and what came since its last writing
	manner  manner
	found   seat // the session whose store was found to be the one that it was
	look    *lookup
	missing time.Time // since when the beacon is not known any more; zero: it is
	unput   bool      // the generation took the place of another one, and the host has put nothing into it yet
}

// seat is a beacon in one of its sessions.
type seat struct {
	half    *half
	name    string
	session uint64
	slots   int
}

func (s *seat) is(other *seat) bool { return s.name == other.name && s.session == other.session }

// lookup is a comparison that is under way.
type lookup struct {
	at   seat
	done chan struct{}
	err  error
}

// forgotten is how long the beacon that has the history may be unknown to the host, which has just been started perhaps,
// before another one is taken.
const forgotten = time.Minute

// who gives the beacon that keeps the family, connected. It is not asked anything.
func (h *half) who(list []ports.Beacon) (seat, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	name, had := h.beacon, h.page.Beacon
	if name == "" {
		name = had
	}
	offers := func(b *ports.Beacon) bool { return b != nil && slices.Contains(b.Capabilities, h.capability) }
	b := find(list, name)
	if offers(b) {
		h.missing = time.Time{}
	} else if h.beacon == "" {
		if had != "" && h.missing.IsZero() {
			h.missing = h.clock()
		}
		if had != "" && h.clock().Sub(h.missing) < forgotten {
			return seat{}, ports.Errorf(ports.Unavailable, "beacon", "the beacon %q, which has the history, is not known or does not offer %s; it is waited for", had, h.capability)
		}
		at := slices.IndexFunc(list, func(b ports.Beacon) bool { return b.Online && offers(&b) })
		if at < 0 {
			return seat{}, ports.Errorf(ports.Unavailable, "beacon", "no beacon that offers %s is connected", h.capability)
		}
		b = &list[at]
	}
	switch {
	case b == nil:
		return seat{}, ports.Errorf(ports.Unavailable, "beacon", "the beacon %q is not known to the host", name)
	case !offers(b):
		return seat{}, ports.Errorf(ports.Unavailable, "beacon", "the beacon %q does not offer %s", name, h.capability)
	case !b.Online:
		return seat{}, ports.Errorf(ports.Unavailable, "beacon", "the beacon %q is not connected", name)
	}
	return seat{h, b.Name, b.Session, max(1, b.MaxConcurrent)}, nil
}

// ready gives the beacon when it is connected and was found to be the store that it was. If nobody knows yet, it has that looked
// up and waits, but not to the end of the caller's time.
func (h *half) ready(ctx context.Context) (seat, error) {
	if err := ctx.Err(); err != nil {
		return seat{}, ports.Wrap(ports.CodeOf(err), "beacon", err)
	}
	wait, cancel := below(ctx, longestLook)
	defer cancel()
	for {
		list, err := h.fleet.look(wait)
		if err != nil {
			return seat{}, err
		}
		at, err := h.who(list)
		if err != nil {
			return seat{}, err
		}
		look := h.begin(at)
		if look == nil {
			return at, nil
		}
		select {
		case <-look.done:
			if look.err != nil && look.at.is(&at) {
				return seat{}, look.err
			}
		case <-wait.Done():
			if err := ctx.Err(); err != nil {
				return seat{}, ports.Wrap(ports.CodeOf(err), "beacon", err)
			}
			return seat{}, ports.Errorf(ports.Unavailable, "beacon", "the beacon %q has connected anew; it is compared with what it had", at.name)
		}
	}
}

// longestLook bounds a comparison.
const longestLook = 30 * time.Second

// begin gives the comparison that tells whether a session's store is the one that it was, begun if there is none; nil when that
// is known.
func (h *half) begin(at seat) *lookup {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.found.is(&at):
		return nil
	case h.look != nil: // also of a session before this one: it ends soon
		return h.look
	}
	look := &lookup{at: at, done: make(chan struct{})}
	h.look = look
	h.work.Go(func() {
		ctx, cancel := context.WithTimeout(h.life, longestLook)
		defer cancel()
		look.err = h.compare(ctx, at)
		h.mu.Lock()
		h.look = nil
		h.mu.Unlock()
		close(look.done)
	})
	return look
}

// take makes a session the present one; with other it is another store, or an older copy, and a new generation begins.
func (h *half) take(at seat, other bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if other || h.page.StoreID == "" {
		fresh := page{StoreID: rand.Text(), Beacon: at.name}
		fresh.Position.StoreID = fresh.StoreID
		if err := h.ledger.keep(h.family, fresh); err != nil {
			return err
		}
		h.unput = h.unput || h.page.StoreID != ""
		h.page = fresh
	}
	h.known.forget()
	h.found, h.manner = at, manner{}
	return nil
}

// confirm asks whether a session still is the present one: what was answered after it may be another store's.
func (h *half) confirm(ctx context.Context, at seat) error {
	list, err := h.fleet.ask(ctx)
	if err != nil {
		return err
	}
	now, err := h.who(list)
	if err != nil {
		return err
	}
	if !now.is(&at) {
		return ports.Errorf(ports.Unavailable, "beacon", "the beacon %q has connected anew meanwhile; it is compared with what it had", at.name)
	}
	return nil
}

// position says how far the store is.
func (h *half) position() ports.Position {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.page.Position
	p.Seqs = maps.Clone(p.Seqs)
	return p
}

// fence refuses a batch that is not the next one for this store.
func (h *half) fence(b *ports.Batch) error {
	at := h.position()
	if b.After == nil || b.After.StoreID == at.StoreID && at.Covers(*b.After) && b.After.Covers(at) {
		return nil
	}
	return ports.InField(ports.Conflict, ports.FieldPosition, "the store %s is at %v, the batch is for %s at %v", at.StoreID, at.Seqs, b.After.StoreID, b.After.Seqs)
}

// copied says that the host has begun to fill the present generation: it knows that the one before is over.
func (h *half) copied() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unput = false
}

// shows refuses reads of a generation into which nothing was put yet: the host may still take it for the one before, which had
// everything.
func (h *half) shows() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.unput {
		return ports.Errorf(ports.Unavailable, "beacon", "the beacon %q came back as another store; it is copied anew", h.page.Beacon)
	}
	return nil
}

// move stores a position: the rows before it are in. A generation that has ended does not move, and a later Put's position stays.
func (p *putting) move(to *ports.Position) error {
	h := p.half
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.page.StoreID != p.gen {
		return ports.InField(ports.Conflict, ports.FieldPosition, "the store is %s now, the batch was for %s", h.page.StoreID, p.gen)
	}
	if passed, _ := h.turns.passed(p.turn, place{}); passed {
		return nil
	}
	next := h.page.clone()
	next.Position = *to
	next.Position.StoreID, next.Position.Seqs = p.gen, maps.Clone(to.Seqs)
	if err := h.ledger.keep(h.family, next); err != nil {
		return err
	}
	h.page = next
	h.turns.came(p.turn, place{}, true)
	return nil
}

// note changes what is remembered of the keys that were put last, as long as the generation lasts.
func (h *half) note(generation string, change func(p *page)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.page.StoreID == generation {
		change(&h.page)
	}
}

func (h *half) generation() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.page.StoreID
}

// leave writes what is remembered of the last keys; the position stands already.
func (h *half) leave() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.page.StoreID == "" {
		return nil
	}
	return h.ledger.keep(h.family, h.page)
}
