package meadowproxy

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/ports"
)

// half is one family: what the host knows of the store that keeps it.
//
// A databeacon that connects anew, or that is bootstrapped again, may have another database than before, or an older copy of it. The
// host would go on where it was, and reads would be answered as if nothing had happened. So what the ledger says is compared with
// what the host was told. Where it differs the store is strange: no read is answered and no batch that goes on after a position is
// taken before the host has asked where the store is. One Probe fails, so that the host does ask.
//
// An older copy may be at the very position that the host knows, and lack what was put since. Then the last step is another one, and
// the answer to where the store is tells the host nothing. So the store stays strange until a Probe or a Put has failed: with that the
// host begins again, and puts what it has not moved the position over.
type half struct {
	family  ports.Family
	binder  *binder
	timeout time.Duration
	stride  stride
	misses  atomic.Int32  // probes without an answer, in a row
	desk    chan struct{} // has one place: for whoever reads the last step to write the next one, or to learn what is there

	mu        sync.Mutex
	bound     *binding       // which the rest is about
	sight                    // where the host believes the store to be
	told      ports.Position // where the host was told that the store is
	begun     bool           // the last step stands before the rows of a batch
	lineage   uint64         // counts the databases that took the place of one another
	loose     bool           // rows were put since the store was there: an older copy may lack them and say the same
	strange   bool
	announced bool   // a Probe has told that it is strange
	heard     bool   // a Probe or a Put has
	putting   int    // Puts under way
	puts      uint64 // that were begun
}

// ready gives the family's hold. It waits for a bootstrap that is under way, but not to the end of the caller's time.
func (h *half) ready(ctx context.Context) (*hold, error) { return h.readyWithin(ctx, h.timeout) }

func (h *half) readyWithin(ctx context.Context, most time.Duration) (*hold, error) {
	wait, cancel := below(ctx, most)
	defer cancel()
	at, err := h.binder.await(wait, h.family)
	if ended := ctx.Err(); ended != nil {
		return nil, ports.Wrap(ports.CodeOf(ended), "meadowproxy", ended)
	}
	if err != nil {
		return nil, err
	}
	h.meet(at.bound)
	return at, nil
}

// meet compares a binding that is new with what the host knows.
func (h *half) meet(b *binding) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.bound == b {
		return
	}
	is := sightOf(&b.own, h.family)
	if h.bound != nil && (h.loose || !same(is.at, h.at) || !h.has(&b.own, h.family)) { // a new process is asked for its position anyway
		h.estrange(is)
	}
	h.bound, h.sight, h.begun = b, is, false
}

// same says whether two positions are one. A Seq of 0 is as good as none.
func same(a, b ports.Position) bool {
	return a.StoreID == b.StoreID && a.Covers(b) && b.Covers(a)
}

// ledger reads the ledger and makes sure that it still is that of the binding's store.
func (h *half) ledger(ctx context.Context, at *hold, class ports.WorkClass) (ledger, error) {
	l, err := at.ledger(ctx, class)
	if err == nil && l.storeID != at.bound.own.storeID {
		return l, bootstrapping(at.bound.seat, "another database stands in its place, or it was emptied; tables and endpoints are made again")
	}
	return l, err
}

// heed has the bootstrap run again when an error shows that the databeacon forgot.
func (h *half) heed(at *hold, err error) error {
	if err != nil && ports.AsError(err).Field == ports.FieldBootstrap {
		h.binder.forgot(at)
	}
	return err
}

// position asks where the store is. From then on the host knows it.
func (h *half) position(ctx context.Context) (ports.Position, error) {
	at, err := h.ready(ctx)
	if err != nil {
		return ports.Position{}, err
	}
	leave, err := h.sit(ctx)
	if err != nil {
		return ports.Position{}, err
	}
	defer leave()
	l, err := h.ledger(ctx, at, ports.ClassRead)
	if err == nil {
		err = h.binder.now(ctx, h.family, at)
	}
	if err != nil {
		return ports.Position{}, h.heed(at, err)
	}
	h.learn(at, &l)
	return l.position(h.family), nil
}

// sit takes the desk.
func (h *half) sit(ctx context.Context) (leave func(), err error) {
	select {
	case h.desk <- struct{}{}:
		return func() { <-h.desk }, nil
	case <-ctx.Done():
		return nil, ports.Wrap(ports.CodeOf(ctx.Err()), "meadowproxy", ctx.Err())
	}
}

// shows refuses reads of a store that the host may take for another one.
func (h *half) shows() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.strange {
		return away("the database behind connection %d of %q is another one than before, or an older copy; the host has not asked it yet how far it is", h.bound.connection, h.bound.beacon)
	}
	return nil
}

// announce tells a Probe that the store is strange, once.
func (h *half) announce() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.strange || h.announced {
		return nil
	}
	h.announced, h.heard = true, true
	return bootstrapping(h.bound.seat, "the database is another one than before, or an older copy; what it lacks is copied")
}

// begin and end stand around a Put.
func (h *half) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.putting++
	h.puts++
}

func (h *half) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.putting--
}

// takes says whether a batch that begins after a position may be put: the host knows the store.
func (h *half) takes(after *ports.Position) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.strange && after != nil {
		h.heard = true
		return errElsewhere
	}
	h.strange = false
	return nil
}

var errElsewhere = elsewhere("the databeacon came back with another database, or an older copy; ask for its position")

func elsewhere(format string, args ...any) error {
	e := ports.InField(ports.Conflict, ports.FieldPosition, format, args...)
	e.Op = "meadowproxy: put"
	return e
}
