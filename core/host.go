package core

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"holdfast/ports"
)

// Config is everything a Host is made of.
type Config struct {
	Version   string
	Ack       Ack
	Retention time.Duration // finished history older than this is pruned; 0 keeps it
	State     ports.State
	Journals  map[ports.Family]ports.Journal
	Local     Local
	Followers []Follower           // every other backend
	Damaged   []string             // files of the data directory that were set aside when it was opened
	Route     []string             // names of backends, most preferred first; "local" is the local store
	Beacons   func() ports.Beacons // who is connected now, without waiting for anybody; nil: nobody ever is
	Clock     func() time.Time     // nil is time.Now
	Logger    hclog.Logger
}

// Local is the backend with local = true.
type Local struct {
	Name   string
	Kind   string
	Store  ports.LocalStore
	Health func() Health
	// Restart ends a process that does not answer a batch; another one is started. nil: nobody can.
	Restart func(reason string)
}

// Follower is a backend that is kept equal to the local store.
type Follower struct {
	Name    string
	Kind    string
	Store   ports.Backend
	Health  func() Health       // nil: it has no process that could die
	Restart func(reason string) // ends a process that answers nothing; nil: nobody can

	Retention time.Duration // finished history older than this is removed from it; 0 keeps everything
}

// Host is one running core.
type Host struct {
	version   string
	ack       Ack
	retention time.Duration
	state     ports.State
	hostID    string
	clock     func() time.Time
	log       hclog.Logger
	started   time.Time

	families    map[ports.Family]*family
	link        *link
	backends    map[string]*backend // of the followers, by name
	follows     []*follower
	damaged     []string
	route       []string
	routeBy     func(w *follower) ports.Position // how far a follower is for a read: what a head is compared with
	exempt      *exemptions
	beacons     func() ports.Beacons
	assignments assignments
	repairs     repairs
	claims      sync.Mutex // one claim at a time
	retry       sync.Mutex // one retry of set-aside entries at a time

	lostMu sync.Mutex
	lost   map[ports.Family][]ports.Span
}

// New makes a Host. It reads the host's state and touches no backend.
func New(c Config) (*Host, error) {
	h := &Host{
		version: c.Version, ack: c.Ack, retention: c.Retention, state: c.State, clock: c.Clock, log: c.Logger,
		families: map[ports.Family]*family{}, backends: map[string]*backend{}, routeBy: byFresh, damaged: c.Damaged, exempt: newExemptions(), beacons: c.Beacons, lost: map[ports.Family][]ports.Span{},
	}
	if h.clock == nil {
		h.clock = time.Now
	}
	h.started = h.clock()
	who, err := c.State.Host()
	if err != nil {
		return nil, err
	}
	h.hostID = who.ID
	known, _, err := c.State.Local()
	if err != nil {
		return nil, err
	}
	if err := h.assignments.load(c.State); err != nil {
		return nil, err
	}
	for name, journal := range c.Journals {
		f := newFamily(name, journal)
		f.resume(known.Marks[name].Seq)
		f.committer = &committer{family: f, host: h}
		if err := f.committer.load(); err != nil {
			return nil, err
		}
		if h.lost[name], err = c.State.Lost(name); err != nil {
			return nil, err
		}
		h.families[name] = f
	}
	h.link = newLink(h, c.Local)
	h.repairs.others = c.Followers
	return h, h.addFollowers(c.Followers, c.Route)
}

// addFollowers makes a follower of each backend and family. Without a route the local store answers.
func (h *Host) addFollowers(list []Follower, route []string) error {
	h.route = route
	for _, c := range list {
		shared := &backend{}
		h.backends[c.Name] = shared
		for _, name := range ports.Families {
			f := h.families[name]
			if f == nil {
				continue
			}
			w, err := newFollower(h, c, shared, f)
			if err != nil {
				return err
			}
			h.follows = append(h.follows, w)
		}
	}
	return nil
}

// follower gives one backend's follower of a family; nil: there is none.
func (h *Host) follower(name string, f ports.Family) *follower {
	for _, w := range h.follows {
		if w.Name == name && w.family.name == f {
			return w
		}
	}
	return nil
}

func (h *Host) shortID() string { return ports.HostIdentity{ID: h.hostID}.Short() }

// Run does the background work until ctx ends: it keeps the local store connected and fed, trims the journals, remembers
// positions and prunes. When it returns nothing of it runs any more, and the last position is remembered.
func (h *Host) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { h.link.run(ctx) })
	wg.Go(func() { h.keepHouse(ctx) })
	for _, w := range h.follows {
		wg.Go(func() { w.run(ctx) })
	}
	for _, c := range h.thinned() {
		wg.Go(func() { h.thinOut(ctx, c) })
	}
	wg.Wait()
	return h.remember()
}

// Ready says whether writes are accepted and reads answered; its error says why not.
func (h *Host) Ready() error {
	if t := h.link.shown(); t.phase != ready {
		return ports.Errorf(ports.Unavailable, "local store", "%s: %s", t.phase, t.detail)
	}
	for name, f := range h.families {
		if b := f.journal.Bounds(); b.Full || b.Fault != "" {
			return ports.Errorf(ports.Full, "journal "+string(name), "takes no writes: %s", reasonOf(b))
		}
	}
	return nil
}

func reasonOf(b ports.Bounds) string {
	if b.Fault != "" {
		return b.Fault
	}
	return "it is full; free disk space, raise its limit or see `holdfast doctor`"
}

// lose records Seqs that no part of this host holds any more.
func (h *Host) lose(f ports.Family, s ports.Span) error {
	h.lostMu.Lock()
	defer h.lostMu.Unlock()
	for _, known := range h.lost[f] {
		if known.From <= s.From && s.To <= known.To {
			return nil
		}
	}
	if err := h.state.AddLost(f, s); err != nil {
		return err
	}
	h.lost[f] = append(h.lost[f], s)
	h.log.Error("a range of writes is lost: neither the journal nor the local store has it", "family", f, "from", s.From, "to", s.To)
	return nil
}
