package mesh

import (
	"maps"
	"time"
)

// seldom lets one message pass in a while, where a peer could cause any number of them.
type seldom struct{ last time.Time }

func (s *seldom) pass(now time.Time) bool {
	if now.Sub(s.last) < seldomEvery {
		return false
	}
	s.last = now
	return true
}

const seldomEvery = 10 * time.Second

// warnings lets the same message about the same subject pass in a while. Peers choose subjects, so they are kept for that while
// only, and so many; beyond them all subjects of a message count as one.
type warnings map[[2]string]*warned

type warned struct {
	seldom
	left int // that did not pass since the last one that did
}

// maxSubjects is how many subjects are told apart within seldomEvery.
const maxSubjects = 100

func (w *warnings) pass(message, subject string, now time.Time) (left int, pass bool) {
	key := [2]string{message, subject}
	if (*w)[key] == nil && len(*w) >= maxSubjects {
		maps.DeleteFunc(*w, func(_ [2]string, old *warned) bool { return now.Sub(old.last) >= seldomEvery })
		if len(*w) >= maxSubjects {
			key[1] = ""
		}
	}
	if *w == nil {
		*w = warnings{}
	}
	if (*w)[key] == nil {
		(*w)[key] = &warned{}
	}
	about := (*w)[key]
	if !about.seldom.pass(now) {
		about.left++
		return 0, false
	}
	left, about.left = about.left, 0
	return left, true
}

// Status is what a hub tells an operator.
type Status struct {
	Name          string
	Secured       bool
	Beacons       int // known ones
	Online        int
	Sockets       int
	Waiting       int // works without a slot
	Underway      int // all works that are not done, those included whose caller has given up
	Lingering     int // those: they keep slots that beacons are still busy in
	Completed     int64
	Failed        int64
	TimedOut      int64
	Broken        int64 // ended because their beacon was lost, or the caller
	LateReports   int64
	StrayReports  int64 // about no work of ours
	RefusedFrames int64
	Recording     int   // writes that wait for the Door
	Unrecorded    int64 // writes that it refused for good
}

// Status never waits for anybody.
func (h *Hub) Status() Status {
	s := Status{
		Name: h.name, Secured: h.access.secured,
		Completed: h.counts.completed.Load(), Failed: h.counts.failed.Load(), TimedOut: h.counts.timedOut.Load(), Broken: h.counts.broken.Load(),
		LateReports: h.counts.late.Load(), StrayReports: h.counts.unknown.Load(), RefusedFrames: h.counts.refusedFrames.Load(),
		Recording: h.record.waiting(), Unrecorded: h.record.lost.Load(),
	}
	h.look(func() {
		s.Beacons, s.Sockets, s.Waiting, s.Underway = len(h.registry.all), len(h.sockets), h.works.waiting, len(h.works.live)
		for _, b := range h.registry.all {
			if b.online {
				s.Online++
			}
			s.Lingering += h.works.berths[b.name].lingering()
		}
	})
	return s
}
