package sqlite

import (
	"database/sql/driver"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// fold is a transaction's view of the records: what Decide looks at, and what its effects made of it. Each record is read
// at most once and written at most once, in its final state. Events are never changed, so they are written at once.
type fold struct {
	w       *writer
	rows    map[place]*row
	written []*row // in the order of their first change
	graves  map[grave]*ports.Change
	hopeful bool // Event says "not there" unasked; the insert will tell
	now     string
	values  [64]any
}

// row is a record of the transaction: what the file has, and what it shall have.
type row struct {
	place
	owner string // the record's key; of an event its item's
	id    int64
	base  *ports.Held // nil: not there
	next  *ports.Held // nil: not there afterwards
	dirty bool
	bulky bool // made of texts too long to stay in memory
}

type grave struct {
	kind ports.Kind
	key  string
}

// bulkyBytes is the length of an entry's record beyond which the rows that it touched leave the cache: one short value of
// a long text keeps all of it in memory.
const bulkyBytes = 64 << 10

func newFold(w *writer) *fold {
	return &fold{w: w, rows: map[place]*row{}, graves: map[grave]*ports.Change{}}
}

// begin starts a transaction.
func (f *fold) begin(now string) {
	clear(f.rows)
	clear(f.graves)
	clear(f.written)
	f.written, f.now, f.hopeful = f.written[:0], now, false
}

func (f *fold) Item(key string) (*ports.Held, error) { return f.look(place{items, key, 0}) }

func (f *fold) Attempt(key string, number int64) (*ports.Held, error) {
	return f.look(place{attempts, key, number})
}

func (f *fold) Manifest(key string) (*ports.Held, error) { return f.look(place{manifests, key, 0}) }

func (f *fold) Event(guid string) (*ports.Held, error) {
	if f.hopeful {
		return nil, nil
	}
	return f.look(place{events, guid, 0})
}

func (f *fold) Gone(k ports.Kind, key string) (bool, error) {
	if change, ok := f.graves[grave{k, key}]; ok {
		return change != nil, nil
	}
	if f.w.known.gone[k.Family()] == 0 {
		return false, nil
	}
	_, found, err := f.w.link.number(`SELECT 1 FROM "UVGone" WHERE "Kind" = ? AND "Key" = ?`, string(k), key)
	return found, err
}

func (f *fold) look(p place) (*ports.Held, error) {
	r, err := f.find(p)
	if err != nil {
		return nil, err
	}
	return r.next, nil
}

func (f *fold) find(p place) (*row, error) {
	if r, ok := f.rows[p]; ok {
		return r, nil
	}
	r := &row{place: p}
	if c, ok := f.w.cache.get(p); ok {
		r.id, r.base = c.id, c.held
	} else if err := f.read(r); err != nil {
		return nil, err
	}
	r.next = r.base
	f.rows[p] = r
	return r, nil
}

// read takes a row from the file. Most look-ups miss, so the id is asked for first: a statement's many columns cost even
// when there is no row. A row that a databeacon marked as deleted is in the way of a new one, and goes.
func (f *fold) read(r *row) (err error) {
	var found bool
	if r.layout == attempts {
		r.id, found, err = f.w.link.number(r.layout.findID, r.key, r.number)
	} else {
		r.id, found, err = f.w.link.number(r.layout.findID, r.key)
	}
	if err != nil || !found {
		return err
	}
	deleted := false
	err = f.w.link.query(r.layout.writeID, func(v []driver.Value) error {
		n, _ := v[0].(int64)
		deleted = n != 0
		stamps := ""
		if r.layout.Marks >= 0 {
			stamps, _ = v[len(v)-1].(string)
			v = v[:len(v)-1]
		}
		var err error
		if r.base, err = r.layout.Held(anys(v[1:])); err == nil {
			r.base.Stamps = stamps
		}
		return err
	}, r.id)
	if err == nil && deleted {
		r.base = nil
		_, err = f.w.link.exec(r.layout.deleteID, r.id)
	}
	return err
}

func anys(row []driver.Value) []any {
	out := make([]any, len(row))
	for i, v := range row {
		out[i] = v
	}
	return out
}

// decide decides one entry, takes in its effect, and then decides what waited for it.
func (f *fold) decide(e *ports.Entry, rules ports.Rules) (ports.Decision, error) {
	dropped, err := f.w.dropEarly(e)
	if err != nil {
		return ports.Decision{}, err
	}
	d, arrives, err := f.decideOne(e, rules)
	if err == nil && arrives && f.w.known.early.count > 0 {
		err = f.release(e, &d, rules)
	}
	d.Dropped += dropped
	d.Told(int(f.w.known.early.count))
	return d, err
}

// decideOne decides one entry alone; arrives says that it leaves an item there.
func (f *fold) decideOne(e *ports.Entry, rules ports.Rules) (d ports.Decision, arrives bool, err error) {
	if e.Action == ports.AppendEvent {
		d, err = f.decideEvent(e, rules)
		return d, false, err
	}
	effect, err := ports.Decide(e, f, rules)
	if err != nil {
		return ports.Decision{}, false, err
	}
	if effect.Keep {
		return effect.Decision, false, f.w.keepEarly(e)
	}
	return effect.Decision, effect.Arrives(), f.take(&effect, len(e.Record) > bulkyBytes)
}

// decideEvent decides an event as if it were new, which it nearly always is. Only where that stores nothing, or its GUID
// turns out to be taken, is it decided again by what is there.
func (f *fold) decideEvent(e *ports.Entry, rules ports.Rules) (ports.Decision, error) {
	for _, f.hopeful = range []bool{true, false} {
		effect, err := ports.Decide(e, f, rules)
		delete(f.rows, place{events, e.EventGUID, 0}) // the file alone knows of events
		if err != nil {
			return ports.Decision{}, err
		}
		if effect.Next == nil {
			if f.hopeful {
				continue
			}
			if effect.Keep {
				return effect.Decision, f.w.keepEarly(e)
			}
			return effect.Decision, nil
		}
		if present, err := f.insertEvent(e.Key, effect.Next); err != nil || !present {
			return effect.Decision, err
		}
	}
	return ports.Decision{}, ports.Errorf(ports.Internal, "sqlite: commit", "event %s is neither there nor new", e.EventGUID)
}

func (f *fold) insertEvent(key string, h *ports.Held) (present bool, err error) {
	result, err := f.insert(events, key, h)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n == 0, err
}

func (f *fold) take(effect *ports.Effect, bulky bool) error {
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
	f.set(r, effect.Key, effect.Next, bulky)
	return nil
}

func (f *fold) set(r *row, owner string, next *ports.Held, bulky bool) {
	r.owner, r.next = owner, next
	r.bulky = r.bulky || bulky
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

// flush writes what the transaction changed.
func (f *fold) flush() error {
	for _, r := range f.written {
		if err := f.write(r); err != nil {
			return err
		}
	}
	for g, change := range f.graves {
		if err := f.w.bury(g, change); err != nil {
			return err
		}
	}
	if len(f.graves) > 0 {
		for _, family := range ports.Families {
			if err := f.w.dropGraves(family); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *fold) write(r *row) error {
	switch {
	case r.next == nil && r.base == nil:
		return nil
	case r.next == nil:
		_, err := f.w.link.exec(r.layout.deleteID, r.id)
		return err
	case r.base != nil:
		return f.update(r)
	}
	result, err := f.insert(r.layout, r.owner, r.next)
	if err != nil {
		return err
	}
	r.id, err = result.LastInsertId()
	return err
}

func (f *fold) insert(l *layout, key string, h *ports.Held) (driver.Result, error) {
	values := f.values[:len(l.Names)]
	l.values(values, key, h, f.now)
	set := tables.Filled(values)
	s, err := f.w.link.mask(maskKey{layout: l, insert: true, set: set})
	if err != nil {
		return nil, err
	}
	return s.runSet(values, s.set)
}

func (f *fold) update(r *row) error {
	values := f.values[:len(r.layout.Names)]
	set := r.layout.changes(values, r.owner, r.base, r.next, f.now)
	if set == 0 {
		return nil
	}
	s, err := f.w.link.mask(maskKey{layout: r.layout, set: set})
	if err != nil {
		return err
	}
	_, err = s.runSet(values, s.set, r.id)
	return err
}

// remember hands what was written to the cache, after the commit.
func (f *fold) remember() {
	for _, r := range f.written {
		if r.next == nil || r.bulky || r.layout == events {
			f.w.cache.drop(r.place)
			continue
		}
		f.w.cache.put(r.place, cached{held: r.next, id: r.id})
	}
	clear(f.rows)
	clear(f.written)
	f.written = f.written[:0]
}
