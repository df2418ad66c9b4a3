package wire

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "holdfast/plugins/proto/meshv1"
	"holdfast/ports"
)

// The host's Mesh on a socket, both halves. It is the one thing that a plugin may call.

const (
	longestWatch  = 20 * time.Second
	authorization = "authorization"
	bearer        = "Bearer "
)

// NewMeshServer makes a server that offers a mesh to whoever has the token.
func NewMeshServer(mesh ports.Mesh, token string, log hclog.Logger) *grpc.Server {
	admit := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if !carries(ctx, token) {
			return nil, ports.Errorf(ports.Unauthorized, "mesh", "the token is missing or wrong; a plugin is given it with Configure")
		}
		return handle(ctx, req)
	}
	server := grpc.NewServer(append(ServerOptions(log), grpc.ChainUnaryInterceptor(admit))...)
	pb.RegisterMeshServer(server, &meshServer{mesh: mesh})
	return server
}

func carries(ctx context.Context, token string) bool {
	given := metadata.ValueFromIncomingContext(ctx, authorization)
	return token != "" && len(given) == 1 && subtle.ConstantTimeCompare([]byte(given[0]), []byte(bearer+token)) == 1
}

type meshServer struct {
	pb.UnimplementedMeshServer
	mesh ports.Mesh
}

// Watch waits a while; a caller that wants to wait longer asks again.
func (s *meshServer) Watch(ctx context.Context, m *pb.WatchRequest) (*pb.WatchResponse, error) {
	wait := longestWatch
	if m.Wait != nil {
		wait = min(longestWatch, m.Wait.AsDuration())
	}
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	b, err := s.mesh.Watch(limited, m.Since)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		b, err = s.mesh.Watch(ctx, 0)
	}
	if err != nil {
		return nil, err
	}
	answer := &pb.WatchResponse{Version: b.Version}
	for i := range b.List {
		answer.Beacons = append(answer.Beacons, beaconOut(&b.List[i]))
	}
	for f, a := range b.Assigned {
		if answer.Assigned == nil {
			answer.Assigned = map[string]*pb.Assignment{}
		}
		answer.Assigned[string(f)] = &pb.Assignment{Beacon: a.BeaconID, Connection: a.IDBeaconConnection, AssignedAt: a.AssignedAt}
	}
	return answer, nil
}

func (s *meshServer) Dispatch(ctx context.Context, m *pb.DispatchRequest) (*pb.DispatchResponse, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		return nil, ports.Errorf(ports.Invalid, "dispatch", "the call has no deadline; give it one")
	}
	class, known := workClasses.in[m.WorkClass]
	if !known {
		class = ports.ClassLive
	}
	a, err := s.mesh.Dispatch(ctx, ports.Work{Beacon: m.Beacon, Session: m.Session, Capability: m.Capability, Action: m.Action, Settings: m.Settings, Class: class})
	if err != nil {
		return nil, err
	}
	return &pb.DispatchResponse{WorkItemHash: a.WorkItemHash, Beacon: a.Beacon, Outputs: a.Outputs, Failure: a.Failure, Log: a.Log}, nil
}

// Mesh is the plugin's half.
type Mesh struct {
	conn *grpc.ClientConn
	rpc  pb.MeshClient
}

var _ ports.Mesh = (*Mesh)(nil)

// DialMesh prepares to call the host; the connection is made with the first call. Without a mesh there it fails with
// Unavailable.
func DialMesh(access ports.MeshAccess) (*Mesh, error) {
	if access.Socket == "" {
		return nil, ports.Errorf(ports.Unavailable, "mesh", "this host has no mesh; a backend behind a beacon needs one")
	}
	carry := func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		return invoke(metadata.AppendToOutgoingContext(ctx, authorization, bearer+access.Token), method, req, reply, conn, opts...)
	}
	conn, err := grpc.NewClient("unix:"+access.Socket,
		append(DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithChainUnaryInterceptor(carry))...)
	if err != nil {
		return nil, ports.Wrap(ports.Internal, "mesh", err)
	}
	return &Mesh{conn: conn, rpc: pb.NewMeshClient(conn)}, nil
}

// Close ends the connection; what waits fails.
func (m *Mesh) Close() error { return m.conn.Close() }

func (m *Mesh) Watch(ctx context.Context, since uint64) (ports.Beacons, error) {
	answer, err := m.rpc.Watch(ctx, &pb.WatchRequest{Since: since})
	for err == nil && answer.Version == since { // the host waits only so long
		answer, err = m.rpc.Watch(ctx, &pb.WatchRequest{Since: since})
	}
	if err != nil {
		return ports.Beacons{}, err
	}
	b := ports.Beacons{Version: answer.Version}
	for _, one := range answer.Beacons {
		b.List = append(b.List, beaconIn(one))
	}
	for f, a := range answer.Assigned {
		if b.Assigned == nil {
			b.Assigned = map[ports.Family]ports.Assignment{}
		}
		b.Assigned[ports.Family(f)] = ports.Assignment{BeaconID: a.Beacon, IDBeaconConnection: a.Connection, AssignedAt: a.AssignedAt}
	}
	return b, nil
}

func (m *Mesh) Dispatch(ctx context.Context, w ports.Work) (ports.WorkAnswer, error) {
	a, err := m.rpc.Dispatch(ctx, &pb.DispatchRequest{
		Beacon: w.Beacon, Session: w.Session, Capability: w.Capability, Action: w.Action, Settings: w.Settings, WorkClass: workClasses.out[w.Class],
	})
	if err != nil {
		return ports.WorkAnswer{}, err
	}
	return ports.WorkAnswer{WorkItemHash: a.WorkItemHash, Beacon: a.Beacon, Outputs: a.Outputs, Failure: a.Failure, Log: a.Log}, nil
}

func beaconOut(b *ports.Beacon) *pb.Beacon {
	m := &pb.Beacon{
		Name: b.Name, Id: b.ID, Session: b.Session, Online: b.Online, Capabilities: b.Capabilities, MaxConcurrent: int64(b.MaxConcurrent),
		Tags: map[string][]byte{}, RegisteredAt: timestamppb.New(b.RegisteredAt), SeenAt: timestamppb.New(b.SeenAt),
	}
	for name, value := range b.Tags {
		m.Tags[name] = value
	}
	return m
}

func beaconIn(m *pb.Beacon) ports.Beacon {
	b := ports.Beacon{
		Name: m.Name, ID: m.Id, Session: m.Session, Online: m.Online, Capabilities: m.Capabilities, MaxConcurrent: int(m.MaxConcurrent),
		Tags: map[string]json.RawMessage{}, RegisteredAt: m.RegisteredAt.AsTime(), SeenAt: m.SeenAt.AsTime(),
	}
	for name, value := range m.Tags {
		b.Tags[name] = value
	}
	return b
}

var workClasses = table(map[ports.WorkClass]pb.WorkClass{
	ports.ClassProbe:   pb.WorkClass_WORK_CLASS_PROBE,
	ports.ClassRead:    pb.WorkClass_WORK_CLASS_READ,
	ports.ClassLive:    pb.WorkClass_WORK_CLASS_LIVE,
	ports.ClassCatchUp: pb.WorkClass_WORK_CLASS_CATCH_UP,
})
