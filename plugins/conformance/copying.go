package conformance

import (
	"fmt"
	"slices"

	"holdfast/ports"
)

// Copying a local store by what it tells, page by page, into a second store of the same kind.

var copyingCases = []Case{{
	Topic: "copying", Name: "equal", Needs: needLocal, Of: ports.Families,
	Must: "the pages of Changes, put one after the other, give an equal store, and its position is the End",
	Run:  copiedEqual,
}, {
	Topic: "copying", Name: "removals-between", Needs: needLocal, Of: ports.Families,
	Must: "a copy is equal also where records changed, went and came back between its pages",
	Run:  copiedWithRemovals,
}, {
	Topic: "copying", Name: "pages-again", Needs: needLocal, Of: ports.Families,
	Must: "a page that is put twice, and a whole copy over a store that has it, change nothing",
	Run:  copiedTwice,
}, {
	Topic: "copying", Name: "resumed", Needs: needLocal, Of: ports.Families,
	Must: "a copy that was interrupted goes on from the position that its store tells, and is equal in the end",
	Run:  copyResumed,
}, {
	Topic: "copying", Name: "kept-up", Needs: needLocal, Of: ports.Families,
	Must: "a copy that goes on from its position takes what was written, removed and written anew since, and nothing else",
	Run:  copyKeptUp,
}, {
	Topic: "copying", Name: "opened", Needs: needLocal, Of: ports.Families,
	Must: "a copy that a host opens as its local store, with Resume at the copy's position, tells the same changes, and goes on from there",
	Run:  copyOpened,
}}

// copyKeys are the keys of these cases.
var copyKeys = []string{"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "nobody"}

// history writes something of every kind, by two hosts.
func (l *localStore) history() {
	b := l.second()
	b.commit(upsertOf("k0", `{"B":1}`), eventOf("k0", "b1", `{"B":1}`), upsertOf("k7", `{"B":2}`))
	b.commit(manifestOf("k0", `{"B":1}`), manifestOf("k7", `{ "B": 2 }`), removalOf("k0"))
	l.start(nil)
	for i, key := range copyKeys[:7] {
		l.commit(
			upsertOf(key, fmt.Sprintf(`{"WorkItemHash":%q,"Status":"Pending","Settings":{"a":  %d},"Mine":null}`, key, i)),
			eventOf(key, "e1-"+key, `{"Payload":{"b":1.0},"EmittedAt":"2026-01-01T00:00:00Z"}`), attemptOf(key, 1, `{"BeaconID":"x"}`), attemptOf(key, 2, `{"BeaconID":"y"}`),
			eventOf(key, "e2-"+key, `{}`), patchOf(key, `{"Status":"Running"}`), outcomeOf(key, 1, `{"Outcome":"Error"}`),
		)
		l.commit(manifestOf(key, fmt.Sprintf(`{"Z":%d, "Hash":%q}`, i, key)))
	}
	l.commit(eventOf("nobody", "alone", `{}`), attemptOf("nobody", 1, `{}`))
	l.commit(removalOf("k1"), removalOf("k2"), manifestOf("k2", `{"N":2}`))
}

// copyTo puts the changes behind a position into another store, at most so many pages (0: all), and gives where it came. done
// says that it came to the End.
func (l *localStore) copyTo(to ports.Backend, q ports.ChangesQuery, pages int, between func(page int)) (at ports.Position, done bool) {
	stored, err := to.Position(l.c.Ctx, q.Family)
	if err != nil {
		l.c.Fatalf("Position of the copy: %s", faultText(err))
	}
	for n := 1; ; n++ {
		page, err := l.store.Changes(l.c.Ctx, q)
		if err != nil {
			l.c.Fatalf("Changes after %v: %s", q.After.Seqs, faultText(err))
		}
		l.pageFits(&q, &page)
		b := ports.Batch{Family: q.Family, Rows: groupedByKey(page.Rows), Position: &page.Through, After: &stored}
		if applied, err := to.Put(l.c.Ctx, b); err != nil || applied.Done != len(b.Rows) {
			l.c.Fatalf("Put of page %d, %d rows: %d are done, %s", n, len(b.Rows), applied.Done, faultText(err))
		}
		q.After = page.Through
		stored.Epoch, stored.Seqs = page.Through.Epoch, page.Through.Seqs
		if page.End != nil || n == pages {
			return page.Through, page.End != nil
		}
		if between != nil {
			between(n)
		}
	}
}

// groupedByKey gives rows as Put takes them: grouped by key, an item before its events and attempts.
func groupedByKey(rows []ports.Row) []ports.Row {
	place := map[string]int{}
	for i := range rows {
		if _, known := place[rows[i].Key]; !known {
			place[rows[i].Key] = i
		}
	}
	grouped := slices.Clone(rows)
	slices.SortStableFunc(grouped, func(a, b ports.Row) int {
		if a.Key != b.Key {
			return place[a.Key] - place[b.Key]
		}
		return slices.Index(ports.Kinds, a.Kind) - slices.Index(ports.Kinds, b.Kind)
	})
	return grouped
}

// equalTo compares a copy with the store, record by record, and its position with where the copying came.
func (l *localStore) equalTo(to ports.Backend, at map[ports.Family]ports.Position) {
	l.c.sameShelf("the copy", shelfOf(everyRow(l.c, powerOf[ports.LocalStore](l.c, to), copyKeys...)), shelfOf(everyRow(l.c, l.store, copyKeys...)))
	for f, want := range at {
		got, err := to.Position(l.c.Ctx, f)
		if want.StoreID = got.StoreID; err != nil || !samePosition(got, want) {
			l.c.Errorf("the copy is at %+v of %s, %s; want %+v", got, f, faultText(err), want)
		}
	}
}

// copyAll copies both families from where the copy is.
func (l *localStore) copyAll(to ports.Backend, from map[ports.Family]ports.Position, limit int, between func(f ports.Family, page int)) map[ports.Family]ports.Position {
	at := map[ports.Family]ports.Position{}
	for _, f := range ports.Families {
		at[f], _ = l.copyTo(to, ports.ChangesQuery{Family: f, After: from[f], Limit: limit}, 0, func(page int) {
			if between != nil {
				between(f, page)
			}
		})
	}
	return at
}

func copiedEqual(c *C) {
	l := local(c)
	l.history()
	to := c.Another()
	l.equalTo(to, l.copyAll(to, nil, 7, nil))
}

func copiedWithRemovals(c *C) {
	l := local(c)
	l.history()
	to := c.Another()
	at := l.copyAll(to, nil, 2, func(f ports.Family, page int) {
		key := copyKeys[page%8]
		switch {
		case page > 12:
		case f == ports.Queue:
			l.commit(patchOf(key, fmt.Sprintf(`{"Page":%d}`, page)), eventOf(key, fmt.Sprint("page", page), `{}`), outcomeOf(key, 1, fmt.Sprintf(`{"Page":%d}`, page)))
		case page%3 == 0:
			l.commit(manifestOf(key, fmt.Sprintf(`{"Page":%d}`, page)))
		default:
			l.commit(removalOf(key))
		}
	})
	l.equalTo(to, at)
}

func copiedTwice(c *C) {
	l := local(c)
	l.history()
	to := c.Another()
	for range 2 {
		for _, f := range ports.Families {
			q := ports.ChangesQuery{Family: f, Limit: 5}
			for more := true; more; {
				for range 2 {
					_, done := l.copyTo(to, q, 1, nil)
					more = !done
				}
				page, err := l.store.Changes(c.Ctx, q)
				if err != nil {
					c.Fatalf("Changes: %s", faultText(err))
				}
				q.After = page.Through
			}
		}
	}
	l.equalTo(to, nil)
}

func copyResumed(c *C) {
	l := local(c)
	l.history()
	to := c.Another()
	for _, f := range ports.Families {
		l.copyTo(to, ports.ChangesQuery{Family: f, Limit: 3}, 2, nil)
	}
	c.close(1)
	to = c.Another()
	from := map[ports.Family]ports.Position{}
	for _, f := range ports.Families {
		p, err := to.Position(c.Ctx, f)
		if err != nil || len(p.Seqs) == 0 {
			c.Fatalf("after a close the copy is at %+v of %s, %s", p, f, faultText(err))
		}
		from[f] = p
	}
	l.equalTo(to, l.copyAll(to, from, 3, nil))
}

func copyKeptUp(c *C) {
	l := local(c)
	l.history()
	to := c.Another()
	at := l.copyAll(to, nil, 0, nil)
	l.commit(patchOf("k3", `{"Since":1}`), upsertOf("nobody", `{}`), attemptOf("k4", 3, `{}`))
	l.commit(removalOf("k3"), removalOf("k4"), manifestOf("k4", `{"Since":1}`), manifestOf("k1", `{"Since":2}`))
	for f, p := range at {
		rows, _ := l.walk(ports.ChangesQuery{Family: f, After: p}, nil)
		if want := map[ports.Family]int{ports.Queue: 3, ports.Manifest: 3}[f]; len(rows) != want {
			c.Errorf("%d rows of %s changed since the copy, want %d", len(rows), f, want)
		}
	}
	l.equalTo(to, l.copyAll(to, at, 0, nil))
}

func copyOpened(c *C) {
	l := local(c)
	l.history()
	to := c.Another()
	at := l.copyAll(to, nil, 0, nil)
	kept := func(rows []ports.Row) shelf {
		return shelfOf(slices.DeleteFunc(rows, func(r ports.Row) bool { return r.Gone }))
	}
	copied := &localStore{c: c, store: powerOf[ports.LocalStore](c, to), host: l.host}
	copied.begin()
	resume := map[ports.Family]uint64{}
	for _, f := range ports.Families {
		resume[f] = at[f].Seqs[l.host]
	}
	copied.start(resume)
	for _, f := range ports.Families {
		copied.isAt(f, resume[f])
		theirs, _ := copied.walk(ports.ChangesQuery{Family: f}, nil)
		ours, _ := l.walk(ports.ChangesQuery{Family: f}, nil)
		c.sameShelf("what the opened copy tells of "+string(f), kept(theirs), kept(ours))
	}
	for _, of := range []*localStore{l, copied} {
		d := slices.Concat(
			of.commit(patchOf("k3", `{"Since":1}`), eventOf("k0", "e1-k0", `{}`), attemptOf("k1", 1, `{"Error":"e"}`), patchOf("strange", `{}`)),
			of.commit(manifestOf("k1", `{"Since":1}`), removalOf("k5"), removalOf("strange")),
		)
		want := []ports.Outcome{ports.Stored, ports.AlreadyPresent, ports.Stored, ports.Missing, ports.Stored, ports.Stored, ports.AlreadyAbsent}
		if !slices.Equal(outcomes(d), want) {
			c.Errorf("what is written after it was opened is decided %s, want %v", told(d), want)
		}
	}
	l.equalTo(to, nil)
}
