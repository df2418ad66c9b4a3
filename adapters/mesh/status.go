package mesh

import "time"

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
