package ports

// State is what the host remembers in its data directory beside the journals: who it is, which local store it wrote to,
// and what was set aside. Every method is durable when it returns; State is safe for use from many goroutines.
type State interface {
	// Host gives the host's id (a random UUID text, made at the first start) and its nonces, newest first. A nonce is
	// stored in the local store at each start; it tells a copied data directory from the original.
	Host() (HostIdentity, error)
	// PushNonce remembers a nonce as the newest, before the local store is asked to take it; at least 1,000 are kept.
	PushNonce(nonce string) error

	// Local gives the local store as it was last known; ok is false before the first.
	Local() (known LocalMark, ok bool, err error)
	SetLocal(known LocalMark) error

	// Lost gives and adds ranges of Seqs that no part of the host holds any more.
	Lost(f Family) ([]Span, error)
	AddLost(f Family, s Span) error

	// SetAside keeps entries whole. Asides lists those of a family in order of Seq, after a Seq; DropAside forgets some.
	SetAside(f Family, entries []Aside) error
	Asides(f Family, after uint64, limit int) ([]Aside, error)
	DropAside(f Family, seqs ...uint64) error

	// Follower gives how far a follower is, by the backend's name; ok is false for one that is to be copied from zero.
	Follower(name string, f Family) (mark FollowerMark, ok bool, err error)
	SetFollower(name string, f Family, mark FollowerMark) error

	// Unsettled lists a follower's unsettled keys in bytewise order, after a key. SetUnsettled adds them or replaces what is
	// known of them, all or none; DropUnsettled settles them.
	Unsettled(name string, f Family, after string, limit int) ([]Unsettled, error)
	SetUnsettled(name string, f Family, keys []Unsettled) error
	DropUnsettled(name string, f Family, keys ...string) error

	// CopyMark gives where a copy between two backends was interrupted; nil when none was. SetCopyMark with nil forgets it.
	CopyMark(from, to string, f Family) (*CopyMark, error)
	SetCopyMark(from, to string, f Family, mark *CopyMark) error

	// Assignment gives the beacon that keeps a family's history; nil for none.
	Assignment(f Family) (*Assignment, error)
	SetAssignment(f Family, a *Assignment) error

	Close() error
}

// FollowerMark is how far a follower is, as the host knows it.
type FollowerMark struct {
	Position Position // of the follower's store
	FreshMs  int64    // when it last had everything that the local store had, in milliseconds since 1970; 0: never
	// Repaired is the position at the last time that a key was put outside the order of changes. A store that was restored
	// to before it may lack that key.
	Repaired map[string]uint64
	// Spared has, for each host, the Seq of the newest removal that the local store had forgotten when the first copy into
	// the then empty store began: up to there the follower can have missed none.
	Spared map[string]uint64
	// PrunedMs says that what ended before, in milliseconds since 1970, was removed from it by its own retention; 0: nothing was.
	PrunedMs int64
	// Putting says that a host puts, or that it ended while a Put had no answer, which may still take effect.
	Putting bool
	// Doubtful says that the local store has forgotten removals which this follower may have missed: it may hold records
	// that are gone, and answers no reads until a person had it verified.
	Doubtful bool
}

// Unsettled is a key of which a follower may not have the present state.
type Unsettled struct {
	Key    string
	Kind   UnsettledKind
	Code   Code   // of the refusal
	Reason string // what the store said
	First  uint64 // Seq of the change that was refused or is in doubt
	Last   uint64 // Seq of the newest change since
	AtMs   int64  // of the refusal or the doubtful Put, in milliseconds since 1970
}

// UnsettledKind is why a key is unsettled.
type UnsettledKind string

const (
	RefusedKey   UnsettledKind = "refused"   // by the store, for good
	PoisonKey    UnsettledKind = "poison"    // the store died or hung of it, three times
	InDoubt      UnsettledKind = "in_doubt"  // a Put had no answer; it may still take effect
	DiscardedKey UnsettledKind = "discarded" // a person gave it up; the store does not have it
)

// MaxUnsettled bounds the unsettled keys of one follower and family.
const MaxUnsettled = 100_000

// CopyMark is where a copy goes on.
type CopyMark struct {
	After  *Cursor  // of the walk through the source; nil at its beginning
	Copied int64    // rows so far
	Begun  Position // of the source, or of the local store, when the copy began
}

// Assignment names the beacon, by Name or BeaconID, and its connection that keep a family's history.
type Assignment struct {
	BeaconID           string
	IDBeaconConnection int64
	AssignedAt         string
}

// HostIdentity is who a data directory is.
type HostIdentity struct {
	ID     string
	Nonces []string // newest first
}

// Short is the part of the id that order keys end in.
func (h HostIdentity) Short() string { return h.ID[:min(8, len(h.ID))] }

// LocalMark is the local store as the host last knew it.
type LocalMark struct {
	Name    string // the backend's name in the configuration
	StoreID string
	Marks   map[Family]Mark
	Renamed bool // the host took a new id since: Marks is what it had committed under the old one
}

// Aside is an entry that the local store refused for good or could not survive, or one of the same key behind it.
type Aside struct {
	Entry  Entry
	Code   Code   // of the refusal; "" for an entry that only waits behind another
	Reason string // what the local store said
	AtMs   int64  // when, in milliseconds since 1970
}

// Limits of what is set aside, both families together; at the limit commit stops and status says why.
const (
	MaxAsides     = 1000
	MaxAsideBytes = 256 << 20
)
