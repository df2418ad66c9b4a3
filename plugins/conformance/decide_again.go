package conformance

import "time"

// What a hub, an import or an adoption sends again. The entries of these rows came on 2026-11-30 at 02:12:14.8 and later.

const day = 24 * time.Hour

var againItemRows = []decided{
	{
		name: "again-item-new", must: "an absent item that is sent again is stored as it came",
		writes: []write{stored(again(upsertW(`{"WorkItemHash":"w","Status":"Complete","LastEventAt":"2020-01-01T00:00:00Z","Mine":{"a": 1}}`)))},
		item:   `{"WorkItemHash":"w","Status":"Complete","LastEventAt":"2020-01-01T00:00:00Z","Mine":{"a": 1}}`,
	},
	{
		name: "again-item-later", must: "an item that is sent again with a LastEventAt that is strictly later overwrites the members that are given and leaves the others, but never WorkItemHash and EnqueuedAt",
		writes: []write{
			stored(upsertW(`{"WorkItemHash":"w","Status":"Pending","LastEventAt":"2026-11-30T02:00:00Z","ClaimedAt":"c","EnqueuedAt":"a","RunID":"x"}`)),
			stored(again(upsertW(`{"WorkItemHash":"w","Status":"Complete","LastEventAt":"2026-11-30T02:00:00.000000001Z","EnqueuedAt":"b","RunID":null}`))),
		},
		item: `{"WorkItemHash":"w","Status":"Complete","ClaimedAt":"c","LastEventAt":"2026-11-30T02:00:00.000000001Z","EnqueuedAt":"a","RunID":null}`, changed: 2,
	},
	{
		name: "again-item-same-instant", must: "an item that is sent again with the same instant, however it is written, only fills members that are missing, null, \"\", {} or []",
		writes: []write{
			stored(upsertW(`{"WorkItemHash":"w","Status":"Pending","LastEventAt":"2026-11-30T02:00:00Z","Result":{},"LastError":"","Settings":null,"Mine":[],"Priority":0,"CancelRequested":false}`)),
			stored(again(upsertW(`{"WorkItemHash":"w","Status":"Complete","LastEventAt":"2026-11-30T03:00:00.000+01:00","Result":{"a":1},"LastError":"e","Settings":{"s":1},"Mine":[1],"Priority":5,"CancelRequested":true,"RunID":"r"}`))),
		},
		item: `{"WorkItemHash":"w","Status":"Pending","LastEventAt":"2026-11-30T02:00:00Z","Result":{"a":1},"LastError":"e","Settings":{"s":1},"Mine":[1],"Priority":0,"CancelRequested":false,"RunID":"r"}`, changed: 2,
	},
	{
		name: "again-item-earlier", must: "an item that is sent again with an earlier LastEventAt only fills what is empty",
		writes: []write{
			stored(upsertW(`{"WorkItemHash":"w","Status":"Pending","LastEventAt":"2026-11-30T02:00:00.001Z"}`)),
			stored(again(upsertW(`{"WorkItemHash":"w","Status":"Complete","LastEventAt":"2026-11-30T02:00:00Z","RunID":"r"}`))),
		},
		item: `{"WorkItemHash":"w","Status":"Pending","LastEventAt":"2026-11-30T02:00:00.001Z","RunID":"r"}`, changed: 2,
	},
	{
		name: "again-item-later-abroad", must: "LastEventAt is compared as an instant, whatever its offset",
		writes: []write{
			stored(upsertW(`{"WorkItemHash":"w","Status":"Pending","LastEventAt":"2026-11-30T10:00:00Z"}`)),
			stored(again(upsertW(`{"WorkItemHash":"w","Status":"Running","LastEventAt":"2026-11-30T04:00:01-06:00"}`))),
		},
		item: `{"WorkItemHash":"w","Status":"Running","LastEventAt":"2026-11-30T04:00:01-06:00"}`, changed: 2,
	},
	{
		name: "again-item-no-time", must: "an item that is sent again is later than one without a time, and one without a time is never later",
		writes: []write{
			stored(upsertW(`{"WorkItemHash":"w","Status":"Pending"}`)), stored(again(upsertW(`{"WorkItemHash":"w","Status":"Running","LastEventAt":"2026-11-30T02:00:00Z"}`))),
			stored(again(upsertW(`{"WorkItemHash":"w","Status":"Pending","RunID":"r"}`))), stored(again(upsertW(`{"WorkItemHash":"w","Status":"Pending","LastEventAt":"soon"}`))),
		},
		item: `{"WorkItemHash":"w","Status":"Running","LastEventAt":"2026-11-30T02:00:00Z","RunID":"r"}`, changed: 3,
	},
	{
		name: "again-item-never-undone", must: "an item that is finished never becomes unfinished by being sent again, however late: it is only filled",
		writes: []write{
			stored(upsertW(`{"WorkItemHash":"w","Status":"Stalled","LastEventAt":"2026-11-30T02:00:00Z"}`)),
			stored(again(upsertW(`{"WorkItemHash":"w","Status":"Running","LastEventAt":"2026-11-30T03:00:00Z","RunID":"r"}`))),
		},
		item: `{"WorkItemHash":"w","Status":"Stalled","LastEventAt":"2026-11-30T02:00:00Z","RunID":"r"}`, changed: 2,
	},
	{
		name: "again-item-other-end", must: "a finished item that is sent again later may end otherwise, or say nothing of its status",
		writes: []write{
			stored(upsertW(`{"WorkItemHash":"w","Status":"Stalled","LastEventAt":"2026-11-30T02:00:00Z"}`)),
			stored(again(upsertW(`{"WorkItemHash":"w","Status":"Canceled","LastEventAt":"2026-11-30T03:00:00Z"}`))),
			stored(again(upsertW(`{"WorkItemHash":"w","LastEventAt":"2026-11-30T04:00:00Z","RunID":"r"}`))),
		},
		item: `{"WorkItemHash":"w","Status":"Canceled","LastEventAt":"2026-11-30T04:00:00Z","RunID":"r"}`, changed: 3,
	},
	{
		name: "again-item-unchanged", must: "an item that is sent again with nothing new is stored, and is no change",
		writes: []write{
			stored(upsertW(`{"WorkItemHash":"w","Status":"Pending","LastEventAt":"2026-11-30T02:00:00Z","Mine":{}}`)),
			stored(again(upsertW(`{"WorkItemHash":"w","Status":"Pending","LastEventAt":"2026-11-30T02:00:00Z","Mine":[]}`))),
		},
		item: `{"WorkItemHash":"w","Status":"Pending","LastEventAt":"2026-11-30T02:00:00Z","Mine":{}}`, changed: 1,
	},
	{
		name: "again-item-aged", must: "an absent item that is finished, is sent again and ended longer ago than the retention in force is expired and not stored",
		keeps: day,
		writes: []write{
			expired(again(upsertW(`{"WorkItemHash":"w","Status":"Complete","LastEventAt":"2026-11-29T02:12:14.800Z"}`))),
			expired(again(upsertW(`{"WorkItemHash":"w","Status":"Timeout","LastEventAt":null,"CompletedAt":"2026-11-01T00:00:00Z"}`))),
			expired(again(upsertW(`{"WorkItemHash":"w","Status":"Failed","LastEventAt":"soon","EnqueuedAt":"2026-11-01T00:00:00+01:00"}`))),
			expired(again(upsertW(`{"WorkItemHash":"w","Status":"Error","LastEventAt":"2026-11-01T00:00:00Z","CompletedAt":"2026-11-30T02:00:00Z"}`))),
		},
	},
	{
		name: "again-item-young", must: "a finished item that is sent again and ended within the retention in force, to the millisecond, is stored",
		keeps:  day,
		writes: []write{stored(again(upsertW(`{"WorkItemHash":"w","Status":"Complete","LastEventAt":"2026-11-29T02:12:14.801Z","EnqueuedAt":"2020-01-01T00:00:00Z"}`)))},
		item:   `{"WorkItemHash":"w","Status":"Complete","LastEventAt":"2026-11-29T02:12:14.801Z","EnqueuedAt":"2020-01-01T00:00:00Z"}`,
	},
	{
		name: "again-item-open", must: "an item that is not finished is stored when it is sent again, however old it is, and so is a finished one that tells no time",
		keeps: day,
		writes: []write{
			stored(again(upsertW(`{"WorkItemHash":"w","Status":"Dispatched","LastEventAt":"2020-01-01T00:00:00Z"}`))),
			stored(again(upsertOf("other", `{"WorkItemHash":"other","Status":"Complete"}`))),
		},
		item: `{"WorkItemHash":"w","Status":"Dispatched","LastEventAt":"2020-01-01T00:00:00Z"}`,
	},
	{
		name: "again-item-aged-present", must: "an item that is there is merged whatever its age: only an absent one expires",
		keeps: day,
		writes: []write{
			stored(upsertW(`{"WorkItemHash":"w","Status":"Pending"}`)),
			stored(again(upsertW(`{"WorkItemHash":"w","Status":"Complete","LastEventAt":"2020-01-01T00:00:00Z"}`))),
		},
		item: `{"WorkItemHash":"w","Status":"Complete","LastEventAt":"2020-01-01T00:00:00Z"}`, changed: 2,
	},
	{
		name: "live-aged", must: "a live write is stored however old it says that it is",
		keeps: day,
		writes: []write{
			stored(upsertW(`{"WorkItemHash":"w","Status":"Complete","LastEventAt":"2020-01-01T00:00:00Z"}`)),
			stored(upsertR(`{"Hash":"r","Status":"Complete","StopTime":"2020-01-01T00:00:00Z"}`)),
		},
		item:     `{"WorkItemHash":"w","Status":"Complete","LastEventAt":"2020-01-01T00:00:00Z"}`,
		manifest: `{"Hash":"r","Status":"Complete","StopTime":"2020-01-01T00:00:00Z"}`,
	},
}

var againRows = []decided{
	{
		name: "again-event", must: "an event of a known item that is sent again is stored once: its GUID tells that it is there",
		writes: []write{
			stored(upsertW(`{"WorkItemHash":"w"}`)), stored(again(eventOf("w", "g", `{"WorkItemHash":"w","EventType":"a"}`))),
			present(again(eventOf("w", "g", `{"WorkItemHash":"w","EventType":"a"}`))),
		},
		item: `{"WorkItemHash":"w"}`, events: []string{`{"EventGUID":"g","WorkItemHash":"w","EventType":"a"}`},
	},
	{
		name: "again-event-never-conflicts", must: "an event that is sent again is already present where its GUID is, also when its caller gave the GUID and its content differs",
		writes: []write{
			stored(guided(eventOf("w", "g", `{"WorkItemHash":"w","EventGUID":"g","RunID":"1"}`))), present(again(guided(eventOf("w", "g", `{"WorkItemHash":"w","EventGUID":"g","RunID":"2"}`)))),
		},
		events: []string{`{"EventGUID":"g","WorkItemHash":"w","RunID":"1"}`},
	},
	{
		name: "again-event-expired", must: "an event of an absent item that is sent again is expired, whatever else of its key is there",
		writes: []write{
			expired(again(eventOf("w", "g", `{"WorkItemHash":"w"}`))), stored(eventOf("w", "h", `{"WorkItemHash":"w"}`)), expired(again(eventOf("w", "g", `{"WorkItemHash":"w"}`))),
		},
		events: []string{`{"EventGUID":"h","WorkItemHash":"w"}`},
	},
	{
		name: "again-attempt", must: "an attempt of a known item that is sent again is stored, and fills what is missing in one that is there",
		writes: []write{
			stored(upsertW(`{"WorkItemHash":"w"}`)), stored(again(attemptOf("w", 1, `{"WorkItemHash":"w","AttemptNumber":1,"Outcome":"Complete"}`))),
			stored(again(attemptOf("w", 1, `{"WorkItemHash":"w","AttemptNumber":1,"Outcome":"Dispatched","BeaconID":"b"}`))),
			present(again(attemptOf("w", 1, `{"WorkItemHash":"w","AttemptNumber":1,"BeaconID":"b"}`))),
		},
		item: `{"WorkItemHash":"w"}`, attempts: []string{`{"WorkItemHash":"w","AttemptNumber":1,"Outcome":"Complete","BeaconID":"b"}`},
	},
	{
		name: "again-attempt-expired", must: "an attempt of an absent item that is sent again is expired",
		writes: []write{expired(again(attemptOf("w", 1, `{"WorkItemHash":"w","AttemptNumber":1}`)))},
	},
	{
		name: "again-manifest-new", must: "an absent manifest that is sent again is stored as it came",
		writes:   []write{stored(again(upsertR(`{"Status":"Complete",  "Hash":"r"}`)))},
		manifest: `{"Status":"Complete",  "Hash":"r"}`,
	},
	{
		name: "again-manifest-later", must: "a manifest that is sent again with a StopTime that is strictly later overwrites the members that are given and not empty, and leaves the others",
		writes: []write{
			stored(upsertR(`{"Hash":"r","Status":"Stalled","StopTime":"2026-11-30T02:00:00Z"}`)), stored(again(upsertR(`{"Status":"Complete","StopTime":"2026-11-30T02:00:01Z"}`))),
		},
		manifest: `{"Hash":"r","Status":"Complete","StopTime":"2026-11-30T02:00:01Z"}`, changed: 2,
	},
	{
		name: "again-manifest-hollow", must: "a manifest that is sent again and is not later only fills what is empty: a hollow one empties nothing",
		writes: []write{
			stored(upsertR(`{"Hash":"r","StopTime":"2026-11-30T02:00:00Z","Output":{"a":1}}`)), stored(again(upsertR(`{"Hash":"r","StopTime":"2026-11-30T02:00:00Z","Output":{}}`))),
			stored(again(upsertR(`{"Hash":"r","StopTime":"2026-11-30T02:00:00Z","Output":{"b":2}}`))),
		},
		manifest: `{"Hash":"r","StopTime":"2026-11-30T02:00:00Z","Output":{"a":1}}`, changed: 1,
	},
	{
		name: "again-manifest-later-hollow", must: "a manifest that is sent again and is later empties nothing but what the run waits for",
		writes: []write{
			stored(upsertR(`{"Hash":"r","Status":"Waiting","StopTime":"2026-11-30T02:00:00Z","TaskOutputs":{"a":1},"WaitingTasks":{"n":1}}`)),
			stored(again(upsertR(`{"Status":"Complete","StopTime":"2026-11-30T02:00:01Z","TaskOutputs":{},"WaitingTasks":{}}`))),
		},
		manifest: `{"Hash":"r","Status":"Complete","StopTime":"2026-11-30T02:00:01Z","TaskOutputs":{"a":1},"WaitingTasks":{}}`, changed: 2,
	},
	{
		name: "again-manifest-ended", must: "a manifest that has ended stays as it is where it is sent again with the Status Error, however late: that is what a hub makes of its runs when it starts again",
		writes: []write{
			stored(upsertR(`{"Hash":"r","Status":"Complete","StopTime":"2026-11-30T02:00:00Z","ElapsedMs":5,"TaskOutputs":{"a":1}}`)),
			stored(again(upsertR(`{"Hash":"r","Status":"Error","StopTime":"2026-11-30T03:00:00Z","ElapsedMs":null,"TaskOutputs":{}}`))),
		},
		manifest: `{"Hash":"r","Status":"Complete","StopTime":"2026-11-30T02:00:00Z","ElapsedMs":5,"TaskOutputs":{"a":1}}`, changed: 1,
	},
	{
		name: "again-manifest-never-undone", must: "a finished manifest never becomes unfinished by being sent again",
		writes: []write{
			stored(upsertR(`{"Hash":"r","Status":"Abandoned","StopTime":"2026-11-30T02:00:00Z"}`)), stored(again(upsertR(`{"Hash":"r","Status":"Running","StopTime":"2026-11-30T03:00:00Z"}`))),
		},
		manifest: `{"Hash":"r","Status":"Abandoned","StopTime":"2026-11-30T02:00:00Z"}`, changed: 1,
	},
	{
		name: "again-manifest-aged", must: "an absent manifest that is finished, is sent again and stopped longer ago than the retention in force is expired; one that is not finished is stored",
		keeps: day,
		writes: []write{
			expired(again(upsertR(`{"Hash":"r","Status":"Complete","StopTime":"2026-11-29T02:12:14.800Z"}`))),
			expired(again(upsertR(`{"Hash":"r","Status":"Abandoned","StopTime":null,"StartTime":"2026-11-01T00:00:00Z"}`))),
			stored(again(upsertR(`{"Hash":"r","Status":"Waiting","StopTime":"2020-01-01T00:00:00Z"}`))),
		},
		manifest: `{"Hash":"r","Status":"Waiting","StopTime":"2020-01-01T00:00:00Z"}`, changed: 3,
	},
}
