package postgres

import (
	"holdfast/adapters/tables"
	"holdfast/ports"
)

// fold is a transaction's view of the records: what Decide looks at, and what its effects made of it. What a batch may touch is
// asked for first, read in one round trip, and written at the end, each record once, in its final state.
type fold struct {
	w       *writer
	t       *turn
	rows    map[place]*row
	asked   []*row // not read yet
	written []*row // in the order of their first change
	graves  map[grave]*ports.Change
	tombs   map[grave]bool // read: whether there is a tombstone
	unread  []grave        // not read yet
	early   early
	queue   bool // items may be written: the barrier to early writes is asked for
}

// place names one record.
type place struct {
	layout *layout
	key    string // of an event its GUID
	number int64  // of an attempt
}

// row is a record of the transaction: what the table has, and what it shall have.
type row struct {
	place
	owner  string // the record's key; of an event its item's
	id     int64
	base   *ports.Held // nil: not there
	next   *ports.Held // nil: not there afterwards
	dirty  bool
	hidden bool // a databeacon marked it as deleted: it is in the way of a new one, and goes
}

type grave struct {
	kind ports.Kind
	key  string
}

func newFold(w *writer) *fold { return &fold{w: w} }

// begin starts a transaction.
func (f *fold) begin(t *turn) {
	*f = fold{w: f.w, t: t, rows: map[place]*row{}, graves: map[grave]*ports.Change{}, tombs: map[grave]bool{}}
	f.early.waiting = map[string][]waiting{}
}

// want asks for what an entry's decision may look at.
func (f *fold) want(e *ports.Entry) {
	switch e.Action {
	case ports.UpsertWorkItem, ports.UpdateWorkItem:
		f.wantRow(place{items, e.Key, 0})
		f.wantGrave(grave{ports.KindItem, e.Key})
		f.wantEarly(e.Key)
	case ports.AppendEvent:
		f.wantRow(place{events, e.EventGUID, 0})
		if e.Class == ports.Reflush || !e.Stamp.IsZero() {
			f.wantRow(place{items, e.Key, 0})
			f.wantEarly(e.Key)
		}
	case ports.InsertAttempt, ports.UpdateAttemptOutcome:
		f.wantRow(place{items, e.Key, 0})
		f.wantRow(place{attempts, e.Key, e.Number})
		f.wantEarly(e.Key)
	case ports.UpsertManifest, ports.RemoveManifest:
		f.wantRow(place{manifests, e.Key, 0})
		f.wantGrave(grave{ports.KindManifest, e.Key})
	}
	f.queue = f.queue || e.Action.Family() == ports.Queue
}

func (f *fold) wantRow(p place) {
	if _, known := f.rows[p]; !known {
		r := &row{place: p}
		f.rows[p] = r
		f.asked = append(f.asked, r)
	}
}

func (f *fold) wantGrave(g grave) {
	if _, known := f.tombs[g]; !known {
		f.tombs[g] = false
		f.unread = append(f.unread, g)
	}
}

func (f *fold) Item(key string) (*ports.Held, error) { return f.look(place{items, key, 0}) }

func (f *fold) Attempt(key string, number int64) (*ports.Held, error) {
	return f.look(place{attempts, key, number})
}

func (f *fold) Manifest(key string) (*ports.Held, error) { return f.look(place{manifests, key, 0}) }

func (f *fold) Event(guid string) (*ports.Held, error) { return f.look(place{events, guid, 0}) }

func (f *fold) Gone(k ports.Kind, key string) (bool, error) {
	g := grave{k, key}
	if change, ok := f.graves[g]; ok {
		return change != nil, nil
	}
	if _, ok := f.tombs[g]; !ok {
		f.wantGrave(g)
		if err := f.load(); err != nil {
			return false, err
		}
	}
	return f.tombs[g], nil
}

func (f *fold) look(p place) (*ports.Held, error) {
	r, err := f.find(p)
	if err != nil {
		return nil, err
	}
	return r.next, nil
}

// find gives a record that was asked for, or reads it now.
func (f *fold) find(p place) (*row, error) {
	if _, ok := f.rows[p]; !ok {
		f.wantRow(p)
		if err := f.load(); err != nil {
			return nil, err
		}
	}
	return f.rows[p], nil
}

// decide decides one entry, takes in its effect, and then decides what waited for it.
func (f *fold) decide(e *ports.Entry, rules ports.Rules) (ports.Decision, error) {
	dropped, err := f.dropEarly(e)
	if err != nil {
		return ports.Decision{}, err
	}
	d, arrives, err := f.decideOne(e, rules)
	if err == nil && arrives && f.early.count > 0 {
		err = f.release(e, &d, rules)
	}
	d.Dropped += dropped
	d.Told(int(f.early.count))
	return d, err
}

// decideOne decides one entry alone; arrives says that it leaves an item there.
func (f *fold) decideOne(e *ports.Entry, rules ports.Rules) (d ports.Decision, arrives bool, err error) {
	effect, err := ports.Decide(e, f, rules)
	if err != nil {
		return ports.Decision{}, false, err
	}
	if effect.Keep {
		return effect.Decision, false, f.keepEarly(e)
	}
	return effect.Decision, effect.Arrives(), f.take(&effect)
}

func (f *fold) take(effect *ports.Effect) error {
	if effect.Revive {
		f.graves[grave{effect.Kind, effect.Key}] = nil
	}
	if effect.Bury {
		f.graves[grave{effect.Kind, effect.Key}] = &ports.Change{Host: f.w.rules.HostID, Seq: effect.Decision.Seq}
	}
	if effect.Next == nil && !effect.Bury {
		return nil
	}
	r, err := f.find(placeOf(effect.Kind, effect.Key, effect.GUID, effect.Number))
	if err != nil {
		return err
	}
	if effect.Next != nil && r.next == nil && tables.Buried(effect.Kind) {
		// A record that is there has no tombstone: who is told of both could take the older one for the newer.
		gone, err := f.Gone(effect.Kind, effect.Key)
		if err != nil {
			return err
		}
		if gone {
			f.graves[grave{effect.Kind, effect.Key}] = nil
		}
	}
	f.set(r, effect.Key, effect.Next)
	return nil
}

func (f *fold) set(r *row, owner string, next *ports.Held) {
	r.owner, r.next = owner, next
	if !r.dirty {
		r.dirty = true
		f.written = append(f.written, r)
	}
}

func placeOf(k ports.Kind, key, guid string, number int64) place {
	switch k {
	case ports.KindEvent:
		return place{events, guid, 0}
	case ports.KindAttempt:
		return place{attempts, key, number}
	}
	return place{layoutOf(k), key, 0}
}
