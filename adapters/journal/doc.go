// Package journal keeps what was promised: the durable, ordered log of each family's accepted writes (ports.Journal), the
// host's own state (ports.State) and the lock on the data directory.
//
//	data/holdfast.lock                       held by the one host of this directory; names its process
//	data/state.db                            who the host is, what it last knew, what was set aside (bbolt)
//	data/state.db.corrupt-TIME               one that was found damaged; what was whole in it is in its successor
//	data/persistence-bridge-hwm.json         a mirror of state.db for people: how far each follower is
//	data/persistence-assignment.json         another one: which beacon keeps which history
//	data/persistence-....json.corrupt-TIME   a mirror that was found damaged; of each name the newest four are kept
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
//
// State.db is looked through page by page at each start, before bbolt may open it (state_pages.go, state_walk.go,
// state_reading.go). A damaged one is replaced by a new file with what is whole in it (state_takeover.go).
//
// The mirrors show a part of state.db and are replaced as a whole (mirror.go): the positions at most once a second and at
// the end, the assignments with each change. They are read at the start, and only what a person did to them meanwhile
// counts. An entry taken out of persistence-bridge-hwm.json, or the whole file, means "copy everything again"; nothing in
// that file moves a position. What persistence-assignment.json says, where somebody changed it, is the assignment; a file
// that is gone is written again. State.db remembers what each file has shown, so that a host that died before it wrote a
// mirror is not taken for a person. A mirror that is damaged is set aside and counts for nothing; one that cannot be
// written is said so in the log and stops nothing.
package journal
