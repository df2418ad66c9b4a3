package meadowproxy

import (
	"sync"

	"holdfast/ports"
)

// known remembers which row has which identity, so that a record that is written again needs no look-up. It keeps two generations:
// when the young one is full, the old one goes.
type known struct {
	mu         sync.Mutex
	limit      int
	young, old map[place]int64
}

// place is a record: its kind, its key or GUID, and the number of an attempt.
type place struct {
	kind   ports.Kind
	key    string
	number int64
}

// knownRows bounds what is remembered.
const knownRows = 20_000

func newKnown() *known { return &known{limit: knownRows / 2, young: map[place]int64{}} }

func (k *known) identity(p place) (id int64, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if id, ok = k.young[p]; ok {
		return id, true
	}
	if id, ok = k.old[p]; ok {
		k.add(p, id)
	}
	return id, ok
}

func (k *known) learn(p place, id int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.add(p, id)
}

func (k *known) add(p place, id int64) {
	if len(k.young) >= k.limit {
		k.old, k.young = k.young, make(map[place]int64, len(k.young))
	}
	k.young[p] = id
}

func (k *known) drop(p place) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.young, p)
	delete(k.old, p)
}

func (k *known) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.young, k.old = map[place]int64{}, nil
}
