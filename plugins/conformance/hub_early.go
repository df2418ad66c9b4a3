package conformance

import (
	"fmt"
	"strings"
	"time"

	"holdfast/ports"
)

// What a hub sends of an item before the item itself: it waits, and becomes a row only when the item comes.

var hubEarlyCases = []Case{{
	Topic: "hub", Name: "early", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "a patch, event, attempt or outcome that a hub sends before its item is early; when the item comes all of them take effect, in order, as changes of the entry that brought it, and keep their own place among the first writes",
	Run:  earlyThenItem,
}, {
	Topic: "hub", Name: "early-is-no-row", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "nothing becomes a row of a hub's key that never had an upsert: no reader shows it, no change tells of it, and others' writes find nothing",
	Run:  earlyIsNoRow,
}, {
	Topic: "hub", Name: "early-twice", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "an early write that comes again waits once",
	Run:  earlyTwice,
}, {
	Topic: "hub", Name: "early-any-upsert", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "whoever brings the item, live or again, the early writes of its key take effect then, and those of no other key",
	Run:  earlyAnyUpsert,
}, {
	Topic: "hub", Name: "early-overtaken", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "early writes are in the order in which they were sent, among themselves and with their item",
	Run:  earlyOvertaken,
}, {
	Topic: "hub", Name: "early-limit", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "of one key 100 early writes wait, and 4 MiB of them; the next is refused as full and leaves the others waiting",
	Run:  earlyLimit,
}, {
	Topic: "hub", Name: "early-expires", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "an early write that came more than 24 hours before another entry is dropped with that one, which counts it",
	Run:  earlyExpires,
}, {
	Topic: "hub", Name: "early-kept", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "early writes are durable, and Stand counts them",
	Run:  earlyKept,
}, {
	Topic: "hub", Name: "early-killed", Needs: needLocal, Of: []ports.Family{ports.Queue}, Kills: true,
	Must: "early writes, and what orders a hub's writes, survive the death of the process",
	Run:  earlyKilled,
}, {
	Topic: "hub", Name: "early-impossible", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "an early write that is refused when its item comes is dropped and counted, and stops neither the item nor the others",
	Run:  earlyImpossible,
}, {
	Topic: "hub", Name: "early-replayed", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "an early write that replays a set-aside one keeps the place of that one, and so does an item that is replayed behind it",
	Run:  earlyReplayed,
}, {
	Topic: "hub", Name: "early-twin", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "a late twin of a batch gets the decisions of the first time also where they tell of a hub's writes",
	Run:  earlyTwin,
}}

// each is one early write of every kind about an item, from the n-th of the hub on.
func each(key string, n int) []ports.Entry {
	return []ports.Entry{
		nth(n, patchOf(key, `{"Status":"Running","Early":1}`)), nth(n+1, eventOf(key, "g-"+key, `{"EventType":"dispatched"}`)),
		nth(n+2, attemptOf(key, 1, `{"AttemptNumber":1,"Outcome":"Dispatched"}`)), nth(n+3, outcomeOf(key, 1, `{"Outcome":"Complete"}`)),
	}
}

func eachRow(key string) []string {
	return []string{
		fmt.Sprintf(`{"WorkItemHash":%q,"Status":"Running","Early":1}`, key), fmt.Sprintf(`{"EventGUID":"g-%s","WorkItemHash":%q,"EventType":"dispatched"}`, key, key),
		fmt.Sprintf(`{"WorkItemHash":%q,"AttemptNumber":1,"Outcome":"Complete"}`, key),
	}
}

// all wants every decision to be the outcome.
func (l *localStore) all(what string, want ports.Outcome, decisions []ports.Decision) {
	for _, d := range decisions {
		if d.Outcome != want {
			l.c.Errorf("%s: the decisions are %s, want all %s", what, told(decisions), want)
			return
		}
	}
}

// counts wants a decision to tell how many early writes took effect, were dropped and wait.
func (l *localStore) counts(what string, d ports.Decision, applied, dropped, waiting int) {
	if d.Applied != applied || d.Dropped != dropped || d.Waiting != waiting {
		l.c.Errorf("%s: the decision tells of %d early writes applied, %d dropped, %d waiting; want %d, %d, %d", what, d.Applied, d.Dropped, d.Waiting, applied, dropped, waiting)
	}
}

// bodies wants the records of some keys to be these, in the order of everyRow.
func (l *localStore) bodies(what string, want []string, keys ...string) []ports.Row {
	rows := everyRow(l.c, l.store, keys...)
	if len(rows) != len(want) {
		l.c.Errorf("%s: there are %d records of %q, want %d", what, len(rows), keys, len(want))
		return rows
	}
	for i, r := range rows {
		if difference := bodyDifference(r.Kind, r.Body, []byte(want[i])); difference != "" {
			l.c.Errorf("%s: %s %d of %q: %s", what, r.Kind, i+1, keys, difference)
		}
	}
	return rows
}

func earlyThenItem(c *C) {
	l := local(c)
	d := l.commit(each("w", 2)...)
	l.all("before the item", ports.Early, d)
	l.counts("the fourth early write", d[len(d)-1], 0, 0, 4)
	d = l.commit(upsertOf("x", `{}`), nth(1, upsertW(`{"WorkItemHash":"w","Status":"Pending","EnqueuedAt":"2026-11-30T02:12:14.5Z"}`)))
	l.all("the item", ports.Stored, d)
	l.counts("another item", d[0], 0, 0, 0)
	l.counts("the item", d[1], 4, 0, 0)
	want := eachRow("w")
	want[0] = `{"WorkItemHash":"w","Status":"Running","Early":1,"EnqueuedAt":"2026-11-30T02:12:14.5Z"}`
	for _, r := range l.bodies("with the item", want, "w") {
		if r.Change != (ports.Change{Host: hostA, Seq: 6}) {
			c.Errorf("%s was changed last by %+v, want the entry 6, which brought the item", r.Kind, r.Change)
		}
		seq := map[ports.Kind]uint64{ports.KindItem: 6, ports.KindEvent: 2, ports.KindAttempt: 3}[r.Kind]
		first := ports.Entry{ReceivedMs: firstMs + int64(seq), Seq: seq, Host: l.host[:8]}
		if r.First.OrderKey != first.OrderKey() || r.First.ReceivedAt != first.ReceivedAt() || r.First.Origin != ports.OriginMember {
			c.Errorf("the first write of %s fixed %+v, want those of the entry %d", r.Kind, r.First, seq)
		}
	}
	page, err := l.store.Changes(c.Ctx, ports.ChangesQuery{Family: ports.Queue, After: ports.Position{Epoch: l.epochs[ports.Queue].ID, Seqs: map[string]uint64{hostA: 5}}})
	if err != nil || len(page.Rows) != 3 || page.End == nil {
		c.Errorf("a follower that has been told up to 5 is told %d rows (%s), want the item, its event and its attempt", len(page.Rows), faultText(err))
	}
}

func earlyIsNoRow(c *C) {
	l := local(c)
	l.commit(upsertOf("x", `{}`))
	l.all("before the item", ports.Early, l.commit(each("w", 2)...))
	l.all("another's patch", ports.Missing, l.commit(patchW(`{"Status":"x"}`)))
	l.bodies("without the item", nil, "w")
	page, err := l.store.Items(c.Ctx, ports.ItemQuery{})
	if err != nil || len(page.Rows) != 1 {
		c.Errorf("the list of items has %d rows (%s), want only that of the other key", len(page.Rows), faultText(err))
	}
	changes, err := l.store.Changes(c.Ctx, ports.ChangesQuery{Family: ports.Queue})
	if err != nil || len(changes.Rows) != 1 || changes.End == nil || changes.End.Seqs[hostA] != 6 {
		c.Errorf("Changes tells %d rows up to %+v (%s), want one, up to 6", len(changes.Rows), changes.End, faultText(err))
	}
	if exporter, ok := l.store.(ports.Exporter); ok {
		if page, err := exporter.Export(c.Ctx, ports.ExportQuery{Family: ports.Queue}); err == nil && len(page.Rows) != 1 {
			c.Errorf("Export gives %d rows, want one", len(page.Rows))
		}
	}
	l.all("another's event", ports.Stored, l.commit(eventOf("w", "mine", `{}`)))
	l.bodies("with another's event", []string{`{"EventGUID":"mine","WorkItemHash":"w"}`}, "w")
}

func earlyTwice(c *C) {
	l := local(c)
	l.commit(each("w", 2)...)
	d := l.commit(each("w", 2)...)
	l.all("again", ports.Early, d)
	l.counts("again", d[3], 0, 0, 4)
	d = l.commit(nth(1, upsertW(`{"WorkItemHash":"w"}`)))
	l.counts("the item", d[0], 4, 0, 0)
	l.bodies("with the item", eachRow("w"), "w")
	d = l.commit(each("w", 2)...)
	if got := fmt.Sprint(outcomes(d)); got != fmt.Sprint([]ports.Outcome{ports.Stored, ports.AlreadyPresent, ports.AlreadyPresent, ports.Stored}) {
		c.Errorf("again, with the item: %s, want stored, already_present, already_present, stored", told(d))
	}
	l.bodies("again, with the item", eachRow("w"), "w")
}

func earlyAnyUpsert(c *C) {
	l := local(c)
	for _, key := range []string{"a", "b", "c", "d"} {
		l.commit(each(key, 2)...)
	}
	l.counts("somebody else's item", l.commit(upsertOf("a", `{}`))[0], 4, 0, 12)
	l.counts("an item that is sent again", l.commit(again(upsertOf("b", `{}`)))[0], 4, 0, 8)
	l.counts("an item that the hub sends again", l.commit(sentAt(900, 900, again(upsertOf("c", `{}`))))[0], 4, 0, 4)
	for _, key := range []string{"a", "b", "c"} {
		l.bodies("with the item", eachRow(key), key)
	}
	l.bodies("without the item", nil, "d")
}

func earlyOvertaken(c *C) {
	l := local(c)
	l.all("before the item", ports.Early, l.commit(
		nth(4, patchW(`{"Status":"Complete"}`)), nth(3, patchW(`{"Status":"Running","StartedAt":"s"}`)), nth(1, patchW(`{"Status":"Queued","Mine":1}`)),
		nth(6, outcomeOf("w", 1, `{"Outcome":"Complete"}`)), nth(5, outcomeOf("w", 1, `{"Outcome":"Error","ErrorMessage":"e"}`)),
	))
	l.all("the item", ports.Stored, l.commit(nth(2, upsertW(`{"WorkItemHash":"w","Status":"Pending","Mine":2}`))))
	l.bodies("with the item", []string{
		`{"WorkItemHash":"w","Status":"Complete","StartedAt":"s","Mine":2}`, `{"WorkItemHash":"w","AttemptNumber":1,"Outcome":"Complete","ErrorMessage":"e"}`,
	}, "w")
	l.all("a patch behind all", ports.Late, l.commit(nth(3, patchW(`{"Status":"Running"}`))))
}

func earlyLimit(c *C) {
	l := local(c)
	var entries []ports.Entry
	for i := range ports.MaxEarlyPerKey {
		entries = append(entries, nth(i+2, eventOf("w", fmt.Sprintf("g%03d", i), `{}`)))
	}
	l.all("as many as may wait", ports.Early, l.commit(entries...))
	full := func(what string, e ports.Entry) {
		if d := l.commit(e)[0]; d.Outcome != ports.Refused || d.Err == nil || d.Err.Code != ports.Full {
			c.Errorf("%s is decided %s, want refused as full", what, told([]ports.Decision{d}))
		}
	}
	full("one more", nth(200, eventOf("w", "more", `{}`)))
	l.all("one that waits already", ports.Early, l.commit(nth(2, eventOf("w", "g000", `{}`))))
	half := `{"Payload":"` + strings.Repeat("x", ports.MaxEarlyBytes/2) + `"}`
	l.all("one of another key", ports.Early, l.commit(nth(201, eventOf("v", "v1", half))))
	full("one that is too large", nth(202, eventOf("v", "v2", half)))
	l.counts("the item", l.commit(nth(1, upsertW(`{"WorkItemHash":"w"}`)))[0], ports.MaxEarlyPerKey, 0, 1)
	if rows := everyRow(c, l.store, "w"); len(rows) != ports.MaxEarlyPerKey+1 {
		c.Errorf("there are %d records, want the item and %d events", len(rows), ports.MaxEarlyPerKey)
	}
}

func earlyExpires(c *C) {
	l := local(c)
	at := func(ms int64, e ports.Entry) ports.Decision {
		b := l.batch(e)
		b.Entries[0].ReceivedMs = firstMs + ms
		d, err := l.try(b)
		if err != nil || len(d) != 1 {
			c.Fatalf("a batch of one entry: %s (%d decisions)", faultText(err), len(d))
		}
		return d[0]
	}
	wait := ports.EarlyFor.Milliseconds()
	at(0, nth(2, patchOf("a", `{"Status":"x"}`)))
	at(1, nth(3, patchOf("b", `{"Status":"x"}`)))
	at(2, nth(4, patchOf("b", `{"Mine":1}`)))
	l.counts("an entry a day later", at(wait, upsertOf("x", `{}`)), 0, 0, 0)
	l.counts("the entry after it", at(wait+1, upsertOf("x", `{}`)), 0, 1, 2)
	l.counts("the item of the second", at(wait+2, nth(1, upsertOf("b", `{}`))), 1, 1, 0)
	l.counts("the item of the first", at(wait+int64(time.Hour/time.Millisecond), nth(1, upsertOf("a", `{}`))), 0, 0, 0)
	l.bodies("at last", []string{`{"WorkItemHash":"a"}`, `{"WorkItemHash":"b","Mine":1}`}, "a", "b")
}

func earlyKept(c *C)   { keptEarly(c, false) }
func earlyKilled(c *C) { keptEarly(c, true) }

func keptEarly(c *C, kill bool) {
	l := local(c)
	l.commit(each("w", 2)...)
	l.commit(nth(1, upsertOf("v", `{"Status":"Pending"}`)), nth(3, patchOf("v", `{"Status":"Complete"}`)))
	l.reopen(kill)
	if n := l.stand().Early; n != 4 {
		c.Errorf("after the store was opened again, Stand tells of %d early writes, want 4", n)
	}
	l.counts("the item", l.commit(nth(1, upsertW(`{"WorkItemHash":"w"}`)))[0], 4, 0, 0)
	l.bodies("with the item", eachRow("w"), "w")
	l.all("a patch that was overtaken before", ports.Late, l.commit(nth(2, patchOf("v", `{"Status":"Running"}`))))
	if n := l.stand().Early; n != 0 {
		c.Errorf("with the item, Stand tells of %d early writes, want none", n)
	}
}

func earlyImpossible(c *C) {
	l := local(c)
	l.all("before the item", ports.Early, l.commit(guided(nth(2, eventOf("w", "g", `{"EventGUID":"g","RunID":"1"}`))), nth(3, patchW(`{"Mine":1}`))))
	l.all("another's event", ports.Stored, l.commit(guided(eventOf("other", "g", `{"EventGUID":"g","RunID":"2"}`))))
	d := l.commit(nth(1, upsertW(`{"WorkItemHash":"w"}`)))
	l.all("the item", ports.Stored, d)
	l.counts("the item", d[0], 1, 1, 0)
	l.bodies("with the item", []string{`{"WorkItemHash":"w","Mine":1}`}, "w")
}

func earlyReplayed(c *C) {
	l := local(c)
	l.seqs[ports.Queue] = 3 // 1 to 3 were set aside: an item, and two events behind it
	b := l.batch(nth(9, eventOf("w", "fourth", `{}`)))
	b.After = 0
	if _, err := l.try(b); err != nil {
		c.Fatalf("a batch: %s", faultText(err))
	}
	replay := func(of uint64, e ports.Entry) ports.Decision {
		b := l.batch(e)
		b.Entries[0].Again, b.Entries[0].ReceivedMs = of, firstMs+int64(of)
		d, err := l.try(b)
		if err != nil || len(d) != 1 {
			c.Fatalf("a replay: %s (%d decisions)", faultText(err), len(d))
		}
		return d[0]
	}
	l.all("a replay before its item", ports.Early, []ports.Decision{replay(2, nth(2, eventOf("w", "second", `{}`)))})
	l.counts("the item, replayed", replay(1, nth(1, upsertW(`{"WorkItemHash":"w"}`))), 2, 0, 0)
	l.all("a replay behind its item", ports.Stored, []ports.Decision{replay(3, nth(3, eventOf("w", "third", `{}`)))})
	var order []string
	for _, r := range everyRow(c, l.store, "w") {
		order = append(order, r.GUID)
	}
	if got := strings.Join(order, " "); got != " second third fourth" {
		c.Errorf("the events are in the order%s, want second third fourth", got)
	}
}

func earlyTwin(c *C) {
	l := local(c)
	first := l.batch(append(each("w", 3), nth(2, patchOf("v", `{}`)))...)
	second := l.batch(nth(1, upsertW(`{"WorkItemHash":"w"}`)), nth(9, patchW(`{"Status":"x"}`)), nth(8, patchW(`{"Status":"y"}`)))
	var want [][]ports.Decision
	for _, b := range []ports.CommitBatch{first, second, first, second} {
		d, err := l.try(b)
		if err != nil {
			c.Fatalf("a batch: %s", faultText(err))
		}
		if want = append(want, d); len(want) > 2 && fmt.Sprint(want[len(want)-3]) != fmt.Sprint(d) {
			c.Errorf("the twin of a batch is decided %+v, the first time it was %+v", d, want[len(want)-3])
		}
	}
	l.bodies("at last", []string{strings.Replace(eachRow("w")[0], `"Running"`, `"x"`, 1), eachRow("w")[1], eachRow("w")[2]}, "w")
}
