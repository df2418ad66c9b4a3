package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"holdfast/internal/model"
)

// CallerLimit is the 2 s that a caller waits at most, and what a busy machine adds.
const CallerLimit = 2*time.Second + time.Second

// Workload is some callers that write at once, each about keys of its own, one write after the other. A write that has no
// answer, or is not acknowledged, is sent again as the same request. What was acknowledged, and nothing else, goes into the
// model. What it found is to be read after End.
type Workload struct {
	Client   *Client
	Model    *model.Model
	Writes   int
	Deferred int
	Failures []string // answers that were no acknowledgment
	Slowest  time.Duration

	t    testing.TB
	pace time.Duration

	stop    context.CancelFunc
	stopped context.Context
	writers sync.WaitGroup
	mu      sync.Mutex
	keys    []string
	runs    []string
}

const (
	callers  = 8
	keysEach = 2
)

// StartWorkload starts the callers, each of which writes at a pace.
func StartWorkload(t testing.TB, client *Client, pace time.Duration) *Workload {
	w := &Workload{t: t, Client: client, pace: pace, Model: model.New(model.Options{})}
	w.stopped, w.stop = context.WithCancel(t.Context())
	t.Cleanup(client.Close)
	t.Cleanup(w.End)
	for caller := range callers {
		for key := range keysEach {
			w.keys = append(w.keys, fmt.Sprintf("wi-%d-%d", caller, key))
			w.runs = append(w.runs, fmt.Sprintf("run-%d-%d", caller, key))
		}
	}
	for caller := range callers {
		w.writers.Go(func() { w.write(caller) })
	}
	return w
}

// End lets every caller get the answer that it waits for.
func (w *Workload) End() {
	w.stop()
	w.writers.Wait()
}

// write is one caller.
func (w *Workload) write(caller int) {
	tick := time.NewTicker(w.pace)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
		case <-w.stopped.Done():
			return
		}
		action, settings := w.next(caller, n)
		for try := 0; !w.send(fmt.Sprintf("%d-%d", caller, n), action, settings); try++ {
			if try > 3000 {
				w.mu.Lock()
				w.Failures = append(w.Failures, "a write was never acknowledged: "+string(settings))
				w.mu.Unlock()
				return
			}
			<-tick.C
		}
	}
}

// next is the caller's n-th write.
func (w *Workload) next(caller, n int) (action string, settings json.RawMessage) {
	key := w.keys[caller*keysEach+n%keysEach]
	run := w.runs[caller*keysEach+n%keysEach]
	at := time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	format := func(format string, args ...any) json.RawMessage { return fmt.Appendf(nil, format, args...) }
	if n < keysEach {
		return "QP_UpsertWorkItem", format(`{"WorkItem":{"WorkItemHash":%q,"Status":"Pending","Priority":0,"EnqueuedAt":%q,"Settings":{"n" : 1.0}}}`, key, at)
	}
	switch rand.IntN(9) {
	case 0, 1, 2:
		return "QP_AppendEvent", format(`{"Event":{"WorkItemHash":%q,"EventType":"reordered","Payload":{"n":%d}}}`, key, n)
	case 3, 4:
		return "QP_UpdateWorkItem", format(`{"WorkItemHash":%q,"Patch":{"Priority":%d,"LastEventAt":%q}}`, key, n, at)
	case 5:
		return "QP_UpdateAttemptOutcome", format(`{"WorkItemHash":%q,"AttemptNumber":%d,"Patch":{"Outcome":"Error","DurationMs":%d}}`, key, 1+n/20, n)
	case 6:
		return "MS_RemoveManifest", format(`{"RunHash":%q}`, run)
	case 7:
		return "MS_UpsertManifest", format(`{"Manifest":{"Hash":%q,"Status":"Waiting","n":%d}}`, run, n)
	}
	return "QP_UpsertWorkItem", format(`{"WorkItem":{"WorkItemHash":%q,"Status":"Running","Last":%d}}`, key, n)
}

// send makes one call and says whether it was acknowledged.
func (w *Workload) send(key, action string, settings json.RawMessage) bool {
	a, err := w.Client.Send(context.Background(), key, action, settings)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil || !a.Success {
		w.Failures = append(w.Failures, fmt.Sprintf("%s: %v, %s %s", action, err, a.Code, a.Reason))
		return false
	}
	w.Writes++
	w.Slowest = max(w.Slowest, a.Took)
	if a.Deferred {
		w.Deferred++
	}
	w.Model.Apply(action, settings)
	return true
}

// Check holds all that was acknowledged against what the host answers.
func (w *Workload) Check() {
	w.t.Helper()
	for _, hash := range w.keys {
		CompareKey(w.t, w.Client, w.Model, hash)
	}
	for _, run := range w.runs {
		CompareManifest(w.t, w.Client, w.Model, run)
	}
}
