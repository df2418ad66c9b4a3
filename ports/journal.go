package ports

import "context"

// Journal is the durable, ordered log of one family's accepted writes: what was promised. It belongs to one host process,
// which holds its directory's lock. Seq counts entries, starts at 1, never restarts and is never used twice.
type Journal interface {
	// Append gives the entries the next Seqs, in the order of calls, and returns before they are durable. It writes the
	// Seq into each entry and takes ownership of their records. It fails with Full when the limit or the disk reserve is
	// reached, and with Unavailable while no segment can be opened; then no Seq was given.
	Append(entries []Entry) (Receipt, error)

	// Read gives durable entries after a Seq, at most limit of them and about maxBytes (at least one entry, if there is
	// one). Seqs in between that can no longer be read are told as Lost.
	Read(after uint64, limit int, maxBytes int64) (Stretch, error)

	// Bounds tells where the journal stands. It never blocks on the disk.
	Bounds() Bounds

	// Trim forgets entries up to and including a Seq, in whole segments, never the newest.
	Trim(through uint64) error

	// Advance makes the next Seq higher than atLeast, which the local store has reached already; it does nothing when it
	// is. The Seqs that are jumped over never existed and are not told as Lost.
	Advance(atLeast uint64) error

	// Notify sets the function that is called, from the journal's own goroutine, after entries became durable. It must
	// return at once. Set it before the first Append.
	Notify(durable func(head uint64))

	// Close syncs what was appended and releases the directory.
	Close() error
}

// Receipt is the promise of one Append.
type Receipt interface {
	// Wait returns nil once the entries are on disk. An error means that they must not be acknowledged; they may still
	// appear later. Of a canceled context it returns the context's error and changes nothing.
	Wait(ctx context.Context) error
}

// Stretch is one page of a journal.
type Stretch struct {
	Entries []Entry
	Lost    []Span // Seqs that are gone, in order
	Through uint64 // where the next Read goes on: everything up to here is in Entries or in Lost
}

// Span is a range of Seqs, both included.
type Span struct{ From, To uint64 }

// Bounds is where a journal stands.
type Bounds struct {
	Epoch     string // the random id of this start
	EpochFrom uint64 // its first Seq
	First     uint64 // the oldest Seq that can be read; Head+1 when there is none
	Head      uint64 // the last durable Seq; 0 before the first
	Appended  uint64 // the last Seq given
	Bytes     int64  // on disk
	Limit     int64
	Reserve   int64    // free space that intake leaves alone
	Free      int64    // free space at the last look
	Full      bool     // the next Append would fail with Full
	Damaged   []string // files that were set aside as damaged
	Fault     string   // why nothing can be appended now; "" when all is well
}
