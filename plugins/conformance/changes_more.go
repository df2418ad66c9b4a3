package conformance

import (
	"fmt"
	"strings"
	"time"

	"holdfast/ports"
)

// Pages cut by their bytes or narrowed to one key, and what becomes of removals.

func changesBytes(c *C) {
	l := local(c)
	body := fmt.Sprintf(`{"Settings":%q}`, strings.Repeat("x", 9<<20))
	for _, e := range []ports.Entry{upsertOf("a", body), upsertOf("b", body), upsertOf("c", `{}`)} {
		l.commit(e)
	}
	// Two records of one Seq, which together are more than a page may have and which no page may part.
	event := itemRow("e", hostC, 1, keyed("EventGUID", "g", body))
	event.Kind, event.GUID, event.First.EnqueuedKey = ports.KindEvent, "g", ""
	l.putRows(itemRow("e", hostC, 1, body))
	l.putRows(event)
	rows, _ := l.walk(ports.ChangesQuery{Family: ports.Queue}, nil)
	c.tells("large records", rows, "a@1", "b@2", "c@3", "e@1", "g@1")
	for _, r := range rows {
		if r.Key != "c" && len(r.Body) < len(body) {
			c.Errorf("%s has %d bytes, want %d", idOf(&r), len(r.Body), len(body))
		}
	}
}

func changesOfAKey(c *C) {
	l := local(c)
	l.commit(
		upsertOf("a", `{}`), eventOf("a", "g1", `{}`), upsertOf("b", `{}`), attemptOf("a", 2, `{}`), eventOf("b", "g2", `{}`), attemptOf("a", 1, `{}`),
		patchOf("a", `{"N":1}`), upsertOf("ab", `{}`),
	)
	l.commit(manifestOf("a", `{}`), manifestOf("b", `{}`), removalOf("a"))
	l.putRows(itemRow("c", hostC, 5, `{}`), itemRow("d", hostC, 6, `{}`))
	for _, limit := range []int{0, 1, 2} {
		for _, of := range []struct {
			family ports.Family
			key    string
			want   []string
			end    uint64
		}{
			{ports.Queue, "a", []string{"g1@2", "a/2@4", "a/1@6", "a@7"}, 8}, {ports.Queue, "b", []string{"b@3", "g2@5"}, 8},
			{ports.Queue, "c", []string{"c@5"}, 8}, {ports.Queue, "nobody", nil, 8},
			{ports.Manifest, "a", []string{"-a@3"}, 3}, {ports.Manifest, "b", []string{"b@2"}, 3},
		} {
			rows, end := l.walk(ports.ChangesQuery{Family: of.family, Key: of.key, Limit: limit}, nil)
			c.tells(fmt.Sprintf("%s of key %q in pages of %d", of.family, of.key, limit), rows, of.want...)
			if end.Seqs[hostA] != of.end {
				c.Errorf("%s of key %q: the End is %v, want %d of the host that wrote", of.family, of.key, end.Seqs, of.end)
			}
		}
	}
	after := ports.Position{Epoch: l.epochs[ports.Queue].ID, Seqs: map[string]uint64{hostA: 4}}
	rows, _ := l.walk(ports.ChangesQuery{Family: ports.Queue, Key: "a", After: after}, nil)
	c.tells("of key a behind 4", rows, "a/1@6", "a@7")
}

func changesRemovals(c *C) {
	l := local(c)
	all := func(what string, want ...string) {
		rows, _ := l.walk(ports.ChangesQuery{Family: ports.Manifest}, nil)
		c.tells(what, rows, want...)
		rows, _ = l.walk(ports.ChangesQuery{Family: ports.Manifest, Limit: 1}, nil)
		c.tells(what+", in pages of 1", rows, want...)
	}
	l.commit(manifestOf("a", `{}`), manifestOf("b", `{}`), removalOf("a"), removalOf("nobody"))
	all("one removed", "b@2", "-a@3")
	l.commit(manifestOf("a", `{"N":1}`), removalOf("b"))
	all("it came back, another one went", "a@5", "-b@6")
	l.commit(again(manifestOf("b", `{}`)), removalOf("b"))
	all("sent again and removed again, it is gone already", "a@5", "-b@6")
	l.commit(manifestOf("b", `{}`), removalOf("b"))
	all("it came and went once more", "a@5", "-b@10")
	l.reopen(false)
	all("after a close", "a@5", "-b@10")
}

func changesPruned(c *C) {
	l := local(c)
	l.commit(
		upsertOf("old", `{"WorkItemHash":"old","Status":"Complete","LastEventAt":"2020-01-01T00:00:00Z","CompletedAt":"2020-01-01T00:00:00Z","EnqueuedAt":"2020-01-01T00:00:00Z"}`),
		eventOf("old", "g", `{}`), attemptOf("old", 1, `{}`), upsertOf("young", `{"Status":"Pending"}`),
	)
	l.commit(
		manifestOf("old", `{"Hash":"old","Status":"Complete","StartTime":"2020-01-01T00:00:00Z","StopTime":"2020-01-01T00:00:00Z"}`), manifestOf("young", `{"Status":"Waiting"}`),
	)
	pruneAll(c, powerOf[ports.Pruner](c, l.store), time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC), 0)
	rows, end := l.walk(ports.ChangesQuery{Family: ports.Queue}, nil)
	c.tells("the queue after a prune", rows, "young@4")
	if end.Seqs[hostA] != 4 {
		c.Errorf("the End is %v after a prune, want 4", end.Seqs)
	}
	rows, _ = l.walk(ports.ChangesQuery{Family: ports.Manifest}, nil)
	c.tells("manifests after a prune", rows, "young@2")
	if d := l.commit(again(manifestOf("old", `{"Hash":"old"}`))); d[0].Outcome != ports.Stored {
		c.Errorf("a pruned manifest that is sent again is decided %s, want stored: nothing removed it", told(d))
	}
}

func changesReopened(c *C) {
	l := local(c)
	l.commit(upsertOf("a", `{}`), upsertOf("b", `{}`))
	l.commit(manifestOf("r", `{}`), removalOf("r"))
	_, end := l.walk(ports.ChangesQuery{Family: ports.Queue}, nil)
	l.reopen(false)
	rows, _ := l.walk(ports.ChangesQuery{Family: ports.Queue}, nil)
	c.tells("after a close", rows, "a@1", "b@2")
	rows, _ = l.walk(ports.ChangesQuery{Family: ports.Manifest}, nil)
	c.tells("manifests after a close", rows, "-r@2")
	l.start(nil)
	l.commit(patchOf("a", `{"N":1}`))
	rows, _ = l.walk(ports.ChangesQuery{Family: ports.Queue, After: end}, nil)
	c.tells("from the End before a close and another start of the host", rows, "a@3")
}

func changesDuringAWalk(c *C) {
	l := local(c)
	l.commit(upsertOf("a", `{"N":1}`), upsertOf("b", `{"N":1}`), upsertOf("c", `{"N":1}`))
	page := 0
	rows, end := l.walk(ports.ChangesQuery{Family: ports.Queue, Limit: 1}, func() {
		if page++; page == 2 {
			l.commit(patchOf("a", `{"N":2}`), patchOf("c", `{"N":2}`))
		}
	})
	c.tells("with changes behind the second page", rows, "a@1", "b@2", "a@4", "c@5")
	c.sameShelf("told last", shelfOf(rows), shelfOf(everyRow(c, l.store, "a", "b", "c")))
	if end.Seqs[hostA] != 5 {
		c.Errorf("the End is %v, want 5", end.Seqs)
	}
}

func changesLimit(c *C) {
	l := local(c)
	var entries []ports.Entry
	var want []string
	for i := range 1100 {
		key := fmt.Sprintf("k%04d", i)
		entries, want = append(entries, upsertOf(key, `{}`)), append(want, fmt.Sprintf("%s@%d", key, i+1))
		if len(entries) == 500 || i == 1099 {
			l.commit(entries...)
			entries = nil
		}
	}
	for _, limit := range []int{0, 97, 1099, 1100} {
		rows, end := l.walk(ports.ChangesQuery{Family: ports.Queue, Limit: limit}, nil)
		c.tells(fmt.Sprint("in pages of ", limit), rows, want...)
		if end.Seqs[hostA] != 1100 {
			c.Errorf("in pages of %d the End is %v, want 1100", limit, end.Seqs)
		}
	}
}
