package tabletest

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"holdfast/ports"
)

// Writes of every kind, of few keys and odd values, so that they meet.
var (
	someKeys   = []string{"w1", "W1", "w1 ", "wé", "we\u0301", "a'b\"c%_"}
	someValues = []string{
		`null`, `""`, `{}`, `[]`, `[ ]`, `0`, `-0`, `1`, `1.0`, `1e2`, `9007199254740993`, `18446744073709551615`, `"Pending"`, `"Complete"`,
		`"\u0041"`, `"\ud800"`, `"a\u0000b"`, `"x\/y"`, `"é\n"`, `true`, `false`, `{"a":1, "a":2}`, `[1,null]`, `"2026-11-30T02:00:00Z"`,
		`"2026-11-30T03:00:00.001+01:00"`, `"soon"`, `0.5`,
	}
	someMembers = map[ports.Kind][]string{
		ports.KindItem: {"Status", "LastEventAt", "EnqueuedAt", "CompletedAt", "Settings", "Result", "Priority", "Health", "HealthComputedAt",
			"CancelRequested", "AttemptNumber", "Capability", "Unknown", "$raw", "$$x"},
		ports.KindEvent:    {"EventType", "Payload", "BeaconID", "Seq", "EmittedAt", "Unknown", "$absent"},
		ports.KindAttempt:  {"BeaconID", "OtherBeaconIDs", "Outcome", "Error", "ErrorMessage", "CompletedAt", "DispatchedAt", "StartedAt", "Unknown"},
		ports.KindManifest: {"Status", "StopTime", "StartTime", "ElapsedMs", "Output", "Log", "OperationHash"},
	}
)

func someEntry(family ports.Family) *rapid.Generator[ports.Entry] {
	return rapid.Custom(func(t *rapid.T) ports.Entry {
		writes := ports.Writes[:5]
		if family == ports.Manifest {
			writes = ports.Writes[5:]
		}
		action := rapid.SampledFrom(writes).Draw(t, "action")
		key := rapid.SampledFrom(someKeys).Draw(t, "key")
		kind := map[ports.Action]ports.Kind{
			ports.AppendEvent: ports.KindEvent, ports.InsertAttempt: ports.KindAttempt, ports.UpdateAttemptOutcome: ports.KindAttempt,
			ports.UpsertManifest: ports.KindManifest,
		}[action]
		if kind == "" {
			kind = ports.KindItem
		}
		var parts []string
		if rapid.Bool().Draw(t, "with key") {
			parts = append(parts, fmt.Sprintf("%q:%s", ports.TableOf(kind).Key, ports.AppendQuoted(nil, key)))
		}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(someMembers[kind]), 0, 6, rapid.ID).Draw(t, "members") {
			parts = append(parts, fmt.Sprintf("%q:%s", name, rapid.SampledFrom(someValues).Draw(t, name)))
		}
		e := EntryOf(0, action, key, "{"+strings.Join(parts, ",")+"}")
		if action == ports.RemoveManifest {
			e.Record = nil
		}
		e.Number = rapid.Int64Range(1, 2).Draw(t, "number")
		e.EventGUID = rapid.SampledFrom([]string{"g1", "g2", "g3", "g4"}).Draw(t, "guid")
		e.GUIDGiven = rapid.Bool().Draw(t, "given")
		if rapid.IntRange(0, 3).Draw(t, "class") == 0 {
			e.Class = ports.Reflush
		}
		if rapid.IntRange(0, 2).Draw(t, "hub") == 0 {
			e.Stamp = ports.Stamp{Ms: rapid.Int64Range(1796004734800, 1796004734803).Draw(t, "ms"), Count: rapid.Uint64Range(1, 3).Draw(t, "count")}
		}
		return e
	})
}
