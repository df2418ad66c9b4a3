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
	gone      map[place]bool
	nonces    map[string]string
	marks     map[ports.Family]ports.Mark
	decisions map[ports.Family]map[uint64]ports.Decision
	applied   map[ports.Family][]ports.Entry // in the order in which they took effect
}

// place is where a record is: an item and a manifest by key, an event by GUID, an attempt by key and number.
type place struct {
	kind   ports.Kind
	key    string
	number int64
}

func newDisk(id string) *disk {
	d := &disk{
		id: id, held: map[place]*ports.Held{}, gone: map[place]bool{}, nonces: map[string]string{}, marks: map[ports.Family]ports.Mark{},
		decisions: map[ports.Family]map[uint64]ports.Decision{}, applied: map[ports.Family][]ports.Entry{},
	}
	for _, f := range ports.Families {
		d.decisions[f] = map[uint64]ports.Decision{}
	}
	return d
}

// copied is a backup.
func (d *disk) copied() *disk {
	c := &disk{id: d.id, held: maps.Clone(d.held), gone: maps.Clone(d.gone), nonces: maps.Clone(d.nonces), marks: maps.Clone(d.marks),
		decisions: map[ports.Family]map[uint64]ports.Decision{}, applied: map[ports.Family][]ports.Entry{}}
	for _, f := range ports.Families {
		c.decisions[f], c.applied[f] = maps.Clone(d.decisions[f]), slices.Clone(d.applied[f])
	}
	return c
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
		effect, err := ports.Decide(e, d, ports.Rules{HostID: host})
		if err != nil {
			return nil, err
		}
		d.take(&effect)
		d.decisions[b.Family][e.Seq] = effect.Decision
		d.applied[b.Family] = append(d.applied[b.Family], *e)
		decisions = append(decisions, effect.Decision)
	}
	d.marks[b.Family] = ports.Mark{Epoch: b.Epoch, Seq: b.Through}
	return decisions, nil
}

func (d *disk) take(effect *ports.Effect) {
	at := place{kind: effect.Kind, key: effect.Key}
	switch effect.Kind {
	case ports.KindEvent:
		at.key = effect.GUID
	case ports.KindAttempt:
		at.number = effect.Number
	}
	if effect.Revive {
		delete(d.gone, at)
	}
	if effect.Bury {
		delete(d.held, at)
		d.gone[at] = true
	}
	if effect.Next != nil {
		d.held[at] = effect.Next
	}
}
