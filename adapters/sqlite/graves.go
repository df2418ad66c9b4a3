package sqlite

import (
	"database/sql/driver"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// gravesOf is the condition that picks a family's tombstones.
func gravesOf(f ports.Family) string { return `"Kind" = '` + string(tables.BuriedOf(f)) + `'` }

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
	return nil
}

// dropGraves lets the oldest tombstones of a family go where there are too many, and remembers of each host the highest Seq
// among them: who has read less far may have missed a removal. It must run in a transaction.
func (w *writer) dropGraves(f ports.Family) error {
	over := w.known.gone[f] - w.graves
	if over <= 0 {
		return nil
	}
	dropped := map[string]uint64{}
	if err := getJSON(w.link, tables.KeyDropped(f), &dropped); err != nil {
		return err
	}
	oldest := `FROM "UVGone" WHERE ` + gravesOf(f) + ` ORDER BY rowid LIMIT ?`
	err := w.link.query(`SELECT "ChangeHost", "ChangeSeq" `+oldest, func(row []driver.Value) error {
		host, _ := row[0].(string)
		seq, _ := row[1].(int64)
		dropped[host] = max(dropped[host], uint64(seq))
		return nil
	}, over)
	if err != nil {
		return err
	}
	if err := setJSON(w.link, tables.KeyDropped(f), dropped); err != nil {
		return err
	}
	removed, err := w.link.affected(`DELETE FROM "UVGone" WHERE rowid IN (SELECT rowid `+oldest+`)`, over)
	w.known.gone[f] -= removed
	return err
}
