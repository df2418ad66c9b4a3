package bench

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// The workload: work items as a hub sends them while they run, all of one shape so that sizes can be compared.

const (
	perItem     = 6  // writes of an item
	interleaved = 64 // items in work at a time
)

var firstItem = time.Date(2026, 11, 30, 2, 12, 14, 0, time.UTC)

// item is the n-th item of a workload: its key and its writes, in order.
type item struct {
	hash  string
	lines [perItem][]byte
}

// stdout pads a line to the mean length of real ones.
var stdout = strings.Repeat(`0123456789 abcdefghij \"quoted\"\n`, 7)

func newHash(workload string, n int) string {
	return fmt.Sprintf("wi-run-%s-%08d-dispatch-%08d", workload, n/20, n)
}

func newItem(workload string, n int) item {
	hash := newHash(workload, n)
	at := func(ms int) string {
		return firstItem.Add(time.Duration(n*10+ms) * time.Millisecond).Format("2006-01-02T15:04:05.000Z")
	}
	beside := func(step int) string {
		return fmt.Sprintf(`"QueueMetadata":{"RunID":"","WorkItemHash":"wi-unknown-unknown-%d-%d","EnqueuedAt":"%s","DispatchedAt":"%s","QueueWaitMs":0,"AttemptNumber":1,"HubInstanceID":""}`, n, step, at(step), at(step))
	}
	beacon := fmt.Sprintf("bcn-worker-%02d-1796004734", n%10)
	return item{hash, [perItem][]byte{
		upsert(hash, n, "Pending", "", at(0), beside(0)),
		fmt.Appendf(nil, `{"Action":"QP_AppendEvent","Settings":{"Event":{"WorkItemHash":"%s","RunID":"run-%s-%d","EventType":"enqueued","FromStatus":"","ToStatus":"Pending","Payload":{"Capability":"Shell","Action":"Execute","Priority":0,"AffinityKey":""}},%s}}`, hash, workload, n/20, beside(1)),
		fmt.Appendf(nil, `{"Action":"QP_UpdateWorkItem","Settings":{"WorkItemHash":"%s","Patch":{"Status":"Running","AssignedBeaconID":"%s","AssignedAt":"%s","DispatchedAt":"%s","StartedAt":"%s","LastEventAt":"%s","AttemptNumber":1,"QueueWaitMs":2},%s}}`, hash, beacon, at(2), at(2), at(2), at(2), beside(2)),
		fmt.Appendf(nil, `{"Action":"QP_UpdateWorkItem","Settings":{"WorkItemHash":"%s","Patch":{"Status":"Complete","CompletedAt":"%s","LastEventAt":"%s","Result":{"Outputs":{"StdOut":"%s","ExitCode":0,"Result":"%s"},"Log":["Command executed: uname -a"]}},%s}}`, hash, at(13), at(13), stdout, stdout, beside(3)),
		fmt.Appendf(nil, `{"Action":"QP_AppendEvent","Settings":{"Event":{"WorkItemHash":"%s","RunID":"run-%s-%d","EventType":"completed","FromStatus":"Running","ToStatus":"Complete","BeaconID":"%s","Payload":{"BeaconID":"%s","DurationMs":11,"CompletedAt":"%s"}},%s}}`, hash, workload, n/20, beacon, beacon, at(13), beside(4)),
		fmt.Appendf(nil, `{"Action":"QP_UpdateAttemptOutcome","Settings":{"WorkItemHash":"%s","AttemptNumber":1,"Patch":{"CompletedAt":"%s","Outcome":"Complete","DurationMs":10},%s}}`, hash, at(13), beside(5)),
	}}
}

func upsert(hash string, n int, status, beacon, at, beside string) []byte {
	return fmt.Appendf(nil, `{"Action":"QP_UpsertWorkItem","Settings":{"WorkItem":{"WorkItemHash":"%s","RunHash":"run-lib-beacon-remote-command-%d","RunID":"run-%d","NodeHash":"brc-dispatch","OperationHash":"lib-beacon-remote-command","Capability":"Shell","Action":"Execute","Settings":{"Command":"uname -a","Parameters":"","InputData":""},"AffinityKey":"","RequireAffinityMatch":false,"AssignedBeaconID":"%s","Status":"%s","TimeoutMs":30000,"CreatedAt":"%s","EnqueuedAt":"%s","AssignedAt":null,"DispatchedAt":null,"StartedAt":null,"ClaimedAt":null,"CompletedAt":null,"CanceledAt":null,"CancelRequested":false,"CancelReason":"","LastEventAt":"%s","QueueWaitMs":0,"Priority":0,"Health":null,"HealthLabel":"Unknown","HealthReason":"","HealthComputedAt":null,"Result":null,"AttemptNumber":0,"MaxAttempts":1,"RetryBackoffMs":5000,"RetryAfter":null,"LastError":null},%s}}`,
		hash, n/20, n/20, beacon, status, at, at, at, beside)
}

// bulk gives the lines of items from..to, those of 64 items interleaved, in bodies of so many lines.
func bulk(workload string, from, to, lines int) (bodies [][]byte) {
	var body bytes.Buffer
	in := 0
	for ; from < to; from += interleaved {
		var block []item
		for n := from; n < min(from+interleaved, to); n++ {
			block = append(block, newItem(workload, n))
		}
		for step := range perItem {
			for _, it := range block {
				body.Write(it.lines[step])
				body.WriteByte('\n')
				if in++; in == lines {
					bodies = append(bodies, bytes.Clone(body.Bytes()))
					body.Reset()
					in = 0
				}
			}
		}
	}
	if in > 0 {
		bodies = append(bodies, body.Bytes())
	}
	return bodies
}
