package beacon

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"iter"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"holdfast/adapters/journal"
	"holdfast/adapters/mesh"
	"holdfast/adapters/mesh/stock"
	"holdfast/core"
	"holdfast/internal/model"
	"holdfast/internal/reference"
	"holdfast/ports"
)

// A whole core with the backend as its follower, over the real hub and a stock beacon.

type stage struct {
	t       *testing.T
	hub     *mesh.Hub
	client  stock.BeaconConfig // of the beacon
	store   *stock.Persistence
	worker  *stock.Beacon
	backend *Backend
	local   *reference.Store
	host    *core.Host
	settle  time.Duration                                    // see Backend; 0: a short one
	asked   func(f ports.Family, began time.Time, err error) // hears how the backend's calls end; nil: nobody does
}

// play starts everything; the beacon has so many slots.
func play(t *testing.T, slots int) *stage {
	t.Helper()
	hub, url := serveHub(t)
	s := &stage{t: t, hub: hub, store: stock.NewPersistence(), client: stock.BeaconConfig{ServerURL: url, MaxConcurrent: slots}}
	s.connect()
	s.start(hub)
	return s
}

// start starts the host; the backend reaches the beacons through the mesh given.
func (s *stage) start(m ports.Mesh) {
	t := s.t
	t.Helper()
	dir := t.TempDir()
	s.backend = overWith(t, m, dir, "", cmp.Or(s.settle, hasty))
	var disks reference.Disks
	local := disks.New()
	s.local = local
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
		Version: "test", Ack: core.AckLocal, State: state, Journals: journals, Logger: hclog.NewNullLogger(), Route: []string{"beacon", "local"},
		Local:     core.Local{Name: "local", Kind: "reference", Store: local, Health: func() core.Health { return core.Health{Running: true} }},
		Followers: []core.Follower{{Name: "beacon", Kind: "beacon", Store: &described{s.backend, s.asked}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- s.host.Run(ctx) }()
	var lookout sync.WaitGroup
	lookout.Go(func() { s.host.LookOut(ctx, s.hub) })
	t.Cleanup(func() {
		stop()
		lookout.Wait()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		for _, j := range journals {
			_ = j.Close()
		}
		_ = state.Close()
		_ = local.Close()
	})
	s.eventually("a host that is ready", func() bool { return s.host.Ready() == nil })
}

// connect starts the beacon, another process than before.
func (s *stage) connect() {
	s.t.Helper()
	config := s.client
	config.Name, config.ReconnectInterval = "archive", 50*time.Millisecond
	s.worker = s.store.Beacon(config)
	worker := s.worker
	s.t.Cleanup(worker.Kill)
	if err := worker.Start(within(s.t)); err != nil {
		s.t.Fatal(err)
	}
}

// revive starts a dead beacon again.
func (s *stage) revive() {
	if s.worker.State().Running {
		return
	}
	s.worker.Kill()
	s.connect()
}

func (s *stage) eventually(what string, is func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	for !is() {
		if pause(ctx, 5*time.Millisecond); ctx.Err() != nil {
			s.t.Fatalf("%s: never; the beacon is told as %+v", what, s.host.Status().Backends)
		}
	}
}

func (s *stage) follower(f ports.Family) core.FollowerStatus {
	for _, b := range s.host.Status().Backends {
		for _, w := range b.Followers {
			if b.Name == "beacon" && w.Family == f {
				return w
			}
		}
	}
	return core.FollowerStatus{}
}

// await waits until both families are as wanted.
func (s *stage) await(wanted func(w core.FollowerStatus) bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Minute)
	defer cancel()
	for slices.ContainsFunc(ports.Families, func(f ports.Family) bool { return !wanted(s.follower(f)) }) {
		if pause(ctx, 100*time.Millisecond); ctx.Err() != nil {
			s.t.Fatalf("the beacon never has everything; it is told as %+v", s.host.Status().Backends)
		}
	}
}

// caughtUp waits until the beacon has everything; one that is dead then is started again. The host keeps keys in doubt for a
// minute after a Put without an answer; what they have is right before, and HOLDFAST_SOAK=1 waits for the end of that as well.
func (s *stage) caughtUp() {
	s.t.Helper()
	patient := os.Getenv("HOLDFAST_SOAK") != ""
	s.eventually("a beacon that has everything", func() bool {
		s.revive()
		return !slices.ContainsFunc(ports.Families, func(f ports.Family) bool {
			w := s.follower(f)
			return w.Phase != "ready" || w.Behind > 0 || patient && w.InDoubt > 0
		})
	})
}

func recorded(t *testing.T) []byte {
	t.Helper()
	f, err := os.Open("../../testdata/recorded/actions.ndjson.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// ingest writes the first lines of the recorded stream, and gives what must be there; between is called after each hundred.
func (s *stage) ingest(most int, between func(line int)) *model.Model {
	s.t.Helper()
	text := bytes.Join(slices.Collect(first(most, bytes.Lines(recorded(s.t)))), nil)
	m := model.New(model.Options{})
	if _, err := m.Ingest("actions", bytes.NewReader(text)); err != nil {
		s.t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 16<<20)
	var window sync.WaitGroup
	stream := core.NewStream("actions")
	for n := 1; lines.Scan(); n++ {
		call, err := core.ParseCall(slices.Clone(lines.Bytes()))
		if err != nil {
			s.t.Fatal(err)
		}
		call.Source = core.Source{Origin: ports.OriginHTTP, Line: n, Stream: stream}
		promise := s.host.Begin(call)
		window.Go(func() {
			if a := promise.Wait(s.t.Context()); a.Failed() {
				s.t.Errorf("line %d: %s", n, a.AppendJSON(nil))
			}
		})
		if n%100 == 0 {
			window.Wait()
			if between != nil {
				between(n)
			}
		}
	}
	window.Wait()
	return m
}

const whole = 4552 // lines of the recorded stream

func first[T any](n int, all iter.Seq[T]) iter.Seq[T] {
	return func(yield func(T) bool) {
		left := n
		for one := range all {
			if left--; left < 0 || !yield(one) {
				return
			}
		}
	}
}

// equal compares what the beacon holds with what must be there.
func (s *stage) equal(m *model.Model) {
	s.t.Helper()
	s.caughtUp()
	holds, counts := s.store.Holds(), m.Counts()
	events, attempts := 0, 0
	for _, list := range holds.Events {
		events += len(list)
	}
	for _, list := range holds.Attempts {
		attempts += len(list)
	}
	if got := (model.Counts{Items: len(holds.Items), Events: events, Attempts: attempts, Manifests: len(holds.Manifests)}); got != counts {
		s.t.Errorf("the beacon has %+v, want %+v", got, counts)
	}
	for _, key := range m.Items() {
		s.differ("item "+key, model.KindItem, []model.Object{m.Item(key)}, holds.Items[key])
		s.differ("events of "+key, model.KindEvent, m.Events(key), holds.Events[key]...)
		s.differ("attempts of "+key, model.KindAttempt, m.Attempts(key), holds.Attempts[key]...)
	}
	for _, hash := range m.Manifests() {
		s.differ("manifest "+hash, model.KindManifest, []model.Object{m.Manifest(hash)}, holds.Manifests[hash])
	}
}

func (s *stage) differ(what string, kind model.Kind, want []model.Object, got ...json.RawMessage) {
	s.t.Helper()
	var list []model.Object
	for _, text := range got {
		o, err := model.ParseObject(text)
		if err != nil {
			s.t.Errorf("%s: %v", what, err)
			return
		}
		if o = o.Without(ownMember); kind == model.KindEvent {
			o = o.Without("EmittedAt") // for the beacon's readers
		}
		list = append(list, o)
	}
	for i := range want {
		if want[i] = compact(s.t, want[i]); kind == model.KindEvent {
			want[i] = want[i].Without("EmittedAt")
		}
	}
	for _, d := range model.DiffRecords(kind, want, list) {
		s.t.Errorf("%s: %s", what, d)
	}
}

// compact is a record as a stock beacon spells it.
func compact(t *testing.T, o model.Object) model.Object {
	t.Helper()
	text, err := json.Marshal(o.JSON())
	if err != nil {
		t.Fatal(err)
	}
	o, err = model.ParseObject(text)
	if err != nil {
		t.Fatal(err)
	}
	return o
}
