package main

import (
	"context"
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

	"holdfast/adapters/mesh"
	"holdfast/adapters/mesh/stock"
	"holdfast/adapters/process"
	"holdfast/adapters/wire"
	"holdfast/plugins/conformance"
	"holdfast/ports"
)

// The whole suite through the process of the plugin, kill -9 included: the plugin calls the host's mesh on a socket, and a stock
// beacon does the work.
func TestThePluginKeepsTheContractThroughItsProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast-backend-beacon")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	places := &places{t: t, of: map[string]ports.MeshAccess{}}
	conformance.Run(t, conformance.Subject{ // all cases at once take their time on a busy machine
		Patience: 90 * time.Second, Options: []byte(`{"timeout":"1m"}`),
		Open: func(ctx context.Context, c ports.Configuration) (ports.Backend, error) {
			var err error
			if c.Mesh, err = places.mesh(c.DataDir); err != nil {
				return nil, err
			}
			p, err := process.New(process.Spec{Name: c.Name, Kind: "beacon", Path: path, Config: c, Logger: hclog.NewNullLogger()})
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
}

// places have a hub and a beacon for each data directory: what the beacon keeps outlives the plugin.
type places struct {
	t  *testing.T
	mu sync.Mutex
	of map[string]ports.MeshAccess
}

func (p *places) mesh(dir string) (ports.MeshAccess, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if access, known := p.of[dir]; known {
		return access, nil
	}
	const token = "of-the-plugin"
	hub, err := mesh.New(mesh.Config{Loopback: true})
	if err != nil {
		return ports.MeshAccess{}, err
	}
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
	rpc := wire.NewMeshServer(hub, token, hclog.NewNullLogger())
	ctx, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = hub.Run(ctx) })
	running.Go(func() { _ = rpc.Serve(listener) })
	beacon := stock.NewPersistence().Beacon(stock.BeaconConfig{Name: "archive", ServerURL: server.URL, MaxConcurrent: 16})
	p.t.Cleanup(func() {
		beacon.Kill()
		rpc.Stop()
		end()
		running.Wait()
		server.CloseClientConnections()
		server.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		_ = os.RemoveAll(run)
	})
	started, cancel := context.WithTimeout(p.t.Context(), 20*time.Second)
	defer cancel()
	if err := beacon.Start(started); err != nil {
		return ports.MeshAccess{}, err
	}
	p.of[dir] = ports.MeshAccess{Socket: socket, Token: token}
	return p.of[dir], nil
}
