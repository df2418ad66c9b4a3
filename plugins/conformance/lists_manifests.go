package conformance

import (
	"fmt"
	"slices"
	"strings"

	"holdfast/ports"
)

// Lists of manifests.

func listsManifests(c *C) {
	rows := c.spread(ports.KindManifest)
	c.put(rows...)
	c.hasOrder("all manifests", rows, func(desc bool) pages { return c.manifests(c.Backend(), ports.ManifestQuery{Desc: desc}) })
}

func filtersManifests(c *C) {
	var rows []ports.Row
	for i := range 30 {
		rows = append(rows, placed(c.row(ports.KindManifest, fmt.Sprintf("m%02d", i), 1,
			fmt.Sprintf(`"OperationHash":"o%d","Status":%q`, i%3, []string{"Running", "running", "Complete"}[i%2+i%4/3])), enqueued(i/2)))
	}
	c.put(rows...)
	for name, q := range map[string]ports.ManifestQuery{
		"OperationHash":      {OperationHash: "o1"},
		"another case of it": {OperationHash: "O1"},
		"Status":             {Status: []string{"Running"}},
		"Status, any of":     {Status: []string{"running", "Complete", "none"}},
		"From":               {From: enqueued(9)},
		"To":                 {To: enqueued(9)},
		"all together":       {OperationHash: "o0", Status: []string{"Running", "Complete"}, From: enqueued(2), To: enqueued(12)},
	} {
		var want []ports.Row
		for _, r := range rows {
			list := members(r.Body)
			operation, status := string(value(list, "OperationHash")), strings.Trim(string(value(list, "Status")), `"`)
			if (q.OperationHash == "" || operation == `"`+q.OperationHash+`"`) && (len(q.Status) == 0 || slices.Contains(q.Status, status)) &&
				r.First.OrderKey >= q.From && (q.To == "" || r.First.OrderKey < q.To) {
				want = append(want, r)
			}
		}
		c.hasOrder(name, want, func(desc bool) pages {
			q := q
			q.Desc = desc
			return c.manifests(c.Backend(), q)
		})
	}
}

func listsLeanManifests(c *C) {
	lean := c.row(ports.KindManifest, "m", 1, `"OperationHash":"o","OperationName":"nightly","Status":"Complete","StartTime":"2026-01-01T00:00:00Z","ElapsedMs":17`)
	whole := lean
	whole.Body = fmt.Appendf(nil, `%s,"Output":{"a":1},"Log":["x"]}`, lean.Body[:len(lean.Body)-1])
	c.put(whole)
	for bodies, want := range map[bool]ports.Row{false: lean, true: whole} {
		page, err := power[ports.ManifestReader](c).Manifests(c.Ctx, ports.ManifestQuery{Limit: 100, Bodies: bodies})
		c.listed(fmt.Sprintf("bodies %v", bodies), page, err, want)
	}
}
