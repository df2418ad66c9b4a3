package conformance

import (
	"context"
	"fmt"
	"strings"
	"time"

	"holdfast/ports"
)

// Every call has a deadline, and returns by then, whatever it can say. That calls return at all every topic sees to.
var deadlineCases = []Case{
	{
		Topic: "deadlines", Name: "ended", Reads: true, Run: callsWithoutTime,
		Must: "a call whose context has ended already fails at once with canceled or deadline, and a Put then has no effect or its whole effect; or it succeeds",
	},
	{
		Topic: "deadlines", Name: "short", Reads: true, Run: callsWithLittleTime,
		Must: "a Put that its deadline overtakes fails with deadline or canceled, each of its rows is in whole or not at all, and later calls are answered",
	},
}

// outOfTime says whether an error is one of a context that ended.
func outOfTime(err error) bool {
	code := ports.CodeOf(err)
	return code == ports.Deadline || code == ports.Canceled
}

func callsWithoutTime(c *C) {
	kind := c.kinds()[0]
	canceled, cancel := context.WithCancel(c.Ctx)
	cancel()
	past, stop := context.WithDeadline(c.Ctx, time.Now().Add(-time.Second))
	defer stop()
	kept := c.said(kind, "kept", 1, "Running")
	c.put(kept)
	b := c.Backend()
	for name, ctx := range map[string]context.Context{"canceled": canceled, "past its deadline": past} {
		late := c.said(kind, "late "+name, 1, "Running")
		applied, err := b.Put(ctx, ports.Batch{Family: kind.Family(), Rows: []ports.Row{late}})
		if err == nil && applied.Done == 1 {
			c.holds("after a Put that succeeded", late)
		} else if !outOfTime(err) {
			c.Errorf("put, %s: Done %d, %s; want canceled or deadline", name, applied.Done, faultText(err))
		}
		_, positionErr := b.Position(ctx, kind.Family())
		_, _, readErr := c.findWithin(ctx, b, kept)
		for what, err := range map[string]error{"position": positionErr, "probe": b.Probe(ctx, kind.Family()), "read": readErr} {
			if err != nil && !outOfTime(err) {
				c.Errorf("%s, %s: %s; want canceled or deadline", what, name, faultText(err))
			}
		}
		c.wholeOrNot(late)
		c.holds("after calls without time", kept)
	}
}

// wholeOrNot asks for each row whether its record is whole, if it is there.
func (c *C) wholeOrNot(rows ...ports.Row) {
	for _, r := range rows {
		if _, found, err := c.find(c.Backend(), r); err != nil || found {
			c.holds("after a Put without an answer", r)
		}
	}
}

func callsWithLittleTime(c *C) {
	kind := c.kinds()[0]
	text := strings.Repeat("x", 1<<10)
	for i, little := range []time.Duration{time.Microsecond, time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond} {
		rows := make([]ports.Row, ports.MaxBatchEntries)
		for n := range rows {
			rows[n] = c.row(kind, fmt.Sprintf("k%d-%03d", i, n), 1, fmt.Sprintf(`%q:"Running",%q:%q`, word[kind], opaque[kind], text))
		}
		ctx, cancel := context.WithTimeout(c.Ctx, little)
		applied, err := c.Backend().Put(ctx, ports.Batch{Family: kind.Family(), Rows: rows})
		cancel()
		sample := []ports.Row{rows[0], rows[1], rows[255], rows[510], rows[511]}
		switch {
		case err == nil && applied.Done == len(rows):
			c.holds("after a Put that was in time", sample...)
		case !outOfTime(err):
			c.Errorf("a Put with %s: Done %d, %s; want canceled or deadline", little, applied.Done, faultText(err))
		default:
			c.wholeOrNot(sample...)
			c.holds("what Done counts", rows[:min(applied.Done, 1)]...)
		}
		after := c.said(kind, fmt.Sprint("after ", i), 1, "Running")
		c.put(after)
		c.holds("after a Put without time", after)
	}
}
