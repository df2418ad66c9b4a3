package conformance

import (
	"fmt"

	"holdfast/ports"
)

// Whether a state is older than another one is not a follower's business: the host puts the states of a key in order, and
// sends an older one only when it means it.
var orderCases = []Case{
	{
		Topic: "order", Name: "last-wins", Reads: true, Run: lastWins,
		Must: "the last Put wins, also over a state with a higher Seq, a later time or another host's name",
	},
	{
		Topic: "order", Name: "stamps", Reads: true, Run: keepsStamps,
		Must: "what the first write fixed (ReceivedAt, OrderKey, EnqueuedKey, EmittedAt, Actor, Origin) and who changed the record last come back as the last Put gave them",
	},
	{
		Topic: "order", Name: "orphans", Reads: true, Of: []ports.Family{ports.Queue}, Run: keepsOrphans,
		Must: "an event or attempt is stored whether its work item is there or not",
	},
}

func (c *C) agedBy(kind ports.Kind, seq uint64) ports.Row {
	members := fmt.Sprintf(`%q:"S%d"`, word[kind], seq)
	if kind == ports.KindItem {
		members += fmt.Sprintf(`,"LastEventAt":"2026-01-01T00:00:%02dZ"`, seq)
	}
	c.seq = 100 + seq
	r := c.row(kind, "aged", 1, members)
	r.Change.Host = []string{anyHost, thatHost}[seq%2]
	return r
}

func lastWins(c *C) {
	for _, kind := range c.kinds() {
		for _, seq := range []uint64{5, 3, 9, 2, 9} {
			r := c.agedBy(kind, seq)
			c.put(r)
			c.holds(fmt.Sprintf("after the state of Seq %d", seq), r)
		}
	}
}

func keepsStamps(c *C) {
	for _, kind := range c.kinds() {
		for _, seq := range []uint64{5, 8, 1} {
			want := c.agedBy(kind, seq)
			want.First.Actor, want.First.Origin = fmt.Sprintf("hub %d", seq), ports.OriginHub
			c.put(want)
			got, found, err := c.find(c.Backend(), want)
			switch {
			case err != nil || !found:
				c.Errorf("%s is not there (%s)", nameOf(want), faultText(err))
			case got.First != want.First:
				c.Errorf("%s: its first write was %s and came back as %s", nameOf(want), text(want.First), text(got.First))
			case got.Change != want.Change:
				c.Errorf("%s: its last change was %s and came back as %s", nameOf(want), text(want.Change), text(got.Change))
			}
		}
	}
}

func keepsOrphans(c *C) {
	for _, kind := range c.kinds() {
		if !several(kind) {
			continue
		}
		r := c.said(kind, "nobody's", 1, "Running")
		c.put(r)
		c.holds("without its item", r)
	}
}
