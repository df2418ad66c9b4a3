package sqlite

import (
	"database/sql/driver"
	"encoding/json"
	"strings"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// Rows of UVHoldfast; see tables.KeyStoreID.
const (
	readKey  = `SELECT "Value" FROM "UVHoldfast" WHERE "Key" = ?`
	readKeys = `SELECT "Key", "Value" FROM "UVHoldfast" WHERE "Key" >= ? AND "Key" < ?`
)

// setKey writes a row. A table that a databeacon made may have no constraint to upsert by.
func setKey(l *link, key, value string) error {
	n, err := l.affected(`UPDATE "UVHoldfast" SET "Value" = ? WHERE "Key" = ?`, value, key)
	if err == nil && n == 0 {
		_, err = l.exec(`INSERT INTO "UVHoldfast" ("Key", "Value") VALUES (?, ?)`, key, value)
	}
	return err
}

func setJSON(l *link, key string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return setKey(l, key, string(text))
}

// getJSON reads a value; of a key that is not there it changes nothing.
func getJSON(l *link, key string, into any) error {
	text, err := l.word(readKey, key)
	if err != nil {
		return err
	}
	return tables.Readable("sqlite", key, text, into)
}

// readOdds reads the odd decisions that a host was told last.
func readOdds(l *link, f ports.Family, host string) (*tables.Odds, error) {
	o, prefix := &tables.Odds{}, tables.KeyOdds(f, host)
	err := l.query(readKeys, func(row []driver.Value) error {
		key, _ := row[0].(string)
		text, _ := row[1].(string)
		o.Take(strings.TrimPrefix(key, prefix), text)
		return nil
	}, prefix, tables.After(prefix))
	return o, err
}
