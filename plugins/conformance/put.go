package conformance

import (
	"fmt"
	"strings"

	"holdfast/ports"
)

var putCases = []Case{
	{
		Topic: "put", Name: "stored", Reads: true, Run: putStores,
		Must: "what Put counts in Done can be read at once, with the members that were put and no others",
	},
	{
		Topic: "put", Name: "replaced", Reads: true, Run: putReplaces,
		Must: "a row replaces what the store has under its key, whole: members that are not in the new state are gone",
	},
	{
		Topic: "put", Name: "repeated", Reads: true, Run: putRepeats,
		Must: "a Put that is repeated changes nothing: there is still one record of each row",
	},
	{
		Topic: "put", Name: "removed", Reads: true, Run: putRemoves,
		Must: "a row that is gone removes its record and no other one; removing what is not there is no error; a later row brings the record back",
	},
	{
		Topic: "put", Name: "in-order", Reads: true, Run: putInOrder,
		Must: "rows of one batch take effect in their order: of several states of a record the last one stays",
	},
	{
		Topic: "put", Name: "stopped", Reads: true, Run: putStops,
		Must: "a row that can never be stored is told with a permanent code, and Done counts the rows before it, which are durable and can be read; a store that can keep it counts every row",
	},
	{
		Topic: "put", Name: "full-batch", Reads: true, Run: putFullBatch,
		Must: "a batch of 512 rows and 4 MiB goes in whole",
	},
	{
		Topic: "put", Name: "empty", Run: putEmpty,
		Must: "a batch without rows is answered with Done 0 and no error",
	},
}

func putStores(c *C) {
	var rows []ports.Row
	for _, key := range []string{"stored-1", "stored-2", "stored-3"} { // as the host sends them: by key, an item before its events and attempts
		for _, kind := range c.kinds() {
			for n := 1; n <= 2; n++ {
				if n == 1 || several(kind) {
					rows = append(rows, c.row(kind, key, n, fmt.Sprintf(`%q:"Running",%q:{"n":%d}`, word[kind], opaque[kind], n)))
				}
			}
		}
	}
	c.put(rows...)
	c.holds("after the Put", rows...)
}

// several says whether a key has several records of a kind.
func several(kind ports.Kind) bool { return kind == ports.KindEvent || kind == ports.KindAttempt }

func putReplaces(c *C) {
	for _, kind := range c.kinds() {
		beside := c.said(kind, "beside", 1, "Pending")
		c.put(c.row(kind, "replaced", 1, fmt.Sprintf(`%q:"Pending",%q:{"a":1},"Unknown":[1],"More":true`, word[kind], opaque[kind])), beside)
		for _, state := range []string{
			fmt.Sprintf(`%q:"Running","Other":null`, word[kind]),
			fmt.Sprintf(`%q:{}`, opaque[kind]),
			``,
			fmt.Sprintf(`%q:"Complete",%q:"text"`, word[kind], opaque[kind]),
		} {
			r := c.row(kind, "replaced", 1, state)
			c.put(r)
			c.holds("after it was replaced", r, beside)
		}
	}
}

func putRepeats(c *C) {
	want := map[ports.Kind]int64{}
	var rows []ports.Row
	for _, kind := range c.kinds() {
		rows = append(rows, c.said(kind, "again", 1, "Running"))
		if several(kind) {
			rows = append(rows, c.said(kind, "again", 2, "Complete"))
			want[kind]++
		}
		want[kind]++
	}
	for range 3 {
		c.put(rows...)
	}
	c.holds("after it was put three times", rows...)
	c.countsAre(want)
	for _, kind := range c.kinds() {
		if !several(kind) {
			continue
		}
		got, err := walk(c, 100, c.listOf(c.Backend(), kind, "again"))
		if err != nil || int64(len(got)) != want[kind] {
			c.Errorf("there are %q of kind %s (%s), want %d", names(got), kind, faultText(err), want[kind])
		}
	}
}

func putRemoves(c *C) {
	var kept, removed []ports.Row
	for _, kind := range c.kinds() {
		for n := 1; n <= 3; n++ {
			key := "removed"
			if !several(kind) {
				key = fmt.Sprintf("removed-%d", n)
			}
			r := c.said(kind, key, n, "Running")
			if c.put(r); n == 2 {
				removed = append(removed, r)
			} else {
				kept = append(kept, r)
			}
		}
		removed = append(removed, c.said(kind, "never there", 9, ""))
	}
	for range 2 {
		var goes []ports.Row
		for _, r := range removed {
			goes = append(goes, c.gone(r))
		}
		c.put(goes...)
		c.lacks("after it was removed", removed...)
		c.holds("after another one was removed", kept...)
	}
	for _, r := range removed {
		back := c.said(r.Kind, r.Key, max(int(r.Number), 2), "Pending")
		c.put(back)
		c.holds("after it came back", back)
	}
	// A record goes alone: whatever else has its key is told by rows of its own.
	if item := c.said(ports.KindItem, "alone", 1, "Complete"); c.has(ports.KindItem) {
		var others []ports.Row
		for _, kind := range c.kinds() {
			if several(kind) {
				others = append(others, c.said(kind, "alone", 7, "Running"))
			}
		}
		c.put(append([]ports.Row{item}, others...)...)
		c.put(c.gone(item))
		c.lacks("after it was removed", item)
		c.holds("after its item was removed", others...)
	}
}

func putInOrder(c *C) {
	for _, kind := range c.kinds() {
		one, two, three := c.said(kind, "ordered", 1, "Pending"), c.said(kind, "ordered", 1, "Running"), c.said(kind, "ordered", 1, "Complete")
		c.put(one, two, three)
		c.holds("after three states in one batch", three)
		c.put(three, one)
		c.holds("after a state and then another one", one)
		c.put(two, c.gone(two))
		c.lacks("after a state and then its removal", two)
		c.put(three, c.gone(three), two)
		c.holds("after a removal and then a state", two)
	}
}

func putStops(c *C) {
	for _, kind := range c.kinds() {
		for name, body := range map[string]string{"not JSON": `{"Status":`, "a list": `[1]`, "nothing": ``} {
			before, bad, behind := c.said(kind, "before "+name, 1, "Running"), c.said(kind, "bad "+name, 2, ""), c.said(kind, "behind "+name, 3, "Running")
			bad.Body = []byte(body)
			applied, err := c.Backend().Put(c.Ctx, ports.Batch{Family: kind.Family(), Rows: []ports.Row{before, bad, behind}})
			switch {
			case err == nil && applied.Done == 3:
				c.holds("beside a body that is "+name, before, behind)
			case err == nil:
				c.Errorf("%s, the body is %s: Done is %d of 3 rows without an error", nameOf(bad), name, applied.Done)
			case !ports.CodeOf(err).Permanent():
				c.Errorf("%s, the body is %s: %s; this can never succeed, so the code must be a permanent one, such as invalid", nameOf(bad), name, faultText(err))
			case applied.Done != 1:
				c.Errorf("%s, the body is %s: Done is %d, 1 row stands before it: %s", nameOf(bad), name, applied.Done, faultText(err))
			default:
				c.holds("before a row that was refused", before)
				c.lacks("after it was refused", bad)
			}
		}
	}
}

func putFullBatch(c *C) {
	kind := c.kinds()[0]
	rows := make([]ports.Row, ports.MaxBatchEntries)
	room := ports.MaxBatchBytes/len(rows) - 600 // what a row has beside its body
	for i := range rows {
		key, n := "full", i+1
		if !several(kind) {
			key = fmt.Sprintf("full-%03d", i)
		}
		rows[i] = c.row(kind, key, n, fmt.Sprintf(`%q:%q`, opaque[kind], strings.Repeat("x", room)))
	}
	c.put(rows...)
	if several(kind) {
		got, err := walk(c, ports.MaxBatchEntries, c.listOf(c.Backend(), kind, "full"))
		if err != nil || len(got) != len(rows) {
			c.Errorf("of %d rows %d are there (%s)", len(rows), len(got), faultText(err))
		}
		return
	}
	for i := 0; i < len(rows); i += 73 {
		c.holds("of a full batch", rows[i])
	}
	c.holds("of a full batch", rows[len(rows)-1])
}

func putEmpty(c *C) {
	for _, f := range c.Describe().Families {
		if applied, err := c.Backend().Put(c.Ctx, ports.Batch{Family: f}); err != nil || applied.Done != 0 {
			c.Errorf("%s: Done is %d (%s)", f, applied.Done, faultText(err))
		}
	}
}
