package postgres

import (
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

func graveOf(row []any) grave {
	kind, _ := row[0].(string)
	key, _ := row[1].(string)
	return grave{ports.Kind(kind), key}
}

// flushGraves adds the tombstones that come and go. One that is renewed becomes the youngest.
func (f *fold) flushGraves(b *pgx.Batch) {
	var kinds, keys, newKinds, newKeys, hosts []string
	var seqs []int64
	for g, change := range f.graves {
		kinds, keys = append(kinds, string(g.kind)), append(keys, g.key)
		if change != nil {
			newKinds, newKeys = append(newKinds, string(g.kind)), append(newKeys, g.key)
			hosts, seqs = append(hosts, change.Host), append(seqs, int64(change.Seq))
		}
	}
	if len(kinds) > 0 {
		b.Queue(`DELETE FROM "UVGone" AS t USING unnest($1::text[], $2::text[]) AS v(k, n) WHERE t."Kind" = v.k AND t."Key" = v.n`, kinds, keys)
	}
	if len(newKinds) > 0 {
		b.Queue(`INSERT INTO "UVGone" ("Kind", "Key", "ChangeHost", "ChangeSeq")
			SELECT k, n, h, s FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS v(k, n, h, s) ORDER BY s, n`, newKinds, newKeys, hosts, seqs)
	}
}

// dropGraves lets the oldest tombstones of a family go where there are too many, and remembers of each host the highest Seq
// among them: who has read less far may have missed a removal. They are counted when this process has added its thousandth part,
// or any for the first time; other hosts do the same.
func (w *writer) dropGraves(t *turn, f ports.Family) error {
	kind := string(tables.BuriedOf(f))
	over, _, err := t.number(t.ctx, `SELECT count(*) FROM "UVGone" WHERE "Kind" = $1`, kind)
	if err != nil {
		return err
	}
	if over -= w.graves; over <= 0 {
		return nil
	}
	// The row of what was dropped is changed by one host at a time.
	if _, err := t.conn.Exec(t.ctx, `INSERT INTO "UVHoldfast" ("Key", "Value") VALUES ($1, '{}') ON CONFLICT ("Key") DO NOTHING`, tables.KeyDropped(f)); err != nil {
		return err
	}
	dropped := map[string]uint64{}
	text, err := t.word(t.ctx, readKey+` FOR UPDATE`, tables.KeyDropped(f))
	if err != nil {
		return err
	}
	if err := tables.Readable("postgres", tables.KeyDropped(f), text, &dropped); err != nil {
		return err
	}
	err = t.query(t.ctx, `WITH oldest AS (SELECT "IDUVGone" FROM "UVGone" WHERE "Kind" = $1 ORDER BY "IDUVGone" LIMIT $2),
		gone AS (DELETE FROM "UVGone" AS t USING oldest WHERE t."IDUVGone" = oldest."IDUVGone" RETURNING t."ChangeHost", t."ChangeSeq")
		SELECT "ChangeHost", max("ChangeSeq") FROM gone GROUP BY 1`, func(row []any) error {
		host, _ := row[0].(string)
		seq, _ := row[1].(int64)
		dropped[host] = max(dropped[host], uint64(seq))
		return nil
	}, kind, over)
	if err != nil {
		return err
	}
	told, err := json.Marshal(dropped)
	if err != nil {
		return err
	}
	return setWord(t.ctx, t.conn, tables.KeyDropped(f), string(told))
}

// buries says whether the transaction leaves tombstones.
func (f *fold) buries() bool {
	for _, change := range f.graves {
		if change != nil {
			return true
		}
	}
	return false
}

// tidyGraves looks after the number of tombstones in a transaction that leaves some.
func (w *writer) tidyGraves(t *turn, graves map[grave]*ports.Change) error {
	for _, f := range ports.Families {
		left := int64(0)
		for g, change := range graves {
			if change != nil && g.kind.Family() == f {
				left++
			}
		}
		if left == 0 {
			continue
		}
		counted, known := w.buried[f]
		if counted += left; known && counted < w.graves/1000 {
			w.buried[f] = counted
			continue
		}
		if err := w.dropGraves(t, f); err != nil {
			return err
		}
		w.buried[f] = 0
	}
	return nil
}
