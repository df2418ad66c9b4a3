package conformance

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"holdfast/ports"
)

// What changed after a position: which rows a page has, in which order, and where the next one goes on.

var changesCases = []Case{{
	Topic: "changes", Name: "nothing", Needs: needLocal, Of: ports.Families,
	Must: "a store that holds nothing tells an End at once, with its StoreID and the newest epoch of the host that opened it",
	Run:  changesOfNothing,
}, {
	Topic: "changes", Name: "present-state", Needs: needLocal, Of: ports.Families,
	Must: "each record is told once, in its present state, where it was changed last; only those of the family that is asked for",
	Run:  changesPresentState,
}, {
	Topic: "changes", Name: "after", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "a page has what changed behind the position that is asked for, and nothing before it, from whatever position",
	Run:  changesAfter,
}, {
	Topic: "changes", Name: "order", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "hosts are told in the order of their ids, the rows of a host by Seq; a host that a page did not come to keeps its Seq from After",
	Run:  changesOrder,
}, {
	Topic: "changes", Name: "one-seq", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "a page never ends inside the rows of one host and Seq; where the Seq is the same a removed record comes first, then an item, its events, its attempts",
	Run:  changesOneSeq,
}, {
	Topic: "changes", Name: "during-a-walk", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "a record that changes between two pages is told again behind them, as it is then",
	Run:  changesDuringAWalk,
}, {
	Topic: "changes", Name: "limit", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "a page begins no Seq beyond its limit, 0 meaning 512; Through of each page is where the next one goes on, and End comes with the last",
	Run:  changesLimit,
}, {
	Topic: "changes", Name: "bytes", Needs: needLocal, Of: []ports.Family{ports.Queue}, Large: true,
	Must: "a page is cut at 16 MiB, and has more only where a single Seq has",
	Run:  changesBytes,
}, {
	Topic: "changes", Name: "key", Needs: needLocal, Of: ports.Families,
	Must: "with a key a page has the records of that key alone, removed ones too, and its End is the position of the whole family",
	Run:  changesOfAKey,
}, {
	Topic: "changes", Name: "removals", Needs: needLocal, Of: []ports.Family{ports.Manifest},
	Must: "a removed record is told as a row that is gone, without a body, where it was removed; one that came back is told as it is, and nothing of its removal",
	Run:  changesRemovals,
}, {
	Topic: "changes", Name: "pruned", Needs: []string{"LocalStore", "Pruner"}, Of: ports.Families,
	Must: "a record that was pruned is not told at all, and leaves no removal",
	Run:  changesPruned,
}, {
	Topic: "changes", Name: "reopened", Needs: needLocal, Of: ports.Families,
	Must: "Changes works from Open on, tells the same after a close, and goes on from a position that it told before",
	Run:  changesReopened,
}}

// walk follows Changes from a position to its end, looks at each page by itself, and lets something happen between pages.
func (l *localStore) walk(q ports.ChangesQuery, between func()) (rows []ports.Row, end ports.Position) {
	for range 10_000 {
		page, err := l.store.Changes(l.c.Ctx, q)
		if err != nil {
			l.c.Fatalf("Changes after %v of epoch %q: %s", q.After.Seqs, q.After.Epoch, faultText(err))
		}
		l.pageFits(&q, &page)
		rows = append(rows, page.Rows...)
		if page.End != nil {
			return rows, *page.End
		}
		if len(page.Rows) == 0 && maps.Equal(page.Through.Seqs, q.After.Seqs) {
			l.c.Fatalf("a page after %v has no rows and no End, and its Through goes nowhere", q.After.Seqs)
		}
		q.After = page.Through
		if between != nil {
			between()
		}
	}
	l.c.Fatalf("after 10,000 pages there was no End")
	return nil, end
}

// pageFits sees to it that a page fits its query, whatever is in the store.
func (l *localStore) pageFits(q *ports.ChangesQuery, p *ports.ChangePage) {
	limit := cmp.Or(q.Limit, ports.MaxBatchEntries)
	size, groups := 0, 0
	seen := map[recordID]bool{}
	for i := range p.Rows {
		r := &p.Rows[i]
		at := fmt.Sprintf("row %d, %s, changed by %s in %d,", i+1, idOf(r), r.Change.Host, r.Change.Seq)
		if size += len(r.Body); i == 0 || r.Change != p.Rows[i-1].Change {
			if groups++; i >= limit {
				l.c.Errorf("%s begins another Seq beyond the limit %d", at, limit)
			}
		}
		if r.Kind.Family() != q.Family || q.Key != "" && r.Key != q.Key {
			l.c.Errorf("%s is not of family %s and key %q", at, q.Family, q.Key)
		}
		if r.Change.Seq <= q.After.Seqs[r.Change.Host] {
			l.c.Errorf("%s is not behind After, %v", at, q.After.Seqs)
		}
		if r.Change.Seq > p.Through.Seqs[r.Change.Host] {
			l.c.Errorf("%s is beyond Through, %v", at, p.Through.Seqs)
		}
		if i > 0 && changeOrder(&p.Rows[i-1], r) > 0 {
			l.c.Errorf("%s is told after %s, changed by %s in %d", at, idOf(&p.Rows[i-1]), p.Rows[i-1].Change.Host, p.Rows[i-1].Change.Seq)
		}
		if seen[idOf(r)] {
			l.c.Errorf("%s is told twice in one page", at)
		}
		seen[idOf(r)] = true
		if r.Gone && len(r.Body) > 0 || !r.Gone && len(r.Body) == 0 {
			l.c.Errorf("%s is gone: %t, and has a body of %d bytes", at, r.Gone, len(r.Body))
		}
	}
	if size > ports.MaxPageBytes && groups > 1 {
		l.c.Errorf("a page has %d bytes of %d Seqs; it is cut at %d", size, groups, ports.MaxPageBytes)
	}
	for host, seq := range q.After.Seqs {
		if p.Through.Seqs[host] < seq {
			l.c.Errorf("Through goes back from %d of host %s to %d", seq, host, p.Through.Seqs[host])
		}
	}
	if p.Through.Epoch != l.epochs[q.Family].ID || p.Through.StoreID != l.id {
		l.c.Errorf("Through has the epoch %q and the StoreID %q, want the newest epoch %q and the StoreID that Stand tells", p.Through.Epoch, p.Through.StoreID, l.epochs[q.Family].ID)
	}
	if p.End != nil && !samePosition(*p.End, p.Through) {
		l.c.Errorf("End is %+v, but Through is %+v", *p.End, p.Through)
	}
	for host, seq := range p.Dropped {
		if seq != 0 {
			l.c.Errorf("Dropped says %d of host %s, and no removal was forgotten", seq, host)
		}
	}
}

// changeOrder is the order in which rows are told.
func changeOrder(a, b *ports.Row) int {
	rank := func(r *ports.Row) int {
		if r.Gone {
			return -1
		}
		return slices.Index(ports.Kinds, r.Kind)
	}
	return cmp.Or(strings.Compare(a.Change.Host, b.Change.Host), cmp.Compare(a.Change.Seq, b.Change.Seq), cmp.Compare(rank(a), rank(b)))
}

// tells sees to it that a walk told the wanted rows in order, each written as "key@Seq", of an event "guid@Seq", of an attempt
// "key/number@Seq", with a minus in front of one that is gone.
func (c *C) tells(what string, rows []ports.Row, want ...string) {
	var got []string
	for i := range rows {
		r := &rows[i]
		name := idOf(r).key
		if r.Kind == ports.KindAttempt {
			name += fmt.Sprint("/", r.Number)
		}
		if r.Gone {
			name = "-" + name
		}
		got = append(got, fmt.Sprintf("%s@%d", name, r.Change.Seq))
	}
	if !slices.Equal(got, want) {
		c.Errorf("%s: told %s, want %s", what, strings.Join(got, " "), strings.Join(want, " "))
	}
}

func changesOfNothing(c *C) {
	l := local(c)
	for _, f := range ports.Families {
		rows, end := l.walk(ports.ChangesQuery{Family: f}, nil)
		if len(rows) > 0 || len(end.Seqs) > 1 || end.Seqs[l.host] != 0 {
			c.Errorf("%s: told %d rows and the End %+v of an empty store", f, len(rows), end)
		}
		if _, again := l.walk(ports.ChangesQuery{Family: f, After: end}, nil); !samePosition(again, end) {
			c.Errorf("%s: after its End %+v an empty store tells the End %+v", f, end, again)
		}
	}
}

func changesPresentState(c *C) {
	l := local(c)
	l.commit(
		upsertOf("a", `{"N":1}`), upsertOf("b", `{"N":1}`), eventOf("a", "g", `{}`), attemptOf("a", 1, `{"Outcome":"x"}`),
		patchOf("a", `{"N":2}`), outcomeOf("a", 1, `{"Outcome":"y"}`), patchOf("nobody", `{}`), patchOf("b", `{}`),
	)
	l.commit(manifestOf("a", `{"N":1}`), manifestOf("a", `{"N":2}`))
	rows, end := l.walk(ports.ChangesQuery{Family: ports.Queue}, nil)
	c.tells("the queue", rows, "b@2", "g@3", "a@5", "a/1@6")
	c.sameShelf("the queue", shelfOf(rows), shelfOf(everyRow(c, l.store, "a", "b")).only(ports.Queue))
	if end.Seqs[hostA] != 8 {
		c.Errorf("the End of the queue is %v, want 8: entries that change nothing count as well", end.Seqs)
	}
	rows, end = l.walk(ports.ChangesQuery{Family: ports.Manifest}, nil)
	c.tells("manifests", rows, "a@2")
	c.sameShelf("manifests", shelfOf(rows), shelfOf(everyRow(c, l.store, "a")).only(ports.Manifest))
	if end.Seqs[hostA] != 2 {
		c.Errorf("the End of the manifests is %v, want 2", end.Seqs)
	}
}

// only leaves the rows of a family.
func (s shelf) only(f ports.Family) shelf {
	maps.DeleteFunc(s, func(id recordID, _ ports.Row) bool { return id.kind.Family() != f })
	return s
}

func changesAfter(c *C) {
	l := local(c)
	l.commit(upsertOf("a", `{}`), upsertOf("b", `{}`), eventOf("a", "g", `{}`), patchOf("nobody", `{}`), upsertOf("c", `{}`), patchOf("a", `{"N":1}`))
	want := []string{"b@2", "g@3", "c@5", "a@6"}
	for after, from := range []int{0, 0, 1, 2, 2, 3, 4} {
		p := ports.Position{Epoch: l.epochs[ports.Queue].ID, Seqs: map[string]uint64{hostA: uint64(after)}}
		rows, end := l.walk(ports.ChangesQuery{Family: ports.Queue, After: p}, nil)
		c.tells(fmt.Sprint("after ", after), rows, want[from:]...)
		if end.Seqs[hostA] != 6 {
			c.Errorf("after %d: the End is %v, want 6", after, end.Seqs)
		}
	}
}

// putRows lets rows come in as those of other hosts do that wrote to the store before.
func (l *localStore) putRows(rows ...ports.Row) {
	f := rows[0].Kind.Family()
	if applied, err := l.store.Put(l.c.Ctx, ports.Batch{Family: f, Rows: rows}); err != nil || applied.Done != len(rows) {
		l.c.Fatalf("Put of %d rows: %d are done, %s", len(rows), applied.Done, faultText(err))
	}
}

// itemRow is an item that a host changed.
func itemRow(key, host string, seq uint64, body string) ports.Row {
	return ports.Row{Kind: ports.KindItem, Key: key, Body: []byte(keyed("WorkItemHash", key, body)), Change: ports.Change{Host: host, Seq: seq}, First: ports.First{
		ReceivedAt: ports.FormatMs(firstMs), OrderKey: fmt.Sprintf("%014d-%016d-%s", int64(firstMs), seq, host[:8]),
		EnqueuedKey: "2026-11-30T02:12:14.800000000Z", Origin: ports.OriginHTTP,
	}}
}

func changesOrder(c *C) {
	l := local(c)
	l.commit(upsertOf("a1", `{}`), upsertOf("a2", `{}`))
	b := l.second()
	b.commit(upsertOf("b1", `{}`), upsertOf("b2", `{}`), upsertOf("b3", `{}`))
	b.putRows(itemRow("c1", hostC, 7, `{}`), itemRow("c2", hostC, 9, `{}`))
	rows, end := b.walk(ports.ChangesQuery{Family: ports.Queue}, nil)
	c.tells("three hosts", rows, "a1@1", "a2@2", "b1@1", "b2@2", "b3@3", "c1@7", "c2@9")
	if end.Seqs[hostA] != 2 || end.Seqs[hostB] != 3 || end.Seqs[hostC] != 9 {
		c.Errorf("the End is %v, want 2, 3 and 9", end.Seqs)
	}
	rows, _ = b.walk(ports.ChangesQuery{Family: ports.Queue, Limit: 1}, nil)
	c.tells("three hosts in pages of 1", rows, "a1@1", "a2@2", "b1@1", "b2@2", "b3@3", "c1@7", "c2@9")
	after := ports.Position{Epoch: b.epochs[ports.Queue].ID, Seqs: map[string]uint64{hostA: 1, hostB: 2, hostC: 7}}
	rows, _ = b.walk(ports.ChangesQuery{Family: ports.Queue, After: after, Limit: 1}, nil)
	c.tells("behind 1, 2 and 7", rows, "a2@2", "b3@3", "c2@9")
	page, err := b.store.Changes(c.Ctx, ports.ChangesQuery{Family: ports.Queue, After: after, Limit: 1})
	if err != nil || page.Through.Seqs[hostB] != 2 || page.Through.Seqs[hostC] != 7 {
		c.Errorf("a page that ends in the first host's rows has the Through %v, %s; want the Seqs 2 and 7 that After has of the others", page.Through.Seqs, faultText(err))
	}
}

func changesOneSeq(c *C) {
	l := local(c)
	group := func(key string, seq uint64) []ports.Row {
		item := itemRow(key, hostC, seq, `{}`)
		event, attempt, gone := item, item, item
		event.Kind, event.GUID, event.First.EnqueuedKey, event.Body = ports.KindEvent, "g-"+key, "", fmt.Appendf(nil, `{"EventGUID":"g-%s","WorkItemHash":%q}`, key, key)
		attempt.Kind, attempt.Number, attempt.First.EnqueuedKey, attempt.Body = ports.KindAttempt, 1, "", fmt.Appendf(nil, `{"WorkItemHash":%q,"AttemptNumber":1}`, key)
		gone.Key, gone.Gone, gone.Body, gone.First = "gone-"+key, true, nil, ports.First{}
		return []ports.Row{item, event, attempt, gone}
	}
	l.putRows(group("a", 1)...)
	l.putRows(group("b", 2)...)
	l.putRows(itemRow("c", hostC, 3, `{}`))
	want := []string{"-gone-a@1", "a@1", "g-a@1", "a/1@1", "-gone-b@2", "b@2", "g-b@2", "b/1@2", "c@3"}
	for _, limit := range []int{0, 1, 2, 4, 5, 8, 9} {
		rows, _ := l.walk(ports.ChangesQuery{Family: ports.Queue, Limit: limit}, nil)
		c.tells(fmt.Sprint("in pages of ", limit), rows, want...)
		page, err := l.store.Changes(c.Ctx, ports.ChangesQuery{Family: ports.Queue, Limit: limit})
		if n := len(page.Rows); err != nil || n != 4 && n != 8 && n != 9 {
			c.Errorf("the first page of %d has %d rows, %s: it ends inside a Seq", limit, n, faultText(err))
		}
	}
}
