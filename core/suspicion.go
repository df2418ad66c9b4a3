package core

import "holdfast/ports"

// suspicion finds the entry that the local store refuses for good or cannot survive. A batch that fails is sent again alone.
// One that is refused is halved, which costs nothing. One with which the store died twice is taken apart at once, entry by
// entry: every further death costs a start, and starts become slower. A single entry that is refused, or that ends the store
// three times, is to be set aside. It is a plain state machine: the commit loop tells it what happened and asks how large the
// next batch may be.
type suspicion struct {
	first   uint64 // the batch that failed last: its first Seq,
	n       int    // its number of entries,
	strikes int    // and how often it did
	until   uint64 // up to here the loop goes carefully; 0: no suspicion
	limit   int    // entries in a batch while it does
}

// Deaths before a batch is taken apart, and before a single entry is set aside.
const (
	strikesToPart  = 2
	strikesToAside = 3
)

// size is how many entries the next batch may have, and whether it must go alone.
func (s *suspicion) size() (limit int, alone bool) {
	if s.until == 0 {
		return ports.MaxBatchEntries, false
	}
	return s.limit, true
}

// failed says what a batch's failure means: true when its only entry is to be set aside.
func (s *suspicion) failed(first uint64, n int, through uint64, permanent bool) (aside bool) {
	if s.first == first && s.n == n {
		s.strikes++
	} else {
		s.first, s.n, s.strikes = first, n, 1
	}
	s.until = max(s.until, through)
	switch {
	case n <= 1:
		s.limit = 1
		return permanent || s.strikes >= strikesToAside
	case permanent:
		s.limit = n / 2
	case s.strikes >= strikesToPart:
		s.limit = 1
	default:
		s.limit = n
	}
	return false
}

// passed says that everything up to a Seq is decided.
func (s *suspicion) passed(through uint64) {
	if s.until != 0 && through >= s.until {
		*s = suspicion{}
	}
}

// counts says whether a failure speaks against the batch at all, rather than against the store's state.
func (s *suspicion) counts(code ports.Code) bool {
	return code.Permanent() && code != ports.Conflict || code == ports.BackendGone || code == ports.Deadline || code == ports.Internal
}
