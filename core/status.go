package core

import (
	"time"

	"holdfast/ports"
)

// Status is what holdfast says of itself: the body of GET /v1/status.
type Status struct {
	Version     string
	HostID      string
	Ack         Ack
	Ready       bool      // writes are accepted and reads answered
	Detail      string    `json:",omitempty"` // why not, and what to do
	At          time.Time // when this was true
	Uptime      string
	Families    []FamilyStatus
	Backends    []BackendStatus
	Assignments []AssignmentStatus // one for each family
	Notices     []string           `json:",omitempty"` // what a person should look at, each with its remedy
}

// FamilyStatus is one family's way from the journal to the local store.
type FamilyStatus struct {
	Family    ports.Family
	Head      uint64 // the last durable Seq
	Committed uint64 // how far the local store is
	Backlog   uint64 // entries that wait for the local store
	OldestMs  int64  // how long the oldest of them waits; 0 without a backlog
	SetAside  int
	Lost      []ports.Span `json:",omitempty"` // Seqs that no part of this host holds any more
	Journal   JournalStatus
	Writes    WriteCounts
	Deferred  []DeferredWrite `json:",omitempty"` // the newest deferred writes that were decided otherwise
}

// JournalStatus is a journal's Bounds for people.
type JournalStatus struct {
	Epoch   string
	First   uint64
	Bytes   int64
	Limit   int64
	Reserve int64
	Free    int64
	Full    bool     `json:",omitempty"`
	Damaged []string `json:",omitempty"`
	Fault   string   `json:",omitempty"`
}

// WriteCounts count what became of the writes of a family since the start.
type WriteCounts struct {
	Accepted       uint64 // journaled
	Stored         uint64
	AlreadyPresent uint64
	AlreadyAbsent  uint64
	NotFound       uint64
	Expired        uint64
	Refused        uint64 // by the Door or the local store
	Late           uint64 // of a hub: overtaken by its later writes
	Early          uint64 // of a hub: came before its item, and was kept until that comes
	Ignored        uint64
	SetAside       uint64
	Deferred       uint64 // answered before they were decided
	Overtaken      uint64 // deferred and then decided otherwise
	Foreign        uint64 // over a record that another host of the same local store had changed last

	EarlyWaiting uint64 // early writes that wait now, in all
	EarlyApplied uint64 // those whose item came
	EarlyDropped uint64 // those whose item did not come for a day, or that could not take effect when it did
}

// DeferredWrite is a write that was answered Deferred, or whose caller had gone, and that was not simply stored.
type DeferredWrite struct {
	Seq     uint64
	Action  ports.Action
	Key     string
	Outcome string // as its answer would have said: the flag's name, or the code
	Reason  string `json:",omitempty"`
	At      time.Time
}

// BackendStatus is one backend.
type BackendStatus struct {
	Name    string
	Kind    string
	Local   bool
	State   string // unassigned, waiting-for-beacon, bootstrapping, bootstrapped or error
	Detail  string `json:",omitempty"`
	Remedy  string `json:",omitempty"`
	Since   time.Time
	StoreID string   `json:",omitempty"`
	PID     int      `json:",omitempty"`
	Starts  int      `json:",omitempty"` // of its process
	Words   []string `json:",omitempty"` // the last lines of a plugin that died

	LastError   string    `json:",omitempty"` // what went wrong last, also when it is over: the death of its process; of the local store, all else
	LastErrorAt time.Time `json:",omitzero"`

	Followers []FollowerStatus `json:",omitempty"` // of a backend that is not the local store, one for each family
}

// FollowerStatus is how far one backend has come with one family.
type FollowerStatus struct {
	Family      ports.Family
	State       string // public: unassigned, waiting-for-beacon, bootstrapping, bootstrapped or error
	Phase       string // inside: unassigned, waiting, down, hung, given-up, preparing, obstructed, bootstrapping, copying, ready, lagging or error
	Detail      string `json:",omitempty"`
	Remedy      string `json:",omitempty"`
	Since       time.Time
	Suspect     bool      `json:",omitempty"` // its last probe was not answered in time
	Position    uint64    // Seq of this host up to which changes were copied
	Behind      uint64    // Seqs that the local store is ahead of it
	BehindMs    int64     // how long it has not had everything; 0 when it has
	Copied      uint64    // rows put since the start
	Retention   string    `json:",omitempty"` // of its own
	Pruned      int64     `json:",omitempty"` // records that this removed since the start
	PrunedUntil time.Time `json:",omitzero"`  // what ended before is not in it any more, by its own retention
	Unsettled   int       // keys that it refused or did not survive
	InDoubt     int       // keys of Puts that had no answer
	Discarded   int       // keys that were given up
	OnlyThere   *int64    `json:",omitempty"` // records that only it has, as last counted
	Doubtful    bool      `json:",omitempty"` // it may hold removed records; see FollowerMark
	LastError   string    `json:",omitempty"`
	LastErrorAt time.Time `json:",omitzero"`
}

// Health is what the process adapter knows of a backend's process.
type Health struct {
	Running bool
	PID     int
	Starts  int
	GivenUp bool   // it dies too often and is tried again rarely
	Detail  string // why it does not run, and when it is tried again; or, while it runs, that it has gone silent
	Words   []string
	Died    string    // how its last process ended that nobody had told to
	DiedAt  time.Time // zero when none has
}

// Ack says when a write is answered.
type Ack string

const (
	AckLocal     Ack = "local"     // when the local store decided, two seconds later at most
	AckJournaled Ack = "journaled" // when the journal has it
)

// AsideStatus is one set-aside entry, as `unsettled list` shows it.
type AsideStatus struct {
	Family ports.Family
	Seq    uint64
	Action ports.Action
	Key    string
	Code   ports.Code `json:",omitempty"` // "" for an entry that waits behind another of its key
	Reason string     `json:",omitempty"`
	At     time.Time
	Bytes  int
}

// shownOvertaken is how many overtaken writes a status shows.
const shownOvertaken = 20

// Status tells how things stand. It asks no backend and never blocks.
func (h *Host) Status() Status {
	now := h.clock()
	s := Status{
		Version: h.version, HostID: h.hostID, Ack: h.ack, Ready: true, At: now.UTC(),
		Uptime: now.Sub(h.started).Round(time.Second).String(),
	}
	if err := h.Ready(); err != nil {
		s.Ready, s.Detail = false, err.Error()
	}
	for _, name := range ports.Families {
		if f := h.families[name]; f != nil {
			s.Families = append(s.Families, h.familyStatus(f, now))
		}
	}
	local := h.link.status()
	if local.Detail == "" {
		local.Detail = h.unanswered(now)
	}
	s.Backends = append([]BackendStatus{local}, h.followerStatuses(now)...)
	s.Assignments = h.Assignments()
	for _, file := range h.damaged {
		s.Notices = append(s.Notices, file+" in the data directory was damaged and is set aside; look at the disk, then delete it")
	}
	s.Notices = append(s.Notices, s.notices()...)
	return s
}

// untoldFor is how long the local store may take for a batch before the status says so.
const untoldFor = 1500 * time.Millisecond

// unanswered tells of a batch that the local store has not answered for a while.
func (h *Host) unanswered(now time.Time) string {
	for _, name := range ports.Families {
		if f := h.families[name]; f != nil {
			if asked := f.committer.asked.Load(); asked != 0 && now.Sub(time.UnixMilli(asked)) >= untoldFor {
				return "has not answered a batch for " + now.Sub(time.UnixMilli(asked)).Round(100*time.Millisecond).String()
			}
		}
	}
	return ""
}

func (h *Host) familyStatus(f *family, now time.Time) FamilyStatus {
	b, committed := f.journal.Bounds(), f.committed.Load()
	s := FamilyStatus{
		Family: f.name, Head: b.Head, Committed: committed, SetAside: f.committer.asides.count(),
		Journal: JournalStatus{
			Epoch: b.Epoch, First: b.First, Bytes: b.Bytes, Limit: b.Limit, Reserve: b.Reserve, Free: b.Free, Full: b.Full,
			Damaged: b.Damaged, Fault: b.Fault,
		},
		Writes: f.counts.read(), Deferred: f.overtaken.newest(shownOvertaken),
	}
	if b.Head > committed {
		s.Backlog = b.Head - committed
		if oldest := f.oldest.Load(); oldest != 0 {
			s.OldestMs = max(now.UnixMilli()-oldest, 0)
		}
	}
	h.lostMu.Lock()
	s.Lost = append(s.Lost, h.lost[f.name]...)
	h.lostMu.Unlock()
	return s
}

func (k *link) status() BackendStatus {
	health := k.health()
	k.mu.Lock()
	defer k.mu.Unlock()
	s := BackendStatus{
		Name: k.name, Kind: k.Kind, Local: true, State: string(k.told.phase), Detail: k.told.detail, Remedy: k.told.remedy, Since: k.told.since.UTC(),
		StoreID: k.storeID, PID: health.PID, Starts: health.Starts, Words: health.Words,
	}
	if health.Detail != "" { // it does not run, or runs and has gone silent
		s.Detail = health.Detail
	}
	s.note(k.lastErr, k.lastErrAt)
	s.note(health.Died, health.DiedAt)
	return s
}

// note takes in what went wrong, if nothing did later.
func (b *BackendStatus) note(what string, at time.Time) {
	if what != "" && !at.Before(b.LastErrorAt) {
		b.LastError, b.LastErrorAt = what, at.UTC()
	}
}

// notices are what a person should look at.
func (s *Status) notices() (list []string) {
	for _, f := range s.Families {
		name := string(f.Family)
		if f.Journal.Full {
			list = append(list, name+": the journal is full and takes no writes; free disk space or raise journal.limit")
		}
		if f.Journal.Fault != "" {
			list = append(list, name+": the journal takes no writes: "+f.Journal.Fault)
		}
		if len(f.Journal.Damaged) > 0 {
			list = append(list, name+": degraded: damaged journal files were set aside as *.corrupt-*; look at the disk, then delete them")
		}
		if len(f.Lost) > 0 {
			list = append(list, name+": a range of writes is lost; see Lost")
		}
		if f.SetAside > 0 {
			list = append(list, name+": writes are set aside; see `holdfast unsettled list`")
		}
	}
	for _, a := range s.Assignments {
		if a.Backend == "" && a.Remedy != "" {
			list = append(list, string(a.Family)+": is assigned to the beacon "+a.BeaconID+", but "+a.Detail+": "+a.Remedy)
		}
	}
	for _, b := range s.Backends {
		switch {
		case b.Local && b.Remedy != "":
			list = append(list, b.Name+": "+b.Detail+": "+b.Remedy)
		case b.Local && b.Detail != "" && b.State == string(ready):
			list = append(list, b.Name+": "+b.Detail+"; writes are kept in the journal meanwhile")
		}
		list = append(list, b.notices()...)
	}
	return list
}
