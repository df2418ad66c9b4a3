package main

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"holdfast/adapters/mesh"
	"holdfast/adapters/process"
	"holdfast/adapters/wire"
	"holdfast/core"
	"holdfast/internal/config"
	"holdfast/ports"
)

// crossing is where beacons and plugins meet: the hub that beacons connect to, the one that this host joined, and the socket on
// which the plugins of this host reach the beacons of both and hear what is assigned, also where no beacon can come.
type crossing struct {
	access   ports.MeshAccess // what plugins are told
	dir      *process.RunDir
	listener net.Listener

	hub    *mesh.Hub // nil: no beacon is let in
	server *grpc.Server
	ran    chan struct{} // closed when the hub is done
	quit   context.CancelFunc

	view    atomic.Pointer[mesh.Assigned] // what plugins see; nil before begin
	lookout sync.WaitGroup                // for those who come and go
	rests   context.CancelFunc
}

// openCrossing makes the place where plugins will find the hub; they are told it before there is one.
func openCrossing(cfg *config.Config, log hclog.Logger) (*crossing, error) {
	if !cfg.MeshOpen() {
		log.Info("no beacon is let in: other machines can reach this address; a mesh block with a join_secret or a user says who may come")
	}
	dir, err := process.OpenRunDir("")
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(dir.Path(), "mesh")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		_ = dir.Close()
		return nil, ports.Wrap(ports.Unavailable, "mesh socket", err)
	}
	return &crossing{access: ports.MeshAccess{Socket: socket, Token: rand.Text()}, dir: dir, listener: listener}, nil
}

// plugins is what plugins are told of it; of a host that is not to run they are told nothing.
func (c *crossing) plugins() ports.MeshAccess {
	if c == nil {
		return ports.MeshAccess{}
	}
	return c.access
}

// beacons are those that are known now.
func (c *crossing) beacons() ports.Beacons {
	if view := c.view.Load(); view != nil {
		return view.Now()
	}
	return ports.Beacons{}
}

// begin makes the hub over a core, and serves it and the joined one to plugins.
func (c *crossing) begin(cfg *config.Config, host *core.Host, joined *membership, log hclog.Logger) (err error) {
	if cfg.MeshOpen() {
		if err := c.letIn(cfg, host, log); err != nil {
			return err
		}
	}
	view := mesh.WithAssigned(joined.beside(c.hub), host)
	c.view.Store(view)
	var ctx context.Context
	ctx, c.rests = context.WithCancel(context.Background())
	c.lookout.Go(func() { view.Run(ctx) })
	c.lookout.Go(func() { host.LookOut(ctx, view) })
	c.server = wire.NewMeshServer(view, c.access.Token, log)
	go func() {
		if err := c.server.Serve(c.listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			log.Error("plugins cannot reach the mesh; start holdfast again", "error", err)
		}
	}()
	return nil
}

// letIn makes the hub and runs it.
func (c *crossing) letIn(cfg *config.Config, host *core.Host, log hclog.Logger) (err error) {
	var users []mesh.User
	for _, u := range cfg.Mesh.Users {
		users = append(users, mesh.User{Name: u.Name, Password: u.Password.Reveal()})
	}
	c.hub, err = mesh.New(mesh.Config{
		Name: cfg.Mesh.Name, Core: mesh.Over(host), Users: users, JoinSecret: cfg.Mesh.JoinSecret.Reveal(), Loopback: cfg.Loopback(), Logger: log,
	})
	if err != nil {
		return err
	}
	ctx, quit := context.WithCancel(context.Background())
	c.ran, c.quit = make(chan struct{}), quit
	go func() {
		defer close(c.ran)
		_ = c.hub.Run(ctx)
	}()
	return nil
}

// told is what the status tells of the hub; nil where no beacon is let in.
func (c *crossing) told(cfg *config.Config) func() any {
	if !cfg.MeshOpen() {
		return nil
	}
	return func() any { return c.hub.Status() }
}

// metrics are those of the hub and of the membership of another one, where they are.
func (c *crossing) metrics(cfg *config.Config, joined *membership) []prometheus.Collector {
	var m meshMetrics
	if cfg.MeshOpen() {
		m.hub = func() mesh.Status { return c.hub.Status() }
	}
	if joined != nil {
		m.member = joined.member.Status
	}
	return []prometheus.Collector{m}
}

// beside puts the hub's routes and sockets in front of the API's.
func (c *crossing) beside(api http.Handler) http.Handler {
	if c.hub == nil {
		return api
	}
	return c.hub.Beside(api)
}

// rest answers every caller and lets every beacon go. What was done is recorded, as far as ctx allows.
func (c *crossing) rest(ctx context.Context) {
	if c.hub == nil {
		return
	}
	c.quit()
	select {
	case <-c.ran:
	case <-ctx.Done():
	}
}

// close leaves nothing behind.
func (c *crossing) close() {
	if c == nil {
		return
	}
	if c.rests != nil {
		c.rests()
		c.lookout.Wait()
	}
	if c.quit != nil {
		c.quit()
	}
	if c.server != nil {
		c.server.Stop()
	}
	_ = c.listener.Close()
	_ = c.dir.Close()
}
