package core

import (
	"maps"
	"slices"

	"holdfast/ports"
)

// What the store in memory keeps, and how a batch changes it.

// disk is what survives the process.
type disk struct {
	id        string
	held      map[place]*ports.Held
	gone      map[place]ports.Change
	nonces    map[string]string
	marks     map[ports.Family]ports.Mark            // of the host that opens it
	others    map[ports.Family]map[string]ports.Mark // of hosts that write to it beside that one
	epochs    map[ports.Family][]ports.Epoch         // of the host that opens it, oldest first
	dropped   map[ports.Family]map[string]uint64     // the highest Seq of a forgotten removal
	decisions map[ports.Family]map[uint64]ports.Decision
	applied   map[ports.Family][]ports.Entry // in the order in which they took effect
	annals    *annals
	early     []ports.Entry // what hubs sent before its item
}

func newDisk(id string) *disk {
	d := &disk{
		id: id, held: map[place]*ports.Held{}, gone: map[place]ports.Change{}, nonces: map[string]string{},
		marks: map[ports.Family]ports.Mark{}, others: map[ports.Family]map[string]ports.Mark{}, epochs: map[ports.Family][]ports.Epoch{},
		dropped: map[ports.Family]map[string]uint64{}, decisions: map[ports.Family]map[uint64]ports.Decision{},
		applied: map[ports.Family][]ports.Entry{}, annals: newAnnals(),
	}
	for _, f := range ports.Families {
		d.others[f], d.dropped[f], d.decisions[f] = map[string]ports.Mark{}, map[string]uint64{}, map[uint64]ports.Decision{}
	}
	return d
}

// copied is a backup. What is remembered of all that ever was, is shared.
func (d *disk) copied() *disk {
	c := newDisk(d.id)
	c.held, c.gone, c.nonces, c.marks, c.annals = maps.Clone(d.held), maps.Clone(d.gone), maps.Clone(d.nonces), maps.Clone(d.marks), d.annals
	c.early = slices.Clone(d.early)
	for _, f := range ports.Families {
		c.others[f], c.dropped[f], c.epochs[f] = maps.Clone(d.others[f]), maps.Clone(d.dropped[f]), slices.Clone(d.epochs[f])
		c.decisions[f], c.applied[f] = maps.Clone(d.decisions[f]), slices.Clone(d.applied[f])
	}
	return c
}

// admit takes in a start of the host that opens the store.
func (d *disk) admit(o *ports.Opening) {
	d.nonces[o.HostID] = o.Next
	for f, e := range o.Epochs {
		if n := len(d.epochs[f]); n == 0 || d.epochs[f][n-1] != e {
			d.epochs[f] = append(slices.Clip(d.epochs[f]), e)
		}
	}
	for f, seq := range o.Resume {
		d.marks[f], d.decisions[f] = ports.Mark{Epoch: o.Epochs[f].ID, Seq: seq}, map[uint64]ports.Decision{}
	}
}

func (d *disk) commit(host string, b *ports.CommitBatch) ([]ports.Decision, error) {
	mark := d.marks[b.Family].Seq
	decisions := make([]ports.Decision, 0, len(b.Entries))
	switch {
	case host == "":
		return nil, ports.Errorf(ports.Unavailable, "memory", "no host has opened the store")
	case b.Through <= mark: // a late twin
		for _, e := range b.Entries {
			decisions = append(decisions, d.decisions[b.Family][e.Seq])
		}
		return decisions, nil
	case b.After != mark:
		return nil, ports.Errorf(ports.Conflict, "memory", "the store is at %d, the batch begins after %d", mark, b.After)
	}
	for i := range b.Entries {
		e := &b.Entries[i]
		decision, err := d.decide(e, host)
		if err != nil {
			return nil, err
		}
		d.decisions[b.Family][e.Seq] = decision
		d.applied[b.Family] = append(d.applied[b.Family], *e)
		decisions = append(decisions, decision)
	}
	d.marks[b.Family] = ports.Mark{Epoch: b.Epoch, Seq: b.Through}
	d.annals.reach[b.Family] = max(d.annals.reach[b.Family], b.Through)
	return decisions, nil
}

// decide decides an entry, and what waited for the item that it brings.
func (d *disk) decide(e *ports.Entry, host string) (decision ports.Decision, err error) {
	defer func() { decision.Told(len(d.early)) }()
	before := len(d.early)
	d.early = slices.DeleteFunc(d.early, func(w ports.Entry) bool { return w.ReceivedMs < ports.TooEarly(e) })
	effect, err := ports.Decide(e, d, ports.Rules{HostID: host})
	if err != nil {
		return ports.Decision{}, err
	}
	decision = effect.Decision
	decision.Dropped = before - len(d.early)
	d.take(host, &effect)
	if effect.Keep {
		d.early = append(d.early, *e)
	}
	if waiting, _, _ := d.Early(e.Key); effect.Arrives() && len(waiting) > 0 {
		d.early = slices.DeleteFunc(d.early, func(w ports.Entry) bool { return w.Key == e.Key })
		for _, w := range ports.Release(waiting, e) {
			effect, err := ports.Decide(&w, d, ports.Rules{HostID: host})
			if err != nil {
				return decision, err
			}
			d.take(host, &effect)
			decision.Applied++
		}
	}
	return decision, nil
}

func (d *disk) Early(key string) (waiting []ports.Entry, inAll int, err error) {
	for _, e := range d.early {
		if e.Key == key {
			waiting = append(waiting, e)
		}
	}
	return waiting, len(d.early), nil
}

func (d *disk) take(host string, effect *ports.Effect) {
	at := placeOf(effect.Kind, effect.Key, effect.GUID, effect.Number)
	if effect.Revive {
		delete(d.gone, at)
	}
	if effect.Bury {
		change := ports.Change{Host: host, Seq: effect.Decision.Seq}
		delete(d.held, at)
		d.gone[at] = change
		d.annals.note(at, version{change: change, key: at.key, gone: true})
	}
	if effect.Next != nil {
		d.set(at, effect.Next)
	}
}

func (d *disk) set(at place, held *ports.Held) {
	d.held[at] = held
	d.annals.note(at, version{change: held.Change, key: d.row(at, held).Key, body: string(held.Record.JSON()), first: held.First})
}

// put replaces rows whole, up to the first that is no record, and says how many.
func (d *disk) put(rows []ports.Row) (int, error) {
	for i := range rows {
		row := &rows[i]
		at := placeOf(row.Kind, row.Key, row.GUID, row.Number)
		if row.Gone {
			delete(d.held, at)
			if row.Kind == ports.KindItem || row.Kind == ports.KindManifest {
				d.gone[at] = row.Change
			}
			d.annals.note(at, version{change: row.Change, key: row.Key, gone: true})
			continue
		}
		record, err := ports.ParseRecord(ports.TableOf(row.Kind), row.Body)
		if err != nil {
			return i, err
		}
		delete(d.gone, at)
		d.set(at, &ports.Held{Record: record, First: row.First, Change: row.Change})
	}
	return len(rows), nil
}

// forget drops the tombstone of a key, as a store with too many of them does.
func (d *disk) forget(k ports.Kind, key string) {
	at := place{kind: k, key: key}
	change := d.gone[at]
	delete(d.gone, at)
	known := d.dropped[k.Family()]
	known[change.Host] = max(known[change.Host], change.Seq)
}
