package beacon

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"holdfast/adapters/mesh"
	"holdfast/adapters/mesh/stock"
	"holdfast/ports"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testPatience bounds every wait of a test.
const testPatience = 20 * time.Second

// act has a beacon do a work with settings.
type act func(settings json.RawMessage) (ports.WorkAnswer, error)

// village is a ports.Mesh in this process: beacons whose actions are called as they are, with faults on command.
type village struct {
	mu      sync.Mutex
	changed chan struct{}
	version uint64
	list    []ports.Beacon
	actions map[string]map[string]stock.Action // by beacon, by Capability:Action
	lives   uint64
	meddle  func(w ports.Work, do act) (ports.WorkAnswer, error)
	works   []ports.Work
}

func newVillage() *village {
	return &village{changed: make(chan struct{}), version: 1, actions: map[string]map[string]stock.Action{}}
}

// change does something to the registry and tells who watches.
func (v *village) change(do func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	do()
	v.version++
	close(v.changed)
	v.changed = make(chan struct{})
}

// join has a beacon of a store connect, anew if it is known.
func (v *village) join(name string, p *stock.Persistence, families ...string) {
	actions, offers := map[string]stock.Action{}, []string{}
	for _, a := range p.Actions(families...) {
		actions[a.Capability+":"+a.Name] = a
		if !slices.Contains(offers, a.Capability) {
			offers = append(offers, a.Capability)
		}
	}
	v.change(func() {
		v.lives++
		v.actions[name] = actions
		at := slices.IndexFunc(v.list, func(b ports.Beacon) bool { return b.Name == name })
		if at < 0 {
			at = len(v.list)
			v.list = append(v.list, ports.Beacon{Name: name})
		}
		v.list[at] = ports.Beacon{Name: name, Session: v.lives, Online: true, Capabilities: offers, MaxConcurrent: 4}
	})
}

func (v *village) offline(name string) {
	v.change(func() {
		for i := range v.list {
			v.list[i].Online = v.list[i].Online && v.list[i].Name != name
		}
	})
}

func (v *village) forget(name string) {
	v.change(func() { v.list = slices.DeleteFunc(v.list, func(b ports.Beacon) bool { return b.Name == name }) })
}

// meddling has works go through a function from now on.
func (v *village) meddling(f func(w ports.Work, do act) (ports.WorkAnswer, error)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.meddle = f
}

// done gives the works so far of an action.
func (v *village) done(action string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	n := 0
	for _, w := range v.works {
		if w.Action == action {
			n++
		}
	}
	return n
}

func (v *village) Watch(ctx context.Context, since uint64) (ports.Beacons, error) {
	for {
		v.mu.Lock()
		known, changed := ports.Beacons{Version: v.version, List: slices.Clone(v.list)}, v.changed
		v.mu.Unlock()
		if known.Version != since {
			return known, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ports.Beacons{}, ports.Wrap(ports.CodeOf(ctx.Err()), "village", ctx.Err())
		}
	}
}

func (v *village) Dispatch(ctx context.Context, w ports.Work) (ports.WorkAnswer, error) {
	if _, bound := ctx.Deadline(); !bound {
		return ports.WorkAnswer{}, ports.Errorf(ports.Invalid, "village", "a work needs a deadline")
	}
	if err := ctx.Err(); err != nil {
		return ports.WorkAnswer{}, ports.Wrap(ports.CodeOf(err), "village", err)
	}
	v.mu.Lock()
	b := find(v.list, w.Beacon)
	v.works = append(v.works, w)
	meddle := v.meddle
	var action stock.Action
	if b != nil {
		action = v.actions[w.Beacon][w.Capability+":"+w.Action]
	}
	v.mu.Unlock()
	if b == nil || !b.Online || w.Session != 0 && w.Session != b.Session {
		return ports.WorkAnswer{}, ports.Errorf(ports.Unavailable, "village", "the beacon is not connected, or anew")
	}
	do := func(settings json.RawMessage) (ports.WorkAnswer, error) {
		if action.Do == nil {
			return ports.WorkAnswer{Outputs: []byte(`{"StdOut":"Unknown capability: x","ExitCode":-1,"Result":""}`)}, nil
		}
		outputs, err := action.Do(ctx, &stock.Work{Item: stock.Item{Settings: settings}})
		if err != nil {
			return ports.WorkAnswer{Failure: err.Error()}, nil
		}
		text, err := json.Marshal(outputs)
		return ports.WorkAnswer{Outputs: text}, err
	}
	if meddle == nil {
		return do(w.Settings)
	}
	return meddle(w, do)
}

// serveHub is the real hub on loopback.
func serveHub(t testing.TB) (hub *mesh.Hub, url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveHubOn(t, listener), "http://" + listener.Addr().String()
}

// serveHubOn is the real hub where a listener is.
func serveHubOn(t testing.TB, listener net.Listener) *mesh.Hub {
	t.Helper()
	hub, err := mesh.New(mesh.Config{Loopback: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { _ = hub.Run(ctx) })
	server := &http.Server{Handler: hub.Handler(), ReadHeaderTimeout: time.Minute}
	all.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		end()
		_ = server.Close()
		all.Wait()
	})
	return hub
}

// over makes a backend over a mesh, in a folder.
func over(t testing.TB, m ports.Mesh, dir, options string) *Backend {
	t.Helper()
	return overWith(t, m, dir, options, hasty)
}

// hasty is how long a beacon of a test is waited for before it is believed.
const hasty = 20 * time.Millisecond

func overWith(t testing.TB, m ports.Mesh, dir, options string, settle time.Duration) *Backend {
	t.Helper()
	b := New(func(ports.Configuration) (ports.Mesh, error) { return m, nil })
	b.settle = settle
	if options == "" {
		options = "{}"
	}
	if err := b.Configure(t.Context(), ports.Configuration{Name: "beacon", DataDir: dir, Options: []byte(options)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, end := context.WithTimeout(t.Context(), testPatience)
	t.Cleanup(end)
	return ctx
}

// Rows of a test.
func item(key string, seq uint64, members string) ports.Row {
	return ports.Row{Kind: ports.KindItem, Key: key, Change: ports.Change{Host: "h", Seq: seq}, Body: []byte(`{"WorkItemHash":"` + key + `"` + members + `}`)}
}

func event(key, guid, members string) ports.Row {
	return ports.Row{
		Kind: ports.KindEvent, Key: key, GUID: guid, Change: ports.Change{Host: "h", Seq: 1}, First: ports.First{OrderKey: guid},
		Body: []byte(`{"EventGUID":"` + guid + `","WorkItemHash":"` + key + `"` + members + `}`),
	}
}

func attempt(key string, number int64, members string) ports.Row {
	return ports.Row{Kind: ports.KindAttempt, Key: key, Number: number, Body: []byte(`{"WorkItemHash":"` + key + `","AttemptNumber":1` + members + `}`)}
}

func manifest(key string, members string) ports.Row {
	return ports.Row{Kind: ports.KindManifest, Key: key, Change: ports.Change{Host: "h", Seq: 1}, Body: []byte(`{"Hash":"` + key + `"` + members + `}`)}
}

func put(t *testing.T, b ports.Backend, rows ...ports.Row) {
	t.Helper()
	applied, err := b.Put(within(t), ports.Batch{Family: rows[0].Kind.Family(), Rows: rows})
	if err != nil || applied.Done != len(rows) {
		t.Fatalf("put: Done %d of %d, %v", applied.Done, len(rows), err)
	}
}

// villages are those of the conformance cases, by data directory: what a beacon keeps outlives the backend.
var villages = struct {
	sync.Mutex
	of map[string]*village
}{of: map[string]*village{}}
