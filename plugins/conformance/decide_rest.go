package conformance

// Live attempts and their outcomes.
var attemptRows = []decided{
	{
		name: "attempt-new", must: "a live attempt is stored under the number that the entry says, also when its item is unknown",
		writes:   []write{stored(attemptOf("w", 1, `{"WorkItemHash":"w","AttemptNumber":-4,"Outcome":"Dispatched"}`)), stored(attemptOf("w", 2, `{"WorkItemHash":"w"}`))},
		attempts: []string{`{"WorkItemHash":"w","AttemptNumber":1,"Outcome":"Dispatched"}`, `{"WorkItemHash":"w","AttemptNumber":2}`},
	},
	{
		name: "attempt-fills", must: "an attempt inserted again fills what is missing or empty, and never resets an Outcome that is set",
		writes: []write{
			stored(attemptOf("w", 1, `{"WorkItemHash":"w","AttemptNumber":1,"Outcome":"Complete","Error":"","Mine":[]}`)),
			stored(attemptOf("w", 1, `{"WorkItemHash":"w","AttemptNumber":1,"Outcome":"Dispatched","Error":"e","DispatchedAt":"d","Mine":[1]}`)),
		},
		attempts: []string{`{"WorkItemHash":"w","AttemptNumber":1,"Outcome":"Complete","Error":"e","DispatchedAt":"d","Mine":[1]}`}, changed: 2,
	},
	{
		name: "attempt-fills-null", must: "an attempt inserted again fills a missing member with a null that is given, but no empty one with another",
		writes: []write{
			stored(attemptOf("w", 1, `{"WorkItemHash":"w","AttemptNumber":1,"Error":""}`)), stored(attemptOf("w", 1, `{"WorkItemHash":"w","AttemptNumber":1,"Error":null,"EndedAt":null}`)),
		},
		attempts: []string{`{"WorkItemHash":"w","AttemptNumber":1,"Error":"","EndedAt":null}`}, changed: 2,
	},
	{
		name: "attempt-present", must: "an attempt inserted again that fills nothing is already present",
		writes: []write{
			stored(attemptOf("w", 1, `{"WorkItemHash":"w","AttemptNumber":1,"Outcome":"Complete"}`)), present(attemptOf("w", 1, `{"WorkItemHash":"w","AttemptNumber":1,"Outcome":"Dispatched"}`)),
		},
		attempts: []string{`{"WorkItemHash":"w","AttemptNumber":1,"Outcome":"Complete"}`}, changed: 1,
	},
	{
		name: "attempt-beacons", must: "every other BeaconID of an attempt inserted again is kept once in its member OtherBeaconIDs, beside the first, which stays",
		writes: []write{
			stored(attemptOf("w", 1, `{"WorkItemHash":"w","AttemptNumber":1,"BeaconID":"a"}`)), stored(attemptOf("w", 1, `{"WorkItemHash":"w","AttemptNumber":1,"BeaconID":"b"}`)),
			present(attemptOf("w", 1, `{"WorkItemHash":"w","AttemptNumber":1,"BeaconID":"b"}`)), stored(attemptOf("w", 1, `{"WorkItemHash":"w","AttemptNumber":1,"BeaconID":"c"}`)),
		},
		attempts: []string{`{"WorkItemHash":"w","AttemptNumber":1,"BeaconID":"a","OtherBeaconIDs":["b","c"]}`}, changed: 4,
	},
	{
		name: "outcome-present", must: "an outcome overwrites the members that are given, and leaves the others",
		writes: []write{
			stored(attemptOf("w", 2, `{"WorkItemHash":"w","AttemptNumber":2,"Outcome":"Dispatched","BeaconID":"b"}`)), stored(outcomeOf("w", 2, `{"Outcome":"Error","ErrorMessage":"e","BeaconID":null}`)),
		},
		attempts: []string{`{"WorkItemHash":"w","AttemptNumber":2,"Outcome":"Error","ErrorMessage":"e","BeaconID":null}`}, changed: 2,
	},
	{
		name: "outcome-unchanged", must: "an outcome that changes no member is stored, and is no change",
		writes: []write{
			stored(attemptOf("w", 1, `{"WorkItemHash":"w","AttemptNumber":1,"Outcome":"Error"}`)), stored(outcomeOf("w", 1, `{"Outcome":"Error","AttemptNumber":7}`)),
		},
		attempts: []string{`{"WorkItemHash":"w","AttemptNumber":1,"Outcome":"Error"}`}, changed: 1,
	},
	{
		name: "outcome-creates", must: "an outcome of an absent attempt creates it where the item is known",
		writes: []write{
			stored(upsertW(`{"WorkItemHash":"w"}`)), stored(outcomeOf("w", 3, `{"Outcome":"Complete"}`)),
		},
		item: `{"WorkItemHash":"w"}`, attempts: []string{`{"WorkItemHash":"w","AttemptNumber":3,"Outcome":"Complete"}`},
	},
	{
		name: "outcome-missing", must: "an outcome of an absent attempt whose item is unknown is missing and stores nothing, even where other attempts of it are there",
		writes: []write{
			missingFrom(outcomeOf("w", 1, `{"Outcome":"Complete"}`)), stored(attemptOf("w", 1, `{"WorkItemHash":"w"}`)), missingFrom(outcomeOf("w", 2, `{"Outcome":"Complete"}`)),
		},
		attempts: []string{`{"WorkItemHash":"w","AttemptNumber":1}`},
	},
}

// Live manifests.
var manifestRows = []decided{
	{
		name: "manifest-new", must: "a live upsert of an absent manifest stores it as it came, to the byte",
		writes:   []write{stored(upsertR(`{"B":2,  "Hash":"r", "A":{"z":1.0,"a":null}}`))},
		manifest: `{"B":2,  "Hash":"r", "A":{"z":1.0,"a":null}}`,
	},
	{
		name: "manifest-replaces", must: "a live upsert of a present manifest replaces it whole",
		writes: []write{
			stored(upsertR(`{"Hash":"r","Status":"Waiting","WaitingTasks":{"a":1}}`)), stored(upsertR(`{"Hash":"r","Status":"Complete"}`)),
		},
		manifest: `{"Hash":"r","Status":"Complete"}`, changed: 2,
	},
	{
		name: "manifest-order", must: "a manifest keeps the order of its members: another order is a change",
		writes:   []write{stored(upsertR(`{"Hash":"r","A":1,"B":2}`)), stored(upsertR(`{"B":2,"A":1,"Hash":"r"}`))},
		manifest: `{"B":2,"A":1,"Hash":"r"}`, changed: 2,
	},
	{
		name: "manifest-unchanged", must: "a live upsert of the same text is stored, and is no change",
		writes:   []write{stored(upsertR(`{"Hash":"r","A":1}`)), stored(upsertR(`{"Hash":"r","A":1}`))},
		manifest: `{"Hash":"r","A":1}`, changed: 1,
	},
	{
		name: "removal", must: "a removal takes the manifest away; another one finds nothing and is already absent",
		writes: []write{absent(removalOf("r")), stored(upsertR(`{"Hash":"r"}`)), stored(removalOf("r")), absent(removalOf("r"))},
	},
	{
		name: "removal-revived", must: "a live upsert of a removed manifest stores it, with nothing of what it was",
		writes:   []write{stored(upsertR(`{"Hash":"r","A":1}`)), stored(removalOf("r")), stored(upsertR(`{"Hash":"r","B":1}`))},
		manifest: `{"Hash":"r","B":1}`, changed: 3,
	},
	{
		name: "removal-expires", must: "a removed manifest that is sent again is expired, until a live upsert brings it back",
		writes: []write{
			stored(upsertR(`{"Hash":"r"}`)), stored(removalOf("r")), expired(again(upsertR(`{"Hash":"r","A":1}`))),
			stored(upsertR(`{"Hash":"r"}`)), stored(again(upsertR(`{"Hash":"r","A":2}`))),
		},
		manifest: `{"Hash":"r","A":2}`, changed: 5,
	},
	{
		name: "removal-of-another", must: "a removal takes away no other record: neither another manifest nor the item whose key is the same",
		writes: []write{
			stored(upsertR(`{"Hash":"r"}`)), stored(manifestOf("w", `{"Hash":"w"}`)), stored(upsertW(`{"WorkItemHash":"w"}`)), stored(removalOf("w")),
		},
		item: `{"WorkItemHash":"w"}`, manifest: `{"Hash":"r"}`,
	},
}
