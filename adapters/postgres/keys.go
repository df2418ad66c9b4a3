package postgres

import (
	"strings"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// The rows of UVHoldfast that this engine has beside those of tables.KeyStoreID. Nonce/HOST is the fence of the host's transactions.
const keySchema = "Schema" // ports.SchemaVersion of the tables

// keyRetention is the key of a host's retention, in whole seconds; 0 is for ever.
func keyRetention(host string) string { return "Retention/" + host }

const (
	readKey  = `SELECT "Value" FROM "UVHoldfast" WHERE "Key" = $1`
	readKeys = `SELECT "Key", "Value" FROM "UVHoldfast" WHERE "Key" >= $1 AND "Key" < $2 ORDER BY "Key"`
	setKeys  = `INSERT INTO "UVHoldfast" ("Key", "Value") SELECT k, v FROM unnest($1::text[], $2::text[]) AS w(k, v) ON CONFLICT ("Key") DO UPDATE SET "Value" = excluded."Value"`
)

// readOdds reads the odd decisions that a host was told last.
func readOdds(t *turn, f ports.Family, host string) (*tables.Odds, error) {
	o, prefix := &tables.Odds{}, tables.KeyOdds(f, host)
	err := t.query(t.ctx, readKeys, func(row []any) error {
		key, _ := row[0].(string)
		text, _ := row[1].(string)
		o.Take(strings.TrimPrefix(key, prefix), text)
		return nil
	}, prefix, tables.After(prefix))
	return o, err
}
