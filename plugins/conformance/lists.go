package conformance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"holdfast/ports"
)

// Lists of work items and of manifests: their order and their filters. How they are cut into pages is another topic.
var listCases = []Case{
	{
		Topic: "lists", Name: "items", Needs: []string{"ItemReader"}, Of: []ports.Family{ports.Queue}, Run: listsItems,
		Must: "Items without a filter gives every work item in the order of EnqueuedKey and then of WorkItemHash, both bytewise, or backwards",
	},
	{
		Topic: "lists", Name: "item-filters", Needs: []string{"ItemReader"}, Of: []ports.Family{ports.Queue}, Run: filtersItems,
		Must: "every filter of Items is held by every row given and keeps no other row back; filters hold together, texts are compared with their case, From belongs to the window and To does not",
	},
	{
		Topic: "lists", Name: "item-search", Needs: []string{"ItemReader"}, Of: []ports.Family{ports.Queue}, Run: searchesItems,
		Must: "ErrorText finds the text anywhere in LastError, case kept, and no character in it stands for another one",
	},
	{
		Topic: "lists", Name: "items-by-column", Needs: []string{"ItemReader"}, Of: []ports.Family{ports.Queue}, Run: sortsItems,
		Must: "OrderBy sorts by any text, number or yes-no column of UVQueueWorkItem, numbers as numbers, gives one page without Next, and ignores After",
	},
	{
		Topic: "lists", Name: "no-column", Needs: []string{"ItemReader"}, Of: []ports.Family{ports.Queue}, Run: refusesOrder,
		Must: "OrderBy something that is no column is invalid and names the field OrderBy",
	},
	{
		Topic: "lists", Name: "item-bodies", Needs: []string{"ItemReader"}, Of: []ports.Family{ports.Queue}, Run: listsLeanItems,
		Must: "Items without bodies leaves out Settings and Result and nothing else",
	},
	{
		Topic: "lists", Name: "manifests", Needs: []string{"ManifestReader"}, Of: []ports.Family{ports.Manifest}, Run: listsManifests,
		Must: "Manifests without a filter gives every manifest in the order of OrderKey and then of Hash, both bytewise, or backwards",
	},
	{
		Topic: "lists", Name: "manifest-filters", Needs: []string{"ManifestReader"}, Of: []ports.Family{ports.Manifest}, Run: filtersManifests,
		Must: "OperationHash, Status, From and To of Manifests hold together, texts with their case, From belongs to the window and To does not",
	},
	{
		Topic: "lists", Name: "manifest-bodies", Needs: []string{"ManifestReader"}, Of: []ports.Family{ports.Manifest}, Run: listsLeanManifests,
		Must: "Manifests with bodies gives manifests whole, and without them only the members that are columns of UVManifest",
	},
	{
		Topic: "lists", Name: "moved", Reads: true, Run: listsWhatIs,
		Must: "a list shows a record as it is: under its new status after it was replaced, and not at all once it is gone",
	},
}

// sortOf and keyOf are the two parts of the order in which a row stands in the list of its kind.
func sortOf(r ports.Row) string {
	if r.Kind == ports.KindItem {
		return r.First.EnqueuedKey
	}
	return r.First.OrderKey
}

func keyOf(r ports.Row) string {
	if r.Kind == ports.KindEvent {
		return r.GUID
	}
	return r.Key
}

func inOrder(rows []ports.Row) []ports.Row {
	sorted := slices.Clone(rows)
	slices.SortFunc(sorted, func(a, b ports.Row) int {
		return cmp.Or(strings.Compare(sortOf(a), sortOf(b)), strings.Compare(keyOf(a), keyOf(b)), cmp.Compare(a.Number, b.Number))
	})
	return sorted
}

// placed gives a row its place in a list.
func placed(r ports.Row, sort string) ports.Row {
	if r.Kind == ports.KindItem {
		r.First.EnqueuedKey = sort
	} else {
		r.First.OrderKey = sort
	}
	return r
}

// enqueued is the n-th EnqueuedKey.
func enqueued(n int) string { return fmt.Sprintf("2026-01-01T00:00:00.%09dZ", n) }

// hasOrder asks whether a list gives the names in order, and backwards.
func (c *C) hasOrder(when string, rows []ports.Row, list func(desc bool) pages) {
	want := names(inOrder(rows))
	for _, desc := range []bool{false, true} {
		got, err := walk(c, 100, list(desc))
		if err != nil || !slices.Equal(names(got), want) {
			c.Errorf("%s, desc %v: %q (%s)\nwant %q", when, desc, names(got), faultText(err), want)
		}
		slices.Reverse(want)
	}
}

func (c *C) spread(kind ports.Kind) (rows []ports.Row) {
	for i, key := range alike { // all at one time
		rows = append(rows, placed(c.said(kind, key, 1, fmt.Sprint("S", i)), enqueued(5)))
	}
	for i, n := range []int{9, 10, 1, 100, 4, 6} {
		rows = append(rows, placed(c.said(kind, fmt.Sprint("n", i), 1, "Running"), enqueued(n)))
	}
	return rows
}

func listsItems(c *C) {
	rows := c.spread(ports.KindItem)
	c.put(rows...)
	c.hasOrder("all items", rows, func(desc bool) pages { return c.items(c.Backend(), ports.ItemQuery{Desc: desc}) })
}

func filtersItems(c *C) {
	var rows []ports.Row
	for i := range 60 {
		rows = append(rows, placed(c.row(ports.KindItem, fmt.Sprintf("k%02d", i), 1, fmt.Sprintf(
			`"Status":%q,"RunID":"r%d","RunHash":"h%d","OperationHash":"o%d","Capability":"c%d","Action":"a%d","AffinityKey":"f%d","AssignedBeaconID":"b%d"`,
			[]string{"Pending", "pending", "Running", "Complete"}[i%4], i%3, i%4, i%5, i%2, i%3, i%4, i%5)), enqueued(i/2)))
	}
	c.put(rows...)
	status := func(want ...string) func(i int) bool {
		return func(i int) bool {
			return slices.Contains(want, []string{"Pending", "pending", "Running", "Complete"}[i%4])
		}
	}
	for name, f := range map[string]struct {
		filter ports.ItemFilter
		match  func(i int) bool
	}{
		"Status":           {ports.ItemFilter{Status: []string{"Pending"}}, status("Pending")},
		"Status, any of":   {ports.ItemFilter{Status: []string{"Complete", "pending", "none", "Complete"}}, status("Complete", "pending")},
		"Status, no such":  {ports.ItemFilter{Status: []string{"PENDING"}}, status()},
		"Capability":       {ports.ItemFilter{Capability: "c1"}, func(i int) bool { return i%2 == 1 }},
		"Action":           {ports.ItemFilter{Action: "a2"}, func(i int) bool { return i%3 == 2 }},
		"RunID":            {ports.ItemFilter{RunID: "r0"}, func(i int) bool { return i%3 == 0 }},
		"RunID, its case":  {ports.ItemFilter{RunID: "R0"}, func(int) bool { return false }},
		"RunHash":          {ports.ItemFilter{RunHash: "h3"}, func(i int) bool { return i%4 == 3 }},
		"OperationHash":    {ports.ItemFilter{OperationHash: "o4"}, func(i int) bool { return i%5 == 4 }},
		"AssignedBeaconID": {ports.ItemFilter{AssignedBeaconID: "b2"}, func(i int) bool { return i%5 == 2 }},
		"AffinityKey":      {ports.ItemFilter{AffinityKey: "f1"}, func(i int) bool { return i%4 == 1 }},
		"From":             {ports.ItemFilter{From: enqueued(20)}, func(i int) bool { return i/2 >= 20 }},
		"To":               {ports.ItemFilter{To: enqueued(20)}, func(i int) bool { return i/2 < 20 }},
		"From and To":      {ports.ItemFilter{From: enqueued(3), To: enqueued(7)}, func(i int) bool { return i/2 >= 3 && i/2 < 7 }},
		"From after To":    {ports.ItemFilter{From: enqueued(7), To: enqueued(3)}, func(int) bool { return false }},
		"a run's pending": {
			ports.ItemFilter{RunID: "r1", Status: []string{"Pending", "Running"}},
			func(i int) bool { return i%3 == 1 && i%2 == 0 },
		},
		"all together": {
			ports.ItemFilter{
				Status: []string{"Pending", "Running"}, Capability: "c0", Action: "a0", RunID: "r0", AssignedBeaconID: "b0",
				OperationHash: "o0", From: enqueued(0), To: enqueued(29),
			},
			func(i int) bool { return i%30 == 0 },
		},
	} {
		var want []ports.Row
		for i, r := range rows {
			if f.match(i) {
				want = append(want, r)
			}
		}
		c.hasOrder(name, want, func(desc bool) pages {
			return c.items(c.Backend(), ports.ItemQuery{Filter: f.filter, Desc: desc})
		})
	}
}

func searchesItems(c *C) {
	errs := []string{"", "100% of it", "100x of it", "Boom", "boom", "a_b", "a-b", "ends in boom", "zażółć \\ \"quoted\"", "*", "BOOM boom"}
	var rows []ports.Row
	for i, text := range errs {
		rows = append(rows, placed(c.row(ports.KindItem, fmt.Sprintf("k%02d", i), 1, `"LastError":`+string(ports.AppendQuoted(nil, text))), enqueued(i)))
	}
	c.put(append(rows, placed(c.row(ports.KindItem, "without", 1, ``), enqueued(50)))...)
	for _, search := range []string{"boom", "Boom", "100%", "%", "_", "*", "\\", `"quoted"`, "żółć", "nowhere", ".*"} {
		var want []ports.Row
		for i, text := range errs {
			if strings.Contains(text, search) {
				want = append(want, rows[i])
			}
		}
		c.hasOrder(fmt.Sprintf("the search for %q", search), want, func(desc bool) pages {
			return c.items(c.Backend(), ports.ItemQuery{Filter: ports.ItemFilter{ErrorText: search}, Desc: desc})
		})
	}
}

func listsLeanItems(c *C) {
	lean := c.row(ports.KindItem, "w", 1, `"Status":"Running","Priority":3,"LastError":null,"Other":{"a":[1]}`)
	whole := lean
	whole.Body = fmt.Appendf(nil, `%s,"Settings":{"a":1},"Result":"text"}`, lean.Body[:len(lean.Body)-1])
	c.put(whole)
	for bodies, want := range map[bool]ports.Row{false: lean, true: whole} {
		for _, column := range []string{"", "Status"} {
			page, err := power[ports.ItemReader](c).Items(c.Ctx, ports.ItemQuery{Limit: 100, Bodies: bodies, OrderBy: column})
			if column != "" && err != nil {
				continue // whether it sorts is another case
			}
			c.listed(fmt.Sprintf("bodies %v, order %q", bodies, column), page, err, want)
		}
	}
}

func listsWhatIs(c *C) {
	for _, kind := range []ports.Kind{ports.KindItem, ports.KindManifest} {
		if !c.has(kind) {
			continue
		}
		list := func(status string) pages {
			if kind == ports.KindItem {
				return c.items(c.Backend(), ports.ItemQuery{Filter: ports.ItemFilter{Status: []string{status}}})
			}
			return c.manifests(c.Backend(), ports.ManifestQuery{Status: []string{status}})
		}
		shows := func(when, status string, want ...string) {
			rows, err := walk(c, 100, list(status))
			if got := names(rows); err != nil || !slices.Equal(got, want) && len(got)+len(want) > 0 {
				c.Errorf("%s: the list of kind %s and status %s is %q (%s), want %q", when, kind, status, got, faultText(err), want)
			}
		}
		c.put(c.said(kind, "a", 1, "Pending"), c.said(kind, "b", 1, "Pending"))
		shows("when they are new", "Pending", "a", "b")
		moved := c.said(kind, "a", 1, "Running")
		c.put(moved)
		shows("after one was replaced", "Pending", "b")
		shows("after it was replaced", "Running", "a")
		c.put(c.gone(moved))
		shows("after it was removed", "Running")
	}
}
