package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"holdfast/adapters/meadowproxy/stock"
	"holdfast/adapters/mesh"
	client "holdfast/adapters/mesh/stock"
	"holdfast/adapters/process"
	"holdfast/adapters/wire"
	"holdfast/plugins/conformance"
	"holdfast/ports"
)

// The whole suite through the process of the plugin, kill -9 included: the plugin calls the host's mesh on a socket, and a stock
// databeacon behind a real hub does the work.
func TestThePluginKeepsTheContractThroughItsProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "holdfast-backend-meadowproxy")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	manners := []stock.Manner{stock.SQLite, stock.MySQL}
	if os.Getenv("HOLDFAST_SOAK") != "" { // adapters/meadowproxy holds that one to the suite in every run
		manners = append(manners, stock.Postgres)
	}
	for _, manner := range manners {
		t.Run(string(manner), func(t *testing.T) { // one after the other: records of 64 MiB have to be done in bounded time
			places := &places{t: t, manner: manner, of: map[string]ports.MeshAccess{}}
			conformance.Run(t, conformance.Subject{ // all cases at once take their time on a busy machine
				Patience: 3 * time.Minute, Options: []byte(`{"timeout":"2m"}`),
				Open: func(ctx context.Context, c ports.Configuration) (ports.Backend, error) {
					var err error
					if c.Mesh, err = places.mesh(c.DataDir); err != nil {
						return nil, err
					}
					p, err := process.New(process.Spec{Name: c.Name, Kind: "meadowproxy", Path: path, Config: c, Logger: hclog.NewNullLogger()})
					if err != nil {
						return nil, err
					}
					p.Start()
					if err := p.Await(ctx); err != nil {
						p.Kill()
						return nil, err
					}
					return p, nil
				},
				Kill: func(b ports.Backend) { b.(*process.Process).Kill() },
			})
		})
	}
}

// places have a hub and a databeacon for each data directory: what its database keeps outlives the plugin.
type places struct {
	t      *testing.T
	manner stock.Manner
	mu     sync.Mutex
	of     map[string]ports.MeshAccess
}

// standing assigns one connection for good.
type standing int64

func (connection standing) Assigned() (map[ports.Family]ports.Assignment, <-chan struct{}) {
	now := map[ports.Family]ports.Assignment{}
	for _, f := range ports.Families {
		now[f] = ports.Assignment{BeaconID: "databeacon", IDBeaconConnection: int64(connection)}
	}
	return now, nil
}

func (p *places) mesh(dir string) (ports.MeshAccess, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if access, known := p.of[dir]; known {
		return access, nil
	}
	db, err := stock.Open(stock.Options{Name: "databeacon", Dir: dir, Manner: p.manner})
	if err != nil {
		return ports.MeshAccess{}, err
	}
	connection, err := db.AddConnection("history", "", true)
	if err != nil {
		return ports.MeshAccess{}, err
	}
	hub, err := mesh.New(mesh.Config{Loopback: true})
	if err != nil {
		return ports.MeshAccess{}, err
	}
	const token = "of-the-plugin"
	server := httptest.NewServer(hub.Handler())
	run, err := os.MkdirTemp("", "hf-mesh-") // a socket's path is short
	if err != nil {
		return ports.MeshAccess{}, err
	}
	socket := filepath.Join(run, "mesh.sock")
	listener, err := (&net.ListenConfig{}).Listen(p.t.Context(), "unix", socket)
	if err != nil {
		return ports.MeshAccess{}, err
	}
	assigned := mesh.WithAssigned(hub, standing(connection))
	rpc := wire.NewMeshServer(assigned, token, hclog.NewNullLogger())
	ctx, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = hub.Run(ctx) })
	running.Go(func() { assigned.Run(ctx) })
	running.Go(func() { _ = rpc.Serve(listener) })
	beacon := client.NewBeacon(client.BeaconConfig{
		ServerURL: server.URL, Name: db.Name(), MaxConcurrent: 3,
		Actions: stock.Behind(db, func(a stock.Action, do func(context.Context, json.RawMessage) (any, error)) client.Action {
			return client.Action{Capability: a.Capability, Name: a.Name, Do: func(ctx context.Context, w *client.Work) (any, error) {
				return do(ctx, w.Settings)
			}}
		}),
	})
	p.t.Cleanup(func() {
		beacon.Kill()
		rpc.Stop()
		end()
		running.Wait()
		server.CloseClientConnections()
		server.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		_ = os.RemoveAll(run)
		_ = db.Close()
	})
	started, cancel := context.WithTimeout(p.t.Context(), 20*time.Second)
	defer cancel()
	if err := beacon.Start(started); err != nil {
		return ports.MeshAccess{}, err
	}
	p.of[dir] = ports.MeshAccess{Socket: socket, Token: token}
	return p.of[dir], nil
}
