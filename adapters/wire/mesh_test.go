package wire_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"holdfast/adapters/wire"
	"holdfast/ports"
)

// crowd is a mesh of a few beacons.
type crowd struct {
	mu      sync.Mutex
	now     ports.Beacons
	changed chan struct{}
	works   []ports.Work
	answer  ports.WorkAnswer
	err     error
}

func (c *crowd) set(b ports.Beacons) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = b
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *crowd) Watch(ctx context.Context, since uint64) (ports.Beacons, error) {
	for {
		c.mu.Lock()
		now, changed := c.now, c.changed
		c.mu.Unlock()
		if now.Version != since {
			return now, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ports.Beacons{}, ctx.Err()
		}
	}
}

func (c *crowd) Dispatch(ctx context.Context, w ports.Work) (ports.WorkAnswer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.works = append(c.works, w)
	if _, bounded := ctx.Deadline(); !bounded {
		return ports.WorkAnswer{}, errors.New("no deadline came through")
	}
	return c.answer, c.err
}

func meshOver(t *testing.T, mesh ports.Mesh, token string) ports.Mesh {
	t.Helper()
	dir, err := os.MkdirTemp("", "m")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "mesh")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := wire.NewMeshServer(mesh, "right", hclog.NewNullLogger())
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	client, err := wire.DialMesh(ports.MeshAccess{Socket: socket, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Close()
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return client
}

func TestAPluginSeesTheBeaconsOfItsHost(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 12, 0, 0, 5, time.UTC)
	first := ports.Beacons{Version: 7, List: []ports.Beacon{{
		Name: "persist", ID: "bcn-persist-1", Session: 3, Online: true, Capabilities: []string{"QueuePersistence"}, MaxConcurrent: 4,
		Tags: map[string]json.RawMessage{"PersistenceConnectionID": json.RawMessage("5")}, RegisteredAt: at, SeenAt: at.Add(time.Second),
	}}}
	c := &crowd{now: first, changed: make(chan struct{})}
	mesh := meshOver(t, c, "right")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	got, err := mesh.Watch(ctx, 0)
	if diff := cmp.Diff(first, got); err != nil || diff != "" {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	second := ports.Beacons{Version: 8, List: []ports.Beacon{}}
	waited := make(chan ports.Beacons, 1)
	go func() {
		b, _ := mesh.Watch(ctx, 7)
		waited <- b
	}()
	c.set(second)
	if b := <-waited; b.Version != 8 || len(b.List) != 0 {
		t.Errorf("after a change: %+v", b)
	}
	short, end := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer end()
	if _, err := mesh.Watch(short, 8); ports.CodeOf(err) != ports.Deadline {
		t.Errorf("a wait that ends: %v", err)
	}
}

func TestAPluginHasABeaconDoItsWork(t *testing.T) {
	t.Parallel()
	c := &crowd{changed: make(chan struct{}), answer: ports.WorkAnswer{
		WorkItemHash: "wi-1", Beacon: "persist", Outputs: json.RawMessage(`{"Success": true}`), Log: []string{"done"},
	}}
	mesh := meshOver(t, c, "right")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for _, class := range []ports.WorkClass{ports.ClassProbe, ports.ClassRead, ports.ClassLive, ports.ClassCatchUp} {
		work := ports.Work{Beacon: "persist", Capability: "QueuePersistence", Action: "QP_AppendEvent", Settings: json.RawMessage(`{"Event":  1e400}`), Class: class}
		answer, err := mesh.Dispatch(ctx, work)
		if diff := cmp.Diff(c.answer, answer); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		if diff := cmp.Diff(work, c.works[len(c.works)-1]); diff != "" {
			t.Errorf("what was asked (-want +got):\n%s", diff)
		}
	}
	c.err = ports.Errorf(ports.Full, "dispatch", "too much waits for persist")
	if _, err := mesh.Dispatch(ctx, ports.Work{}); ports.CodeOf(err) != ports.Full {
		t.Errorf("a refusal: %v", err)
	}
	if _, err := mesh.Dispatch(context.WithoutCancel(ctx), ports.Work{}); ports.CodeOf(err) != ports.Invalid {
		t.Errorf("without a deadline: %v", err)
	}
}

func TestTheMeshIsForThoseWithItsToken(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"", "wrong", "right "} {
		mesh := meshOver(t, &crowd{now: ports.Beacons{Version: 1}, changed: make(chan struct{})}, token)
		if _, err := mesh.Watch(t.Context(), 0); ports.CodeOf(err) != ports.Unauthorized {
			t.Errorf("with %q: %v", token, err)
		}
	}
	if _, err := wire.DialMesh(ports.MeshAccess{}); ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("a host without a mesh: %v", err)
	}
}
