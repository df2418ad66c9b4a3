// Package traffic makes random actions that are hard on those who merge them: few keys, all seven writes, re-flushes among
// live ones, values of wrong types, numbers and texts in odd spellings, times that are none.
package traffic

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

var (
	someValues = []string{
		`null`, `""`, `{}`, `[]`, `[ ]`, `{ }`, `0`, `-0`, `1`, `1.0`, `1e2`, `9007199254740993`, `"Pending"`, `"Complete"`, `"Running"`, `"Stalled"`,
		`"\u0041"`, `"\ud800"`, `"a\u0000b"`, `"x\/y"`, `"é\n"`, `true`, `false`, `{"a":1, "a":2}`, `[1,null]`,
	}
	someTimes = []string{
		`"2026-11-30T02:00:00.000Z"`, `"2026-11-30T02:00:00Z"`, `"2026-11-30T03:00:00.001+01:00"`, `"2026-11-30T02:00:00.0011Z"`, `"soon"`, `null`,
		`"2020-01-01T00:00:00Z"`, `"2020-06-01T00:00:00.5-03:00"`,
	}
	statuses = []string{`"Pending"`, `"Complete"`, `"Running"`, `"Stalled"`, `"Canceled"`, `"Abandoned"`, `null`, `7`}
	beacons  = []string{`"b1"`, `"b2"`, `"b3"`, `""`, `null`, `7`, `{"b":1}`}
)

var someMembers = map[string][]string{
	"WorkItem": {"Status", "LastEventAt", "EnqueuedAt", "CompletedAt", "Settings", "Result", "Priority", "Health", "HealthComputedAt",
		"CancelRequested", "AttemptNumber", "Capability", "Unknown", "$raw"},
	"Event":    {"EventType", "Payload", "BeaconID", "Seq", "EmittedAt", "Unknown", "$absent"},
	"Attempt":  {"BeaconID", "OtherBeaconIDs", "Outcome", "Error", "ErrorMessage", "CompletedAt", "Unknown"},
	"Manifest": {"Status", "StopTime", "StartTime", "ElapsedMs", "Output", "Log", "OperationHash"},
}

// chosen makes a record: the given members, and some others of its kind.
func chosen(kind string, members map[string]string) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var parts []string
		names := someMembers[kind]
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 6, rapid.ID).Draw(t, "members") {
			if members[name] != "" {
				continue
			}
			pool := someValues
			switch name {
			case "Status":
				pool = statuses
			case "LastEventAt", "StopTime", "StartTime", "EnqueuedAt", "CompletedAt", "HealthComputedAt", "EmittedAt":
				pool = someTimes
			case "BeaconID":
				pool = beacons
			case "OtherBeaconIDs":
				pool = []string{`[]`, `["b2"]`, `[7]`, `[ "b3" , {"b":1} ]`, `"b2"`, `null`}
			case "AttemptNumber":
				pool = []string{`0`, `1`, `2`, `-3`, `null`}
			case "Capability":
				pool = []string{`"Shell"`, `null`, `7`}
			}
			parts = append(parts, fmt.Sprintf("%q:%s", name, rapid.SampledFrom(pool).Draw(t, name)))
		}
		for name, value := range members {
			if value != "-" {
				parts = append(parts, fmt.Sprintf("%q:%s", name, value))
			}
		}
		slices.Sort(parts)
		return "{" + strings.Join(rapid.Permutation(parts).Draw(t, "order"), ",") + "}"
	})
}

var kindOf = map[string]string{
	"QP_UpsertWorkItem": "WorkItem", "QP_UpdateWorkItem": "WorkItem", "QP_AppendEvent": "Event",
	"QP_InsertAttempt": "Attempt", "QP_UpdateAttemptOutcome": "Attempt", "MS_UpsertManifest": "Manifest",
}

// Act is one action, with a re-flush's marks now and then.
type Act struct {
	Action   string
	Settings string
	Again    bool // an import
}

var writes = []string{"QP_UpsertWorkItem", "QP_UpdateWorkItem", "QP_AppendEvent", "QP_InsertAttempt", "QP_UpdateAttemptOutcome", "MS_UpsertManifest", "MS_RemoveManifest"}

// Acts makes writes about the given keys, which name work items and runs. EventGUIDs have guids in front.
func Acts(keys []string, guids string) *rapid.Generator[Act] {
	return rapid.Custom(func(t *rapid.T) Act {
		key := rapid.SampledFrom(keys).Draw(t, "key")
		number := rapid.SampledFrom([]string{`1`, `1`, `0`, `2`, `null`}).Draw(t, "number")
		flush := rapid.Bool().Draw(t, "flush")
		a := Act{Action: rapid.SampledFrom(writes).Draw(t, "action"), Again: rapid.IntRange(0, 9).Draw(t, "import") == 0}
		members := map[string]string{"WorkItemHash": fmt.Sprintf("%q", key)}
		mark := func(name, value string) {
			if flush {
				members[name], members["CreateDate"], members["Deleted"] = value, "null", "0"
			}
		}
		record := func() string { return chosen(kindOf[a.Action], members).Draw(t, "record") }
		switch a.Action {
		case "QP_UpsertWorkItem":
			mark("IDBeaconWorkItem", "1")
			a.Settings = fmt.Sprintf(`{"WorkItem":%s}`, record())
		case "QP_UpdateWorkItem", "QP_UpdateAttemptOutcome":
			a.Again = false
			members["AttemptNumber"] = "-"
			delete(members, "WorkItemHash")
			a.Settings = fmt.Sprintf(`{"WorkItemHash":%q,"AttemptNumber":%s,"Patch":%s}`, key, number, record())
		case "QP_AppendEvent":
			mark("IDBeaconWorkItemEvent", rapid.SampledFrom([]string{"1", "2"}).Draw(t, "row"))
			if rapid.Bool().Draw(t, "named") {
				members["EventGUID"] = fmt.Sprintf(rapid.SampledFrom([]string{`"%s-g1"`, `"%s-\u00671"`, `"%s-g2"`, `null%.0s`, `""%.0s`}).Draw(t, "guid"), guids)
			}
			a.Settings = fmt.Sprintf(`{"Event":%s}`, record())
		case "QP_InsertAttempt":
			members["AttemptNumber"] = number
			a.Settings = fmt.Sprintf(`{"Attempt":%s}`, record())
		case "MS_UpsertManifest":
			delete(members, "WorkItemHash")
			members["Hash"] = fmt.Sprintf("%q", key)
			mark("Live", "false")
			a.Settings = fmt.Sprintf(`{"Manifest":%s}`, record())
		case "MS_RemoveManifest":
			a.Again = false
			a.Settings = fmt.Sprintf(`{"RunHash":%q}`, key)
		}
		return a
	})
}
