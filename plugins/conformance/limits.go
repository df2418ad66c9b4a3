package conformance

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"holdfast/ports"
)

// What the host may send: everything within its own limits. A backend with a lower one opts out of the case and says how
// large is too large.
var limitCases = []Case{
	{
		Topic: "limits", Name: "key", Reads: true, Run: longKeys,
		Must: "keys of 512 code points, of four bytes each, are kept apart to the last one",
	},
	{
		Topic: "limits", Name: "depth", Reads: true, Run: deepRecords,
		Must: "a record that is nested 400 levels deep, itself being the first, comes back whole",
	},
	{
		Topic: "limits", Name: "message", Reads: true, Run: largeMessages,
		Must: "a record of 5 MiB and one of 17 MiB come back whole: gRPC's own limit of 4 MiB is too small for either side",
	},
	{
		Topic: "limits", Name: "record", Reads: true, Large: true, Run: largestRecord,
		Must: "a record of 64 MiB comes back whole",
	},
	{
		Topic: "limits", Name: "refused", Reads: true, Large: true, Run: refusesLarge,
		Must: "a record that is too large for the store is refused with too_large, the store's limit and the record's size; what stands before it is in, and nothing else is stopped",
	},
	{
		Topic: "limits", Name: "beyond", Reads: true, Large: true, Run: refusesBeyond,
		Must: "a record of more than 64 MiB is kept, or refused with too_large, the limit and the size, and then the batch leaves the position as it was and the error has nothing of the body",
	},
}

func longKeys(c *C) {
	stem := strings.Repeat("😀", ports.MaxKeyPoints-1)
	for _, kind := range c.kinds() {
		var rows []ports.Row
		for i, last := range []string{"😀", "😁", "a", "A", "é"} {
			rows = append(rows, c.said(kind, stem+last, 1, fmt.Sprint("S", i)))
		}
		c.put(rows...)
		c.holds("long keys", rows...)
		c.lacks("long keys", ports.Row{Kind: kind, Key: stem + "b"}, ports.Row{Kind: kind, Key: stem})
	}
}

func deepRecords(c *C) {
	const inside = ports.MaxDepth - 1
	for _, kind := range c.kinds() {
		lists := c.row(kind, "lists", 1, fmt.Sprintf(`%q:%s1%s`, opaque[kind], strings.Repeat("[", inside), strings.Repeat("]", inside)))
		objects := c.row(kind, "objects", 1, fmt.Sprintf(`%q:%s1%s`, opaque[kind], strings.Repeat(`{"a":`, inside), strings.Repeat("}", inside)))
		c.put(lists, objects)
		c.holds("deep records", lists, objects)
	}
}

// sizedFiller is what the body of a sized row is full of.
const sizedFiller = "0123456789abcdef"

// sized makes a row whose body has so many bytes.
func (c *C) sized(kind ports.Kind, key string, size int) ports.Row {
	r := c.row(kind, key, 1, fmt.Sprintf(`%q:""`, opaque[kind]))
	filler := bytes.Repeat([]byte(sizedFiller), (size-len(r.Body))/16+1)[:size-len(r.Body)]
	r.Body = slices.Concat(r.Body[:len(r.Body)-2], filler, []byte(`"}`))
	return r
}

func largeMessages(c *C) {
	kinds := c.kinds()
	rows := []ports.Row{c.sized(kinds[0], "large", 5<<20), c.sized(kinds[0], "larger", 17<<20)}
	if last := kinds[len(kinds)-1]; last.Family() != kinds[0].Family() {
		rows = append(rows, c.sized(last, "large", 5<<20))
	}
	for _, r := range rows {
		c.put(r)
		c.holds("large records", r)
	}
}

func largestRecord(c *C) {
	small, large := c.said(c.kinds()[0], "small", 1, "Running"), c.sized(c.kinds()[0], "largest", ports.MaxRecordBytes)
	c.put(small)
	applied, err := c.Backend().Put(c.Ctx, ports.Batch{Family: large.Kind.Family(), Rows: []ports.Row{large}})
	if ports.CodeOf(err) == ports.TooLarge {
		c.Fatalf("it takes records up to %d bytes: %s; opt out of limits/record and say so", ports.AsError(err).Limit, faultText(err))
	}
	if err != nil || applied.Done != 1 {
		c.Fatalf("put of %d bytes: Done %d, %s", len(large.Body), applied.Done, faultText(err))
	}
	c.holds("the largest record", large, small)
}

func refusesLarge(c *C) {
	if !optedOut(c.declared, "limits/record") {
		return // nothing that the host sends is too large for it
	}
	kind := c.kinds()[0]
	before, large := c.said(kind, "before", 1, "Running"), c.sized(kind, "large", ports.MaxRecordBytes)
	applied, err := c.Backend().Put(c.Ctx, ports.Batch{Family: kind.Family(), Rows: []ports.Row{before, large}})
	switch e := ports.AsError(err); {
	case err == nil:
		c.holds("a record that it takes", before, large)
	case e.Code != ports.TooLarge || e.Limit <= 0 || e.Size <= e.Limit:
		c.Errorf("a record of %d bytes: %s; want too_large with the limit and the size", len(large.Body), faultText(err))
	case applied.Done != 1:
		c.Errorf("a record of %d bytes: Done is %d, 1 row stands before it", len(large.Body), applied.Done)
	default:
		c.holds("before a record that is too large", before)
		c.lacks("after it was refused", large)
	}
	after := c.said(kind, "after", 1, "Running")
	c.put(after)
	c.holds("after a record that is too large", after)
}

func refusesBeyond(c *C) {
	kind, b := c.kinds()[0], c.Backend()
	before, beyond, behind := c.said(kind, "before", 1, "Running"), c.sized(kind, "beyond", ports.MaxRecordBytes+1), c.said(kind, "behind", 1, "Running")
	at := c.at(b, kind.Family())
	next := to(at, map[string]uint64{anyHost: 7})
	applied, err := b.Put(c.Ctx, ports.Batch{Family: kind.Family(), Rows: []ports.Row{before, beyond, behind}, Position: &next})
	if err == nil {
		c.holds("beside a record beyond the limit", before, beyond, behind)
		return
	}
	switch e := ports.AsError(err); {
	case e.Code != ports.TooLarge || e.Limit <= 0 || e.Size <= e.Limit:
		c.Errorf("a record of %d bytes: %s; want too_large with the limit and the size", len(beyond.Body), faultText(err))
	case applied.Done != 1:
		c.Errorf("a record of %d bytes: Done is %d, 1 row stands before it", len(beyond.Body), applied.Done)
	default:
		c.holds("before a record beyond the limit", before)
		c.lacks("after it was refused", beyond, behind)
	}
	if strings.Contains(err.Error(), sizedFiller[:12]) {
		c.Errorf("the error has a part of the body: %s", faultText(err))
	}
	if after := c.at(b, kind.Family()); after.StoreID != "" && !after.Covers(at) || after.Covers(next) && !at.Covers(next) {
		c.Errorf("the batch stopped, and the position moved from %s to %s", text(at), text(after))
	}
}
