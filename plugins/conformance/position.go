package conformance

import (
	"maps"

	"holdfast/ports"
)

// A store that cannot hold a position answers with an empty one, always, and opts out of this topic.
var positionCases = []Case{
	{
		Topic: "position", Name: "new", Run: positionOfNew,
		Must: "a new store says which store it is and no Seq of any host",
	},
	{
		Topic: "position", Name: "stored", Run: positionIsStored,
		Must: "the position of a batch is stored with its rows, with the Seqs of every host; a batch without one leaves it; one that is lower takes it back; each family has its own",
	},
	{
		Topic: "position", Name: "moved-alone", Run: positionMovesAlone,
		Must: "a batch without rows moves the position",
	},
	{
		Topic: "position", Name: "stopped", Run: positionStays,
		Must: "a batch that stopped in the middle leaves the position as it was",
	},
	{
		Topic: "position", Name: "after", Run: positionAfter,
		Must: "a batch that goes on after the store's own position is taken; a Seq of 0 is as good as none",
	},
	{
		Topic: "position", Name: "elsewhere", Run: positionElsewhere,
		Must: "a batch that goes on after another position than the store's, or after another store's, is refused with conflict in the field Position, and nothing of it is in",
	},
	{
		Topic: "position", Name: "store-id", Run: positionStoreID,
		Must: "a store has an id of its own, the same whenever it is asked, and no other store has it",
	},
}

// samePosition compares positions; a Seq of 0 is as good as none.
func samePosition(a, b ports.Position) bool {
	return a.StoreID == b.StoreID && a.Epoch == b.Epoch && maps.Equal(positive(a.Seqs), positive(b.Seqs))
}

func positive(seqs map[string]uint64) map[string]uint64 {
	kept := map[string]uint64{}
	for host, seq := range seqs {
		if seq > 0 {
			kept[host] = seq
		}
	}
	return kept
}

// at asks where the store is.
func (c *C) at(b ports.Backend, f ports.Family) ports.Position {
	p, err := b.Position(c.Ctx, f)
	if err != nil {
		c.Fatalf("position of %s: %s", f, faultText(err))
	}
	return p
}

// isAt asks whether the store is where it should be.
func (c *C) isAt(when string, f ports.Family, want ports.Position) {
	if got := c.at(c.Backend(), f); !samePosition(got, want) {
		c.Errorf("%s: %s is at %s, want %s", when, f, text(got), text(want))
	}
}

// to gives a position of the store: pairs of hosts and Seqs.
func to(p ports.Position, seqs map[string]uint64) ports.Position {
	return ports.Position{StoreID: p.StoreID, Epoch: "epoch-1", Seqs: seqs}
}

// some gives a row of a family, whatever can be put.
func (c *C) some(f ports.Family, key string) ports.Row {
	if f == ports.Manifest {
		return c.said(ports.KindManifest, key, 1, "Running")
	}
	for _, kind := range c.kinds() {
		if kind.Family() == f {
			return c.said(kind, key, 1, "Running")
		}
	}
	return c.said(ports.KindItem, key, 1, "Running")
}

func positionOfNew(c *C) {
	for _, f := range c.Describe().Families {
		p := c.at(c.Backend(), f)
		if p.StoreID == "" {
			c.Errorf("%s: a store without an id; one that cannot hold a position opts out of the topic position", f)
		}
		if len(positive(p.Seqs)) > 0 {
			c.Errorf("%s: a new store is at %s", f, text(p))
		}
	}
}

func positionIsStored(c *C) {
	families := c.Describe().Families
	f, b := families[0], c.Backend()
	at := c.at(b, f)
	other := at
	if len(families) > 1 {
		other = to(c.at(b, families[1]), map[string]uint64{anyHost: 77})
		c.putBatch(b, ports.Batch{Family: families[1], Position: &other})
	}
	for _, seqs := range []map[string]uint64{
		{anyHost: 5}, {anyHost: 6, thatHost: 1 << 40}, {anyHost: 4711, thatHost: 1<<63 - 1}, {thatHost: 3},
	} {
		p := to(at, seqs)
		c.putBatch(b, ports.Batch{Family: f, Rows: []ports.Row{c.some(f, "positioned")}, Position: &p})
		c.isAt("after a batch", f, p)
		c.putBatch(b, ports.Batch{Family: f, Rows: []ports.Row{c.some(f, "positioned")}})
		c.isAt("after a batch without a position", f, p)
	}
	if len(families) > 1 {
		c.isAt("after batches of "+string(f), families[1], other)
	}
}

func positionMovesAlone(c *C) {
	for _, f := range c.Describe().Families {
		at := c.at(c.Backend(), f)
		for _, seq := range []uint64{1, 12, 11} {
			p := to(at, map[string]uint64{anyHost: seq})
			c.putBatch(c.Backend(), ports.Batch{Family: f, Position: &p})
			c.isAt("after an empty batch", f, p)
		}
	}
}

func positionStays(c *C) {
	f := c.family()
	first := to(c.at(c.Backend(), f), map[string]uint64{anyHost: 5})
	c.putBatch(c.Backend(), ports.Batch{Family: f, Rows: []ports.Row{c.some(f, "first")}, Position: &first})
	bad := c.some(f, "bad")
	bad.Body = []byte(`{"Status":`)
	next := to(first, map[string]uint64{anyHost: 6})
	_, err := c.Backend().Put(c.Ctx, ports.Batch{Family: f, Rows: []ports.Row{c.some(f, "second"), bad}, Position: &next})
	if err == nil {
		return // it can keep anything, and then the batch did not stop
	}
	c.isAt("after a batch that stopped", f, first)
}

func positionAfter(c *C) {
	f, b := c.family(), c.Backend()
	at := c.at(b, f)
	zero := to(at, map[string]uint64{anyHost: 0})
	zero.Epoch = at.Epoch
	for i, after := range []ports.Position{at, zero} {
		if i > 0 {
			empty := to(at, nil)
			c.putBatch(b, ports.Batch{Family: f, Position: &empty})
		}
		for seq := uint64(1); seq <= 3; seq++ {
			next := to(at, map[string]uint64{anyHost: seq * 10})
			r := c.some(f, "after")
			applied, err := b.Put(c.Ctx, ports.Batch{Family: f, Rows: []ports.Row{r}, After: &after, Position: &next})
			if err != nil || applied.Done != 1 {
				c.Fatalf("a batch after %s, where the store is: Done %d, %s", text(after), applied.Done, faultText(err))
			}
			c.isAt("after the batch", f, next)
			after = c.at(b, f)
		}
	}
}

func positionElsewhere(c *C) {
	f, b := c.family(), c.Backend()
	at := to(c.at(b, f), map[string]uint64{anyHost: 5, thatHost: 2})
	kept := c.some(f, "kept")
	c.putBatch(b, ports.Batch{Family: f, Rows: []ports.Row{kept}, Position: &at})
	stranger := at
	stranger.StoreID = "another store"
	next := to(at, map[string]uint64{anyHost: 9, thatHost: 9})
	for name, after := range map[string]ports.Position{
		"behind":         to(at, map[string]uint64{anyHost: 4, thatHost: 2}),
		"ahead":          to(at, map[string]uint64{anyHost: 6, thatHost: 2}),
		"ahead in one":   to(at, map[string]uint64{anyHost: 5, thatHost: 3}),
		"of one host":    to(at, map[string]uint64{anyHost: 5}),
		"of a new store": to(at, nil),
		"another store":  stranger,
	} {
		r, replaced := c.some(f, "never "+name), c.said(kept.Kind, kept.Key, 1, "Never")
		applied, err := b.Put(c.Ctx, ports.Batch{Family: f, Rows: []ports.Row{r, replaced}, After: &after, Position: &next})
		if ports.CodeOf(err) != ports.Conflict || ports.AsError(err).Field != ports.FieldPosition || applied.Done != 0 {
			c.Errorf("%s: a batch after %s, the store is at %s: Done %d, %s", name, text(after), text(at), applied.Done, faultText(err))
		}
		c.isAt("after a batch from elsewhere", f, at)
		if len(c.kinds()) > 0 {
			c.lacks("after a batch from elsewhere", r)
			c.holds("after a batch from elsewhere", kept)
		}
	}
}

func positionStoreID(c *C) {
	f := c.family()
	here, there := c.at(c.Backend(), f), c.at(c.Another(), f)
	if here.StoreID == "" || here.StoreID == there.StoreID {
		c.Errorf("two stores have the ids %q and %q", here.StoreID, there.StoreID)
	}
	c.put(c.some(f, "there"))
	for _, family := range c.Describe().Families {
		if again := c.at(c.Backend(), family); again.StoreID != here.StoreID {
			c.Errorf("the store had the id %q and has %q as %s tells it", here.StoreID, again.StoreID, family)
		}
	}
}
