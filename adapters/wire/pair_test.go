package wire_test

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"holdfast/adapters/wire"
	"holdfast/ports"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connect serves a backend and gives the client of it. cut breaks the connection.
func connect(t testing.TB, backend ports.Backend) (client *wire.Client, cut func()) {
	t.Helper()
	return connectTraced(t, backend, nil)
}

// connectTraced is connect with a trace of what crosses.
func connectTraced(t testing.TB, backend ports.Backend, trace *wire.Trace) (client *wire.Client, cut func()) {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	server := grpc.NewServer(wire.ServerOptions(hclog.NewNullLogger())...)
	wire.Register(server, backend, hclog.NewNullLogger())
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	conn, err := grpc.NewClient("passthrough:///test", append(append(trace.DialOptions(), wire.DialOptions()...),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))...)
	if err != nil {
		t.Fatal(err)
	}
	client = wire.NewClient(conn)
	t.Cleanup(func() {
		_ = client.Close()
		_ = conn.Close()
		server.Stop()
		serving.Wait()
	})
	return client, server.Stop
}

// script is a local store whose every answer a test sets; what it does not set is the zero answer.
type script struct {
	ports.LocalStore // nil: what a test does not expect panics, and the wire tells

	describe func() (ports.Description, error)
	probe    func(context.Context) error
	position func() (ports.Position, error)
	put      func(ports.Batch) (ports.Applied, error)
	stand    func(string) (ports.Standing, error)
	open     func(ports.Opening) error
	commit   func(context.Context, ports.CommitBatch) (ports.Pending, error)
	item     func(string) (ports.Row, error)
	items    func(ports.ItemQuery) (ports.Page, error)
	changes  func(ports.ChangesQuery) (ports.ChangePage, error)
	drained  bool
}

func (s *script) Describe(context.Context) (ports.Description, error) { return s.describe() }
func (s *script) Probe(ctx context.Context, _ ports.Family) error     { return s.probe(ctx) }
func (s *script) Position(context.Context, ports.Family) (ports.Position, error) {
	return s.position()
}
func (s *script) Put(_ context.Context, b ports.Batch) (ports.Applied, error) { return s.put(b) }
func (s *script) Stand(_ context.Context, host string) (ports.Standing, error) {
	return s.stand(host)
}
func (s *script) Open(_ context.Context, o ports.Opening) error { return s.open(o) }
func (s *script) Commit(ctx context.Context, b ports.CommitBatch) (ports.Pending, error) {
	return s.commit(ctx, b)
}
func (s *script) Item(_ context.Context, key string) (ports.Row, error) { return s.item(key) }
func (s *script) Items(_ context.Context, q ports.ItemQuery) (ports.Page, error) {
	return s.items(q)
}
func (s *script) Changes(_ context.Context, q ports.ChangesQuery) (ports.ChangePage, error) {
	return s.changes(q)
}
func (s *script) Drain(context.Context) error { s.drained = true; return nil }

// later is a batch whose decisions a test releases.
type later struct {
	decide    chan struct{}
	decisions []ports.Decision
	err       error
}

func (l *later) Wait(ctx context.Context) ([]ports.Decision, error) {
	select {
	case <-l.decide:
		return l.decisions, l.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// atOnce decides every entry as stored.
func atOnce(b ports.CommitBatch) *later {
	l := &later{decide: make(chan struct{})}
	for _, e := range b.Entries {
		l.decisions = append(l.decisions, ports.Decision{Seq: e.Seq, Outcome: ports.Stored})
	}
	close(l.decide)
	return l
}

func entries(from, n int) []ports.Entry {
	list := make([]ports.Entry, n)
	for i := range list {
		list[i] = ports.Entry{
			Seq: uint64(from + i), Action: ports.UpsertWorkItem, Class: ports.Live, Key: "wi-1",
			Record: []byte(`{"WorkItemHash":"wi-1"}`), Host: "h", Actor: "a", Origin: ports.OriginHTTP,
		}
	}
	return list
}

func batch(from, n int) ports.CommitBatch {
	return ports.CommitBatch{
		Family: ports.Queue, Epoch: "e", After: uint64(from - 1), Through: uint64(from + n - 1), Entries: entries(from, n),
	}
}
