package ports

// How a local store tells what changed, so that every other backend can be brought up to date by copying plain states.

// ChangesQuery asks what changed in a family after a position.
type ChangesQuery struct {
	Family Family
	After  Position // the zero Position is before everything; its StoreID does not matter here
	Key    string   // only records of this key; "" for all
	Limit  int      // rows; 0 means MaxBatchEntries. A page goes beyond it only to end a Seq
}

// ChangePage is what changed, seen in one snapshot of the whole family. It never ends inside a Seq.
type ChangePage struct {
	// Rows are records in their present state, those of a host in order of Change.Seq, an item before its events and
	// attempts where the Seq is the same. A removed record is a Gone row. A record that was pruned is not told at all.
	Rows []Row

	// Through is where the next page resumes: every change up to there is in this page or in one before it.
	Through Position

	// End is the store's own position in this snapshot, given when nothing was left out; Through is equal to it then.
	End *Position

	// Dropped has, for each host, the highest Seq of a removal that the store no longer knows of. A reader whose position
	// is before it may hold records that are gone.
	Dropped map[string]uint64
}

// Covers says whether a position is at or behind another for every host that the other knows.
func (p Position) Covers(other Position) bool {
	for host, seq := range other.Seqs {
		if p.Seqs[host] < seq {
			return false
		}
	}
	return true
}
