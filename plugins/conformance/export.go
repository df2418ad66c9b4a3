package conformance

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/ports"
)

// Walking through everything, and counting it.

var exportCases = []Case{{
	Topic: "export", Name: "order", Needs: []string{"LocalStore", "Exporter"}, Of: ports.Families,
	Must: "Export gives every record of the family once, whole, in the bytewise order of keys: an item, its events, its attempts by number, also where there is no item",
	Run:  exportOrder,
}, {
	Topic: "export", Name: "pages", Needs: []string{"LocalStore", "Exporter"}, Of: ports.Families,
	Must: "pages of any size that go on from Next give the same rows; the last page alone has no Next",
	Run:  exportPages,
}, {
	Topic: "export", Name: "changed-between", Needs: []string{"LocalStore", "Exporter"}, Of: ports.Families,
	Must: "a walk goes on from its cursor also where the record that it stood at changed or went: what stayed is given once",
	Run:  exportChangedBetween,
}, exportPut}

var surveyCases = []Case{{
	Topic: "survey", Name: "counts", Needs: []string{"LocalStore", "Surveyor"}, Of: ports.Families,
	Must: "Survey counts the records of each kind; what was removed is none",
	Run:  surveyCounts,
}, {
	Topic: "survey", Name: "deadline", Needs: []string{"LocalStore", "Surveyor"}, Of: []ports.Family{ports.Queue},
	Must: "a Survey that its deadline cuts short says Partial, and its counts are lower bounds; one that does not say so is exact",
	Run:  surveyDeadline,
}, surveyPut}

// exportAll walks through a family in pages.
func exportAll(c *C, e ports.Exporter, f ports.Family, limit int, between func(page int)) (rows []ports.Row) {
	after := (*ports.Cursor)(nil)
	for n := 1; n < 10_000; n++ {
		page, err := e.Export(c.Ctx, ports.ExportQuery{Family: f, After: after, Limit: limit})
		if err != nil {
			c.Fatalf("Export after %+v: %s", after, faultText(err))
		}
		if limit > 0 && len(page.Rows) > limit {
			c.Errorf("a page of %d has %d rows", limit, len(page.Rows))
		}
		rows = append(rows, page.Rows...)
		if after = page.Next; after == nil {
			return rows
		}
		if len(page.Rows) == 0 {
			c.Fatalf("a page without rows has a Next: %+v", *after)
		}
		if between != nil {
			between(n)
		}
	}
	c.Fatalf("the walk has no end")
	return nil
}

// exportKeys sort otherwise when letters are folded, or characters are compared instead of bytes.
var exportKeys = []string{"", "A", "B", "a", "a/b", "a b", "ab", "b", "z", "\u00e9", "\uff5e", "\U0001f600"}[1:]

func (l *localStore) forExport() {
	for i, key := range slices.Backward(exportKeys) {
		guid := func(n int) string { return fmt.Sprintf("%s-%d", key, n) }
		if i%4 != 3 {
			l.commit(upsertOf(key, `{"Settings":{"a":  1},"Mine":[]}`))
		}
		l.commit(
			attemptOf(key, 10, `{}`), eventOf(key, guid(3), `{"Payload":"x"}`), attemptOf(key, 2, `{}`), eventOf(key, guid(1), `{}`), eventOf(key, guid(2), `{}`),
		)
		l.commit(manifestOf(key, `{"Mine": {}}`))
	}
	l.commit(removalOf("b"))
}

func exportOrder(c *C) {
	l := local(c)
	l.forExport()
	e := powerOf[ports.Exporter](c, l.store)
	for _, f := range ports.Families {
		rows := exportAll(c, e, f, 0, nil)
		for i := 1; i < len(rows); i++ {
			if a, b := &rows[i-1], &rows[i]; exportOrderOf(a, b) > 0 {
				c.Errorf("%s of key %q is given before %s of key %q", idOf(a), a.Key, idOf(b), b.Key)
			}
		}
		if len(rows) != len(shelfOf(rows)) {
			c.Errorf("%d rows of %s are given, of %d records", len(rows), f, len(shelfOf(rows)))
		}
		c.sameShelf("exported", shelfOf(rows), shelfOf(everyRow(c, l.store, exportKeys...)).only(f))
	}
}

// exportOrderOf is the order of a walk, as far as it is fixed: the events of an item may come in any.
func exportOrderOf(a, b *ports.Row) int {
	return cmp.Or(strings.Compare(a.Key, b.Key), cmp.Compare(slices.Index(ports.Kinds, a.Kind), slices.Index(ports.Kinds, b.Kind)), cmp.Compare(a.Number, b.Number))
}

func exportPages(c *C) {
	l := local(c)
	l.forExport()
	e := powerOf[ports.Exporter](c, l.store)
	for _, f := range ports.Families {
		whole := exportAll(c, e, f, 0, nil)
		for _, limit := range []int{1, 2, 5, len(whole) - 1, len(whole)} {
			rows := exportAll(c, e, f, limit, nil)
			if !slices.EqualFunc(rows, whole, func(a, b ports.Row) bool { return idOf(&a) == idOf(&b) && rowDifference(&a, &b) == "" }) {
				c.Errorf("%s in pages of %d gives %d rows, and whole %d, or others", f, limit, len(rows), len(whole))
			}
		}
	}
}

func exportChangedBetween(c *C) {
	l := local(c)
	l.forExport()
	e := powerOf[ports.Exporter](c, l.store)
	before := map[ports.Family][]ports.Row{ports.Queue: exportAll(c, e, ports.Queue, 0, nil), ports.Manifest: exportAll(c, e, ports.Manifest, 0, nil)}
	removed := map[string]bool{}
	n := 0
	rows := exportAll(c, e, ports.Queue, 1, func(page int) {
		if page%3 == 0 {
			n++
			l.commit(patchOf(exportKeys[n%len(exportKeys)], fmt.Sprintf(`{"N":%d}`, n)), outcomeOf(exportKeys[n%len(exportKeys)], 2, fmt.Sprintf(`{"N":%d}`, n)))
		}
	})
	c.givenOnce(rows, before[ports.Queue], removed)
	keys := before[ports.Manifest]
	rows = exportAll(c, e, ports.Manifest, 1, func(page int) {
		if page%2 == 0 { // the one that the cursor stands at
			removed[keys[page-1].Key] = true
			l.commit(removalOf(keys[page-1].Key))
		}
	})
	c.givenOnce(rows, keys, removed)
}

// givenOnce sees to it that each record but the removed ones was given, and none twice.
func (c *C) givenOnce(rows, want []ports.Row, removed map[string]bool) {
	seen := map[recordID]int{}
	for i := range rows {
		seen[idOf(&rows[i])]++
	}
	for i := range want {
		if n := seen[idOf(&want[i])]; n > 1 || n == 0 && !removed[want[i].Key] {
			c.Errorf("%s was given %d times", idOf(&want[i]), n)
		}
	}
}

// surveyOf counts with time enough.
func surveyOf(c *C, l *localStore) ports.Survey {
	s, err := powerOf[ports.Surveyor](c, l.store).Survey(c.Ctx)
	if err != nil {
		c.Fatalf("Survey: %s", faultText(err))
	}
	return s
}

func surveyCounts(c *C) {
	l := local(c)
	want := func(when string, items, events, attempts, manifests int64) {
		s := surveyOf(c, l)
		for kind, n := range map[ports.Kind]int64{ports.KindItem: items, ports.KindEvent: events, ports.KindAttempt: attempts, ports.KindManifest: manifests} {
			if got := s.Counts[kind]; got != n || s.Partial {
				c.Errorf("%s, Survey counts %d of kind %s (partial: %t), want %d", when, got, kind, s.Partial, n)
			}
		}
	}
	want("of nothing", 0, 0, 0, 0)
	l.commit(upsertOf("a", `{}`), upsertOf("b", `{}`), upsertOf("a", `{"N":1}`), eventOf("a", "g", `{}`), eventOf("x", "h", `{}`), eventOf("a", "g", `{}`), eventOf("a", "i", `{}`), attemptOf("x", 1, `{}`))
	l.commit(manifestOf("r", `{}`), manifestOf("s", `{}`), removalOf("r"))
	want("of some", 2, 3, 1, 1)
	l.reopen(false)
	want("after a close", 2, 3, 1, 1)
}

func surveyDeadline(c *C) {
	l := local(c)
	const events = 2000
	for i := 0; i < events; i += 500 {
		var entries []ports.Entry
		for n := range 500 {
			entries = append(entries, eventOf("a", fmt.Sprint("g", i+n), `{}`))
		}
		l.commit(entries...)
	}
	surveyor := powerOf[ports.Surveyor](c, l.store)
	for _, limit := range []time.Duration{100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond, time.Second} {
		ctx, cancel := context.WithTimeout(c.Ctx, limit)
		s, err := surveyor.Survey(ctx)
		cancel()
		if code := ports.CodeOf(err); code != "" && code != ports.Deadline {
			c.Errorf("Survey with %s: %s, want Partial or at worst deadline", limit, faultText(err))
		}
		if n := s.Counts[ports.KindEvent]; err == nil && (n > events || n < events && !s.Partial) {
			c.Errorf("Survey with %s counts %d of %d events, partial: %t", limit, n, events, s.Partial)
		}
	}
	if s := surveyOf(c, l); s.Partial || s.Counts[ports.KindEvent] != events {
		c.Errorf("Survey with time enough counts %d of %d events, partial: %t", s.Counts[ports.KindEvent], events, s.Partial)
	}
}
