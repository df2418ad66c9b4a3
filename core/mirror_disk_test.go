package core

import (
	"maps"
	"slices"

	"holdfast/ports"
)

// mirrorDisk is what a mirror keeps.
type mirrorDisk struct {
	id        string
	rows      map[place]ports.Row
	positions map[ports.Family]ports.Position
	shown     map[place]ports.Change // the last change of each place, of removed ones too
	log       []ports.Batch          // in the order in which they took effect
}

func newMirrorDisk(id string) *mirrorDisk {
	return &mirrorDisk{id: id, rows: map[place]ports.Row{}, positions: map[ports.Family]ports.Position{}, shown: map[place]ports.Change{}}
}

// copied is a backup.
func (d *mirrorDisk) copied() *mirrorDisk {
	return &mirrorDisk{id: d.id, rows: maps.Clone(d.rows), positions: maps.Clone(d.positions), shown: maps.Clone(d.shown), log: slices.Clip(d.log)}
}

func (d *mirrorDisk) position(f ports.Family) ports.Position {
	p := d.positions[f]
	p.StoreID, p.Seqs = d.id, maps.Clone(p.Seqs)
	return p
}

func (d *mirrorDisk) setPosition(f ports.Family, p ports.Position) {
	p.Seqs = maps.Clone(p.Seqs)
	d.positions[f] = p
}

func (d *mirrorDisk) put(row *ports.Row) {
	at := placeOfRow(row)
	d.shown[at] = row.Change
	if row.Gone {
		delete(d.rows, at)
		return
	}
	d.rows[at] = *row
}

// list gives the rows of some kinds.
func (d *mirrorDisk) list(kinds ...ports.Kind) []ports.Row {
	var rows []ports.Row
	for at, row := range d.rows {
		if slices.Contains(kinds, at.kind) {
			rows = append(rows, row)
		}
	}
	return rows
}
