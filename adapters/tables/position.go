package tables

import (
	"maps"
	"slices"

	"holdfast/ports"
)

// Marks say how far a store is with each host that wrote to it.
type Marks map[string]ports.Mark

// Take takes in a row of UVHoldfast.
func (m Marks) Take(op string, f ports.Family, key, text string) error {
	var mark ports.Mark
	err := Readable(op, key, text, &mark)
	m[key[len(KeyMarks(f)):]] = mark
	return err
}

// Position is where a store is by its marks. Whose epoch it has is not said: that is the opener's to set.
func (m Marks) Position() (p ports.Position) {
	for _, host := range slices.Sorted(maps.Keys(m)) {
		if p.Seqs == nil {
			p.Seqs = map[string]uint64{}
		}
		p.Epoch, p.Seqs[host] = m[host].Epoch, m[host].Seq
	}
	return p
}

// Elsewhere refuses a batch that is not the next one for a store at a position: it was taken back to an older copy, or is
// another one.
func Elsewhere(storeID string, at ports.Position, b *ports.Batch) error {
	if b.After.StoreID == storeID && at.Covers(*b.After) && b.After.Covers(at) {
		return nil
	}
	return ports.InField(ports.Conflict, ports.FieldPosition,
		"the store %s is at %v, the batch is for %s at %v", storeID, at.Seqs, b.After.StoreID, b.After.Seqs)
}
