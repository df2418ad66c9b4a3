package sdk

import (
	"context"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"holdfast/adapters/wire"
	"holdfast/internal/heap"
	"holdfast/ports"
)

// How long a backend may take to close. After Shutdown the host waits 2 s before it kills; without a host nobody waits.
const (
	closeTime   = 1500 * time.Millisecond
	orphanClose = 500 * time.Millisecond
)

// Serve is a plugin's main: it serves the backend until the host says stop or is gone, closes it and ends the process.
// Started by hand, it says what it is and exits with 1.
func Serve(backend ports.Backend) {
	if os.Getenv(wire.CookieKey) != wire.CookieValue {
		explain(os.Stderr, backend, os.Args[0])
		os.Exit(1)
	}
	heap.Floor()
	log := Logger()
	deafen()
	var once sync.Once
	end := func(within time.Duration) {
		once.Do(func() {
			closeWithin(log, backend, within)
			os.Exit(0)
		})
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		end(orphanClose) // the host is gone
	}()
	spoken := map[int]plugin.PluginSet{}
	for number, version := range wire.Versions {
		spoken[number] = plugin.PluginSet{wire.PluginName: &served{serve: version.Serve, backend: backend, log: log}}
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: wire.CookieKey, MagicCookieValue: wire.CookieValue},
		VersionedPlugins: spoken,
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(slices.Concat(options, directPrints(), wire.ServerOptions(log))...)
		},
		Logger: log,
	})
	end(closeTime)
}

// deafen leaves it to the host when to stop: a service manager that signals the whole group would otherwise take the store
// away before the last writes are in.
func deafen() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for range signals {
		}
	}()
}

func closeWithin(log hclog.Logger, backend ports.Backend, limit time.Duration) {
	closed := make(chan error, 1)
	go func() { closed <- backend.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			log.Error("close", "error", err)
		}
	case <-time.After(limit):
		log.Warn("close takes too long and is left unfinished", "limit", limit.String())
	}
}

// served is what go-plugin serves.
type served struct {
	plugin.NetRPCUnsupportedPlugin

	serve   func(grpc.ServiceRegistrar, ports.Backend, hclog.Logger)
	backend ports.Backend
	log     hclog.Logger
}

func (s *served) GRPCServer(_ *plugin.GRPCBroker, server *grpc.Server) error {
	s.serve(server, s.backend, s.log)
	return nil
}

// GRPCClient is the host's side of the same interface.
func (s *served) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, ports.Errorf(ports.Unimplemented, "serve", "a plugin calls nobody")
}
