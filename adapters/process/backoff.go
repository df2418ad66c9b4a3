package process

import (
	"math/rand/v2"
	"time"
)

// patience decides when a plugin that failed is started again, from how long its runs were. It has no clock.
type patience struct {
	base, limit time.Duration // of the backoff
	healthy     time.Duration // a run of this length, and nothing else, clears the count
	failures    int           // in a row
}

// failed takes a failure after a run, or with 0 the failure of a launch. The first death of a healthy child is followed at
// once; then the wait doubles from base to limit, where the plugin is given up: parked, and tried rarely. What no repetition
// can mend is parked at once. Half of the wait is chance, so that the plugins of one host, or of many, do not start in step.
func (p *patience) failed(ran time.Duration, permanent bool) (wait time.Duration, parked bool) {
	if ran >= p.healthy && ran > 0 {
		p.failures = 0
	}
	p.failures++
	if ran > 0 && p.failures == 1 {
		return 0, false
	}
	wait = p.limit
	if doublings := p.failures - 1; !permanent && doublings < 16 {
		wait = min(p.limit, p.base<<doublings)
	}
	return wait/2 + rand.N(wait/2+1), wait == p.limit
}
