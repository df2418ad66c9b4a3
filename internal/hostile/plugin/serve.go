package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"holdfast/adapters/sqlite"
	"holdfast/adapters/wire"
	"holdfast/internal/hostile"
	pb "holdfast/plugins/proto/backendv1"
	"holdfast/plugins/sdk"
	"holdfast/ports"
)

// serve is sdk.Serve for a store whose calls pass through a fault, and which may not want to end.
func serve(self hostile.Program) {
	log, store := sdk.Logger(), sqlite.New()
	signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGTERM)
	deaf := func() bool { return self.Is(hostile.Deaf) }
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		if !deaf() && !self.Is(hostile.CloseStreams) {
			os.Exit(0) // the host is gone
		}
	}()
	version := wire.ProtocolVersion
	if self.Is(hostile.SpeaksTwo) {
		self.Note()
		version = 1000
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: wire.CookieKey, MagicCookieValue: wire.CookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{version: {wire.PluginName: &served{self: self, store: store, log: log}}},
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(slices.Concat(options, wire.ServerOptions(log))...)
		},
		Logger: log,
	})
	if deaf() {
		self.Note()
		select {}
	}
	_ = store.Close()
}

// served puts the fault between the wire and the store's half of it.
type served struct {
	plugin.NetRPCUnsupportedPlugin
	self  hostile.Program
	store *sqlite.Store
	log   hclog.Logger
}

func (s *served) GRPCServer(_ *plugin.GRPCBroker, server *grpc.Server) error {
	wire.Register(between{server, s.self}, s.store, s.log)
	return nil
}

func (s *served) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, ports.Errorf(ports.Unimplemented, "serve", "a plugin calls nobody")
}

// between registers the service with the fault around it.
type between struct {
	grpc.ServiceRegistrar
	self hostile.Program
}

func (b between) RegisterService(d *grpc.ServiceDesc, service any) {
	if b.self.Is(hostile.SpeaksOther) {
		b.self.Note()
		other := *d
		other.ServiceName = "holdfast.backend.v1000.Backend"
		d = &other
	}
	b.ServiceRegistrar.RegisterService(d, &faulty{service.(pb.BackendServer), b.self})
}
