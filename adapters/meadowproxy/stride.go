package meadowproxy

import (
	"sync"
	"time"

	"holdfast/ports"
)

// stride is how many rows are put in one go. A databeacon takes the rows of a bulk request one after the other and answers when all are
// in; where that takes longer than anybody waits, the same rows would be sent again and again. So an answer that did not come, or came
// late, makes the next stride shorter, and quick ones make it longer, until there is no limit any more.
type stride struct {
	mu    sync.Mutex
	limit int // 0: none
}

const (
	quick       = time.Second     // for a stride that may be longer
	tooLong     = 2 * time.Second // for probes and reads, which wait for it
	longestStep = 512             // beyond which there is no limit
)

// of gives how many of some rows to put next.
func (s *stride) of(rows int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limit == 0 {
		return rows
	}
	return min(rows, s.limit)
}

// took learns from a stride of some rows.
func (s *stride) took(rows int, took time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case ports.CodeOf(err) == ports.Deadline:
		if next := max(1, rows/4); s.limit == 0 || next < s.limit {
			s.limit = next
		}
	case err == nil && took > tooLong && rows > 1:
		s.limit = rows / 2
	case err == nil && s.limit > 0 && rows >= s.limit && took < quick:
		if s.limit *= 2; s.limit > longestStep {
			s.limit = 0
		}
	}
}
