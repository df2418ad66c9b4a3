package conformance

import (
	"fmt"
	"time"

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
	if !optedOut(c.declared, "position/stored") {
		c.isAt("after it was killed", f, p)
	}
}

func survivesKillInPut(c *C) {
	var last uint64
	for _, into := range []time.Duration{0, 2 * time.Millisecond, 10 * time.Millisecond} {
		if last = c.killInPut(last, into); c.failed() {
			return
		}
	}
}

// killInPut kills the backend so far into a Put, looks at what is left, and gives the position of the last batch that was begun.
func (c *C) killInPut(from uint64, into time.Duration) (last uint64) {
	const rows, batches, before = 64, 40, 3
	kind, b := c.kinds()[0], c.Backend()
	at := c.at(b, kind.Family())
	batch := make([][]ports.Row, batches)
	for i := range batch {
		for n := range rows {
			batch[i] = append(batch[i], c.said(kind, fmt.Sprintf("b%03d-%02d", from+uint64(i), n), 1, "Running"))
		}
	}
	begun, ended := make(chan struct{}, batches), make(chan struct{})
	acknowledged := 0
	go func() {
		defer close(ended)
		for i := range batch {
			begun <- struct{}{}
			p := to(at, map[string]uint64{anyHost: from + uint64(i) + 1})
			if _, err := b.Put(c.Ctx, ports.Batch{Family: kind.Family(), Rows: batch[i], Position: &p}); err != nil {
				return
			}
			acknowledged++
		}
	}()
	for range before + 1 {
		select {
		case <-begun:
		case <-ended:
		}
	}
	select {
	case <-time.After(into):
	case <-ended:
	}
	c.Kill()
	<-ended
	if acknowledged < before {
		c.Fatalf("the Puts failed before it was killed")
	}
	for _, rows := range batch[:acknowledged] {
		c.holds("acknowledged before it was killed", rows[0], rows[len(rows)-1])
	}
	if acknowledged < batches {
		c.wholeOrNot(batch[acknowledged]...)
	}
	last = from + batches
	if optedOut(c.declared, "position/stored") {
		return last
	}
	done := c.at(c.Backend(), kind.Family()).Seqs[anyHost]
	if done < from+uint64(acknowledged) {
		c.Errorf("the position is %d after it was killed, batch %d was acknowledged", done, from+uint64(acknowledged))
	}
	if i := done - from; i > 0 && i <= batches {
		c.holds("of a batch whose position is stored", batch[i-1]...)
	}
	return last
}

func survivesDrain(c *C) {
	there, gone := c.history()
	acknowledged := c.drainBeside()
	c.Close()
	c.holds("after Drain", there...)
	c.lacks("after Drain", gone...)
	c.holds("acknowledged beside Drain", acknowledged[max(0, len(acknowledged)-50):]...)
}
