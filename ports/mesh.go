package ports

import (
	"context"
	"encoding/json"
	"time"
)

// Mesh is what holdfast knows of beacons: who is there, and how to have one of them do something. Backends that live behind a
// beacon reach it only through here.
type Mesh interface {
	// Watch tells who is there. It waits until Beacons.Version is another than since, as long as ctx lasts; what happened in
	// between is not told, only what is so now. A since of 0 answers at once; no version is 0.
	Watch(ctx context.Context, since uint64) (Beacons, error)

	// Dispatch has one beacon do one piece of work and gives its answer, exactly once. ctx must have a deadline. Errors:
	// Unavailable when the beacon is not there or left before it was sent the work (nothing happened); Deadline when no answer
	// came in time, and BackendGone when its connection broke after it was sent the work (the outcome is unknown in both; a work
	// that was not sent by its deadline never is); Full when too much waits for the beacon already; Invalid or TooLarge for a
	// work that cannot be sent.
	Dispatch(ctx context.Context, w Work) (WorkAnswer, error)
}

// MeshAccess is where a plugin finds the host's Mesh. The zero value: the host has none.
type MeshAccess struct {
	Socket string // a unix socket
	Token  string // a secret that each call carries
}

// Beacons is who is there at one moment.
type Beacons struct {
	Version  uint64
	List     []Beacon              // in the order in which they first registered
	Assigned map[Family]Assignment // which beacon, and which of its connections, shall keep a family; see Keeper
}

// Beacon is a worker of the mesh. Its Name is stable; its ID and Session may change with every connection.
type Beacon struct {
	Name          string
	ID            string
	Session       uint64 // another one after each registration over a new connection
	Online        bool
	Capabilities  []string
	MaxConcurrent int
	Tags          map[string]json.RawMessage
	RegisteredAt  time.Time
	SeenAt        time.Time // its last sign of life
}

// Work is what a beacon shall do.
type Work struct {
	Beacon     string // its Name; "" lets any beacon that has the capability take it
	Session    uint64 // of the beacon: over a later one the work is not sent, and fails with Unavailable; 0: any
	Capability string
	Action     string
	Settings   json.RawMessage // one object
	Class      WorkClass
}

// WorkClass says who goes first where a beacon's slots do not suffice: a probe before a read before a live write before
// catching up, which never takes the last slot.
type WorkClass int

const (
	ClassProbe WorkClass = iota
	ClassRead
	ClassLive
	ClassCatchUp
)

// WorkAnswer is what a beacon reported.
type WorkAnswer struct {
	WorkItemHash string
	Beacon       string          // the Name of the one that did it
	Outputs      json.RawMessage // one object; nil when it failed
	Failure      string          // why the beacon could not do it; "" when it did
	Log          []string
}
