// Package workload makes the stream of writes with which speed is measured: what a coordinator sends for one work item
// from its start to its end, six writes of about 700 bytes each, 64 items interleaved.
//
//	upsert, event "enqueued", patch (dispatched), patch (complete), event "completed", outcome of the attempt
//
// It gives the stream as action lines (what callers send), as entries (what a local store decides) and as decoded rows for
// Bare, the yardstick: the same writes through database/sql with nothing around them.
package workload

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"holdfast/ports"
)

const (
	// PerItem is how many writes an item has.
	PerItem = 6
	// Interleaved is how many items are under way at once.
	Interleaved = 64
)

// Host is the short id of the host that accepted the entries.
const Host = "benchhst"

// Entries gives the writes of a number of items, numbered from item on, with Seqs from seq on.
func Entries(item, items int, seq uint64) []ports.Entry {
	entries := make([]ports.Entry, 0, items*PerItem)
	each(item, items, func(i, step int) {
		e := entry(i, step)
		e.Seq = seq + uint64(len(entries))
		entries = append(entries, e)
	})
	return entries
}

// Lines gives the same writes as action lines, without their line ends.
func Lines(item, items int) [][]byte {
	lines := make([][]byte, 0, items*PerItem)
	each(item, items, func(i, step int) {
		e := entry(i, step)
		var settings string
		switch e.Action {
		case ports.UpsertWorkItem:
			settings = fmt.Sprintf(`{"WorkItem":%s}`, e.Record)
		case ports.AppendEvent:
			settings = fmt.Sprintf(`{"Event":%s}`, e.Record)
		case ports.UpdateWorkItem:
			settings = fmt.Sprintf(`{"WorkItemHash":%q,"Patch":%s}`, e.Key, e.Record)
		default:
			settings = fmt.Sprintf(`{"WorkItemHash":%q,"AttemptNumber":%d,"Patch":%s}`, e.Key, e.Number, e.Record)
		}
		lines = append(lines, fmt.Appendf(nil, `{"Action":%q,"Settings":%s}`, e.Action, settings))
	})
	return lines
}

// each visits the writes in their order: rounds of Interleaved items, all of them one step further each time.
func each(item, items int, visit func(i, step int)) {
	for first := item; first < item+items; first += Interleaved {
		for step := range PerItem {
			for i := first; i < min(first+Interleaved, item+items); i++ {
				visit(i, step)
			}
		}
	}
}

// startMs is when the first item came; items come a millisecond apart.
const startMs = 1796004734800

func key(i int) string {
	ms := strconv.Itoa(startMs + i)
	return "wi-run-lib-data-pipeline-" + ms + "-transform-rows-" + ms + "-" + strconv.Itoa(i)
}

func entry(i, step int) ports.Entry {
	ms := int64(startMs + i)
	at := func(later int64) string { return ports.FormatMs(ms + later) }
	e := ports.Entry{
		Class: ports.Live, Key: key(i), ReceivedMs: ms + int64(step), Host: Host, Actor: "bench", Origin: ports.OriginHTTP,
	}
	ident := func() {
		e.EventGUID = uuid.NewSHA1(uuid.NameSpaceOID, []byte(e.Key+strconv.Itoa(step))).String()
	}
	fill := strings.Repeat("The quick brown fox jumps over the lazy dog && back. ", 8)
	switch step {
	case 0:
		e.Action = ports.UpsertWorkItem
		e.Record = fmt.Appendf(nil, `{"WorkItemHash":%q,"RunHash":"run-lib-data-pipeline-%d","RunID":"rn-%d","NodeHash":"transform-rows","OperationHash":"lib-data-pipeline","Capability":"Shell","Action":"Execute","Settings":{"Command":"python3 transform.py --input rows-%d.csv","Parameters":"--verbose","InputData":""},"AffinityKey":"","RequireAffinityMatch":false,"AssignedBeaconID":null,"Status":"Pending","TimeoutMs":30000,"CreatedAt":%q,"EnqueuedAt":%q,"AssignedAt":null,"DispatchedAt":null,"StartedAt":null,"ClaimedAt":null,"CompletedAt":null,"CanceledAt":null,"CancelRequested":false,"CancelReason":"","LastEventAt":%q,"QueueWaitMs":0,"Priority":0,"Health":null,"HealthLabel":"Unknown","HealthReason":"","HealthComputedAt":null,"Result":null,"AttemptNumber":0,"MaxAttempts":1,"RetryBackoffMs":5000,"RetryAfter":null,"LastError":null}`,
			e.Key, ms/10, i/20, i, at(0), at(0), at(0))
	case 1:
		e.Action = ports.AppendEvent
		ident()
		e.Record = fmt.Appendf(nil, `{"WorkItemHash":%q,"RunID":"rn-%d","EventType":"enqueued","FromStatus":"","ToStatus":"Pending","Payload":{"Capability":"Shell","Action":"Execute","Priority":0,"AffinityKey":"","Note":%q}}`, e.Key, i/20, fill)
	case 2:
		e.Action = ports.UpdateWorkItem
		e.Record = fmt.Appendf(nil, `{"Status":"Dispatched","AssignedBeaconID":"bcn-worker-%d","AssignedAt":%q,"DispatchedAt":%q,"QueueWaitMs":%d,"AttemptNumber":1,"LastEventAt":%q,"Settings":{"Command":"python3 transform.py --input rows-%d.csv","Parameters":"--verbose","InputData":"","Note":%q}}`,
			i%16, at(2), at(2), i%50, at(2), i, fill)
	case 3:
		e.Action = ports.UpdateWorkItem
		e.Record = fmt.Appendf(nil, `{"Status":"Complete","CompletedAt":%q,"LastEventAt":%q,"Result":{"Outputs":{"StdOut":"%d rows","ExitCode":0},"Log":["Command executed",%q]}}`,
			at(3), at(3), i, fill)
	case 4:
		e.Action = ports.AppendEvent
		ident()
		e.Record = fmt.Appendf(nil, `{"WorkItemHash":%q,"RunID":"rn-%d","EventType":"completed","FromStatus":"Running","ToStatus":"Complete","BeaconID":"bcn-worker-%d","Payload":{"DurationMs":%d,"Note":%q}}`, e.Key, i/20, i%16, i%900, fill)
	default:
		e.Action, e.Number = ports.UpdateAttemptOutcome, 1
		e.Record = fmt.Appendf(nil, `{"CompletedAt":%q,"Outcome":"Complete","DurationMs":%d,"Note":%q}`, at(5), i%900, fill)
	}
	return e
}
