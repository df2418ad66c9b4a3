package conformance

// Live writes of work items.
var itemRows = []decided{
	{
		name: "item-new", must: "a live upsert of an absent item stores it as it came",
		writes: []write{stored(upsertW(`{"WorkItemHash":"w","Settings":{"b":1,  "a":1.0},"Result":null,"Mine":[1e0]}`))},
		item:   `{"WorkItemHash":"w","Settings":{"b":1,  "a":1.0},"Result":null,"Mine":[1e0]}`,
	},
	{
		name: "item-overwrites", must: "a live upsert of a present item overwrites the members that are given and leaves those that are missing",
		writes: []write{
			stored(upsertW(`{"WorkItemHash":"w","Status":"Pending","Priority":1,"Mine":1,"Result":{"a":1}}`)),
			stored(upsertW(`{"WorkItemHash":"w","Status":"Running","Mine":2,"Theirs":{}}`)),
		},
		item: `{"WorkItemHash":"w","Status":"Running","Priority":1,"Mine":2,"Result":{"a":1},"Theirs":{}}`, changed: 2,
	},
	{
		name: "item-cleared", must: "a null that a live write gives clears the member: it reads back as null",
		writes: []write{
			stored(upsertW(`{"WorkItemHash":"w","LastError":"x","Priority":1,"Settings":{"a":1},"Mine":1}`)),
			stored(upsertW(`{"WorkItemHash":"w","LastError":null,"Settings":null}`)), stored(patchW(`{"Priority":null,"Mine":null}`)),
		},
		item: `{"WorkItemHash":"w","LastError":null,"Priority":null,"Settings":null,"Mine":null}`, changed: 3,
	},
	{
		name: "item-emptied", must: "a live write overwrites with what is empty as well: \"\", 0, false, {} and [] are values like any other",
		writes: []write{
			stored(upsertW(`{"WorkItemHash":"w","LastError":"x","Priority":1,"CancelRequested":true,"Settings":{"a":1},"Mine":[1]}`)),
			stored(patchW(`{"LastError":"","Priority":0,"CancelRequested":false,"Settings":{},"Mine":[]}`)),
		},
		item: `{"WorkItemHash":"w","LastError":"","Priority":0,"CancelRequested":false,"Settings":{},"Mine":[]}`, changed: 2,
	},
	{
		name: "item-fixed", must: "the WorkItemHash and the EnqueuedAt of a present item never change",
		writes: []write{
			stored(upsertW(`{"WorkItemHash":"w","EnqueuedAt":"a"}`)), stored(upsertW(`{"WorkItemHash":"\u0077","EnqueuedAt":"b"}`)),
			stored(patchW(`{"EnqueuedAt":null}`)), stored(patchW(`{"WorkItemHash":"\u0077","EnqueuedAt":"c","A":1}`)),
		},
		item: `{"WorkItemHash":"w","EnqueuedAt":"a","A":1}`, changed: 4,
	},
	{
		name: "item-never-enqueued", must: "a present item without EnqueuedAt never gets one",
		writes: []write{
			stored(upsertW(`{"WorkItemHash":"w"}`)), stored(upsertW(`{"WorkItemHash":"w","EnqueuedAt":"b"}`)),
			stored(patchW(`{"EnqueuedAt":"b"}`)), stored(again(upsertW(`{"WorkItemHash":"w","EnqueuedAt":"b"}`))),
		},
		item: `{"WorkItemHash":"w"}`, changed: 1,
	},
	{
		name: "item-unchanged", must: "a live write that changes no member is stored, and is no change: the row says still who changed it before",
		writes: []write{
			stored(upsertW(`{"WorkItemHash":"w","Status":"Pending","Mine":{"a":1}}`)),
			stored(upsertW(`{"Mine":{"a":1},"Status":"Pending","WorkItemHash":"w"}`)), stored(patchW(`{"Status":"Pending"}`)), stored(patchW(`{}`)),
		},
		item: `{"WorkItemHash":"w","Status":"Pending","Mine":{"a":1}}`, changed: 1,
	},
	{
		name: "item-spelling", must: "members are compared byte for byte: another spelling of the same value is a change",
		writes: []write{
			stored(upsertW(`{"WorkItemHash":"w","Priority":1,"Settings":{"a":1}}`)), stored(patchW(`{"Priority":1.0,"Settings":{"a": 1}}`)),
		},
		item: `{"WorkItemHash":"w","Priority":1.0,"Settings":{"a": 1}}`, changed: 2,
	},
	{
		name: "item-odd", must: "members that are merged keep their bytes, whatever they are: what a patch does not give stays as it was spelled",
		writes: []write{
			stored(upsertW(`{"WorkItemHash":"w","Status":5,"Priority":"high","Health":1.50,"QueueWaitMs":12345678901234567890,"LastError":"\u0061\/\u0000\ud800","CancelRequested":null,"Settings":{"a":1,"a":2},"$raw":{"Status":"x"},"$absent":["RunID"],"Extra":"e","a.b":[1e0]}`)),
			stored(patchW(`{"RunID":"\u0072","TimeoutMs":1.0,"a.b":[1E0],"":0}`)), stored(again(upsertW(`{"WorkItemHash":"w","CancelRequested":true,"Status":"Complete","RunID":"other"}`))),
		},
		item: `{"WorkItemHash":"w","Status":5,"Priority":"high","Health":1.50,"QueueWaitMs":12345678901234567890,"LastError":"\u0061\/\u0000\ud800","CancelRequested":true,"Settings":{"a":1,"a":2},"$raw":{"Status":"x"},"$absent":["RunID"],"Extra":"e","a.b":[1E0],"RunID":"\u0072","TimeoutMs":1.0,"":0}`, changed: 3,
	},
	{
		name: "update-present", must: "an update of a present item does what an upsert does",
		writes: []write{
			stored(upsertW(`{"WorkItemHash":"w","Status":"Pending","Priority":1}`)), stored(patchW(`{"Status":"Complete","New":{}}`)),
		},
		item: `{"WorkItemHash":"w","Status":"Complete","Priority":1,"New":{}}`, changed: 2,
	},
	{
		name: "update-absent", must: "an update of an absent item is missing and stores nothing",
		writes: []write{missingFrom(patchW(`{"Status":"Complete"}`)), missingFrom(patchW(`{"WorkItemHash":"w","Status":"Complete"}`))},
	},
	{
		name: "update-then-upsert", must: "what an update that found nothing said is not remembered: the item that comes later has none of it",
		writes: []write{missingFrom(patchW(`{"Status":"Complete"}`)), stored(upsertW(`{"WorkItemHash":"w","RunID":"x"}`))},
		item:   `{"WorkItemHash":"w","RunID":"x"}`, changed: 2,
	},
	{
		name: "health-alone", must: "a patch that changes nothing but HealthComputedAt is answered as stored and not stored",
		writes: []write{
			stored(upsertW(`{"WorkItemHash":"w","Health":1,"HealthComputedAt":"a"}`)), stored(patchW(`{"Health":1,"HealthComputedAt":"b"}`)),
			stored(patchW(`{"HealthComputedAt":"c"}`)),
		},
		item: `{"WorkItemHash":"w","Health":1,"HealthComputedAt":"a"}`, changed: 1,
	},
	{
		name: "health-with-more", must: "a patch that changes more than HealthComputedAt stores that as well",
		writes: []write{
			stored(upsertW(`{"WorkItemHash":"w","Health":null,"HealthComputedAt":"a"}`)), stored(patchW(`{"Health":1,"HealthComputedAt":"b"}`)),
		},
		item: `{"WorkItemHash":"w","Health":1,"HealthComputedAt":"b"}`, changed: 2,
	},
	{
		name: "health-upsert", must: "an upsert that changes nothing but HealthComputedAt is stored",
		writes: []write{
			stored(upsertW(`{"WorkItemHash":"w","HealthComputedAt":"a"}`)), stored(upsertW(`{"WorkItemHash":"w","HealthComputedAt":"b"}`)),
		},
		item: `{"WorkItemHash":"w","HealthComputedAt":"b"}`, changed: 2,
	},
}

// Live events.
var eventRows = []decided{
	{
		name: "event-new", must: "a live event is stored with its EventGUID, also when its item is unknown",
		writes: []write{
			stored(eventOf("w", "g1", `{"WorkItemHash":"w","EventType":"a","Payload":{"b":1,  "a":1.0}}`)), stored(eventOf("w", "g2", `{"WorkItemHash":"w"}`)),
		},
		events: []string{`{"EventGUID":"g1","WorkItemHash":"w","EventType":"a","Payload":{"b":1,  "a":1.0}}`, `{"EventGUID":"g2","WorkItemHash":"w"}`},
	},
	{
		name: "event-present", must: "a live event whose GUID is there is already present, and the stored one stays",
		writes: []write{
			stored(eventOf("w", "g", `{"WorkItemHash":"w","EventType":"a"}`)), present(eventOf("w", "g", `{"WorkItemHash":"w","EventType":"a"}`)),
			stored(guided(eventOf("w", "h", `{"WorkItemHash":"w","EventGUID":"h"}`))), present(guided(eventOf("w", "h", `{"EventGUID":"h","WorkItemHash":"w"}`))),
		},
		events: []string{`{"EventGUID":"g","WorkItemHash":"w","EventType":"a"}`, `{"EventGUID":"h","WorkItemHash":"w"}`},
	},
	{
		name: "event-conflict", must: "a live event whose caller gave a GUID that is there with other content is refused as a conflict in EventGUID, and the stored one stays",
		writes: []write{
			stored(guided(eventOf("w", "g", `{"WorkItemHash":"w","EventGUID":"g","RunID":"1"}`))),
			conflicting(guided(eventOf("w", "g", `{"WorkItemHash":"w","EventGUID":"g","RunID":"2"}`))),
			conflicting(guided(eventOf("w", "g", `{"WorkItemHash":"w","EventGUID":"g"}`))),
			conflicting(guided(eventOf("other", "g", `{"WorkItemHash":"other","EventGUID":"g","RunID":"1"}`))),
		},
		events: []string{`{"EventGUID":"g","WorkItemHash":"w","RunID":"1"}`},
	},
	{
		name: "event-own-guid", must: "an event whose GUID was made by the host never conflicts: it is already present",
		writes: []write{
			stored(eventOf("w", "g", `{"WorkItemHash":"w","RunID":"1"}`)), present(eventOf("w", "g", `{"WorkItemHash":"w","RunID":"2"}`)),
		},
		events: []string{`{"EventGUID":"g","WorkItemHash":"w","RunID":"1"}`},
	},
}
