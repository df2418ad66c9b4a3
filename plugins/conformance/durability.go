package conformance

import (
	"context"
	"fmt"

	"holdfast/ports"
)

// What was answered as done is there after whatever ends the backend. A store that keeps everything in memory opts out of
// this topic.
var durabilityCases = []Case{
	{
		Topic: "durability", Name: "closed", Reads: true, Run: survivesClose,
		Must: "what Put counted in Done is there after the backend was closed and opened again, and what it removed is not",
	},
	{
		Topic: "durability", Name: "position", Run: positionSurvives,
		Must: "the position and the store's id are the same after the backend was closed and opened again",
	},
	{
		Topic: "durability", Name: "killed", Reads: true, Kills: true, Run: survivesKill,
		Must: "what Put counted in Done is there, and the position with it, after the process was killed at once",
	},
	{
		Topic: "durability", Name: "killed-in-a-put", Reads: true, Kills: true, Run: survivesKillInPut,
		Must: "a process that is killed in the middle of Puts leaves every record whole, and a position only of a batch whose rows are all in",
	},
	{
		Topic: "durability", Name: "drained", Reads: true, Needs: []string{"Drainer"}, Run: survivesDrain,
		Must: "what was acknowledged before or beside Drain is there after the backend was opened again",
	},
}

// history puts a little of everything and tells what must be there and what not.
func (c *C) history() (there, gone []ports.Row) {
	for _, kind := range c.kinds() {
		for n := 1; n <= 3; n++ {
			key := "kept"
			if !several(kind) {
				key = fmt.Sprintf("kept-%d", n)
			}
			first, last := c.said(kind, key, n, "Pending"), c.said(kind, key, n, "Complete")
			c.put(first)
			if n == 3 {
				c.put(c.gone(first))
				gone = append(gone, first)
				continue
			}
			c.put(last)
			there = append(there, last)
		}
	}
	return there, gone
}

func survivesClose(c *C) {
	there, gone := c.history()
	c.Close()
	c.holds("after it was opened again", there...)
	c.lacks("after it was opened again", gone...)
	after := c.said(c.kinds()[0], "after", 1, "Running")
	c.put(after)
	c.holds("after it was opened again", after)
}

func positionSurvives(c *C) {
	want := map[ports.Family]ports.Position{}
	for i, f := range c.Describe().Families {
		p := to(c.at(c.Backend(), f), map[string]uint64{anyHost: uint64(10 + i), thatHost: 1 << 50})
		c.putBatch(c.Backend(), ports.Batch{Family: f, Rows: []ports.Row{c.some(f, "positioned")}, Position: &p})
		want[f] = p
	}
	c.Close()
	for f, p := range want {
		c.isAt("after it was opened again", f, p)
	}
}

func survivesKill(c *C) {
	there, gone := c.history()
	f := c.family()
	p := to(c.at(c.Backend(), f), map[string]uint64{anyHost: 4711})
	last := c.some(f, "last")
	c.putBatch(c.Backend(), ports.Batch{Family: f, Rows: []ports.Row{last}, Position: &p})
	c.Kill()
	c.holds("after it was killed", append(there, last)...)
	c.lacks("after it was killed", gone...)
	if optOut(c.declared, &Case{Topic: "position", Name: "stored"}) == nil {
		c.isAt("after it was killed", f, p)
	}
}

func survivesKillInPut(c *C) {
	const rows, batches = 64, 100
	kind, b := c.kinds()[0], c.Backend()
	at := c.at(b, kind.Family())
	batch := make([][]ports.Row, batches)
	for i := range batch {
		for n := range rows {
			batch[i] = append(batch[i], c.said(kind, fmt.Sprintf("b%02d-%02d", i, n), 1, "Running"))
		}
	}
	acknowledged := make(chan int, batches)
	ctx, cancel := context.WithCancel(c.Ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(acknowledged)
		for i := range batch {
			p := to(at, map[string]uint64{anyHost: uint64(i + 1)})
			if _, err := b.Put(ctx, ports.Batch{Family: kind.Family(), Rows: batch[i], Position: &p}); err != nil {
				return
			}
			acknowledged <- i
		}
	}()
	for range 3 {
		if _, ok := <-acknowledged; !ok {
			c.Fatalf("the Puts failed before it was killed")
		}
	}
	c.Kill()
	cancel()
	<-ended
	last := 2
	for i := range acknowledged {
		last = i
	}
	for i := range last + 1 {
		c.holds("acknowledged before it was killed", batch[i][0], batch[i][rows-1])
	}
	if last+1 < batches {
		c.wholeOrNot(batch[last+1]...)
	}
	if optOut(c.declared, &Case{Topic: "position", Name: "stored"}) != nil {
		return
	}
	switch seq := int(c.at(c.Backend(), kind.Family()).Seqs[anyHost]); {
	case seq < last+1:
		c.Errorf("the position is %d after it was killed, batch %d was acknowledged", seq, last+1)
	case seq <= batches:
		c.holds("of a batch whose position is stored", batch[seq-1]...)
	}
}

func survivesDrain(c *C) {
	there, gone := c.history()
	acknowledged := c.drainBeside()
	c.Close()
	c.holds("after Drain", there...)
	c.lacks("after Drain", gone...)
	c.holds("acknowledged beside Drain", acknowledged[max(0, len(acknowledged)-50):]...)
}
