package tables

import "holdfast/ports"

// StateOf is the state that a row of a Put gives its record, or why it can give it none.
func StateOf(t *ports.Table, row *ports.Row) (state *ports.Held, refused error) {
	record, err := ports.ParseRecord(t, row.Body)
	if err != nil {
		return nil, err
	}
	if err := row.Identify(record); err != nil {
		return nil, err
	}
	return &ports.Held{Record: record, First: row.FirstOf(record), Change: row.Change}, nil
}

// Same says whether a Put of one state over the other would change nothing.
func Same(a, b *ports.Held) bool {
	if a.First != b.First || a.Change != b.Change || !a.Record.Same(b.Record) {
		return false
	}
	return a.Record.Table.Kind != ports.KindManifest || string(a.Record.JSON()) == string(b.Record.JSON())
}

// MaxGraves is how many tombstones of a family are kept; then the oldest go.
const MaxGraves = 1_000_000

// Buried says whether records of a kind leave tombstones: those that are removed by their own key.
func Buried(k ports.Kind) bool { return k == ports.KindItem || k == ports.KindManifest }

// BuriedOf is the kind of a family's records that leave tombstones.
func BuriedOf(f ports.Family) ports.Kind {
	if f == ports.Manifest {
		return ports.KindManifest
	}
	return ports.KindItem
}
