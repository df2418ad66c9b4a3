package conformance

import (
	"fmt"
	"sync/atomic"

	"holdfast/ports"
)

var drainCases = []Case{
	{
		Topic: "drain", Name: "refuses", Needs: []string{"Drainer"}, Run: drainRefuses,
		Must: "after Drain Put and Probe fail with unavailable, Describe goes on, and a read is answered or fails with unavailable",
	},
	{
		Topic: "drain", Name: "finishes", Needs: []string{"Drainer"}, Run: drainFinishes,
		Must: "Drain finishes what was begun: a Put that is under way succeeds or is refused with unavailable, and none succeeds that comes after",
	},
}

// drained drains the backend.
func (c *C) drained() {
	if err := power[ports.Drainer](c).Drain(c.Ctx); err != nil {
		c.Fatalf("drain: %s", faultText(err))
	}
}

func drainRefuses(c *C) {
	kept := c.said(c.puttable()[0], "kept", 1, "Running")
	if kinds := c.kinds(); len(kinds) > 0 {
		kept = c.said(kinds[0], "kept", 1, "Running")
	}
	c.put(kept)
	c.drained()
	b := c.Backend()
	for range 2 {
		late := kept
		applied, err := b.Put(c.Ctx, ports.Batch{Family: kept.Kind.Family(), Rows: []ports.Row{late}})
		if ports.CodeOf(err) != ports.Unavailable || applied.Done != 0 {
			c.Errorf("put after Drain: Done %d, %s; want unavailable", applied.Done, faultText(err))
		}
		if err := b.Probe(c.Ctx, kept.Kind.Family()); ports.CodeOf(err) != ports.Unavailable {
			c.Errorf("probe after Drain: %s; want unavailable", faultText(err))
		}
		if _, err := b.Describe(c.Ctx); err != nil {
			c.Errorf("describe after Drain: %s", faultText(err))
		}
		if err := power[ports.Drainer](c).Drain(c.Ctx); err != nil && ports.CodeOf(err) != ports.Unavailable {
			c.Errorf("drain after Drain: %s; want none or unavailable", faultText(err))
		}
	}
	if len(c.kinds()) == 0 {
		return
	}
	if _, found, err := c.find(b, kept); err == nil && !found || err != nil && ports.CodeOf(err) != ports.Unavailable {
		c.Errorf("read after Drain: there %v, %s; want the record or unavailable", found, faultText(err))
	}
}

// drainBeside drains while callers put, and gives what was acknowledged.
func (c *C) drainBeside() (acknowledged []ports.Row) {
	const callers, rounds = 8, 200
	b, drainer := c.Backend(), power[ports.Drainer](c)
	kind := c.puttable()[0]
	if kinds := c.kinds(); len(kinds) > 0 {
		kind = kinds[0]
	}
	rows := make([][rounds]ports.Row, callers)
	for i := range rows {
		for n := range rounds {
			rows[i][n] = c.said(kind, fmt.Sprintf("caller %d-%d", i, n), 1, "Running")
		}
	}
	var done [callers]int
	var drained atomic.Bool
	begun := make(chan struct{}, callers*rounds)
	together(callers+1, func(i int) {
		if i == callers {
			for range callers {
				<-begun
			}
			if err := drainer.Drain(c.Ctx); err != nil {
				c.Errorf("drain beside Puts: %s", faultText(err))
			}
			drained.Store(true)
			return
		}
		for n := range rounds {
			after := drained.Load()
			_, err := b.Put(c.Ctx, ports.Batch{Family: kind.Family(), Rows: rows[i][n : n+1]})
			begun <- struct{}{}
			switch {
			case err == nil && after:
				c.Errorf("a Put that began after Drain had returned succeeded")
				return
			case err == nil:
				done[i]++
				continue
			case ports.CodeOf(err) != ports.Unavailable:
				c.Errorf("put beside Drain: %s; want unavailable", faultText(err))
			}
			return
		}
	})
	for i := range rows {
		acknowledged = append(acknowledged, rows[i][:done[i]]...)
	}
	return acknowledged
}

func drainFinishes(c *C) {
	acknowledged := c.drainBeside()
	if len(c.kinds()) == 0 {
		return
	}
	for _, r := range acknowledged[max(0, len(acknowledged)-20):] {
		_, found, err := c.find(c.Backend(), r)
		if ports.CodeOf(err) == ports.Unavailable {
			return // it answers no more reads
		}
		if err != nil || !found {
			c.Errorf("%s was acknowledged beside Drain: there %v (%s)", nameOf(r), found, faultText(err))
		}
	}
}
