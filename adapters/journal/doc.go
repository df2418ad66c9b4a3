// Package journal keeps what was promised: the durable, ordered log of each family's accepted writes (ports.Journal), the
// host's own state (ports.State) and the lock on the data directory.
//
//	data/holdfast.lock                       held by the one host of this directory; names its process
//	data/state.db                            who the host is, what it last knew, what was set aside (bbolt)
//	data/journal/queue/N.seg                 segments; N is the first Seq that the file can hold
//	data/journal/queue/N.seg.corrupt-TIME    a segment that was found damaged; what is whole in it is still read
//	data/journal/queue/N.corrupt-TIME        the same, once nobody needs its entries any more; the newest four are kept
//	data/journal/manifest/...
//
// A segment is a header and frames with checksums (segment.go, frame.go, entry.go). Each start begins a new segment with
// the first entry it gets. Entries are appended to groups in memory (append.go); one goroutine writes what waits and syncs
// it once for all (write.go). Opening reads the newest segment and the headers of the others (open.go); reading finds its
// place by a sparse index that is built while writing and reading (read.go).
//
// The Seqs of a segment have no gaps. Wherever one is skipped (a new epoch that begins above what is known from elsewhere,
// a write that failed) a new segment begins, whose header says where the one before it ended: so a Seq that never was
// can be told from one that is lost.
package journal
