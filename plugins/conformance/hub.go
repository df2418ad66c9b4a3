package conformance

import (
	"slices"

	"holdfast/ports"
)

// The writes of a hub that the host joined: late, twice, in any order, before their item. What is said of ordinary writes in
// the decision tables holds for them too.

var hubCases = slices.Concat(
	casesOf("hub", hubItemRows), casesOf("hub", hubAttemptRows), casesOf("hub", hubManifestRows), casesOf("hub", hubAgainRows), hubEarlyCases, hubRunCases,
)

// sentAt makes an entry one that a hub sent at a millisecond of its clock, as its n-th.
func sentAt(ms int64, n uint64, e ports.Entry) ports.Entry {
	e.Stamp = ports.Stamp{Ms: firstMs + ms, Count: n}
	e.Actor, e.Origin = "hub-a", ports.OriginMember
	return e
}

// The n-th write that a hub sent, a millisecond after the one before.
func nth(n int, e ports.Entry) ports.Entry { return sentAt(int64(n), uint64(n), e) }

func late(e ports.Entry) write { return write{entry: e, want: ports.Late} }

var hubItemRows = []decided{
	{
		name: "in-order", must: "a hub's writes that come as they were sent do what everybody's do",
		writes: []write{
			stored(nth(1, upsertW(`{"WorkItemHash":"w","Status":"Pending","LastError":"x","Mine":1}`))), stored(nth(2, patchW(`{"Status":"Running","LastError":null}`))),
			stored(nth(3, patchW(`{"Status":"Complete","Result":{"a":1}}`))),
		},
		item: `{"WorkItemHash":"w","Status":"Complete","LastError":null,"Mine":1,"Result":{"a":1}}`, changed: 3,
	},
	{
		name: "overtaken", must: "a hub's write that was sent before another and comes behind it sets nothing that the other set: where that is all, it is late",
		writes: []write{
			stored(nth(1, upsertW(`{"WorkItemHash":"w","Status":"Pending"}`))), stored(nth(3, patchW(`{"Status":"Complete"}`))), late(nth(2, patchW(`{"Status":"Running"}`))),
		},
		item: `{"WorkItemHash":"w","Status":"Complete"}`, changed: 2,
	},
	{
		name: "overtaken-in-part", must: "of a hub's write that comes behind a later one the members are set that the later one did not set",
		writes: []write{
			stored(nth(1, upsertW(`{"WorkItemHash":"w","Status":"Pending","StartedAt":null}`))), stored(nth(3, patchW(`{"Status":"Complete","Result":{}}`))),
			stored(nth(2, patchW(`{"Status":"Running","StartedAt":"s","Mine":2}`))),
		},
		item: `{"WorkItemHash":"w","Status":"Complete","StartedAt":"s","Result":{},"Mine":2}`, changed: 3,
	},
	{
		name: "overtaken-by-the-same", must: "a hub's write that says again what is there counts as the one that set it: an earlier one is late",
		writes: []write{
			stored(nth(1, upsertW(`{"WorkItemHash":"w","Status":"Running"}`))), stored(nth(3, patchW(`{"Status":"Running"}`))), late(nth(2, patchW(`{"Status":"Dispatched"}`))),
		},
		item: `{"WorkItemHash":"w","Status":"Running"}`, changed: 1,
	},
	{
		name: "late-and-equal", must: "a hub's write that comes late with nothing but what is there is stored, not late",
		writes: []write{
			stored(nth(1, upsertW(`{"WorkItemHash":"w","Status":"Pending"}`))), stored(nth(3, patchW(`{"Status":"Complete"}`))), stored(nth(2, patchW(`{"Status":"Complete"}`))),
		},
		item: `{"WorkItemHash":"w","Status":"Complete"}`, changed: 2,
	},
	{
		name: "redelivered", must: "a hub's write that comes again changes nothing, whoever wrote in between",
		writes: []write{
			stored(nth(1, upsertW(`{"WorkItemHash":"w","Status":"Pending","RunID":"a"}`))), stored(nth(2, patchW(`{"Status":"Running"}`))), stored(nth(2, patchW(`{"Status":"Running"}`))),
			stored(patchW(`{"Status":"Mine","RunID":"b"}`)), stored(nth(2, patchW(`{"Status":"Running"}`))), stored(nth(1, upsertW(`{"WorkItemHash":"w","RunID":"a"}`))),
		},
		item: `{"WorkItemHash":"w","Status":"Mine","RunID":"b"}`, changed: 4,
	},
	{
		name: "redelivered-and-overtaken", must: "a hub's write that comes again after a later one is late",
		writes: []write{
			stored(nth(1, upsertW(`{"WorkItemHash":"w","Status":"Pending"}`))), stored(nth(2, patchW(`{"Status":"Complete"}`))), late(nth(1, upsertW(`{"WorkItemHash":"w","Status":"Pending"}`))),
		},
		item: `{"WorkItemHash":"w","Status":"Complete"}`, changed: 2,
	},
	{
		name: "same-millisecond", must: "of a hub's writes of one millisecond the count says which is the later",
		writes: []write{
			stored(sentAt(5, 1, upsertW(`{"WorkItemHash":"w","Status":"a"}`))), stored(sentAt(5, 3, patchW(`{"Status":"c"}`))), late(sentAt(5, 2, patchW(`{"Status":"b"}`))),
		},
		item: `{"WorkItemHash":"w","Status":"c"}`, changed: 2,
	},
	{
		name: "restarted", must: "a hub that was started again counts from 1: a write with a later time and a lower count is not older",
		writes: []write{
			stored(sentAt(1, 900, upsertW(`{"WorkItemHash":"w","Status":"Running"}`))), stored(sentAt(2, 1, patchW(`{"Status":"Complete"}`))), stored(sentAt(3, 2, patchW(`{"Mine":1}`))),
		},
		item: `{"WorkItemHash":"w","Status":"Complete","Mine":1}`, changed: 3,
	},
	{
		name: "clock-set-back", must: "a hub whose clock went back goes on counting: a write with an earlier time and a higher count is not older",
		writes: []write{
			stored(sentAt(900, 1, upsertW(`{"WorkItemHash":"w","Status":"Running"}`))), stored(sentAt(1, 2, patchW(`{"Status":"Complete"}`))),
		},
		item: `{"WorkItemHash":"w","Status":"Complete"}`, changed: 2,
	},
	{
		name: "others", must: "everybody else's writes are in order as they come, and what they set is set again by a later write of the hub only",
		writes: []write{
			stored(nth(2, upsertW(`{"WorkItemHash":"w","Status":"a"}`))), stored(patchW(`{"Status":"b","Mine":1}`)), late(nth(1, patchW(`{"Status":"c"}`))),
			stored(nth(1, patchW(`{"Mine":2}`))), stored(nth(3, patchW(`{"Status":"d"}`))),
		},
		item: `{"WorkItemHash":"w","Status":"d","Mine":2}`, changed: 5,
	},
	{
		name: "adopts", must: "a hub's write of an item that somebody else wrote sets what it gives, and is in order from then on",
		writes: []write{
			stored(upsertW(`{"WorkItemHash":"w","Status":"a","Mine":1}`)), stored(nth(5, patchW(`{"Status":"b"}`))), late(nth(4, patchW(`{"Status":"c"}`))), stored(nth(3, patchW(`{"Mine":2}`))),
		},
		item: `{"WorkItemHash":"w","Status":"b","Mine":2}`, changed: 4,
	},
	{
		name: "cleared", must: "a null that a hub gave is not undone by an earlier write",
		writes: []write{
			stored(nth(1, upsertW(`{"WorkItemHash":"w","LastError":"x"}`))), stored(nth(3, patchW(`{"LastError":null}`))), late(nth(2, patchW(`{"LastError":"y"}`))),
		},
		item: `{"WorkItemHash":"w","LastError":null}`, changed: 2,
	},
	{
		name: "odd-members", must: "the order is kept for every member, whatever its name and value",
		writes: []write{
			stored(nth(1, upsertW(`{"WorkItemHash":"w","$raw":1,"a\"b":"\ud800","":{}}`))), stored(nth(3, patchW(`{"$raw":3,"":[],"Priority":"3"}`))), late(nth(2, patchW(`{"$raw":2,"":2,"Priority":2}`))), stored(nth(2, patchW(`{"a\u0022b":2}`))),
		},
		item: `{"WorkItemHash":"w","$raw":3,"a\"b":2,"":[],"Priority":"3"}`, changed: 4,
	},
	{
		name: "health", must: "a hub's patch that changes nothing but HealthComputedAt is stored and is no change",
		writes: []write{
			stored(nth(1, upsertW(`{"WorkItemHash":"w","Health":1,"HealthComputedAt":"a"}`))), stored(nth(2, patchW(`{"Health":1,"HealthComputedAt":"b"}`))), stored(nth(3, patchW(`{"Health":0.5,"HealthComputedAt":"c"}`))),
		},
		item: `{"WorkItemHash":"w","Health":0.5,"HealthComputedAt":"c"}`, changed: 3,
	},
}

var hubAttemptRows = []decided{
	{
		name: "attempt-in-any-order", must: "what a hub says of an attempt's outcome goes before what it inserts, in both orders",
		writes: []write{
			stored(nth(1, upsertW(`{"WorkItemHash":"w"}`))),
			stored(nth(2, attemptOf("w", 1, `{"WorkItemHash":"w","AttemptNumber":1,"BeaconID":"b","Outcome":"Dispatched"}`))), stored(nth(3, outcomeOf("w", 1, `{"Outcome":"Complete","DurationMs":1}`))),
			stored(nth(5, outcomeOf("w", 2, `{"Outcome":"Complete","DurationMs":1}`))), stored(nth(4, attemptOf("w", 2, `{"WorkItemHash":"w","AttemptNumber":2,"BeaconID":"b","Outcome":"Dispatched"}`))),
			present(nth(4, attemptOf("w", 2, `{"WorkItemHash":"w","AttemptNumber":2,"BeaconID":"b","Outcome":"Dispatched"}`))),
		},
		item:     `{"WorkItemHash":"w"}`,
		attempts: []string{`{"WorkItemHash":"w","AttemptNumber":1,"BeaconID":"b","Outcome":"Complete","DurationMs":1}`, `{"WorkItemHash":"w","AttemptNumber":2,"BeaconID":"b","Outcome":"Complete","DurationMs":1}`},
	},
	{
		name: "outcome-overtaken", must: "an outcome that a hub sent before another and that comes behind it is late",
		writes: []write{
			stored(nth(1, upsertW(`{"WorkItemHash":"w"}`))), stored(nth(3, outcomeOf("w", 1, `{"Outcome":"Complete"}`))), late(nth(2, outcomeOf("w", 1, `{"Outcome":"Error"}`))),
			stored(nth(2, outcomeOf("w", 1, `{"ErrorMessage":"e"}`))),
		},
		item: `{"WorkItemHash":"w"}`, attempts: []string{`{"WorkItemHash":"w","AttemptNumber":1,"Outcome":"Complete","ErrorMessage":"e"}`},
	},
	{
		name: "event-once", must: "an event of a hub that comes again is there already",
		writes: []write{
			stored(nth(1, upsertW(`{"WorkItemHash":"w"}`))), stored(nth(2, eventOf("w", "g", `{"WorkItemHash":"w"}`))), present(nth(2, eventOf("w", "g", `{"WorkItemHash":"w"}`))),
		},
		item: `{"WorkItemHash":"w"}`, events: []string{`{"EventGUID":"g","WorkItemHash":"w"}`},
	},
}

var hubManifestRows = []decided{
	{
		name: "manifest-in-order", must: "a hub's manifest replaces an earlier one, whole: a member that it lacks is gone",
		writes:   []write{stored(nth(1, upsertR(`{"Hash":"r","Status":"Waiting","WaitingTasks":{"a":1}}`))), stored(nth(2, upsertR(`{"Hash":"r",  "Status":"Complete"}`)))},
		manifest: `{"Hash":"r",  "Status":"Complete"}`, changed: 2,
	},
	{
		name: "manifest-overtaken", must: "a hub's manifest never replaces one that was sent later: it is late",
		writes: []write{
			stored(nth(3, upsertR(`{"Hash":"r","Status":"Abandoned"}`))), late(nth(2, upsertR(`{"Hash":"r","Status":"Waiting"}`))), stored(nth(3, upsertR(`{"Hash":"r","Status":"Abandoned"}`))),
		},
		manifest: `{"Hash":"r","Status":"Abandoned"}`, changed: 1,
	},
	{
		name: "manifest-restarted", must: "a manifest that a hub sent after it was started again, with a later time and a lower count, replaces the one before",
		writes:   []write{stored(sentAt(1, 900, upsertR(`{"Hash":"r","Status":"Waiting"}`))), stored(sentAt(2, 1, upsertR(`{"Hash":"r","Status":"Error"}`)))},
		manifest: `{"Hash":"r","Status":"Error"}`, changed: 2,
	},
	{
		name: "manifest-said-again", must: "a hub's manifest that says what is there is no change, and an earlier one is late from then on",
		writes: []write{
			stored(nth(1, upsertR(`{"Hash":"r","Status":"Waiting"}`))), stored(nth(3, upsertR(`{"Hash":"r","Status":"Waiting"}`))), late(nth(2, upsertR(`{"Hash":"r","Status":"In Progress"}`))),
		},
		manifest: `{"Hash":"r","Status":"Waiting"}`, changed: 1,
	},
	{
		name: "manifest-others", must: "a manifest that somebody else wrote over a hub's is replaced by a later one of the hub only",
		writes: []write{
			stored(nth(2, upsertR(`{"Hash":"r","Status":"a"}`))), stored(upsertR(`{"Hash":"r","Status":"b"}`)), late(nth(1, upsertR(`{"Hash":"r","Status":"c"}`))), stored(nth(3, upsertR(`{"Hash":"r","Status":"d"}`))),
		},
		manifest: `{"Hash":"r","Status":"d"}`, changed: 4,
	},
	{
		name: "removal-overtaken", must: "a removal that a hub sent before the manifest that is there is late",
		writes:   []write{stored(nth(2, upsertR(`{"Hash":"r"}`))), late(nth(1, removalOf("r")))},
		manifest: `{"Hash":"r"}`, changed: 1,
	},
}

// What a hub sends again was read some time before it was sent.
var hubAgainRows = []decided{
	{
		name: "again-behind-live", must: "what a hub sends again is as old as its LastEventAt: a live write of a later moment that comes behind it counts, one of an earlier moment is late",
		writes: []write{
			stored(nth(900, again(upsertW(`{"WorkItemHash":"w","Status":"Running","RunID":"a","LastEventAt":"2026-11-30T02:12:14.850Z"}`)))), // 50 in the hub's milliseconds
			late(nth(40, patchW(`{"Status":"Dispatched"}`))), stored(nth(60, patchW(`{"Status":"Complete"}`))), late(nth(55, patchW(`{"Status":"Running"}`))),
		},
		item: `{"WorkItemHash":"w","Status":"Complete","RunID":"a","LastEventAt":"2026-11-30T02:12:14.850Z"}`, changed: 3,
	},
	{
		name: "again-over-live", must: "what a hub sends again with a later LastEventAt sets what no live write of a later moment has set",
		writes: []write{
			stored(nth(10, upsertW(`{"WorkItemHash":"w","Status":"Running","CancelReason":"","LastEventAt":"2026-11-30T02:12:14.810Z"}`))), stored(nth(95, patchW(`{"CancelReason":"c"}`))),
			stored(nth(99, again(upsertW(`{"WorkItemHash":"w","Status":"Complete","CancelReason":"","LastEventAt":"2026-11-30T02:12:14.850Z"}`)))),
		},
		item: `{"WorkItemHash":"w","Status":"Complete","CancelReason":"c","LastEventAt":"2026-11-30T02:12:14.850Z"}`, changed: 3,
	},
	{
		name: "again-fills", must: "what a hub sends again and is not later fills no member that a live write sent after it has cleared",
		writes: []write{
			stored(nth(10, upsertW(`{"WorkItemHash":"w","LastError":"x","RunID":""}`))), stored(nth(30, patchW(`{"LastError":null}`))),
			stored(nth(20, again(upsertW(`{"WorkItemHash":"w","LastError":"x","RunID":"r","Mine":1}`)))), stored(nth(20, again(upsertW(`{"WorkItemHash":"w","RunID":"r"}`)))),
		},
		item: `{"WorkItemHash":"w","LastError":null,"RunID":"r","Mine":1}`, changed: 3,
	},
	{
		name: "again-manifest", must: "a manifest that a hub sends again and that is not later adds nothing to one that it wrote live, which is whole",
		writes: []write{
			stored(nth(10, upsertR(`{"Hash":"r","Status":"Complete","StopTime":"2026-11-30T02:12:14.809Z","Output":{}}`))),
			stored(nth(20, again(upsertR(`{"Hash":"r","Status":"Waiting","StopTime":"2026-11-30T02:12:14.805Z","WaitingTasks":{"a":1},"Output":{"a":1}}`)))),
			late(nth(5, again(upsertR(`{"Hash":"r","Status":"Waiting","StopTime":"2026-11-30T02:12:14.805Z","WaitingTasks":{"a":1}}`)))),
		},
		manifest: `{"Hash":"r","Status":"Complete","StopTime":"2026-11-30T02:12:14.809Z","Output":{}}`, changed: 1,
	},
	{
		name: "again-manifest-ended", must: "a run that a hub ended live stays so when the hub starts again and says that it failed; one that was under way fails, and keeps its details",
		writes: []write{
			stored(nth(10, upsertR(`{"Hash":"r","Status":"Waiting","StopTime":"2026-11-30T02:12:14.805Z","Output":{"a":1},"WaitingTasks":{"n":1}}`))),
			stored(nth(20, again(upsertR(`{"Hash":"r","Status":"Error","StopTime":"2026-11-30T02:12:14.815Z","Output":{},"WaitingTasks":{}}`)))),
			stored(nth(30, upsertR(`{"Hash":"r","Status":"Complete","StopTime":"2026-11-30T02:12:14.825Z","Output":{"a":2}}`))),
			stored(nth(40, again(upsertR(`{"Hash":"r","Status":"Error","StopTime":"2026-11-30T02:12:14.835Z","Output":{}}`)))),
		},
		manifest: `{"Hash":"r","Status":"Complete","StopTime":"2026-11-30T02:12:14.825Z","Output":{"a":2}}`, changed: 3,
	},
	{
		name: "again-manifest-then-live", must: "a manifest that a hub wrote live replaces a hollow one of the same moment that it sent again before",
		writes: []write{
			stored(nth(20, again(upsertR(`{"Hash":"r","Status":"Complete","StopTime":"2026-11-30T02:12:14.810Z","Output":{}}`)))),
			stored(nth(10, upsertR(`{"Hash":"r","Status":"Complete","StopTime":"2026-11-30T02:12:14.810Z","Output":{"a":1}}`))), late(nth(9, upsertR(`{"Hash":"r","Status":"Waiting"}`))),
		},
		manifest: `{"Hash":"r","Status":"Complete","StopTime":"2026-11-30T02:12:14.810Z","Output":{"a":1}}`, changed: 2,
	},
	{
		name: "again-unknown", must: "an event or attempt that a hub sends again of an item that is not there is expired, and waits for nothing",
		writes: []write{
			expired(nth(1, again(eventOf("w", "g", `{"WorkItemHash":"w"}`)))), expired(nth(2, again(attemptOf("w", 1, `{"WorkItemHash":"w","AttemptNumber":1}`)))), stored(nth(3, upsertW(`{"WorkItemHash":"w"}`))),
		},
		item: `{"WorkItemHash":"w"}`,
	},
}
