package conformance

import (
	"context"
	"time"

	"holdfast/ports"
)

var probeCases = []Case{
	{
		Topic: "probe", Name: "answers", Run: probeAnswers,
		Must: "Probe of each family that is kept succeeds within a second while the backend can take a write",
	},
	{
		Topic: "probe", Name: "harmless", Reads: true, Run: probeChangesNothing,
		Must: "Probe changes nothing: not the position, not a record, and it leaves none behind",
	},
}

// probeTime is what the host gives a probe, every 2 seconds; three that miss it in a row are a backend that is down.
const probeTime = time.Second

func probeAnswers(c *C) {
	for _, f := range c.Describe().Families {
		var err error
		for range 3 {
			ctx, cancel := context.WithTimeout(c.Ctx, probeTime)
			err = c.Backend().Probe(ctx, f)
			cancel()
			if err == nil {
				break
			}
		}
		if err != nil {
			c.Errorf("probe of %s, three times: %s", f, faultText(err))
		}
	}
}

func probeChangesNothing(c *C) {
	kind := c.kinds()[0]
	r := c.said(kind, "probed", 1, "Pending")
	b := c.Backend()
	c.put(r)
	before, err := b.Position(c.Ctx, kind.Family())
	if err != nil {
		c.Fatalf("position: %s", faultText(err))
	}
	for range 3 {
		if err := b.Probe(c.Ctx, kind.Family()); err != nil {
			c.Fatalf("probe: %s", faultText(err))
		}
	}
	if after, err := b.Position(c.Ctx, kind.Family()); err != nil || !samePosition(before, after) {
		c.Errorf("the position was %s and is %s after the probe (%s)", text(before), text(after), faultText(err))
	}
	c.holds("after a probe", r)
	c.countsAre(map[ports.Kind]int64{kind: 1})
}
