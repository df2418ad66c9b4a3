package sqlite

import (
	"encoding/json"
	"strconv"

	"holdfast/ports"
)

// What the store knows of itself stands in UVHoldfast, one row for each thing:
//
//	StoreID                       made with the file
//	Nonce/HOST                    what Open left
//	Mark/FAMILY/HOST              ports.Mark
//	Epochs/FAMILY/HOST            []ports.Epoch, oldest first
//	Odd/FAMILY/HOST/SLOT          []ports.Decision that were not simply "stored", of one transaction
//	Follower/FAMILY               ports.Position, as the last Put gave it
//	Dropped/FAMILY                the highest Seq of a dropped tombstone, by host
//	Nobody/FAMILY                 the highest Seq that was given to a change of host ""
const keyStoreID = "StoreID"

func keyNonce(host string) string { return "Nonce/" + host }

// marksOf is the common beginning of the keys of a family's marks.
func marksOf(f ports.Family) string { return "Mark/" + string(f) + "/" }

func keyMark(f ports.Family, host string) string   { return marksOf(f) + host }
func keyEpochs(f ports.Family, host string) string { return "Epochs/" + string(f) + "/" + host }
func oddsOf(f ports.Family, host string) string    { return "Odd/" + string(f) + "/" + host + "/" }
func keyFollower(f ports.Family) string            { return "Follower/" + string(f) }
func keyDropped(f ports.Family) string             { return "Dropped/" + string(f) }
func keyNobody(f ports.Family) string              { return "Nobody/" + string(f) }

const (
	readKey  = `SELECT "Value" FROM "UVHoldfast" WHERE "Key" = ?`
	readKeys = `SELECT "Key", "Value" FROM "UVHoldfast" WHERE "Key" >= ? AND "Key" < ?`
)

// after is the end of the range of keys that begin with prefix, which ends in a slash.
func after(prefix string) string { return prefix[:len(prefix)-1] + "0" }

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
	if err != nil || text == "" {
		return err
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return ports.Errorf(ports.Internal, "sqlite", "UVHoldfast has an unreadable %s: %v", key, err)
	}
	return nil
}

func slotKey(prefix string, slot int) string { return prefix + strconv.Itoa(slot) }
