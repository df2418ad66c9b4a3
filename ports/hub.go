package ports

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"
)

// What holds for the writes of a hub that we joined, in addition to the rules for everybody: they may come late, twice and in
// another order than they were sent. Each member of a row keeps the stamp of the live write that set it, and only a write that
// is not older sets it again. A manifest is replaced whole, so it has one stamp.
//
// What a hub sends again is older than the work that carries it: the hub read it some time before. Its stamp is the time that
// the record itself tells.

// Of early writes: how long one waits for its item, and how many may wait.
const (
	EarlyFor       = 24 * time.Hour
	MaxEarlyPerKey = 100
	MaxEarly       = 100_000
	MaxEarlyBytes  = 4 << 20 // of a key: all that comes with its item is told as one change
)

// stamped says whether a hub that we joined sent the write.
func (d *decider) stamped() bool { return !d.entry.Stamp.IsZero() }

// told names the member that tells how old a record of a kind is.
func told(t *Table) string {
	if t.Kind == KindManifest {
		return "StopTime"
	}
	return "LastEventAt"
}

// stampsOf are the stamps of a row after this write.
func (d *decider) stampsOf(present *Held, next *Record) string {
	switch {
	case d.marks != nil:
		return d.marks.text(next)
	case present != nil && next.Table.Kind == KindManifest:
		return present.Stamps
	case present != nil:
		return marksOf(present.Stamps, present.Record).text(next) // members that came without a stamp have none
	case d.entry.Action == AppendEvent || d.entry.Action == InsertAttempt:
		return "" // an event never changes, and what an outcome says goes before what an insert said, whenever it came
	case d.entry.Class == Reflush:
		return toldStamp(next, told(next.Table)).one()
	}
	return d.entry.Stamp.one()
}

// overwriteStamped is what a hub's write does to the members of a row: it sets those that no later write has set.
func (d *decider) overwriteStamped(present *Held, given *Record, keep ...string) {
	mark, since := d.entry.Stamp, d.entry.Stamp
	if d.entry.Class == Reflush {
		mark = toldStamp(given, told(given.Table))
		since = Stamp{Ms: mark.Ms}
	}
	held := marksOf(present.Stamps, present.Record)
	next := present.Record.Clone()
	var changed []string
	lost, moved, healthOnly := false, false, d.entry.Action == UpdateWorkItem
	take := func(name string, value []byte) bool {
		healthOnly = healthOnly && strings.HasPrefix(name, "Health")
		now, by := next.Get(name), held[name]
		same := now != nil && bytes.Equal(now, value)
		switch {
		case by == mark && !mark.IsZero():
			return false // it is this very write again
		case d.entry.Class == Reflush && by.Count == retold: // which of them is later was decided already
		case since.Older(by) || d.entry.Stamp.Older(by):
			lost = lost || !same
			return false
		}
		if mark.IsZero() {
			delete(held, name)
		} else {
			held[name] = mark
		}
		moved = moved || by != mark
		return !same
	}
	merge(given, keep,
		func(at int, value []byte) bool {
			return take(given.Table.Members[at].Name, value) && next.setCol(at, value)
		},
		func(name string, value []byte) bool { return take(name, value) && next.Set(name, value) },
		func(name string) { changed = append(changed, name) })
	const computed = "HealthComputedAt"
	if len(changed) == 1 && changed[0] == computed && d.entry.Action == UpdateWorkItem {
		changed, next = nil, present.Record
		held[computed] = marksOf(present.Stamps, present.Record)[computed]
	}
	if len(changed) == 0 && lost {
		d.outcome(Late)
	}
	d.marks = held
	switch {
	case len(changed) > 0:
		d.store(present, next, "")
	case moved && !healthOnly: // a health that is only computed again is not worth a write
		d.restamp(present, held.text(next))
	}
}

// restamp keeps who set a row's members last where the record itself is as it was: no other backend need be told.
func (d *decider) restamp(present *Held, stamps string) {
	next := *present
	next.Stamps = stamps
	d.effect.Next, d.effect.Present = &next, present
}

// fixed are the members that a hub's write must not fill: those that a later live write set, and where an attempt is
// inserted all that an outcome set.
func (d *decider) fixed(present *Held, keep ...string) []string {
	if !d.stamped() || present.Stamps == "" {
		return keep
	}
	for name, by := range marksOf(present.Stamps, present.Record) {
		if d.entry.Action == InsertAttempt || d.entry.Stamp.Older(by) && by.Count != retold {
			keep = append(keep, name)
		}
	}
	return keep
}

// liveManifest is a hub's live write of a manifest that is there; done says that it changes nothing of it.
func (d *decider) liveManifest(present *Held, given *Record) (done bool) {
	by, same := whole(present.Stamps), string(present.Record.JSON()) == string(given.JSON())
	switch {
	case by == d.entry.Stamp:
		return true
	case d.entry.Stamp.Older(by):
		if !same {
			d.outcome(Late)
		}
		return true
	case same:
		d.restamp(present, d.entry.Stamp.one())
		return true
	}
	d.stamps = d.entry.Stamp.one()
	return false
}

// hollow says whether a manifest that a hub sends again has nothing to tell: a live write set the one that is there, whole, and
// it is not later, or was even sent before.
func (d *decider) hollow(present *Held, later bool) bool {
	by := whole(present.Stamps)
	if !d.stamped() || by.IsZero() || by.Count == retold {
		return false
	}
	if d.entry.Stamp.Older(by) {
		d.outcome(Late)
		return true
	}
	return !later
}

// early keeps a hub's write that came before its item.
func (d *decider) early() error {
	e := d.entry
	waiting, inAll, err := d.look.Early(e.Key)
	if err != nil {
		return err
	}
	bytes := len(e.Record)
	for i := range waiting {
		w := &waiting[i]
		bytes += len(w.Record)
		if w.Action == e.Action && w.Stamp == e.Stamp && w.EventGUID == e.EventGUID {
			d.outcome(Early) // it waits already
			return nil
		}
	}
	switch {
	case len(waiting) >= MaxEarlyPerKey:
		d.refuse(full("writes of this key wait for their item", MaxEarlyPerKey, len(waiting)+1))
	case bytes > MaxEarlyBytes:
		d.refuse(full("bytes of this key would wait for their item", MaxEarlyBytes, bytes))
	case inAll >= MaxEarly:
		d.refuse(full("writes wait for their items", MaxEarly, inAll+1))
	default:
		d.outcome(Early)
		d.effect.Keep = true
	}
	return nil
}

func full(what string, limit int64, size int) *Error {
	e := Errorf(Full, "early write", "too many %s; send the item first", what)
	e.Limit, e.Size = limit, int64(size)
	return e
}

// Arrives says whether an entry that was decided so leaves an item there, for which early writes of its key have waited.
func (f *Effect) Arrives() bool {
	return f.Kind == KindItem && (f.Decision.Outcome == Stored || f.Decision.Outcome == Late)
}

// Release gives the early writes of a key as they are decided when its item has come, in order: each is a change of the entry
// that brought the item, and keeps its own place among the first writes.
func Release(waiting []Entry, by *Entry) []Entry {
	released := slices.Clone(waiting)
	for i := range released {
		e := &released[i]
		e.Again = cmp.Or(e.Again, e.Seq)
		e.Seq = by.Seq
	}
	return released
}

// Told completes a decision by how many early writes wait now, where it concerns them.
func (d *Decision) Told(waiting int) {
	if d.Outcome == Early || d.Applied > 0 || d.Dropped > 0 {
		d.Waiting = waiting
	}
}

// TooEarly is the time before which an early write must have come to be dropped when an entry is decided: it has waited long
// enough.
func TooEarly(e *Entry) (before int64) { return e.ReceivedMs - EarlyFor.Milliseconds() }
