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

	Close() error
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
