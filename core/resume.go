package core

import "holdfast/ports"

// Where a follower goes on: pure functions over positions.

// start is where a session begins.
type start struct {
	from ports.Position // zero: everything is copied
	why  string         // of a beginning at zero, for the log; "" for an ordinary one
	// doubtful says that Puts of an earlier host may still take effect: the keys of the pages up to reached, and of the one
	// behind it, are in doubt.
	doubtful bool
	reached  ports.Position
	blank    bool // the store had nothing of ours, and can have missed no removal
}

// startOf compares what the host knows of a follower with what the follower's store says.
func startOf(known ports.FollowerMark, met bool, store ports.Position) start {
	s := start{reached: store, doubtful: known.Putting, blank: store.StoreID != "" && isZero(store) && isZero(known.Position)}
	holds := store.StoreID != "" // a store that cannot hold a position says nothing of itself
	repaired := ports.Position{Seqs: known.Repaired}
	switch {
	case !met:
		if s.doubtful = !isZero(store); s.doubtful {
			s.why = "its position is not known here"
		}
	case holds && store.StoreID != known.Position.StoreID:
		if known.Position.StoreID != "" {
			s.why = "it is another store than before"
		}
	case holds && isZero(store): // it was told none yet, or lost it
		if !isZero(repaired) {
			s.why = "its store lost its position"
		}
	case !holds || store.Covers(known.Position):
		s.from = known.Position
	case !store.Covers(repaired), !isZero(repaired) && repaired.Covers(store): // one at the same position may be from before it, too
		s.why = "its store is an older copy, from before keys were put out of order"
	default:
		s.from = lower(known.Position, store)
	}
	if isZero(s.from) {
		s.from = ports.Position{}
	}
	s.from.StoreID = store.StoreID
	return s
}

// isZero says whether a position is before everything.
func isZero(p ports.Position) bool {
	for _, seq := range p.Seqs {
		if seq > 0 {
			return false
		}
	}
	return true
}

// lower is the position that is behind both. A host that one of them does not name is not known at all.
func lower(a, b ports.Position) ports.Position {
	if a.Covers(b) {
		a, b = b, a
	}
	p := ports.Position{StoreID: a.StoreID, Epoch: a.Epoch, Seqs: map[string]uint64{}}
	for host, seq := range a.Seqs {
		if other, ok := b.Seqs[host]; ok {
			p.Seqs[host] = min(seq, other)
		}
	}
	if isZero(p) {
		return ports.Position{StoreID: a.StoreID}
	}
	return p
}
