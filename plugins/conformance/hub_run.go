package conformance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"holdfast/ports"
)

// Whole runs of a hub, in every disorder.

var hubRunCases = []Case{{
	Topic: "hub", Name: "any-order", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "the writes of an item's life end in the same rows in whatever order they come and however often, its end included",
	Run:  anyOrder,
}, {
	Topic: "hub", Name: "any-order-manifest", Needs: needLocal, Of: []ports.Family{ports.Manifest},
	Must: "the manifests of a run end in the one that was sent last, in whatever order they come and however often",
	Run:  anyOrderOfManifests,
}}

// life is what a hub sends of an item that waited, was dispatched, stalled, was dispatched again and came to an end.
func life(key string) []ports.Entry {
	guid := func(n int) string { return fmt.Sprintf("%s-%d", key, n) }
	return []ports.Entry{
		nth(1, upsertOf(key, `{"Status":"Pending","EnqueuedAt":"2026-11-30T02:12:14Z","StartedAt":null,"Result":null,"LastEventAt":"1","CancelReason":""}`)),
		nth(2, eventOf(key, guid(1), `{"EventType":"enqueued"}`)),
		nth(3, patchOf(key, `{"Status":"Dispatched","AssignedBeaconID":"b1","DispatchedAt":"d1","AttemptNumber":1,"LastEventAt":"2"}`)),
		nth(4, eventOf(key, guid(2), `{"EventType":"dispatched"}`)),
		nth(5, attemptOf(key, 1, `{"AttemptNumber":1,"BeaconID":"b1","DispatchedAt":"d1","Outcome":"Dispatched"}`)),
		nth(6, patchOf(key, `{"LastEventAt":"3","StartedAt":"s1"}`)),
		nth(7, patchOf(key, `{"Status":"Stalled","StalledAt":"x"}`)),
		nth(8, patchOf(key, `{"Status":"Dispatched"}`)),
		nth(9, outcomeOf(key, 1, `{"Outcome":"Error","CompletedAt":"e1","ErrorMessage":"lost"}`)),
		nth(10, patchOf(key, `{"Status":"Running","AssignedBeaconID":"b2","DispatchedAt":"d2","AttemptNumber":2,"LastEventAt":"4"}`)),
		nth(11, attemptOf(key, 2, `{"AttemptNumber":2,"BeaconID":"b2","DispatchedAt":"d2","Outcome":"Dispatched"}`)),
		nth(12, patchOf(key, `{"Status":"Complete","CompletedAt":"c","LastEventAt":"5","Result":{"Outputs":{}}}`)),
		nth(13, eventOf(key, guid(3), `{"EventType":"completed"}`)),
		nth(14, outcomeOf(key, 2, `{"Outcome":"Complete","CompletedAt":"c","DurationMs":1}`)),
	}
}

// disordered are some of the orders in which writes can come, each with some that come again; the same ones every time.
func disordered(n int) (orders [][]int) {
	inOrder := make([]int, n)
	for i := range inOrder {
		inOrder[i] = i
	}
	backwards := slices.Clone(inOrder)
	slices.Reverse(backwards)
	orders = append(orders, inOrder, append(slices.Clone(inOrder), inOrder...), backwards, append(slices.Clone(backwards), inOrder...))
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // it must be the same every time
		order := random.Perm(n)
		for range random.IntN(n) {
			order = slices.Insert(order, random.IntN(len(order)), order[random.IntN(len(order))])
		}
		orders = append(orders, order)
	}
	return orders
}

func anyOrder(c *C) {
	l := local(c)
	var want []ports.Row
	for i, order := range disordered(len(life(""))) {
		key := fmt.Sprintf("w%02d", i)
		var entries []ports.Entry
		for _, at := range order {
			entries = append(entries, life(key)[at])
		}
		for part := range slices.Chunk(entries, 1+i%7) {
			l.commit(part...)
		}
		rows := everyRow(c, l.store, key)
		slices.SortFunc(rows, func(a, b ports.Row) int {
			return strings.Compare(string(a.Kind)+a.GUID+fmt.Sprint(a.Number), string(b.Kind)+b.GUID+fmt.Sprint(b.Number))
		})
		if i == 0 {
			want = rows
		}
		if len(rows) != len(want) || len(want) != 6 {
			c.Fatalf("in the order %v there are %d records, want an item, 3 events and 2 attempts", order, len(rows))
		}
		for k, r := range rows {
			if difference := bodyDifference(r.Kind, r.Body, []byte(strings.ReplaceAll(string(want[k].Body), "w00", key))); difference != "" {
				c.Errorf("in the order %v, %s: %s", order, r.Kind, difference)
			}
		}
	}
}

func anyOrderOfManifests(c *C) {
	l := local(c)
	sent := []string{"Waiting", "In Progress", "Waiting", "Complete"}
	for i, order := range disordered(len(sent)) {
		key := fmt.Sprintf("r%02d", i)
		for _, at := range order {
			l.commit(nth(at+1, manifestOf(key, fmt.Sprintf(`{"Status":%q,"At":%d}`, sent[at], at))))
		}
		row, err := l.store.Manifest(c.Ctx, key)
		if err != nil || !strings.Contains(string(row.Body), `"At":3`) {
			c.Errorf("in the order %v the manifest is %s (%s), want the last", order, brief(row.Body), faultText(err))
		}
	}
}
