package reference

import (
	"context"
	"slices"

	"holdfast/ports"
)

const (
	maxEpochs = 1000   // starts of a host that are remembered
	maxOdd    = 10_000 // decisions other than "stored" that are remembered for a late twin of their batch
)

// Stand tells what the store is; see ports.LocalStore.
func (s *Store) Stand(ctx context.Context, hostID string) (ports.Standing, error) {
	standing := ports.Standing{Empty: true, Marks: map[ports.Family]ports.Mark{}}
	return standing, s.use(ctx, "stand", func(d *disk, _ opener) error {
		standing.StoreID, standing.Nonce = d.storeID, d.nonces[hostID]
		for f, h := range d.halves {
			standing.Early += len(h.early)
			standing.Empty = standing.Empty && len(h.held) == 0
			if known := h.hosts[hostID]; known != nil && known.marked {
				standing.Marks[f] = known.mark
			}
		}
		return nil
	})
}

// Open makes the store ready for a host's commits; see ports.LocalStore.
func (s *Store) Open(ctx context.Context, o ports.Opening) error {
	const op = "open for a host"
	if o.HostID == "" || o.Next == "" {
		return ports.Errorf(ports.Invalid, "reference: "+op, "HostID and the next nonce must be given")
	}
	return s.use(ctx, op, func(d *disk, _ opener) error {
		if d.nonces[o.HostID] != o.Nonce {
			return ports.Errorf(ports.Conflict, "reference: "+op, "the store's nonce of host %s is not the expected one", o.HostID)
		}
		d.nonces[o.HostID] = o.Next
		for f, h := range d.halves {
			h.admit(f, &o)
		}
		s.mu.Lock()
		s.opener = opener{o.HostID, o.Retention}
		s.mu.Unlock()
		return nil
	})
}

func (h *half) admit(f ports.Family, o *ports.Opening) {
	h.position = nil // the store is the truth from here on, and its marks say how far it is
	known := h.host(o.HostID)
	epoch, given := o.Epochs[f]
	if n := len(known.epochs); given && (n == 0 || known.epochs[n-1] != epoch) {
		known.epochs = append(known.epochs, epoch)
		known.epochs = slices.Clone(known.epochs[max(0, len(known.epochs)-maxEpochs):])
	}
	if seq, moves := o.Resume[f]; moves {
		known.mark, known.marked = ports.Mark{Epoch: epoch.ID, Seq: seq}, true
		known.odd = nil // of Seqs that come again with other entries
	}
	h.adopt()
}

// adopt makes rows that no host is known to have changed changes of host "", so that they are told.
func (h *half) adopt() {
	next := h.reaches()[""]
	for at, record := range h.held {
		if record.Change == (ports.Change{}) {
			next++
			numbered := *record
			numbered.Change.Seq = next
			h.held[at] = &numbered
		}
	}
}

// answer is a batch that was decided at once.
type answer struct {
	decisions []ports.Decision
	err       error
}

func (a *answer) Wait(context.Context) ([]ports.Decision, error) { return a.decisions, a.err }

// Commit decides a batch, whole or not at all; see ports.LocalStore.
func (s *Store) Commit(ctx context.Context, b ports.CommitBatch) (ports.Pending, error) {
	a := &answer{}
	a.err = s.look(ctx, "commit", b.Family, func(h *half, _ *disk, by opener) (err error) {
		a.decisions, err = h.commit(&b, by)
		return err
	})
	return a, nil
}

func (h *half) commit(b *ports.CommitBatch, by opener) ([]ports.Decision, error) {
	const op = "reference: commit"
	if by.host == "" {
		return nil, ports.Errorf(ports.Unavailable, op, "no host has opened the store")
	}
	if err := inOrder(b); err != nil {
		return nil, ports.Wrap(ports.Invalid, op, err)
	}
	known := h.host(by.host)
	switch n := len(known.epochs); {
	case n == 0 || known.epochs[n-1].ID != b.Epoch:
		return nil, ports.Errorf(ports.Conflict, op, "epoch %q is not the one that opened the store last", b.Epoch)
	case b.Through <= known.mark.Seq:
		return known.recall(b), nil
	case b.After != known.mark.Seq:
		return nil, ports.Errorf(ports.Conflict, op, "the store is at %d, the batch begins after %d", known.mark.Seq, b.After)
	}
	decisions := make([]ports.Decision, 0, len(b.Entries))
	for i := range b.Entries {
		d, err := h.decide(&b.Entries[i], ports.Rules{HostID: by.host, Retention: by.retention})
		if err != nil {
			return nil, err // never: a map can always be looked at
		}
		decisions = append(decisions, d)
		if !d.Plain() {
			known.odd = append(known.odd, d)
		}
	}
	known.odd = slices.Clone(known.odd[max(0, len(known.odd)-maxOdd):])
	known.mark, known.marked = ports.Mark{Epoch: b.Epoch, Seq: b.Through}, true
	return decisions, nil
}

// inOrder refuses what is no stretch of a journal.
func inOrder(b *ports.CommitBatch) error {
	last := b.After
	for i := range b.Entries {
		e := &b.Entries[i]
		if e.Seq <= last || e.Seq > b.Through {
			return ports.Errorf(ports.Invalid, "", "entry %d is out of order between %d and %d", e.Seq, b.After, b.Through)
		}
		if e.Action.Family() != b.Family {
			return ports.Errorf(ports.Invalid, "", "entry %d: %q is no write of family %s", e.Seq, e.Action, b.Family)
		}
		last = e.Seq
	}
	if b.Through < b.After {
		return ports.Errorf(ports.Invalid, "", "it goes from %d back to %d", b.After, b.Through)
	}
	return nil
}

// recall gives the decisions that the entries of a batch got the first time.
func (known *host) recall(b *ports.CommitBatch) []ports.Decision {
	decisions := make([]ports.Decision, len(b.Entries))
	for i := range b.Entries {
		decisions[i] = ports.Decision{Seq: b.Entries[i].Seq, Outcome: ports.Stored}
		if at := slices.IndexFunc(known.odd, func(d ports.Decision) bool { return d.Seq == decisions[i].Seq }); at >= 0 {
			decisions[i] = known.odd[at]
		}
	}
	return decisions
}

// take applies what Decide said.
func (h *half) take(effect *ports.Effect, host string) {
	at := placeOf(effect.Kind, effect.Key, effect.GUID, effect.Number)
	switch {
	case effect.Bury:
		h.remove(at, ports.Change{Host: host, Seq: effect.Decision.Seq})
	case effect.Next != nil:
		h.set(at, &held{Held: *effect.Next, key: effect.Key})
	}
}

// What Decide looks at.

func (h *half) at(p place) (*ports.Held, error) {
	if record := h.held[p]; record != nil {
		return &record.Held, nil
	}
	return nil, nil
}

// Item gives an item; see ports.Look.
func (h *half) Item(key string) (*ports.Held, error) {
	return h.at(place{kind: ports.KindItem, key: key})
}

// Event gives an event; see ports.Look.
func (h *half) Event(guid string) (*ports.Held, error) {
	return h.at(place{kind: ports.KindEvent, key: guid})
}

// Attempt gives an attempt; see ports.Look.
func (h *half) Attempt(key string, number int64) (*ports.Held, error) {
	return h.at(place{kind: ports.KindAttempt, key: key, number: number})
}

// Manifest gives a manifest; see ports.Look.
func (h *half) Manifest(key string) (*ports.Held, error) {
	return h.at(place{kind: ports.KindManifest, key: key})
}

// Gone says whether a key has a tombstone; see ports.Look.
func (h *half) Gone(k ports.Kind, key string) (bool, error) {
	_, gone := h.gone[place{kind: k, key: key}]
	return gone, nil
}
