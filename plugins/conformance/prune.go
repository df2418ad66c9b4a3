package conformance

import (
	"fmt"
	"time"

	"holdfast/ports"
)

// Removing what ended long ago.

var pruneCases = []Case{{
	Topic: "prune", Name: "what-ended", Needs: []string{"LocalStore", "Pruner"}, Of: ports.Families,
	Must: "Prune removes the records that are finished and whose end, the first of LastEventAt, CompletedAt and EnqueuedAt that is a time (of a manifest StopTime and StartTime), is before the time given, and no other",
	Run:  pruneWhatEnded,
}, {
	Topic: "prune", Name: "whole-items", Needs: []string{"LocalStore", "Pruner"}, Of: []ports.Family{ports.Queue},
	Must: "an item goes with its events and attempts, which are counted; events and attempts of other items and of none stay",
	Run:  pruneWholeItems,
}, {
	Topic: "prune", Name: "limit", Needs: []string{"LocalStore", "Pruner"}, Of: ports.Families,
	Must: "one call removes at most Limit records, and says More while there is more to remove",
	Run:  pruneLimit,
}, {
	Topic: "prune", Name: "forgotten", Needs: []string{"LocalStore", "Pruner"}, Of: ports.Families,
	Must: "what was pruned is as if it never was: a patch of it is missing, and it may be stored anew, also after a close",
	Run:  prunedIsForgotten,
}, {
	Topic: "prune", Name: "while-written", Needs: []string{"LocalStore", "Pruner"}, Of: ports.Families,
	Must: "commits go on while Prune runs, and a record that is written then is kept",
	Run:  pruneWhileWritten,
}, prunePut}

// pruneAll prunes until nothing more is there to prune.
func pruneAll(c *C, p ports.Pruner, before time.Time, limit int) (total ports.Pruned) {
	for range 1000 {
		got, err := p.Prune(c.Ctx, ports.PruneQuery{Before: before, Limit: limit})
		if err != nil {
			c.Fatalf("Prune: %s", faultText(err))
		}
		if n := got.Items + got.Manifests; limit > 0 && n > int64(limit) {
			c.Errorf("a Prune of at most %d records removed %d", limit, n)
		}
		total.Items += got.Items
		total.Events += got.Events
		total.Attempts += got.Attempts
		total.Manifests += got.Manifests
		if !got.More {
			return total
		}
	}
	c.Fatalf("Prune says More for ever")
	return total
}

// newYear is the time before which these cases prune.
var newYear = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// pruneTable has records and whether they go.
var pruneTable = []struct {
	members string
	goes    bool
}{
	{`"Status":"Complete","LastEventAt":"2025-12-31T23:59:59.999999999Z"`, true},
	{`"Status":"Complete","LastEventAt":"2026-01-01T00:00:00Z"`, false},
	{`"Status":"Complete","LastEventAt":"2026-01-01T00:30:00+01:00"`, true},
	{`"Status":"Complete","LastEventAt":"2025-12-31T23:30:00-01:00"`, false},
	{`"Status":"Error","LastEventAt":"2020-01-01T00:00:00Z"`, true},
	{`"Status":"Failed","LastEventAt":"2020-01-01T00:00:00Z"`, true},
	{`"Status":"Completed","LastEventAt":"2020-01-01T00:00:00Z"`, true},
	{`"Status":"Timeout","LastEventAt":"2020-01-01T00:00:00Z"`, true},
	{`"Status":"Canceled","LastEventAt":"2020-01-01T00:00:00Z"`, true},
	{`"Status":"Stalled","LastEventAt":"2020-01-01T00:00:00Z"`, true},
	{`"Status":"Running","LastEventAt":"2020-01-01T00:00:00Z"`, false},
	{`"Status":"complete","LastEventAt":"2020-01-01T00:00:00Z"`, false},
	{`"Status":null,"LastEventAt":"2020-01-01T00:00:00Z"`, false},
	{`"LastEventAt":"2020-01-01T00:00:00Z"`, false},
	{`"Status":"Complete","CompletedAt":"2020-01-01T00:00:00Z"`, true},
	{`"Status":"Complete","LastEventAt":null,"EnqueuedAt":"2020-01-01T00:00:00Z"`, true},
	{`"Status":"Complete","LastEventAt":"soon","EnqueuedAt":"2020-01-01T00:00:00Z"`, true},
	{`"Status":"Complete","LastEventAt":"2026-02-01T00:00:00Z","CompletedAt":"2020-01-01T00:00:00Z","EnqueuedAt":"2020-01-01T00:00:00Z"`, false},
	{`"Status":"Complete","LastEventAt":"2020-01-01T00:00:00Z","CompletedAt":"2026-02-01T00:00:00Z","EnqueuedAt":"2026-02-01T00:00:00Z"`, true},
	{`"Status":"Complete"`, false},
}

// manifestPruneTable is the same for manifests.
var manifestPruneTable = []struct {
	members string
	goes    bool
}{
	{`"Status":"Complete","StopTime":"2025-12-31T23:59:59.999Z"`, true},
	{`"Status":"Complete","StopTime":"2026-01-01T00:00:00Z"`, false},
	{`"Status":"Abandoned","StopTime":"2020-01-01T00:00:00Z"`, true},
	{`"Status":"Stalled","StopTime":"2020-01-01T00:00:00Z"`, true},
	{`"Status":"Waiting","StopTime":"2020-01-01T00:00:00Z"`, false},
	{`"Status":"Canceled","StopTime":"2020-01-01T00:00:00Z"`, false}, // an item ends so, a manifest does not
	{`"Status":"Complete","StopTime":null,"StartTime":"2020-01-01T00:00:00Z"`, true},
	{`"Status":"Complete","StopTime":"2026-02-01T00:00:00Z","StartTime":"2020-01-01T00:00:00Z"`, false},
	{`"Status":"Complete"`, false},
}

func pruneWhatEnded(c *C) {
	l := local(c)
	goes := map[recordID]bool{}
	record := map[recordID]string{}
	var keys []string
	items, manifests := int64(0), int64(0)
	for i, row := range pruneTable {
		key := fmt.Sprint("w", i)
		id := recordID{kind: ports.KindItem, key: key}
		keys, goes[id], record[id] = append(keys, key), row.goes, row.members
		l.commit(upsertOf(key, fmt.Sprintf(`{"WorkItemHash":%q,%s}`, key, row.members)))
		if row.goes {
			items++
		}
	}
	for i, row := range manifestPruneTable {
		key := fmt.Sprint("r", i)
		id := recordID{kind: ports.KindManifest, key: key}
		keys, goes[id], record[id] = append(keys, key), row.goes, row.members
		l.commit(manifestOf(key, fmt.Sprintf(`{"Hash":%q,%s}`, key, row.members)))
		if row.goes {
			manifests++
		}
	}
	got := pruneAll(c, powerOf[ports.Pruner](c, l.store), newYear, 0)
	if want := (ports.Pruned{Items: items, Manifests: manifests}); got != want {
		c.Errorf("Prune counts %+v, want %+v", got, want)
	}
	left := shelfOf(everyRow(c, l.store, keys...))
	for id, gone := range goes {
		if _, there := left[id]; there == gone {
			c.Errorf("pruned before %s, the %s {%s} is there: %t, want %t", newYear.Format(time.RFC3339), id.kind, record[id], there, !gone)
		}
	}
}

const endedLongAgo = `"Status":"Complete","LastEventAt":"2020-01-01T00:00:00Z","CompletedAt":"2020-01-01T00:00:00Z","EnqueuedAt":"2020-01-01T00:00:00Z","StopTime":"2020-01-01T00:00:00Z","StartTime":"2020-01-01T00:00:00Z"`

func pruneWholeItems(c *C) {
	l := local(c)
	for _, key := range []string{"old", "open"} {
		members := endedLongAgo
		if key == "open" {
			members = `"Status":"Running"`
		}
		l.commit(
			upsertOf(key, `{`+members+`}`), eventOf(key, key+"-1", `{}`), eventOf(key, key+"-2", `{}`), eventOf(key, key+"-3", `{}`),
			attemptOf(key, 1, `{"Outcome":"Complete"}`), attemptOf(key, 2, `{"Outcome":"Complete"}`),
		)
	}
	l.commit(eventOf("nobody", "n", `{"EmittedAt":"2020-01-01T00:00:00Z"}`), attemptOf("nobody", 1, `{"Outcome":"Complete","EndedAt":"2020-01-01T00:00:00Z"}`))
	got := pruneAll(c, powerOf[ports.Pruner](c, l.store), newYear, 0)
	if want := (ports.Pruned{Items: 1, Events: 3, Attempts: 2}); got != want {
		c.Errorf("Prune counts %+v, want %+v", got, want)
	}
	for key, want := range map[string]int{"old": 0, "open": 6, "nobody": 2} {
		if rows := everyRow(c, l.store, key); len(rows) != want {
			c.Errorf("there are %d records of %q, want %d", len(rows), key, want)
		}
	}
}

func pruneLimit(c *C) {
	l := local(c)
	for i := range 7 {
		key := fmt.Sprint("k", i)
		l.commit(upsertOf(key, `{`+endedLongAgo+`}`), eventOf(key, key, `{}`), attemptOf(key, 1, `{}`))
		l.commit(manifestOf(key, `{`+endedLongAgo+`}`))
	}
	pruner := powerOf[ports.Pruner](c, l.store)
	first, err := pruner.Prune(c.Ctx, ports.PruneQuery{Before: newYear, Limit: 3})
	if err != nil || first.Items+first.Manifests > 3 || !first.More {
		c.Errorf("the first Prune of 3 among 14 says %+v, %s", first, faultText(err))
	}
	rest := pruneAll(c, pruner, newYear, 3)
	if items, manifests := first.Items+rest.Items, first.Manifests+rest.Manifests; items != 7 || manifests != 7 || first.Events+rest.Events != 7 || first.Attempts+rest.Attempts != 7 {
		c.Errorf("in all Prune removed %d items, %d manifests, %d events and %d attempts, want 7 of each", items, manifests, first.Events+rest.Events, first.Attempts+rest.Attempts)
	}
	if again := pruneAll(c, pruner, newYear, 3); again != (ports.Pruned{}) {
		c.Errorf("with nothing left Prune says %+v", again)
	}
}

func prunedIsForgotten(c *C) {
	l := local(c)
	l.commit(upsertOf("w", `{`+endedLongAgo+`,"Mine":1}`), guided(eventOf("w", "g", `{"EventGUID":"g","N":1}`)), attemptOf("w", 1, `{"Outcome":"Complete"}`))
	l.commit(manifestOf("r", `{`+endedLongAgo+`}`))
	pruneAll(c, powerOf[ports.Pruner](c, l.store), newYear, 0)
	l.reopen(false)
	if rows := everyRow(c, l.store, "w", "r"); len(rows) > 0 {
		c.Errorf("after a close there are %d of the records that were pruned", len(rows))
	}
	d := l.commit(patchOf("w", `{}`), outcomeOf("w", 1, `{}`), guided(eventOf("w", "g", `{"EventGUID":"g","N":2}`)), upsertOf("w", `{"New":1}`), outcomeOf("w", 1, `{"Outcome":"Error"}`))
	if got := fmt.Sprint(outcomes(d)); got != "[missing missing stored stored stored]" {
		c.Errorf("after a prune a patch, an outcome, an event of the same GUID, an upsert and an outcome are decided %s", told(d))
	}
	if d := l.commit(removalOf("r"), again(manifestOf("r", `{"New":1}`))); fmt.Sprint(outcomes(d)) != "[already_absent stored]" {
		c.Errorf("after a prune a removal and a manifest that is sent again are decided %s", told(d))
	}
	for _, r := range everyRow(c, l.store, "w", "r") {
		if want := map[ports.Kind]string{ports.KindItem: `{"WorkItemHash":"w","New":1}`, ports.KindManifest: `{"Hash":"r","New":1}`, ports.KindEvent: `{"EventGUID":"g","WorkItemHash":"w","N":2}`, ports.KindAttempt: `{"WorkItemHash":"w","AttemptNumber":1,"Outcome":"Error"}`}[r.Kind]; bodyDifference(r.Kind, r.Body, []byte(want)) != "" {
			c.Errorf("the new %s: %s", r.Kind, bodyDifference(r.Kind, r.Body, []byte(want)))
		}
	}
}

func pruneWhileWritten(c *C) {
	l := local(c)
	const records = 40
	for i := range records {
		l.commit(upsertOf(fmt.Sprint("old", i), `{`+endedLongAgo+`}`), eventOf(fmt.Sprint("old", i), fmt.Sprint("e", i), `{}`))
	}
	b := l.busy()
	b.written[ports.Queue] = make([]wrote, l.seqs[ports.Queue])
	ended := b.run(15, nil)
	got := pruneAll(c, powerOf[ports.Pruner](c, l.store), newYear, 5)
	<-ended
	if got.Items != records || got.Events != records {
		c.Errorf("beside commits Prune removed %d items and %d events, want %d of each", got.Items, got.Events, records)
	}
	want := map[recordID]bool{}
	for _, f := range ports.Families {
		for _, w := range b.written[f] {
			want[w.id] = !w.gone
		}
	}
	delete(want, recordID{})
	left := shelfOf(everyRow(c, l.store, busyKeys...))
	for id, there := range want {
		if _, is := left[id]; is != there {
			c.Errorf("%s, which was written beside a prune, is there: %t, want %t", id, is, there)
		}
	}
}
