package bench

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"holdfast/internal/e2e"
)

// listStart is when the first item of the lists was enqueued; items come a second apart.
var listStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// listItems is the upserts of items from..to as one body: finished ones but for two in a hundred, 20 to a run, on 16 beacons.
func listItems(from, to int) []byte {
	var body bytes.Buffer
	for n := from; n < to; n++ {
		status := "Complete"
		switch n % 100 {
		case 37:
			status = "Pending"
		case 73:
			status = "Running"
		}
		at := listStart.Add(time.Duration(n) * time.Second).Format("2006-01-02T15:04:05.000Z")
		fmt.Fprintf(&body, `{"Action":"QP_UpsertWorkItem","Settings":{"WorkItem":{"WorkItemHash":"wi-list-%d","RunID":"rn-%d","RunHash":"run-list-%d","NodeHash":"transform-rows","OperationHash":"lib-data-pipeline","Capability":"Shell","Action":"Execute","Settings":{"Command":"true"},"AssignedBeaconID":"bcn-worker-%d","Status":"%s","EnqueuedAt":"%s","LastEventAt":"%s","Priority":0,"AttemptNumber":1,"MaxAttempts":1}}}`+"\n",
			n, n/20, n/20, n%16, status, at, at)
	}
	return body.Bytes()
}

// listQueries are the lists that are measured, each a page of 50, newest first.
var listQueries = []struct {
	name     string
	query    url.Values
	promised bool
}{
	{"all", url.Values{}, true},
	{"Status, 1 in 100", url.Values{"status": {"Pending"}}, true},
	{"Status, 98 in 100", url.Values{"status": {"Complete"}}, true},
	{"Status, none", url.Values{"status": {"Canceled"}}, true},
	{"two Statuses", url.Values{"status": {"Pending", "Running"}}, true},
	{"RunID", url.Values{"run_id": {"rn-7"}}, true},
	{"AssignedBeaconID", url.Values{"assigned_beacon_id": {"bcn-worker-5"}}, true},
	{"AssignedBeaconID and Status", url.Values{"assigned_beacon_id": {"bcn-worker-5"}, "status": {"Pending"}}, false},
}

// BenchmarkLists tells how lists grow with the number of items.
func BenchmarkLists(b *testing.B) {
	const name = "Lists"
	b.ReportMetric(0, "ns/op")
	sizes := []int{10_000, 100_000}
	if *long {
		sizes = append(sizes, 1_000_000)
	}
	host := e2e.Start(b)
	l := newLoad(host.URL)
	defer l.http.CloseIdleConnections()
	from := 0
	smaller := map[string]float64{}
	for at, size := range sizes {
		var fill [][]byte
		for ; from < size; from += 10_000 {
			fill = append(fill, listItems(from, from+10_000))
			if len(fill) == 10 || from+10_000 == size {
				l.bulk(b, fill)
				fill = nil
			}
		}
		for _, list := range listQueries {
			for range *rounds {
				m := callers(b, 1, 50, func(_, _ int, answer *bytes.Buffer) error {
					if err := l.do(http.MethodGet, "/v1/work-items?"+list.query.Encode(), "", nil, answer); err != nil {
						return err
					}
					return succeeded(answer.Bytes(), 1)
				})
				f := table.add(name, fmt.Sprintf("%s, of %d items", list.name, size), "ms", m.percentile(0.5).Seconds()*1e3)
				if at > 0 {
					f.of(fmt.Sprintf("%d items", sizes[at-1]), smaller[list.name])
				}
				if at > 0 && list.promised {
					f.target(target{What: "ratio", Most: 2})
				}
			}
			all := table.figure(name, fmt.Sprintf("%s, of %d items", list.name, size))
			smaller[list.name] = median(all.Values)
		}
	}
	if err := table.print(name); err != nil {
		b.Fatal(err)
	}
}
