package core

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"holdfast/ports"
)

// Followers with a retention of their own.

// Prune removes what ended before a time from the mirror's disk, some at a time.
func (m *mirror) Prune(ctx context.Context, q ports.PruneQuery) (pruned ports.Pruned, _ error) {
	defer m.slot("prune")()
	r, err := m.serve(ctx)
	if err != nil {
		return pruned, err
	}
	m.mu.Lock()
	takes := m.pausePrune
	m.mu.Unlock()
	if err := m.waits(ctx, r, takes); err != nil {
		return pruned, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pruned = append(m.pruned, q.Before)
	if m.pruneErr != nil {
		return pruned, m.pruneErr
	}
	const atOnce = 3
	for at, row := range m.disk.rows {
		record, _ := recordOf(&row)
		if end := endOf(at.kind, record); end == "" || end >= ports.KeyOfTime(q.Before) {
			continue
		}
		if pruned.Items+pruned.Manifests == atOnce {
			pruned.More = true
			break
		}
		delete(m.disk.rows, at)
		if at.kind == ports.KindManifest {
			pruned.Manifests++
			continue
		}
		pruned.Items++
		for other := range m.disk.rows {
			if m.disk.rows[other].Key == row.Key && other.kind != ports.KindManifest {
				delete(m.disk.rows, other)
				pruned.Events++
			}
		}
	}
	return pruned, nil
}

const ownRetention = 24 * time.Hour

// thin is a stage with a follower "mirror" that keeps finished history for a day; "young" and "old" are in it, the older one ended
// two days ago.
func thin(t *testing.T, prepare func(s *stage), scene func(t *testing.T, s *stage)) {
	t.Helper()
	playWith(t, func(s *stage) {
		s.follows("mirror", func(m *mirror) { m.prunes = true })
		s.config.Followers[0].Retention = ownRetention
		s.config.Route = []string{"mirror", "local"}
		if prepare != nil {
			prepare(s)
		}
	}, func(t *testing.T, s *stage) {
		s.finished("old", 48*time.Hour)
		s.finished("young", time.Minute)
		s.catchesUp("mirror", 5*time.Second)
		scene(t, s)
	})
}

// finished writes an item with an event, and a manifest, which ended some time ago.
func (s *stage) finished(key string, ago time.Duration) {
	s.t.Helper()
	at := time.Now().Add(-ago).UTC().Format(time.RFC3339)
	s.does(call(ports.UpsertWorkItem, `{"WorkItem":{"WorkItemHash":%q,"Status":"Complete","EnqueuedAt":%q,"CompletedAt":%[2]q}}`, key, at), Done)
	s.does(call(ports.AppendEvent, `{"Event":{"WorkItemHash":%q,"EventType":"Done","EmittedAt":%q}}`, key, at), Done)
	s.does(call(ports.UpdateWorkItem, `{"WorkItemHash":%q,"Patch":{"LastEventAt":%q}}`, key, at), Done)
	s.does(call(ports.UpsertManifest, `{"Manifest":{"Hash":%q,"Status":"Complete","StartTime":%q,"StopTime":%[2]q}}`, key, at), Done)
}

// rowsIn counts the records of a list.
func rowsIn(t *testing.T, a Answer) int {
	t.Helper()
	var rows []json.RawMessage
	if err := json.Unmarshal(a.Value, &rows); err != nil {
		t.Fatalf("%s: %v", a.AppendJSON(nil), err)
	}
	return len(rows)
}

func TestAFollowersOwnRetentionRemovesWhatTheLocalStoreKeeps(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	thin(t, func(s *stage) { s.config.Logger = hclog.New(&hclog.LoggerOptions{Output: &log}) }, func(t *testing.T, s *stage) {
		ctx := t.Context()
		if a := s.host.Items(ctx, ports.ItemQuery{}); a.Backend != "mirror" || rowsIn(t, a) != 2 {
			t.Errorf("before, a list is answered %s by %s", a.AppendJSON(nil), a.Backend)
		}
		s.in(2 * time.Minute)
		status := s.follower("mirror", ports.Queue)
		if status.Pruned != 2 || s.follower("mirror", ports.Manifest).Pruned != 1 || status.Retention != "24h0m0s" || time.Since(status.PrunedUntil) > 25*time.Hour {
			t.Errorf("it is told as %+v", status)
		}
		if !strings.Contains(log.String(), "a backend was pruned by its own retention: name=mirror items=1") {
			t.Errorf("the log says\n%s", log.String())
		}
		s.answersWhole(t)
		v := s.verify("local", "mirror")
		if !v.Equal() || v.Pruned != 3 || v.Compared != 3 {
			t.Errorf("a comparison finds %+v", v)
		}
		if v := s.verify("mirror", "local"); !v.Equal() || v.Pruned != 3 {
			t.Errorf("the other way a comparison finds %+v", v)
		}
		s.mirror("mirror").lacks(itemRow("young", "", 0))
		if v := s.verify("local", "mirror"); v.OnlyA != 1 || v.Pruned != 3 {
			t.Errorf("what is missing for no reason is told as %+v", v)
		}
		s.again()
		s.catchesUp("mirror", 5*time.Second)
		s.answersWhole(t)
		s.config.Followers[0].Retention = 0 // what is gone stays so
		s.again()
		s.catchesUp("mirror", 5*time.Second)
		s.answersWhole(t)
		if err := s.host.Resync("mirror"); err != nil {
			t.Fatal(err)
		}
		s.catchesUp("mirror", time.Minute)
		s.equal("mirror")
		if a := s.host.Items(ctx, ports.ItemQuery{}); a.Backend != "mirror" || rowsIn(t, a) != 2 {
			t.Errorf("with everything again a list is answered %s by %s", a.AppendJSON(nil), a.Backend)
		}
	})
}

// answersWhole expects that nobody notices what the mirror lacks.
func (s *stage) answersWhole(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	for what, a := range map[string]Answer{
		"the items": s.host.Items(ctx, ports.ItemQuery{}), "the manifests": s.host.Manifests(ctx, ports.ManifestQuery{}),
	} {
		if a.Backend != "local" || rowsIn(t, a) != 2 || a.Stale {
			t.Errorf("%s are answered %s by %s", what, a.AppendJSON(nil), a.Backend)
		}
	}
	for key, by := range map[string]string{"old": "local", "young": "mirror"} {
		if key == "young" && !s.mirrorHas("young") {
			by = "local"
		}
		if a := s.host.Item(ctx, key); a.Backend != by || a.Situation != Done || a.Stale {
			t.Errorf("the item %s is answered %s by %s", key, a.AppendJSON(nil), a.Backend)
		}
		if a := s.host.Events(ctx, ports.EventQuery{Key: key}); a.Backend != "local" || rowsIn(t, a) != 1 {
			t.Errorf("the events of %s are answered %s by %s", key, a.AppendJSON(nil), a.Backend)
		}
	}
}

func (s *stage) mirrorHas(key string) bool {
	_, has := s.mirror("mirror").look().rows[place{kind: ports.KindItem, key: key}]
	return has
}

func TestAThinFollowerNeverSaysThatThereIsNothing(t *testing.T) {
	t.Parallel()
	thin(t, nil, func(t *testing.T, s *stage) {
		s.in(2 * time.Minute)
		s.store.back = 0
		s.store.kill(nil)
		s.in(time.Second)
		ctx := t.Context()
		if a := s.host.Item(ctx, "young"); a.Situation != Done || a.Backend != "mirror" {
			t.Errorf("what it has is answered %s by %s", a.AppendJSON(nil), a.Backend)
		}
		for what, a := range map[string]Answer{
			"an item":    s.host.Item(ctx, "old"),
			"the items":  s.host.Items(ctx, ports.ItemQuery{}),
			"the events": s.host.Events(ctx, ports.EventQuery{Key: "old"}),
			"a manifest": s.host.Manifest(ctx, "old"),
		} {
			if a.Situation != Unavailable {
				t.Errorf("without the local store %s is answered %s by %s", what, a.AppendJSON(nil), a.Backend)
			}
		}
		s.store.start()
	})
}

func TestARetentionThatIsNoShorterThanTheLocalOneLeavesItsListsToTheFollower(t *testing.T) {
	t.Parallel()
	thin(t, func(s *stage) { s.config.Retention = ownRetention }, func(t *testing.T, s *stage) {
		s.in(2 * time.Minute)
		if !s.until(time.Second, func() bool { return !s.mirrorHas("old") }) {
			t.Error("it was not pruned")
		}
		if a := s.host.Items(t.Context(), ports.ItemQuery{}); a.Backend != "mirror" || rowsIn(t, a) != 1 {
			t.Errorf("the items are answered %s by %s", a.AppendJSON(nil), a.Backend)
		}
	})
}

func TestAPruneOfAFollowerThatFailsIsToldOnceAndTriedAnHourLater(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	thin(t, func(s *stage) {
		s.config.Logger = hclog.New(&hclog.LoggerOptions{Output: &log})
		s.mirrors[0].pruneErr = ports.Errorf(ports.Unavailable, "mirror", "not now")
	}, func(t *testing.T, s *stage) {
		s.in(50 * time.Minute)
		m := s.mirror("mirror")
		if n := strings.Count(log.String(), "prune a backend by its own retention: name=mirror"); n != 1 || len(m.pruned) != 1 {
			t.Errorf("after %d tries it is told %d times:\n%s", len(m.pruned), n, log.String())
		}
		s.does(upsert("a", "Pending"), Done)
		s.in(time.Second)
		if a := s.host.Item(t.Context(), "a"); a.Backend != "mirror" {
			t.Errorf("a read is answered by %s", a.Backend)
		}
		m.change(func(m *mirror) { m.pruneErr = nil })
		s.in(15 * time.Minute)
		if s.mirrorHas("old") || !s.mirrorHas("young") {
			t.Error("it was not tried again")
		}
	})
}

func TestAFollowerThatIsNotReadyIsNotPruned(t *testing.T) {
	t.Parallel()
	thin(t, nil, func(t *testing.T, s *stage) {
		m := s.mirror("mirror")
		m.change(func(m *mirror) { m.probe = ports.Errorf(ports.Unavailable, "mirror", "not now") })
		s.in(2 * time.Hour)
		if len(m.pruned) != 0 || !s.mirrorHas("old") {
			t.Errorf("it was pruned at %v", m.pruned)
		}
		m.change(func(m *mirror) { m.probe = nil })
		s.in(time.Minute)
		if s.mirrorHas("old") {
			t.Error("it was not pruned when it was ready")
		}
	})
}

func TestAListThatAPruneRunsIntoIsAnsweredByTheLocalStore(t *testing.T) {
	t.Parallel()
	thin(t, nil, func(t *testing.T, s *stage) {
		m := s.mirror("mirror")
		m.change(func(m *mirror) { m.delays = 300 * time.Millisecond })
		for !s.until(0, func() bool { return !s.mirrorHas("old") }) {
			if a := s.host.Items(t.Context(), ports.ItemQuery{}); rowsIn(t, a) != 2 {
				t.Fatalf("a list is answered %s by %s", a.AppendJSON(nil), a.Backend)
			}
		}
	})
}

func TestAWorkItemThatChangesAfterItWasPrunedIsCopiedWhole(t *testing.T) {
	t.Parallel()
	thin(t, nil, func(t *testing.T, s *stage) {
		s.in(2 * time.Minute)
		if s.mirrorHas("old") {
			t.Fatal("it was not pruned")
		}
		now := time.Now().UTC().Format(time.RFC3339)
		s.does(call(ports.UpdateWorkItem, `{"WorkItemHash":"old","Patch":{"LastEventAt":%q}}`, now), Done)
		s.in(time.Second)
		s.catchesUp("mirror", 5*time.Second)
		if v := s.verify("local", "mirror"); !v.Equal() || v.Pruned != 1 { // its manifest
			t.Errorf("a comparison finds %+v", v)
		}
		if a := s.host.Item(t.Context(), "old"); a.Backend != "mirror" {
			t.Errorf("it is answered %s by %s", a.AppendJSON(nil), a.Backend)
		}
	})
}
