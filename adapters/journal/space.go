package journal

import (
	"fmt"
	"time"

	"holdfast/ports"
)

// The free space is looked at when the last look is this old, or when this much was appended since.
const (
	lookEvery = 100 * time.Millisecond
	lookBytes = 4 << 20
)

// usualEntry is about what an entry of the usual size takes: with less room than that the journal counts as full.
const usualEntry = 1 << 10

// space is what is known of the disk's free space.
type space struct {
	known   bool
	free    int64 // at the last look
	taken   int64 // appended since
	looked  time.Time
	refused bool // an Append found too little
}

func (s *space) left() int64 { return max(s.free-s.taken, 0) }

// stale says whether to look again, and that the caller will.
func (s *space) stale(now time.Time, need int64) bool {
	age := now.Sub(s.looked)
	if age >= 0 && age < lookEvery && s.taken+need < lookBytes {
		return false
	}
	s.looked = now
	return true
}

// lookAtSpace asks the disk. When that fails the figures of before hold.
func (j *Journal) lookAtSpace() {
	free, _, err := j.opts.Disk.Space(j.dir)
	j.mu.Lock()
	defer j.mu.Unlock()
	if err == nil {
		j.space.known = true
		j.space.free, j.space.taken = free, j.pending
	}
	j.space.looked = j.opts.Now()
}

// room says why there is none for so many bytes more.
func (j *Journal) room(need int64) *ports.Error {
	if size := j.bytes + j.pending + need; size > j.opts.Limit {
		return &ports.Error{
			Code: ports.Full, Limit: j.opts.Limit, Size: size,
			Message: fmt.Sprintf("the journal would grow to %d bytes, the limit is %d; it shrinks when the local store takes entries", size, j.opts.Limit),
		}
	}
	if left := j.space.left() - need; j.space.known && left < j.opts.Reserve {
		return &ports.Error{
			Code: ports.Full, Limit: j.opts.Reserve, Size: max(left, 0),
			Message: fmt.Sprintf("%d bytes would be left free on the disk of %s, the reserve is %d; make room there", max(left, 0), j.dir, j.opts.Reserve),
		}
	}
	return nil
}
