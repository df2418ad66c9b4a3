package meadowproxy

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"holdfast/adapters/journal"
	"holdfast/adapters/meadowproxy/stock"
	"holdfast/core"
	"holdfast/internal/reference"
	"holdfast/ports"
)

// A whole core with the backend as its follower, over stock databeacons.

type stage struct {
	t       *testing.T
	mesh    *stock.Mesh
	backend *Backend
	host    *core.Host
	written atomic.Int64
	acked   sync.Map // key -> true
}

// play starts a host. Nobody is in its mesh and nothing is assigned.
func play(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, mesh: stock.NewMesh()}
	t.Cleanup(s.mesh.Close)
	s.start(t.TempDir())
	return s
}

func (s *stage) start(dir string) {
	t := s.t
	t.Helper()
	s.backend = New(func(ports.Configuration) (ports.Mesh, error) { return s.mesh, nil })
	if err := s.backend.Configure(t.Context(), ports.Configuration{Name: "databeacon", DataDir: dir}); err != nil {
		t.Fatal(err)
	}
	var disks reference.Disks
	local := disks.New()
	if err := local.Configure(t.Context(), ports.Configuration{DataDir: dir}); err != nil {
		t.Fatal(err)
	}
	state, err := journal.OpenState(dir, journal.StateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	journals := map[ports.Family]ports.Journal{}
	for _, f := range ports.Families {
		if journals[f], err = journal.Open(journal.Options{Dir: dir, Family: f}); err != nil {
			t.Fatal(err)
		}
	}
	s.host, err = core.New(core.Config{
		Version: "test", Ack: core.AckLocal, State: state, Journals: journals, Logger: hclog.NewNullLogger(), Route: []string{"databeacon", "local"},
		Local:     core.Local{Name: "local", Kind: "reference", Store: local, Health: func() core.Health { return core.Health{Running: true} }},
		Followers: []core.Follower{{Name: "databeacon", Kind: "meadowproxy", Store: &described{s.backend}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- s.host.Run(ctx) }()
	var lookout sync.WaitGroup
	lookout.Go(func() { s.host.LookOut(ctx, s.mesh) })
	t.Cleanup(func() {
		stop()
		lookout.Wait()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		for _, j := range journals {
			_ = j.Close()
		}
		_, _, _ = state.Close(), local.Close(), s.backend.Close()
	})
	s.eventually("a host that is ready", func() bool { return s.host.Ready() == nil })
}

// described declares the powers, as the wire does for a plugin.
type described struct{ *Backend }

func (d *described) Describe(ctx context.Context) (ports.Description, error) {
	description, err := d.Backend.Describe(ctx)
	description.Powers = ports.PowersOf(d.Backend)
	return description, err
}

// databeacon starts one with some connections, each to a database of its own, and connects it.
func (s *stage) databeacon(name string, connections int) *stock.Databeacon {
	s.t.Helper()
	db, err := stock.Open(stock.Options{Name: name, Dir: s.t.TempDir()})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = db.Close() })
	for i := range connections {
		if _, err := db.AddConnection(fmt.Sprintf("store %d", i+1), "", true); err != nil {
			s.t.Fatal(err)
		}
	}
	s.mesh.Connect(db)
	return db
}

func (s *stage) assign(beacon string, connection int64) {
	for _, f := range ports.Families {
		s.mesh.Assign(f, beacon, connection)
	}
}

func (s *stage) clear() {
	for _, f := range ports.Families {
		s.mesh.Unassign(f)
	}
}

func (s *stage) eventually(what string, is func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 3*time.Minute)
	defer cancel()
	for !is() {
		if pause(ctx, 50*time.Millisecond); ctx.Err() != nil {
			s.t.Fatalf("%s: never; the databeacon is told as %+v and %+v", what, s.follower(ports.Queue), s.follower(ports.Manifest))
		}
	}
}

func (s *stage) follower(f ports.Family) core.FollowerStatus {
	for _, b := range s.host.Status().Backends {
		for _, w := range b.Followers {
			if b.Name == "databeacon" && w.Family == f {
				return w
			}
		}
	}
	return core.FollowerStatus{}
}

// becomes waits until both families are in a public state.
func (s *stage) becomes(state string) {
	s.t.Helper()
	s.eventually(state, func() bool {
		return !slices.ContainsFunc(ports.Families, func(f ports.Family) bool { return s.follower(f).State != state })
	})
}

// caughtUp waits until the databeacon has everything.
func (s *stage) caughtUp() {
	s.t.Helper()
	s.eventually("a databeacon that has everything", func() bool {
		return !slices.ContainsFunc(ports.Families, func(f ports.Family) bool {
			w := s.follower(f)
			return w.Phase != "ready" || w.Behind > 0
		})
	})
}

// equal waits until the databeacon has everything, and verifies it.
func (s *stage) equal() {
	s.t.Helper()
	s.caughtUp()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	v, err := s.host.Verify(ctx, "local", "databeacon", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if !v.Equal() {
		s.t.Errorf("%+v", v)
	}
	s.acked.Range(func(key, _ any) bool {
		if a := s.host.Item(ctx, key.(string)); a.Failed() {
			s.t.Errorf("%v was acknowledged and is not there: %s", key, a.AppendJSON(nil))
			return false
		}
		return true
	})
}

// write writes an item with an event and an attempt, and a manifest.
func (s *stage) write(prefix string) {
	s.t.Helper()
	n := s.written.Add(1)
	key := fmt.Sprintf("%s-%d", prefix, n)
	for action, settings := range map[string]any{
		"QP_UpsertWorkItem": map[string]any{"WorkItem": map[string]any{"WorkItemHash": key, "Status": "Running", "RunID": "run", "Settings": map[string]any{"n": n}}},
		"QP_AppendEvent":    map[string]any{"Event": map[string]any{"WorkItemHash": key, "EventType": "started"}},
		"QP_InsertAttempt":  map[string]any{"Attempt": map[string]any{"WorkItemHash": key, "AttemptNumber": 1, "Outcome": "Dispatched"}},
		"MS_UpsertManifest": map[string]any{"Manifest": map[string]any{"Hash": key, "Status": "Running"}},
	} {
		text, err := json.Marshal(map[string]any{"Action": action, "Settings": settings})
		if err != nil {
			s.t.Error(err)
			return
		}
		call, err := core.ParseCall(text)
		if err != nil {
			s.t.Error(err)
			return
		}
		call.Source = core.Source{Origin: ports.OriginHTTP}
		if a := s.host.Do(s.t.Context(), call); a.Failed() {
			s.t.Errorf("%s of %s: %s", action, key, a.AppendJSON(nil))
			return
		}
	}
	s.acked.Store(key, true)
}

func (s *stage) writes(prefix string, n int) {
	s.t.Helper()
	for range n {
		s.write(prefix)
	}
}

// load writes until it is ended, though not for ever: what is written must be copied in the end, also on a busy machine.
func (s *stage) load(prefix string) (end func()) {
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for range 2 {
		writers.Go(func() {
			for range 100 {
				select {
				case <-stop:
					return
				default:
					s.write(prefix)
					pause(s.t.Context(), 20*time.Millisecond)
				}
			}
		})
	}
	return func() {
		close(stop)
		writers.Wait()
	}
}

// like counts the rows of a table whose key begins with a prefix, in the database of a connection.
func (s *stage) like(db *stock.Databeacon, connection int64, prefix string) (n int) {
	s.t.Helper()
	for _, t := range ports.Tables {
		var rows int
		query := fmt.Sprintf(`SELECT count(*) FROM %q WHERE %q LIKE ?`, t.Name, t.Key)
		if err := db.Database(connection).QueryRow(query, prefix+"-%").Scan(&rows); err != nil {
			s.t.Fatal(err)
		}
		n += rows
	}
	return n
}
