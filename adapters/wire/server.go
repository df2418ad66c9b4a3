package wire

import (
	"context"
	"reflect"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"

	pb "holdfast/plugins/proto/backendv1"
	"holdfast/ports"
)

// server is the plugin's half: it hands calls to a backend.
type server struct {
	pb.UnimplementedBackendServer
	backend    ports.Backend
	log        hclog.Logger
	gate       gate
	configured atomic.Bool
}

// Register serves a backend on a gRPC server that was made with ServerOptions. A backend that is a Configurer is used only
// after Configure. When its description names no powers, those whose methods it has are declared.
func Register(r grpc.ServiceRegistrar, backend ports.Backend, log hclog.Logger) {
	s := &server{backend: backend, log: log}
	if _, configures := backend.(ports.Configurer); !configures {
		s.configured.Store(true)
	}
	pb.RegisterBackendServer(r, s)
}

// begin lets a call in; the caller leaves the gate when it is done.
func (s *server) begin() error {
	if !s.configured.Load() {
		return ports.Errorf(ports.Unavailable, "", "the plugin was not configured yet")
	}
	return s.gate.enter()
}

// do runs one call of the backend itself.
func do[T any](s *server, call func() (T, error)) (T, error) {
	if err := s.begin(); err != nil {
		var none T
		return none, err
	}
	defer s.gate.leave()
	return call()
}

// power runs one call of an optional power.
func power[P, T any](s *server, call func(P) (T, error)) (T, error) {
	return do(s, func() (T, error) {
		p, has := s.backend.(P)
		if !has {
			var none T
			return none, ports.Errorf(ports.Unimplemented, "", "this backend is no %s", reflect.TypeFor[P]().Name())
		}
		return call(p)
	})
}

func (s *server) Describe(ctx context.Context, _ *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	d, err := s.backend.Describe(ctx)
	if err != nil {
		return nil, err
	}
	if d.Powers == nil {
		d.Powers = ports.PowersOf(s.backend)
	}
	return descriptionOut(d), nil
}

func (s *server) Configure(ctx context.Context, m *pb.ConfigureRequest) (*pb.ConfigureResponse, error) {
	configurer, configures := s.backend.(ports.Configurer)
	if !configures {
		return &pb.ConfigureResponse{}, nil
	}
	if s.configured.Load() {
		return nil, ports.Errorf(ports.Conflict, "", "the plugin was configured already")
	}
	if err := configurer.Configure(ctx, ports.Configuration{
		Name: m.Name, DataDir: m.DataDir, Options: m.Options, Mesh: ports.MeshAccess{Socket: m.MeshSocket, Token: m.MeshToken},
	}); err != nil {
		return nil, err
	}
	s.configured.Store(true)
	return &pb.ConfigureResponse{}, nil
}

func (s *server) Probe(ctx context.Context, m *pb.ProbeRequest) (*pb.ProbeResponse, error) {
	return do(s, func() (*pb.ProbeResponse, error) {
		return &pb.ProbeResponse{}, s.backend.Probe(ctx, families.in[m.Family])
	})
}

func (s *server) Position(ctx context.Context, m *pb.PositionRequest) (*pb.PositionResponse, error) {
	return do(s, func() (*pb.PositionResponse, error) {
		p, err := s.backend.Position(ctx, families.in[m.Family])
		return &pb.PositionResponse{Position: positionOut(&p)}, err
	})
}

func (s *server) Put(ctx context.Context, m *pb.PutRequest) (*pb.PutResponse, error) {
	return do(s, func() (*pb.PutResponse, error) {
		rows, err := rowsIn(m.Rows)
		if err != nil {
			return nil, err
		}
		applied, err := s.backend.Put(ctx, ports.Batch{Family: families.in[m.Family], Rows: rows, Position: positionIn(m.Position), After: positionIn(m.After), CatchUp: m.CatchUp})
		answer := &pb.PutResponse{Done: int64(applied.Done)}
		if err != nil {
			answer.Error = detailOf(ports.AsError(err)) // beside the rows that are in
		}
		return answer, nil
	})
}

// Drain works for every backend: nothing new comes in, what is under way is finished, and a Drainer tidies up.
func (s *server) Drain(ctx context.Context, _ *pb.DrainRequest) (*pb.DrainResponse, error) {
	if err := s.gate.shutAndWait(ctx); err != nil {
		return nil, err
	}
	if drainer, has := s.backend.(ports.Drainer); has && s.configured.Load() {
		if err := drainer.Drain(ctx); err != nil {
			return nil, err
		}
	}
	return &pb.DrainResponse{}, nil
}
