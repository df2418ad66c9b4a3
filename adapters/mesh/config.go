package mesh

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"holdfast/core"
	"holdfast/ports"
)

// Config is everything a Hub is made of.
type Config struct {
	Name       string           // of this hub, as QueueMetadata tells it to beacons
	Core       Core             // history, for reads and for what outside callers have done; nil: there is none
	Users      []User           // who may log in; with a user or a join secret the hub is secured
	JoinSecret string           // lets a beacon's socket in without a login
	Loopback   bool             // only this machine can reach the listener; an open hub insists on it
	Limits     Limits           // zero members mean the usual ones
	Timing     Timing           // zero members mean the usual ones
	Clock      func() time.Time // nil is time.Now
	Logger     hclog.Logger
}

// Core is what the hub asks of the core: Over gives it.
type Core interface {
	Item(ctx context.Context, key string) core.Answer
	Items(ctx context.Context, q ports.ItemQuery) core.Answer
	Events(ctx context.Context, q ports.EventQuery) core.Answer
	Manifest(ctx context.Context, key string) core.Answer
	Manifests(ctx context.Context, q ports.ManifestQuery) core.Answer
	Begin(call core.Call) Promise
	HostID() string // of the host whose history it is

	Assignments() []core.AssignmentStatus
	Assign(families []ports.Family, beacon string, connection int64) error
	Unassign(families []ports.Family) error
}

// Promise is a write that the Door took in; Wait gives its answer and is called once.
type Promise interface {
	Wait(ctx context.Context) core.Answer
}

// Over gives a core as the hub sees it.
func Over(h *core.Host) Core { return over{h} }

type over struct{ *core.Host }

func (o over) HostID() string { return o.Host.Status().HostID }

func (o over) Begin(call core.Call) Promise { return o.Host.Begin(call) }

// Limits bound what a hub holds. Reaching one is a typed refusal.
type Limits struct {
	Beacons          int   // known ones, also Offline: 10,000
	BeaconBytes      int64 // of all registrations together: 64 MiB
	Sockets          int   // open ones, also of nobody yet: 10,000
	SocketsPerBeacon int   // under one Name: 4
	Slots            int   // of one beacon, whatever it says: 1,000
	Waiting          int   // works without a slot: 20,000
	WaitingPerBeacon int   // of those, for one beacon: 2,000
	WorkBytes        int64 // settings of all works underway: 256 MiB
	Frame            int64 // bytes of a frame, or of the body of a report: 256 MiB
	Work             int64 // bytes of a work's settings, and of the body that dispatches it: 65 MiB, a record of the largest size in it
	Small            int64 // bytes of every other body: 1 MiB
	Dispatches       int   // callers of the dispatch route at a time: 20,000
	Sessions         int   // logins: 10,000
}

var usualLimits = Limits{
	Beacons: 10_000, BeaconBytes: 64 << 20, Sockets: 10_000, SocketsPerBeacon: 4, Slots: 1_000,
	Waiting: 20_000, WaitingPerBeacon: 2_000, WorkBytes: 256 << 20, Frame: 256 << 20, Work: ports.MaxLineBytes, Small: 1 << 20,
	Dispatches: 20_000, Sessions: 10_000,
}

// Timing is how long things may take.
type Timing struct {
	Silence    time.Duration // without a sign of life a beacon is Offline: 60 s
	Ping       time.Duration // a silent socket is asked for one, and has as long to answer: 5 s
	Register   time.Duration // a socket that registers nobody is closed: 60 s
	Grace      time.Duration // a lost connection may take to come back with the report of what went out over it: 10 s
	Linger     time.Duration // a living beacon may take for a work that nobody waits for, before its slot is given to another one: 24 h
	Write      time.Duration // a peer may take to read a small frame: 10 s
	Forget     time.Duration // an Offline beacon is forgotten: 24 h
	SessionTTL time.Duration // a login holds, from its beginning: 24 h
}

var usualTiming = Timing{
	Silence: time.Minute, Ping: 5 * time.Second, Register: time.Minute, Grace: 10 * time.Second, Linger: 24 * time.Hour,
	Write: 10 * time.Second, Forget: 24 * time.Hour, SessionTTL: 24 * time.Hour,
}

// or gives the usual value for one that was not set.
func or[T comparable](value *T, usual T) {
	var zero T
	if *value == zero {
		*value = usual
	}
}

func (l Limits) withUsual() Limits {
	u := usualLimits
	or(&l.Beacons, u.Beacons)
	or(&l.BeaconBytes, u.BeaconBytes)
	or(&l.Sockets, u.Sockets)
	or(&l.SocketsPerBeacon, u.SocketsPerBeacon)
	or(&l.Slots, u.Slots)
	or(&l.Waiting, u.Waiting)
	or(&l.WaitingPerBeacon, u.WaitingPerBeacon)
	or(&l.WorkBytes, u.WorkBytes)
	or(&l.Frame, u.Frame)
	or(&l.Work, u.Work)
	or(&l.Small, u.Small)
	or(&l.Dispatches, u.Dispatches)
	or(&l.Sessions, u.Sessions)
	return l
}

func (t Timing) withUsual() Timing {
	u := usualTiming
	or(&t.Silence, u.Silence)
	or(&t.Ping, u.Ping)
	or(&t.Register, u.Register)
	or(&t.Grace, u.Grace)
	or(&t.Linger, u.Linger)
	or(&t.Write, u.Write)
	or(&t.Forget, u.Forget)
	or(&t.SessionTTL, u.SessionTTL)
	return t
}
