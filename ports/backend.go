package ports

import (
	"context"
	"encoding/json"
	"time"
)

// Backend keeps history somewhere. Every backend runs in a process of its own behind the plugin contract, and the host
// uses it only through this interface and the powers that it declared.
//
// Every method may be called from many goroutines, must return within its context's deadline, and reports failure as an
// *Error whose code says whether the same call may succeed later (Code.Permanent). A call whose context has ended fails with
// Canceled or Deadline, if it does not succeed. Before Configure (see Configurer) only Describe may be called. The suite in
// plugins/conformance holds a backend to all of this.
type Backend interface {
	// Describe says what the backend is and can do. It works at any time, needs nothing and never blocks.
	Describe(ctx context.Context) (Description, error)

	// Probe really checks whether the backend could take a write of the family now. It changes nothing.
	Probe(ctx context.Context, f Family) error

	// Position says which store this is and how far it is, for each host that wrote to it. A store that cannot hold a
	// position answers with an empty one, always, and opts out of "position" (see OptOut). A backend whose store became
	// another one while it runs refuses reads with Unavailable until it was asked this again.
	Position(ctx context.Context, f Family) (Position, error)

	// Put makes plain states durable, in order: each row replaces what the store has under its key, whole, also a newer
	// state; a Gone row removes its record and no other one. A Put repeated changes nothing. Rows[:Applied.Done] are durable
	// and can be read; the error says why Rows[Done] is not. When all rows are in, the batch's Position is stored with them.
	Put(ctx context.Context, b Batch) (Applied, error)

	// Close releases what the backend holds. Nothing is called afterwards.
	Close() error
}

// Configurer takes the options. The SDK calls it once, before anything but Describe. A refusal is Invalid and names the
// option in Field.
type Configurer interface {
	Configure(ctx context.Context, c Configuration) error
}

// Configuration is what a backend is started with.
type Configuration struct {
	Name    string          // the backend's name in the host's configuration
	DataDir string          // the host's data directory; relative paths in options are below it
	Options json.RawMessage // one object, its members checked against the declared options
	Mesh    MeshAccess      // how to reach the host's Mesh, for a backend behind a beacon
}

// The readers, each optional for a follower. A reader answers from committed data and never waits for a write.
type (
	// ItemReader reads work items. Item fails with NotFound for an unknown key, Items with Invalid in the field "OrderBy" for
	// what is no column.
	ItemReader interface {
		Item(ctx context.Context, key string) (Row, error)
		Items(ctx context.Context, q ItemQuery) (Page, error)
	}
	// EventReader reads the events of one work item, in OrderKey order; an unknown key has none.
	EventReader interface {
		Events(ctx context.Context, q EventQuery) (Page, error)
	}
	// AttemptReader reads the attempts of one work item, by number; an unknown key has none.
	AttemptReader interface {
		Attempts(ctx context.Context, q AttemptQuery) (Page, error)
	}
	// ManifestReader reads manifests, whole. Manifest fails with NotFound for an unknown key.
	ManifestReader interface {
		Manifest(ctx context.Context, key string) (Row, error)
		Manifests(ctx context.Context, q ManifestQuery) (Page, error)
	}
)

// LocalStore is the backend with `local = true`: the truth. It alone decides what a write does, with Decide, inside the
// transaction that also moves its position.
type LocalStore interface {
	Backend
	ItemReader
	EventReader
	AttemptReader
	ManifestReader

	// Stand tells what the store is and what it knows of a host. It changes nothing; a store that does not exist yet is
	// created empty.
	Stand(ctx context.Context, hostID string) (Standing, error)

	// Open makes the store ready for one host's commits: in one transaction it replaces the host's nonce, if it still is
	// o.Nonce (else Conflict), adds the epochs and moves positions where o.Resume says so. It is called after every
	// start of the plugin, before the first Commit.
	Open(ctx context.Context, o Opening) error

	// Commit submits a batch; batches take effect in the order of calls, each whole or not at all. A batch whose Through
	// the store has passed already is a late twin: it changes nothing and gets the decisions of the first time. A batch
	// whose After is not the store's position is refused with Conflict, and so is one whose Epoch is not the newest that the
	// store was opened with: another host, or a copy of this one, has opened it since. It returns as soon as the batch has
	// its place in the order; ctx bounds only that.
	Commit(ctx context.Context, b CommitBatch) (Pending, error)

	// Changes tells what changed after a position, which must be one of this store's: one whose Epoch it does not know for
	// the host that opened it, or that is further than the store itself, fails with Conflict. A host that the store has
	// rows of but no mark is taken as it is: nothing of it changes any more. Works from Open on.
	Changes(ctx context.Context, q ChangesQuery) (ChangePage, error)
}

// Pending is a submitted batch.
type Pending interface {
	// Wait gives one Decision for each entry, in order, once they are durable. After an error the outcome is unknown
	// unless the code is permanent: then nothing of the batch took effect. Waiting again gives the same answer.
	Wait(ctx context.Context) ([]Decision, error)
}

// Optional powers: interfaces of one method, used only when declared.
type (
	// Pruner removes finished records that are older than a time, some at a time.
	Pruner interface {
		Prune(ctx context.Context, q PruneQuery) (Pruned, error)
	}
	// Exporter gives every record of a family in the order of natural keys: an item, its events, its attempts.
	Exporter interface {
		Export(ctx context.Context, q ExportQuery) (Page, error)
	}
	// Drainer finishes what was begun, leaves the store tidy on disk and takes no more work: every later Probe and write
	// fails with Unavailable; a read may still be answered.
	Drainer interface {
		Drain(ctx context.Context) error
	}
	// Surveyor counts what the store holds. It stops at the deadline and then says Partial.
	Surveyor interface {
		Survey(ctx context.Context) (Survey, error)
	}
)

// Position is how far a store is. Seqs has the Seq of each host (by HostID) that wrote to the local store; Epoch is the newest
// epoch, at that moment, of the host that opened the local store.
type Position struct {
	StoreID string // of the store that is so far
	Epoch   string
	Seqs    map[string]uint64
}

// Mark is how far a local store is with one host's journal of one family.
type Mark struct {
	Epoch string
	Seq   uint64
}

// Standing is what Stand tells.
type Standing struct {
	StoreID string // random, made when the store was created
	Empty   bool   // holds no record at all
	Nonce   string // of the host; "" when the store has never seen it
	Marks   map[Family]Mark
	Early   int // early writes that wait for their items, of all hosts
}

// Opening is what Open is told.
type Opening struct {
	HostID    string
	Nonce     string           // what the store holds now for this host, "" for nothing
	Next      string           // what it shall hold
	Epochs    map[Family]Epoch // of this start of the host
	Resume    map[Family]uint64
	Retention time.Duration // finished records older than this are Expired when sent again; 0 keeps for ever
}

// Epoch is one start of a journal. A local store keeps the newest 1,000.
type Epoch struct {
	ID   string
	From uint64 // its first Seq
}

// CommitBatch is a run of one family's journal: every entry after After up to Through, but for those that were set aside
// or lost. Entries are in order of Seq.
type CommitBatch struct {
	Family  Family
	Epoch   string
	After   uint64
	Through uint64
	Entries []Entry
}

// Decision is what the local store decided of one entry.
type Decision struct {
	Seq     uint64
	Outcome Outcome
	Err     *Error // with Refused: why

	// Of early writes, with the entry that brought them about: how many came into effect because their item did, and how many
	// were dropped, since they had waited too long or could not take effect.
	Applied int
	Dropped int
	Waiting int // with Early, Applied or Dropped: how many wait now, in all

	// Foreign says that another host of the same store had changed the record last. What it wrote gave way, as ours would have to
	// it; only a count comes of it, so that it need not be told again to a late twin.
	Foreign bool
}

// Plain says whether the entry was simply stored, and nothing more is to be told.
func (d *Decision) Plain() bool {
	return d.Outcome == Stored && d.Err == nil && d.Applied == 0 && d.Dropped == 0 && !d.Foreign
}

// Outcome is the kind of a decision.
type Outcome string

const (
	Stored         Outcome = "stored"          // in effect, also when nothing had to change
	AlreadyPresent Outcome = "already_present" // an event that is there
	AlreadyAbsent  Outcome = "already_absent"  // a removal of what is not there
	Missing        Outcome = "missing"         // a patch of an unknown key
	Expired        Outcome = "expired"         // sent again after it was removed or aged out
	Refused        Outcome = "refused"         // Err says why; what was stored is unchanged
	Late           Outcome = "late"            // of a hub: later writes have set all that it would change
	Early          Outcome = "early"           // of a hub: kept until its item comes
)

// Batch is a set of plain states for Put, grouped by key, an item before its events and attempts.
type Batch struct {
	Family   Family
	Rows     []Row
	Position *Position // stored with the rows when all are in; nil leaves the stored one; a local store that was opened ignores it and After
	// After is what the store's own position must be, as it answered it or was told it last; a store that is elsewhere, an
	// older copy or another one, refuses the batch whole with Conflict in FieldPosition. nil: it is not asked.
	After *Position
	// CatchUp says that much more waits: whoever shares a limited way to the store lets others go first.
	CatchUp bool
}

// FieldPosition is the field of the error with which a store refuses a batch that is not the next one for it.
const FieldPosition = "Position"

// Applied says how far a Put came: Rows[:Done] are durable.
type Applied struct {
	Done int
}

// PruneQuery asks to remove finished records that ended before a time, without a trace. A record ended at the first of
// LastEventAt, CompletedAt and EnqueuedAt (a manifest: StopTime, StartTime) that is a time; one without any stays.
type PruneQuery struct {
	Before time.Time
	Limit  int // records (an item with its events and attempts is one) at most in this call; 0 means 500
}

// Pruned is what one call of Prune removed; More says that there is more to remove.
type Pruned struct {
	Items, Events, Attempts, Manifests int64
	More                               bool
}

// Survey is what a store holds.
type Survey struct {
	Counts  map[Kind]int64
	Bytes   int64 // on disk
	Partial bool  // counts are lower bounds
}
