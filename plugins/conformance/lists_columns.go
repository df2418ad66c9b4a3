package conformance

import (
	"fmt"
	"slices"
	"strings"

	"holdfast/ports"
)

// Work items in the order of a column.

// inColumn is the raw value of the n-th of five items in a column; n is its place when the column is sorted.
func inColumn(column *ports.Column, n int) string {
	switch column.Type {
	case ports.Integer:
		return []string{"-7", "9", "10", "100", "1099511627776"}[n]
	case ports.Float:
		return []string{"-1.5", "0.25", "9.75", "10.5", "100"}[n]
	case ports.Boolean:
		return []string{"false", "false", "false", "true", "true"}[n]
	}
	if strings.HasSuffix(column.Name, "At") {
		return fmt.Sprintf(`"2026-01-0%dT00:00:00.000Z"`, n+1)
	}
	return []string{`"A"`, `"B"`, `"a"`, `"ab"`, `"é"`}[n]
}

func sortsItems(c *C) {
	var columns []ports.Column
	for _, column := range ports.Items.Members {
		if column.Name != ports.Items.Key && column.Type != ports.Opaque {
			columns = append(columns, column)
		}
	}
	place := func(column, item int) int { return (item*2 + column) % 5 } // so that no two neighbours sort alike
	for i := range 5 {
		var given []string
		for at := range columns {
			given = append(given, fmt.Sprintf("%q:%s", columns[at].Name, inColumn(&columns[at], place(at, i))))
		}
		r := c.row(ports.KindItem, fmt.Sprint("k", i), 1, strings.Join(given, ","))
		for at := range columns {
			if columns[at].Name == "EnqueuedAt" { // it is sorted by its instant
				r.First.EnqueuedKey, _ = ports.TimeKey(strings.Trim(inColumn(&columns[at], place(at, i)), `"`))
			}
		}
		c.put(r)
	}
	for at := range columns {
		for _, desc := range []bool{false, true} {
			c.sorts(&columns[at], desc, func(key string) int {
				var item int
				if _, err := fmt.Sscanf(key, "k%d", &item); err != nil {
					return -1
				}
				return place(at, item)
			})
		}
	}
}

// sorts asks for the five items in the order of a column; place tells where an item stands in it.
func (c *C) sorts(column *ports.Column, desc bool, place func(key string) int) {
	for _, limit := range []int{3, 10} {
		page, err := power[ports.ItemReader](c).Items(c.Ctx, ports.ItemQuery{
			OrderBy: column.Name, Desc: desc, Limit: limit, After: &ports.Cursor{Sort: "9", Key: "zzz"},
		})
		if err != nil {
			c.Errorf("by %s: %s", column.Name, faultText(err))
			return
		}
		var values []string
		for _, r := range page.Rows {
			if at := place(r.Key); at >= 0 && at < 5 {
				values = append(values, inColumn(column, at))
			}
		}
		var want []string
		for n := range 5 {
			want = append(want, inColumn(column, n))
		}
		if desc {
			slices.Reverse(want)
		}
		if want = want[:min(limit, 5)]; !slices.Equal(values, want) {
			c.Errorf("by %s, desc %v, at most %d: the values are %s, want %s", column.Name, desc, limit, values, want)
		}
		if page.Next != nil {
			c.Errorf("by %s: the page has a Next; there are no cursors in this order", column.Name)
		}
	}
}

func refusesOrder(c *C) {
	for _, column := range []string{"NoSuchColumn", "Status; --", "status ASC", `"`, "1"} {
		_, err := power[ports.ItemReader](c).Items(c.Ctx, ports.ItemQuery{OrderBy: column, Limit: 10})
		if ports.CodeOf(err) != ports.Invalid || ports.AsError(err).Field != "OrderBy" {
			c.Errorf("by %q: %s; want invalid in the field OrderBy", column, faultText(err))
		}
	}
}
