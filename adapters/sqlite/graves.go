package sqlite

import (
	"fmt"

	"holdfast/ports"
)

// maxGraves is how many tombstones of a family are kept; then the oldest go.
const maxGraves = 1_000_000

// gravesOf is the condition that picks a family's tombstones.
func gravesOf(f ports.Family) string {
	if f == ports.Manifest {
		return `"Kind" = 'Manifest'`
	}
	return `"Kind" <> 'Manifest'`
}

// bury writes a record's tombstone, or takes it away (change is nil). It must run in a transaction.
func (w *writer) bury(g grave, change *ports.Change) error {
	family := g.kind.Family()
	removed, err := w.link.affected(`DELETE FROM "UVGone" WHERE "Kind" = ? AND "Key" = ?`, string(g.kind), g.key)
	if err != nil {
		return err
	}
	w.known.gone[family] -= removed
	if change == nil {
		return nil
	}
	_, err = w.link.exec(`INSERT INTO "UVGone" ("Kind", "Key", "ChangeHost", "ChangeSeq") VALUES (?, ?, ?, ?)`,
		string(g.kind), g.key, change.Host, int64(change.Seq))
	if err != nil {
		return err
	}
	w.known.gone[family]++
	if w.known.gone[family] <= w.graves {
		return nil
	}
	removed, err = w.link.affected(fmt.Sprintf(
		`DELETE FROM "UVGone" WHERE rowid IN (SELECT rowid FROM "UVGone" WHERE %s ORDER BY rowid LIMIT ?)`, gravesOf(family)),
		w.known.gone[family]-w.graves)
	w.known.gone[family] -= removed
	return err
}
