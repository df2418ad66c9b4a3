package tables

import (
	"encoding/json"
	"strconv"

	"holdfast/ports"
)

// KeyStoreID is the first of the keys of what a store knows of itself. That stands in UVHoldfast, one row for each thing:
//
//	StoreID                       made with the tables
//	Nonce/HOST                    what Open left
//	Mark/FAMILY/HOST              ports.Mark
//	Epochs/FAMILY/HOST            []ports.Epoch, oldest first
//	Odd/FAMILY/HOST/SLOT          []ports.Decision that were not simply "stored", of one transaction
//	Follower/FAMILY               ports.Position, as the last Put gave it
//	Dropped/FAMILY                the highest Seq of a dropped tombstone, by host
//	Nobody/FAMILY                 the highest Seq that was given to a change of host ""
//
// An engine may have more of its own.
const KeyStoreID = "StoreID"

func KeyNonce(host string) string { return "Nonce/" + host }

// KeyMarks is the common beginning of the keys of a family's marks.
func KeyMarks(f ports.Family) string { return "Mark/" + string(f) + "/" }

func KeyMark(f ports.Family, host string) string   { return KeyMarks(f) + host }
func KeyEpochs(f ports.Family, host string) string { return "Epochs/" + string(f) + "/" + host }
func KeyFollower(f ports.Family) string            { return "Follower/" + string(f) }
func KeyDropped(f ports.Family) string             { return "Dropped/" + string(f) }
func KeyNobody(f ports.Family) string              { return "Nobody/" + string(f) }

// KeyOdds is the common beginning of the keys of a host's odd decisions.
func KeyOdds(f ports.Family, host string) string { return "Odd/" + string(f) + "/" + host + "/" }

// KeyOdd is the key of one slot of them.
func KeyOdd(f ports.Family, host string, slot int) string {
	return KeyOdds(f, host) + strconv.Itoa(slot)
}

// After is the end of the range of keys that begin with prefix, which ends in a slash.
func After(prefix string) string { return prefix[:len(prefix)-1] + "0" }

// Readable takes in the JSON of a row; "" changes nothing.
func Readable(op, key, text string, into any) error {
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return ports.Errorf(ports.Internal, op, "UVHoldfast has an unreadable %s: %v", key, err)
	}
	return nil
}
