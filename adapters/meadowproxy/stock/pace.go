package stock

// What a request costs a real databeacon, charged in one queue: the next one is not begun before.

import "time"

// cost is how long a real databeacon takes. All are measured ones; a bulk call costs what a request costs and its rows.
type cost time.Duration

const (
	nothing    cost = 0
	request    cost = cost(1300 * time.Microsecond)
	single     cost = cost(2200 * time.Microsecond) // one row written alone
	lookUp     cost = cost(1100 * time.Microsecond)
	another    cost = cost(53 * time.Microsecond)  // each further key or row of a list: 100 keys take 6.4 ms
	createdRow cost = cost(750 * time.Microsecond) // in a bulk call; the first hundred cost more
	updatedRow cost = cost(700 * time.Microsecond)
	refusedRow cost = cost(560 * time.Microsecond)
)

// lists is the cost of a list that compares with n keys or has n rows.
func lists(n int) cost { return lookUp + cost(max(n-1, 0))*another }

// pace is when the thread of the databeacon is free. It is used with the turn only.
type pace struct{ free time.Time }

// charge waits until a request that began then has taken its cost. What a wait was too long is taken off the next one of an unbroken
// series.
func (p *pace) charge(d *Databeacon, began time.Time, c cost) {
	if !d.options.Costs || c == nothing {
		return
	}
	if began.Sub(p.free) > time.Millisecond {
		p.free = began
	}
	p.free = p.free.Add(time.Duration(c))
	wait := time.NewTimer(time.Until(p.free))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-d.closed:
	}
}
