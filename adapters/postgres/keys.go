package postgres

import (
	"encoding/json"
	"strconv"

	"holdfast/ports"
)

// What the store knows of itself stands in UVHoldfast, one row for each thing:
//
//	Schema                        ports.SchemaVersion of the tables
//	StoreID                       made with the tables
//	Nonce/HOST                    what Open left; the fence of the host's transactions
//	Mark/FAMILY/HOST              ports.Mark
//	Epochs/FAMILY/HOST            []ports.Epoch, oldest first
//	Odd/FAMILY/HOST/SLOT          []ports.Decision that were not simply "stored", of one transaction
//	Follower/FAMILY               ports.Position, as the last Put gave it
//	Dropped/FAMILY                the highest Seq of a dropped tombstone, by host
//	Nobody/FAMILY                 the highest Seq that was given to a change of host ""
const (
	keySchema  = "Schema"
	keyStoreID = "StoreID"
)

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
	readKey  = `SELECT "Value" FROM "UVHoldfast" WHERE "Key" = $1`
	readKeys = `SELECT "Key", "Value" FROM "UVHoldfast" WHERE "Key" >= $1 AND "Key" < $2 ORDER BY "Key"`
	setKeys  = `INSERT INTO "UVHoldfast" ("Key", "Value") SELECT k, v FROM unnest($1::text[], $2::text[]) AS w(k, v) ON CONFLICT ("Key") DO UPDATE SET "Value" = excluded."Value"`
)

// after is the end of the range of keys that begin with prefix, which ends in a slash.
func after(prefix string) string { return prefix[:len(prefix)-1] + "0" }

func slotKey(prefix string, slot int) string { return prefix + strconv.Itoa(slot) }

// readable takes in the JSON of a row; "" changes nothing.
func readable(key, text string, into any) error {
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return ports.Errorf(ports.Internal, "postgres", "UVHoldfast has an unreadable %s: %v", key, err)
	}
	return nil
}
