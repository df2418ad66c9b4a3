package conformance

import (
	"bytes"
	"slices"
	"strings"

	"holdfast/ports"
)

// What the first write of a record fixes for good, and how large a merge may become.

var decideStampCases = []Case{{
	Topic: "decide", Name: "first-write", Needs: needLocal, Of: ports.Families,
	Must: "the first write of a record fixes ReceivedAt, OrderKey (14 digits of milliseconds, 16 of Seq, the short host), EnqueuedKey of an item, EmittedAt of a live event without one, Actor and Origin; no later write changes them",
	Run:  firstWrite,
}, {
	Topic: "decide", Name: "enqueued-key", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "an item's EnqueuedKey is its EnqueuedAt as UTC with nine fraction digits, and the time of its first write where that is no time",
	Run:  enqueuedKey,
}, {
	Topic: "decide", Name: "emitted-at", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "EmittedAt is stamped on live events whose caller gave none, also no null, and never on an event that is sent again",
	Run:  emittedAt,
}, {
	Topic: "decide", Name: "replayed", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "an entry that replays a set-aside one has its place by the Seq of that one (Again) in OrderKey, and its own Seq in Change",
	Run:  replayed,
}, {
	Topic: "decide", Name: "keys-apart", Needs: needLocal, Of: ports.Families,
	Must: "keys and GUIDs are compared byte for byte: case, white space, accents and their compositions tell records apart",
	Run:  keysApart,
}, {
	Topic: "decide", Name: "merge-limit", Needs: needLocal, Of: []ports.Family{ports.Queue}, Large: true,
	Must: "a record of 64 MiB is taken; a merge that makes a row larger is refused as too_large with the limit and the size, and leaves the row as it was",
	Run:  mergeLimit,
}}

func firstWrite(c *C) {
	l := local(c)
	by := func(e ports.Entry, actor, origin string) ports.Entry { e.Actor, e.Origin = actor, origin; return e }
	l.commit(
		by(upsertW(`{"WorkItemHash":"w","EnqueuedAt":"2026-11-30T04:12:14.5+02:00"}`), "hub-a", ports.OriginHub),
		by(eventOf("w", "g", `{"WorkItemHash":"w"}`), "ops", ports.OriginHTTP),
		by(attemptOf("w", 1, `{"WorkItemHash":"w"}`), "", ports.OriginMember),
	)
	l.commit(by(upsertR(`{"Hash":"r"}`), "ops", ports.OriginImport))
	check := func(when string, seqs ...uint64) {
		want := []ports.Row{
			{Kind: ports.KindItem, Key: "w", First: ports.First{
				ReceivedAt: "2026-11-30T02:12:14.801Z", OrderKey: "01796004734801-0000000000000001-11111111",
				EnqueuedKey: "2026-11-30T02:12:14.500000000Z", Actor: "hub-a", Origin: ports.OriginHub,
			}},
			{Kind: ports.KindEvent, Key: "w", First: ports.First{
				ReceivedAt: "2026-11-30T02:12:14.802Z", OrderKey: "01796004734802-0000000000000002-11111111",
				EmittedAt: "2026-11-30T02:12:14.802Z", Actor: "ops", Origin: ports.OriginHTTP,
			}},
			{Kind: ports.KindAttempt, Key: "w", First: ports.First{
				ReceivedAt: "2026-11-30T02:12:14.803Z", OrderKey: "01796004734803-0000000000000003-11111111", Actor: "", Origin: ports.OriginMember,
			}},
			{Kind: ports.KindManifest, Key: "r", First: ports.First{
				ReceivedAt: "2026-11-30T02:12:14.801Z", OrderKey: "01796004734801-0000000000000001-11111111", Actor: "ops", Origin: ports.OriginImport,
			}},
		}
		rows := everyRow(c, l.store, "w", "r")
		if len(rows) != len(want) {
			c.Fatalf("%s: there are %d records, want %d", when, len(rows), len(want))
		}
		for i, r := range rows {
			if r.Kind != want[i].Kind || r.Key != want[i].Key || r.First != want[i].First {
				c.Errorf("%s: the first write of %s %s fixed %+v, want %+v", when, r.Kind, r.Key, r.First, want[i].First)
			}
			if r.Change != (ports.Change{Host: hostA, Seq: seqs[i]}) {
				c.Errorf("%s: %s %s was changed last by %+v, want host %s and Seq %d", when, r.Kind, r.Key, r.Change, hostA, seqs[i])
			}
		}
	}
	check("new", 1, 2, 3, 1)
	l.commit(
		by(patchW(`{"Status":"Running"}`), "x", ports.OriginMember),
		by(again(upsertW(`{"WorkItemHash":"w","LastEventAt":"2026-11-30T02:00:00Z","EnqueuedAt":"2026-11-30T00:00:00Z"}`)), "y", ports.OriginImport),
		by(again(eventOf("w", "g", `{"WorkItemHash":"w","EventType":"x"}`)), "z", ports.OriginImport),
		by(outcomeOf("w", 1, `{"Outcome":"Complete"}`), "x", ports.OriginHub),
	)
	l.commit(by(upsertR(`{"Hash":"r","Status":"Complete"}`), "x", ports.OriginHTTP))
	check("written again", 5, 2, 7, 2)
}

func enqueuedKey(c *C) {
	l := local(c)
	for i, row := range []struct{ record, want string }{
		{`{"EnqueuedAt":"2026-11-30T02:12:14Z"}`, "2026-11-30T02:12:14.000000000Z"},
		{`{"EnqueuedAt":"2026-11-30T02:12:14.1234567891Z"}`, "2026-11-30T02:12:14.123456789Z"},
		{`{"EnqueuedAt":"2026-12-31T23:59:59.999999999-00:01"}`, "2027-01-01T00:00:59.999999999Z"},
		{`{"EnqueuedAt":"now"}`, "2026-11-30T02:12:14.804000000Z"},
		{`{"EnqueuedAt":1796004734801}`, "2026-11-30T02:12:14.805000000Z"},
		{`{"EnqueuedAt":null}`, "2026-11-30T02:12:14.806000000Z"},
		{`{}`, "2026-11-30T02:12:14.807000000Z"},
	} {
		key := string(rune('a' + i))
		l.commit(upsertOf(key, row.record))
		got, err := l.store.Item(c.Ctx, key)
		if err != nil {
			c.Fatalf("Item: %s", faultText(err))
		}
		if got.First.EnqueuedKey != row.want {
			c.Errorf("the EnqueuedKey of %s is %q, want %q", row.record, got.First.EnqueuedKey, row.want)
		}
	}
}

func emittedAt(c *C) {
	l := local(c)
	l.commit(
		upsertW(`{"WorkItemHash":"w"}`), eventOf("w", "live", `{"WorkItemHash":"w"}`), eventOf("w", "given", `{"WorkItemHash":"w","EmittedAt":"2026-01-01T00:00:00Z"}`),
		eventOf("w", "null", `{"WorkItemHash":"w","EmittedAt":null}`), again(eventOf("w", "again", `{"WorkItemHash":"w"}`)),
	)
	want := map[string]string{"live": "2026-11-30T02:12:14.802Z"}
	for _, r := range everyRow(c, l.store, "w") {
		if r.Kind == ports.KindEvent && r.First.EmittedAt != want[r.GUID] {
			c.Errorf("the event %q is stamped as emitted at %q, want %q", r.GUID, r.First.EmittedAt, want[r.GUID])
		}
	}
}

func replayed(c *C) {
	l := local(c)
	l.commit(eventOf("w", "first", `{"WorkItemHash":"w"}`), eventOf("w", "third", `{"WorkItemHash":"w"}`), eventOf("w", "fourth", `{"WorkItemHash":"w"}`))
	b := l.batch(eventOf("w", "second", `{"WorkItemHash":"w"}`))
	b.Entries[0].Again, b.Entries[0].ReceivedMs = 1, firstMs+1 // it came when the first one came, and sorts behind it by its GUID
	if _, err := l.try(b); err != nil {
		c.Fatalf("a batch with a replayed entry: %s", faultText(err))
	}
	var order []string
	for _, r := range everyRow(c, l.store, "w") {
		order = append(order, r.GUID)
		if r.GUID == "second" && (r.First.OrderKey != "01796004734801-0000000000000001-11111111" || r.Change != (ports.Change{Host: hostA, Seq: 4})) {
			c.Errorf("the replayed entry has the OrderKey %q and the change %+v", r.First.OrderKey, r.Change)
		}
	}
	if got := strings.Join(order, " "); got != "first second third fourth" {
		c.Errorf("the events are in the order %s, want first second third fourth", got)
	}
}

func keysApart(c *C) {
	l := local(c)
	keys := []string{"w", "W", "w ", " w", "w\t", "\u00e9", "e\u0301", "\u212b", "\u00c5", "1", "01", "1.0", "w%", "w_", "\U0001f600", "\ufffd"}
	for i, key := range keys {
		for what, d := range map[string][]ports.Decision{
			"a patch": l.commit(patchOf(key, `{}`)), "a removal": l.commit(removalOf(key)),
		} {
			if d[0].Outcome != ports.Missing && d[0].Outcome != ports.AlreadyAbsent {
				c.Errorf("%s of %q, which is not there, is decided %s: it is taken for one of %q", what, key, told(d), keys[:i])
			}
		}
		text := string(ports.AppendQuoted(nil, key))
		d := append(l.commit(upsertOf(key, `{"WorkItemHash":`+text+`}`), guided(eventOf("w", "g"+key, `{"EventGUID":`+string(ports.AppendQuoted(nil, "g"+key))+`}`)), attemptOf(key, 1, `{}`)), l.commit(manifestOf(key, `{"Hash":`+text+`}`))...)
		if got := outcomes(d); slices.ContainsFunc(got, func(o ports.Outcome) bool { return o != ports.Stored }) {
			c.Errorf("the records of key %q are decided %s, want all stored: they are taken for those of one of %q", key, told(d), keys[:i])
		}
	}
	if rows := everyRow(c, l.store, keys...); len(rows) != 4*len(keys) {
		c.Errorf("there are %d records of %d keys, want %d", len(rows), len(keys), 4*len(keys))
	}
}

func mergeLimit(c *C) {
	l := local(c)
	const before, after = `{"WorkItemHash":"w","Mine":"`, `"}`
	largest := before + strings.Repeat("x", ports.MaxRecordBytes-len(before)-len(after)) + after
	if d := l.commit(upsertW(largest))[0]; d.Outcome != ports.Stored {
		c.Fatalf("a record of 64 MiB is decided %s, want stored", told([]ports.Decision{d}))
	}
	d := l.commit(patchW(`{"Theirs":"` + strings.Repeat("x", 200) + `"}`))[0]
	if d.Outcome != ports.Refused || d.Err == nil || d.Err.Code != ports.TooLarge || d.Err.Limit != ports.MaxRecordBytes || d.Err.Size <= d.Err.Limit {
		c.Errorf("a patch that makes it larger is decided %s with %+v, want refused as too_large with the limit %d and the size", told([]ports.Decision{d}), d.Err, ports.MaxRecordBytes)
	}
	row, err := l.store.Item(c.Ctx, "w")
	if err != nil {
		c.Fatalf("Item: %s", faultText(err))
	}
	if len(row.Body) < len(largest)-100 || bytes.Contains(row.Body, []byte("Theirs")) || row.Change.Seq != 1 {
		c.Errorf("after the refusal, the item has %d bytes and was changed last by write %d", len(row.Body), row.Change.Seq)
	}
	if d := l.commit(patchW(`{"Mine":"small"}`))[0]; d.Outcome != ports.Stored {
		c.Errorf("a patch that makes it small is decided %s, want stored", told([]ports.Decision{d}))
	}
}
