package conformance

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"holdfast/ports"
)

// A page is cut at its limit and at 16 MiB, and its Next holds what the last row is sorted by, so that the walk can go on
// at any time, also at another backend.
var pagingCases = []Case{
	{
		Topic: "paging", Name: "items", Needs: []string{"ItemReader"}, Of: []ports.Family{ports.Queue}, With: "lists/items", Run: func(c *C) { everyBorder(c, ports.KindItem) },
		Must: "pages of work items of every size, with and without filters, show each one once, also where many have the same EnqueuedKey",
	},
	{
		Topic: "paging", Name: "events", Needs: []string{"EventReader"}, Of: []ports.Family{ports.Queue}, Run: func(c *C) { everyBorder(c, ports.KindEvent) },
		Must: "pages of events of every size show each one once, also where many have the same OrderKey",
	},
	{
		Topic: "paging", Name: "attempts", Needs: []string{"AttemptReader"}, Of: []ports.Family{ports.Queue}, Run: func(c *C) { everyBorder(c, ports.KindAttempt) },
		Must: "pages of attempts of every size show each one once",
	},
	{
		Topic: "paging", Name: "manifests", Needs: []string{"ManifestReader"}, Of: []ports.Family{ports.Manifest}, With: "lists/manifests", Run: func(c *C) { everyBorder(c, ports.KindManifest) },
		Must: "pages of manifests of every size, with and without filters, show each one once, also where many have the same OrderKey",
	},
	{
		Topic: "paging", Name: "cursors", Pages: true, Run: cursorsAreValues,
		Must: "Next holds the values by which its last row is sorted (Sort: EnqueuedKey or OrderKey; Key: WorkItemHash, EventGUID or Hash; Num: AttemptNumber), and a page may begin after any such values, of a record that is there or not",
	},
	{
		Topic: "paging", Name: "changes", Pages: true, Run: pagesWhileChanging,
		Must: "records that come, go and change between two pages make no other record missing or double",
	},
	{
		Topic: "paging", Name: "elsewhere", Pages: true, Run: pagesElsewhere,
		Must: "a walk that was begun at one backend goes on at another one that holds the same records",
	},
	{
		Topic: "paging", Name: "bytes", Pages: true, Run: pagesAreCut,
		Must: "a page of large records is cut at 16 MiB, with a Next, and has at least one row",
	},
}

const pagedKey = "paged" // has the events and attempts of this topic

// shelf gives rows of a kind in the order of their list, with up to four in one place, and puts them in another order.
func (c *C) shelf(kind ports.Kind, n int, into ...ports.Backend) []ports.Row {
	var rows []ports.Row
	for i := range n {
		rows = append(rows, c.book(kind, i, i/4))
	}
	shuffled := slices.Clone(rows)
	slices.SortFunc(shuffled, func(a, b ports.Row) int { return bytes.Compare(shuffle(a), shuffle(b)) })
	for _, b := range into {
		c.putInto(b, shuffled...)
	}
	return inOrder(rows)
}

// shuffle gives a text that sorts rows in no order of theirs.
func shuffle(r ports.Row) []byte {
	text := fmt.Appendf(nil, "%s%d%s", r.GUID, r.Number, r.Key)
	slices.Reverse(text)
	return text
}

// book is the i-th row of a shelf, at a place.
func (c *C) book(kind ports.Kind, i, place int) ports.Row {
	key := pagedKey
	if !several(kind) {
		key = fmt.Sprintf("p%02d", (i*7)%100)
	}
	return placed(c.said(kind, key, i+1, fmt.Sprint("S", i%3)), enqueued(place))
}

// library pages through the list of a kind; backwards where the list can, and with filters that every book passes.
func (c *C) library(b ports.Backend, kind ports.Kind, desc, filtered bool) pages {
	status := []string{"S2", "S0", "S1"}
	switch {
	case kind == ports.KindItem && filtered:
		return c.items(b, ports.ItemQuery{Desc: desc, Filter: ports.ItemFilter{Status: status}})
	case kind == ports.KindItem:
		return c.items(b, ports.ItemQuery{Desc: desc})
	case kind == ports.KindManifest && filtered:
		return c.manifests(b, ports.ManifestQuery{Desc: desc, Status: status, From: enqueued(0)})
	case kind == ports.KindManifest:
		return c.manifests(b, ports.ManifestQuery{Desc: desc})
	case kind == ports.KindEvent && desc:
		return func(after *ports.Cursor, limit int) (ports.Page, error) {
			return powerOf[ports.EventReader](c, b).Events(c.Ctx, ports.EventQuery{Key: pagedKey, Desc: true, After: after, Limit: limit})
		}
	}
	return c.listOf(b, kind, pagedKey)
}

func everyBorder(c *C, kind ports.Kind) {
	const n = 13
	rows := c.shelf(kind, n, c.Backend())
	backwards := names(rows)
	slices.Reverse(backwards)
	for _, limit := range []int{1, 2, 3, 4, 5, n - 1, n, n + 1} {
		for _, way := range []struct{ desc, filtered bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
			if way.desc && kind == ports.KindAttempt || way.filtered && several(kind) {
				continue
			}
			want := names(rows)
			if way.desc {
				want = backwards
			}
			got, err := walk(c, limit, c.library(c.Backend(), kind, way.desc, way.filtered))
			if err != nil || !slices.Equal(names(got), want) {
				c.Errorf("pages of %d, desc %v, filtered %v: %q (%s)\nwant %q", limit, way.desc, way.filtered, names(got), faultText(err), want)
			}
		}
	}
}

// cursorOf is the cursor after a row.
func cursorOf(r ports.Row) *ports.Cursor {
	if r.Kind == ports.KindAttempt {
		return &ports.Cursor{Sort: r.Key, Key: r.Key, Kind: r.Kind, Num: r.Number}
	}
	return &ports.Cursor{Sort: sortOf(r), Key: keyOf(r)}
}

func cursorsAreValues(c *C) {
	for _, kind := range pageable(c.declared) {
		rows := c.shelf(kind, 9, c.Backend())
		list := c.library(c.Backend(), kind, false, false)
		page, err := list(nil, 5)
		switch {
		case err != nil || len(page.Rows) != 5:
			c.Errorf("the first 5 of kind %s: %q (%s)", kind, names(page.Rows), faultText(err))
			continue
		case page.Next == nil:
			c.Errorf("the first 5 of kind %s: there are more, and the page has no Next", kind)
			continue
		}
		want, got := cursorOf(rows[4]), page.Next
		if kind == ports.KindAttempt && got.Num != want.Num || kind != ports.KindAttempt && (got.Sort != want.Sort || got.Key != want.Key) {
			c.Errorf("after %s: Next is %s, want %s", nameOf(rows[4]), text(got), text(want))
		}
		// The row after which the page begins is there no more.
		c.put(c.gone(rows[2]))
		if page, err = list(cursorOf(rows[2]), 3); err != nil || !slices.Equal(names(page.Rows), names(rows[3:6])) {
			c.Errorf("after %s, which is gone: %q (%s), want %q", nameOf(rows[2]), names(page.Rows), faultText(err), names(rows[3:6]))
		}
	}
}

func pagesWhileChanging(c *C) {
	for _, kind := range pageable(c.declared) {
		rows := c.shelf(kind, 12, c.Backend())
		next := 0
		step := func() {
			next++
			late, early := c.book(kind, 40+next, 30), c.book(kind, 20+next, 0)
			changes := []ports.Row{early, late}
			switch next {
			case 1:
				changes = append(changes, c.gone(rows[0]), c.gone(rows[9])) // one that was shown, one that was not
			case 2:
				again := rows[6] // comes once more as it is
				again.Change.Seq = 1000
				changes = append(changes, again)
			}
			c.put(changes...)
		}
		list := c.library(c.Backend(), kind, false, false)
		got, err := walk(c, 3, func(after *ports.Cursor, limit int) (ports.Page, error) {
			page, err := list(after, limit)
			if next < 4 {
				step()
			}
			return page, err
		})
		if err != nil {
			c.Errorf("kind %s: %s", kind, faultText(err))
		}
		var seen []string
		for _, name := range names(got) {
			if i := slices.Index(names(rows), name); i >= 0 && i != 9 {
				seen = append(seen, name)
			}
		}
		if want := names(slices.Delete(slices.Clone(rows), 9, 10)); !slices.Equal(seen, want) {
			c.Errorf("kind %s: of what nobody touched the pages show %q, want %q", kind, seen, want)
		}
	}
}

func pagesElsewhere(c *C) {
	for _, kind := range pageable(c.declared) {
		rows := c.shelf(kind, 11, c.Backend(), c.Another())
		for _, limit := range []int{1, 3} {
			turn := 0
			lists := []pages{c.library(c.Backend(), kind, false, false), c.library(c.Another(), kind, false, false)}
			got, err := walk(c, limit, func(after *ports.Cursor, limit int) (ports.Page, error) {
				turn++
				return lists[turn%2](after, limit)
			})
			if err != nil || !slices.Equal(names(got), names(rows)) {
				c.Errorf("kind %s, pages of %d in turn from two backends: %q (%s), want %q", kind, limit, names(got), faultText(err), names(rows))
			}
		}
	}
}

func pagesAreCut(c *C) {
	kind := pageable(c.declared)[0]
	const n, size = 6, 7 << 19 // 21 MiB in all
	var rows []ports.Row
	for i := range n {
		r := c.book(kind, i, i)
		r.Body = slices.Concat(r.Body[:len(r.Body)-1], []byte(`,"`+opaque[kind]+`":"`), []byte(strings.Repeat("x", size)), []byte(`"}`))
		c.put(r)
		rows = append(rows, r)
	}
	var list pages
	switch kind {
	case ports.KindItem:
		list = c.items(c.Backend(), ports.ItemQuery{Bodies: true})
	case ports.KindManifest:
		list = c.manifests(c.Backend(), ports.ManifestQuery{Bodies: true})
	default:
		list = c.listOf(c.Backend(), kind, pagedKey)
	}
	got, err := walk(c, 100, func(after *ports.Cursor, limit int) (ports.Page, error) {
		page, err := list(after, limit)
		total := 0
		for _, r := range page.Rows {
			total += len(r.Body)
		}
		if total > ports.MaxPageBytes && len(page.Rows) > 1 {
			c.Errorf("a page has %d bytes of bodies, the limit is %d", total, ports.MaxPageBytes)
		}
		return page, err
	})
	if want := names(inOrder(rows)); err != nil || !slices.Equal(names(got), want) {
		c.Errorf("large records: %q (%s), want %q", names(got), faultText(err), want)
	}
}
