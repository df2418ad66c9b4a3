package conformance

import (
	"fmt"
	"slices"

	"holdfast/ports"
)

var readerCases = []Case{
	{
		Topic: "readers", Name: "item", Needs: []string{"ItemReader"}, Of: []ports.Family{ports.Queue}, Run: readsItem,
		Must: "Item gives the work item of a key, whole, and fails with not_found for every other key, however alike",
	},
	{
		Topic: "readers", Name: "manifest", Needs: []string{"ManifestReader"}, Of: []ports.Family{ports.Manifest}, Run: readsManifest,
		Must: "Manifest gives the manifest of a key, whole, and fails with not_found for every other key, however alike",
	},
	{
		Topic: "readers", Name: "events", Needs: []string{"EventReader"}, Of: []ports.Family{ports.Queue}, Run: readsEvents,
		Must: "Events gives the events of one key and of no other, in the order of OrderKey and then of EventGUID, or backwards; an unknown key has none",
	},
	{
		Topic: "readers", Name: "attempts", Needs: []string{"AttemptReader"}, Of: []ports.Family{ports.Queue}, Run: readsAttempts,
		Must: "Attempts gives the attempts of one key and of no other, by number; an unknown key has none",
	},
	{
		Topic: "readers", Name: "event-bodies", Needs: []string{"EventReader"}, Of: []ports.Family{ports.Queue}, Run: readsLeanEvents,
		Must: "Events without bodies leaves out Payload and nothing else",
	},
}

// alike are keys that careless stores take for one.
var alike = []string{"AbC", "abc", "ABC", "abc ", " abc", "äbc", "a\u0308bc", "abc/", "abc%", "ab", "abcd", "abc\t", "%", "_", "'; --", "10", "9", "漢", "😀", "\ufffd"}

func readsItem(c *C) { readsByKey(c, ports.KindItem) }

func readsManifest(c *C) { readsByKey(c, ports.KindManifest) }

func readsByKey(c *C, kind ports.Kind) {
	var rows []ports.Row
	for i, key := range alike {
		if i%2 == 0 {
			rows = append(rows, c.said(kind, key, 1, fmt.Sprint("state ", i)))
		}
	}
	c.put(rows...)
	c.holds("among keys that are alike", rows...)
	for i, key := range alike {
		if i%2 == 1 {
			c.lacks("among keys that are alike", ports.Row{Kind: kind, Key: key})
		}
	}
	var err error
	if kind == ports.KindItem {
		_, err = power[ports.ItemReader](c).Item(c.Ctx, "nobody")
	} else {
		_, err = power[ports.ManifestReader](c).Manifest(c.Ctx, "nobody")
	}
	if ports.CodeOf(err) != ports.NotFound {
		c.Errorf("an unknown key: %s; want not_found", faultText(err))
	}
}

// eventAt makes an event with a place in the order.
func (c *C) eventAt(key, guid, order string) ports.Row {
	r := c.row(ports.KindEvent, key, 1, `"EventType":"Dispatched"`)
	r.GUID, r.First.OrderKey = guid, order
	r.Body = fmt.Appendf(nil, `{"EventGUID":%q,"WorkItemHash":%q,"EventType":"Dispatched"}`, guid, key)
	return r
}

func readsEvents(c *C) {
	c.put(
		c.eventAt("w", "b", "00000000000002-0000000000000002-host"), c.eventAt("w", "d", "00000000000001-0000000000000009-host"),
		c.eventAt("w", "B", "00000000000002-0000000000000002-host"), c.eventAt("w", "a", "00000000000010-0000000000000001-host"),
		c.eventAt("w", "c", "00000000000002-0000000000000002-host"), c.eventAt("W", "x", "00000000000002-0000000000000002-host"),
		c.eventAt("w2", "y", "00000000000002-0000000000000002-host"),
	)
	want := []string{"d", "B", "b", "c", "a"}
	for _, desc := range []bool{false, true} {
		page, err := power[ports.EventReader](c).Events(c.Ctx, ports.EventQuery{Key: "w", Desc: desc, Limit: 100})
		if got := names(page.Rows); err != nil || !slices.Equal(got, want) || page.Next != nil {
			c.Errorf("desc %v: %q, Next %v (%s); want %q and no Next", desc, got, page.Next != nil, faultText(err), want)
		}
		slices.Reverse(want)
	}
	c.none(ports.KindEvent)
}

// none asks for the events or attempts of a key that has none.
func (c *C) none(kind ports.Kind) {
	page, err := c.listOf(c.Backend(), kind, "nobody")(nil, 100)
	if err != nil || len(page.Rows) > 0 || page.Next != nil {
		c.Errorf("an unknown key has %d of kind %s, Next %v (%s); want none and no error", len(page.Rows), kind, page.Next != nil, faultText(err))
	}
}

func readsAttempts(c *C) {
	var rows []ports.Row
	for _, n := range []int{10, 2, 1, 9, 100} {
		rows = append(rows, c.said(ports.KindAttempt, "w", n, "Complete"))
	}
	c.put(append(rows, c.said(ports.KindAttempt, "W", 3, "Complete"), c.said(ports.KindAttempt, "w2", 4, "Complete"))...)
	page, err := power[ports.AttemptReader](c).Attempts(c.Ctx, ports.AttemptQuery{Key: "w", Limit: 100})
	if got, want := names(page.Rows), []string{"1", "2", "9", "10", "100"}; err != nil || !slices.Equal(got, want) || page.Next != nil {
		c.Errorf("%q, Next %v (%s); want %q and no Next", got, page.Next != nil, faultText(err), want)
	}
	c.holds("of several attempts", rows...)
	c.none(ports.KindAttempt)
}

func readsLeanEvents(c *C) {
	lean := c.row(ports.KindEvent, "w", 1, `"EventType":"Dispatched","FromStatus":"Pending","Seq":7,"Other":[1]`)
	whole := lean
	whole.Body = fmt.Appendf(nil, `%s,"Payload":{"a":1}}`, lean.Body[:len(lean.Body)-1])
	c.put(whole)
	for bodies, want := range map[bool]ports.Row{false: lean, true: whole} {
		page, err := power[ports.EventReader](c).Events(c.Ctx, ports.EventQuery{Key: "w", Limit: 100, Bodies: bodies})
		c.listed(fmt.Sprintf("bodies %v", bodies), page, err, want)
	}
}

// listed asks whether a page has these rows and no others.
func (c *C) listed(when string, page ports.Page, err error, want ...ports.Row) {
	if err != nil || !slices.Equal(names(page.Rows), names(want)) {
		c.Errorf("%s: %q (%s); want %q", when, names(page.Rows), faultText(err), names(want))
		return
	}
	for i := range want {
		for _, d := range differences(want[i], page.Rows[i]) {
			c.Errorf("%s: %s: %s", when, nameOf(want[i]), d)
		}
	}
}
