package acceptance

import (
	"bytes"
	"fmt"
	"testing"

	"holdfast/internal/e2e"
	"holdfast/internal/model"
)

// What the tests of followers share: a host with a mirror of its local store, and changes of every kind for both.

// mirrored is such a host, and what its history must be.
type mirrored struct {
	*history
	host *e2e.Host
}

func startMirrored(t *testing.T, names ...string) *mirrored {
	t.Helper()
	return startMirroredWith(t, "", names...)
}

// startMirroredWith is startMirrored with more of a configuration.
func startMirroredWith(t *testing.T, more string, names ...string) *mirrored {
	t.Helper()
	setup := e2e.Mirrored(names...)
	setup.Config = more + setup.Config
	h := e2e.StartWith(t, setup)
	return &mirrored{history: historyOf(t, h), host: h}
}

// equal waits until the followers have everything, and holds them and the local store against the model.
func (m *mirrored) equal(names ...string) {
	m.Helper()
	m.host.AwaitEqual(m.T)
	for _, name := range names {
		m.host.Verify(m.T, "local", name)
	}
	m.client.Answered()
	e2e.Compare(m.T, m.client, m.model)
	if by := m.client.Answered(); len(by) != 1 || by[names[0]] == 0 {
		m.Errorf("reads are answered by %v, want %s alone", by, names[0])
	}
}

// change sends n changes as one stream, and tells the model.
func (m *mirrored) change(prefix string, n int) {
	m.Helper()
	m.stream(prefix, changes(prefix, n))
}

const (
	keysAtOnce = 50 // under way together
	stepsOfKey = 10
)

// changes is a stream of n changes of new keys and of those before them: items, patches, events with and without an id,
// attempts, manifests and removals. All times are the same, so that no order can be had from them.
func changes(prefix string, n int) []byte {
	const at = "2026-03-01T12:00:00Z"
	var lines bytes.Buffer
	add := func(action, format string, args ...any) {
		lines.Write(append(e2e.Line(action, fmt.Appendf(nil, format, args...)), '\n'))
	}
	for i := range n {
		number := i/(keysAtOnce*stepsOfKey)*keysAtOnce + i%keysAtOnce
		key := fmt.Sprintf("%s-%d", prefix, number)
		older := fmt.Sprintf("%s-%d", prefix, number*7/10)
		switch i / keysAtOnce % stepsOfKey {
		case 0:
			add("QP_UpsertWorkItem", `{"WorkItem":{"WorkItemHash":%q,"RunID":"r","Status":"Pending","EnqueuedAt":%q,"LastEventAt":%q,"Settings":{ "n" : %d.0},"Odd":null}}`, key, at, at, i)
		case 1:
			add("QP_AppendEvent", `{"Event":{"WorkItemHash":%q,"EventType":"enqueued","EmittedAt":%q,"Payload":{"n":%d}}}`, key, at, i)
		case 2:
			add("MS_UpsertManifest", `{"Manifest":{"Hash":"run-%s","Status":"Running","StartTime":%q,"Output":[ %d ]}}`, key, at, i)
		case 3:
			add("QP_UpdateWorkItem", `{"WorkItemHash":%q,"Patch":{"Status":"Dispatched","DispatchedAt":%q,"Priority":%d}}`, key, at, i)
		case 4:
			add("QP_InsertAttempt", `{"Attempt":{"WorkItemHash":%q,"AttemptNumber":1,"BeaconID":"b-%d","DispatchedAt":%q}}`, key, i%7, at)
		case 5:
			add("QP_AppendEvent", `{"Event":{"WorkItemHash":%q,"EventGUID":"%s-%d","EventType":"started","EmittedAt":%q,"Payload":"%d"}}`, key, key, i, at, i)
		case 6:
			add("QP_UpdateAttemptOutcome", `{"WorkItemHash":%q,"AttemptNumber":%d,"Patch":{"Outcome":"Complete","CompletedAt":%q,"DurationMs":%d}}`, key, 1+i%2, at, i)
		case 7:
			add("QP_UpdateWorkItem", `{"WorkItemHash":%q,"Patch":{"Progress":%d,"LastEventAt":%q}}`, older, i, at)
		case 8:
			add("QP_UpdateWorkItem", `{"WorkItemHash":%q,"Patch":{"Status":"Complete","CompletedAt":%q,"Result":{"n":%d}}}`, key, at, i)
		case 9:
			if i%3 == 0 {
				add("MS_RemoveManifest", `{"RunHash":"run-%s"}`, older)
			} else {
				add("MS_UpsertManifest", `{"Manifest":{"Hash":"run-%s","Status":"Complete","StopTime":%q,"Output":[%d]}}`, older, at, i)
			}
		}
	}
	return lines.Bytes()
}

// compareTheirs holds what a model has of its own against a host that has more.
func compareTheirs(t *testing.T, client *e2e.Client, m *model.Model) {
	t.Helper()
	for _, hash := range m.Keys() {
		e2e.CompareKey(t, client, m, hash)
	}
	for _, hash := range m.Manifests() {
		e2e.CompareManifest(t, client, m, hash)
	}
}
