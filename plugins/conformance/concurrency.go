package conformance

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"holdfast/ports"
)

// Every method is called from many goroutines, as many at a time as the backend's Slots allow.
var concurrencyCases = []Case{
	{
		Topic: "concurrency", Name: "own-writes", Reads: true, Run: readsOwnWrites,
		Must: "32 callers that put keys of their own at the same time each read what they put last",
	},
	{
		Topic: "concurrency", Name: "one-key", Reads: true, Run: putsOneKey,
		Must: "of states of one record that are put at the same time one stays, whole, and nobody reads a mixture of two",
	},
	{
		Topic: "concurrency", Name: "reads-beside-puts", Reads: true, Run: readsBesidePuts,
		Must: "a read waits for no write: it is answered in half of a call's time while full batches are put",
	},
}

// together runs a function of each caller at the same time and waits for all of them.
func together(callers int, run func(caller int)) {
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() { run(i) })
	}
	all.Wait()
}

func readsOwnWrites(c *C) {
	const callers, rounds = 32, 4
	kinds := c.kinds()
	b := c.Backend()
	rows := make([][rounds]ports.Row, callers)
	for i := range rows {
		kind := kinds[i%len(kinds)]
		for n := range rounds {
			rows[i][n] = c.said(kind, fmt.Sprintf("caller %02d", i), 1, fmt.Sprintf("S%d", n))
		}
	}
	together(callers, func(i int) {
		for _, r := range rows[i] {
			c.putInto(b, r)
			c.holdsIn(b, "what a caller put last", r)
		}
	})
	for i := range rows {
		c.holds("when all are done", rows[i][rounds-1])
	}
}

func putsOneKey(c *C) {
	const callers, rounds = 8, 3
	for _, kind := range c.kinds() {
		b := c.Backend()
		var states [callers]ports.Row
		for i := range states {
			text := strings.Repeat(string(rune('a'+i)), 200)
			states[i] = c.row(kind, "shared", 1, fmt.Sprintf(`%q:%q,%q:%q,"Unknown":%q`, word[kind], text, opaque[kind], text, text))
		}
		c.put(states[0])
		isOne := func() {
			got, found, err := c.find(b, states[0])
			if err != nil || !found {
				c.Errorf("a record that is replaced all the time: there %v (%s)", found, faultText(err))
				return
			}
			for _, s := range states {
				if len(differences(s, got)) == 0 {
					return
				}
			}
			c.Errorf("%s is a mixture of states: %s", nameOf(states[0]), text(got.Body))
		}
		var writing atomic.Int64
		writing.Store(callers)
		together(callers+2, func(i int) {
			if i >= callers { // only reads
				for writing.Load() > 0 {
					isOne()
				}
				return
			}
			defer writing.Add(-1)
			for range rounds {
				c.putInto(b, states[i])
			}
		})
		isOne()
	}
}

func readsBesidePuts(c *C) {
	if c.declared.Slots == 1 {
		return // it takes one call at a time, and the host knows
	}
	within := c.patience / 2
	kind := c.kinds()[0]
	b := c.Backend()
	still := c.said(kind, "still", 1, "Running")
	c.put(still)
	body := strings.Repeat("x", 7<<10)
	batches := make([][]ports.Row, 2)
	for i := range batches {
		for n := range ports.MaxBatchEntries {
			batches[i] = append(batches[i], c.row(kind, fmt.Sprintf("k%d-%03d", i, n), 1, fmt.Sprintf(`%q:%q`, opaque[kind], body)))
		}
	}
	put := make(chan struct{})
	go func() {
		defer close(put)
		for _, rows := range batches {
			c.putInto(b, rows...)
		}
	}()
	for reading := true; reading; {
		select {
		case <-put:
			reading = false
		default:
		}
		ctx, cancel := context.WithTimeout(c.Ctx, within)
		got, found, err := c.findWithin(ctx, b, still)
		cancel()
		if err != nil || !found || len(differences(still, got)) > 0 {
			c.Errorf("a read beside full batches, with %s: there %v (%s)", within, found, faultText(err))
			break
		}
	}
	<-put
}
