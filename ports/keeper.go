package ports

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Keeper is the beacon, and the connection of it, that shall keep a family behind a MeadowProxy.
type Keeper struct {
	Beacon     *Beacon // nil: nobody of that name or id is known now
	Named      string  // as the assignment has it; the beacon's Name when it was found by its tag
	Connection int64
	Tagged     bool // nothing is assigned: the beacon offers itself by its tag
}

// What a beacon must offer to keep history behind a MeadowProxy, and the tag by which one offers itself, whose value is the number
// of its connection.
const (
	MeadowProxy   = "MeadowProxy"
	ConnectionTag = "PersistenceConnectionID"
)

// Fields of the errors with which a backend says why it takes no writes yet. The code is Unavailable.
const (
	FieldAssignment = "Assignment" // nothing is assigned to it: the follower is unassigned
	FieldBootstrap  = "Bootstrap"  // it makes its tables and endpoints: the follower is bootstrapping
	FieldObstacle   = "Obstacle"   // it cannot make them, and goes on trying: the follower is in error until it can
)

// signals are fields that say something to the host; to people the message says it.
var signals = map[string]bool{FieldAssignment: true, FieldBootstrap: true, FieldObstacle: true}

// Keeper says who shall keep a family. An assignment goes before a tag, also when its beacon is not there. ok is false when there is
// neither.
//
// An assignment names a beacon by its Name or by its id. Ids change with every connection, but begin with the name: one that nobody
// has any more still leads to the beacon whose name it was made from.
func (b Beacons) Keeper(f Family) (k Keeper, ok bool) {
	if a, assigned := b.Assigned[f]; assigned {
		return Keeper{Beacon: b.Named(a.BeaconID), Named: a.BeaconID, Connection: a.IDBeaconConnection}, true
	}
	for i := range b.List {
		beacon := &b.List[i]
		if connection, tagged := beacon.offers(); tagged && beacon.Online {
			return Keeper{Beacon: beacon, Named: beacon.Name, Connection: connection, Tagged: true}, true
		}
	}
	return Keeper{}, false
}

// Named gives the beacon of a Name, or else of an id, or of one that it had; nil when there is none.
func (b Beacons) Named(name string) *Beacon {
	for _, is := range []func(*Beacon) bool{
		func(one *Beacon) bool { return one.Name == name },
		func(one *Beacon) bool { return one.ID == name },
		func(one *Beacon) bool { return stem(name) != "" && stem(one.ID) == stem(name) },
	} {
		if at := slices.IndexFunc(b.List, func(one Beacon) bool { return is(&one) }); at >= 0 {
			return &b.List[at]
		}
	}
	return nil
}

// stem is what of an id does not change: "bcn-NAME" of "bcn-NAME-MILLISECONDS"; "" for what is no id.
func stem(id string) string {
	at := strings.LastIndexByte(id, '-')
	if at < 0 || !strings.HasPrefix(id, "bcn-") {
		return ""
	}
	if _, err := strconv.ParseUint(id[at+1:], 10, 64); err != nil {
		return ""
	}
	return id[:at]
}

// offers gives the connection that a beacon's tag names.
func (b *Beacon) offers() (connection int64, ok bool) {
	value, tagged := b.Tags[ConnectionTag]
	if !tagged || !slices.Contains(b.Capabilities, MeadowProxy) {
		return 0, false
	}
	var text string
	if json.Unmarshal(value, &text) != nil {
		text = string(value)
	}
	connection, err := strconv.ParseInt(text, 10, 64)
	return connection, err == nil && connection > 0
}
