package wire_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"pgregory.net/rapid"

	"holdfast/adapters/wire"
	pb "holdfast/plugins/proto/backendv1"
	"holdfast/ports"
)

func TestChangesArriveAsTheyWereTold(t *testing.T) {
	var got atomic.Pointer[ports.ChangesQuery]
	var give atomic.Pointer[ports.ChangePage]
	client, _ := connect(t, &script{changes: func(q ports.ChangesQuery) (ports.ChangePage, error) {
		got.Store(&q)
		return *give.Load(), nil
	}})
	rapid.Check(t, func(t *rapid.T) {
		sent := ports.ChangesQuery{
			Family: rapid.SampledFrom(ports.Families).Draw(t, "family"), After: drawPosition(t), Key: rapid.String().Draw(t, "key"),
			Limit: rapid.IntRange(0, 5000).Draw(t, "limit"),
		}
		page := ports.ChangePage{
			Rows: rapid.SliceOfN(rapid.Custom(drawRow), 0, 3).Draw(t, "rows"), Through: drawPosition(t),
			Dropped: rapid.MapOf(rapid.String(), rapid.Uint64()).Draw(t, "dropped"),
		}
		if rapid.Bool().Draw(t, "at the end") {
			end := drawPosition(t)
			page.End = &end
		}
		give.Store(&page)
		answer, err := client.Changes(context.Background(), sent)
		if err != nil {
			t.Fatal(err)
		}
		sameThing(t, "query", sent, *got.Load())
		sameThing(t, "page", page, answer)
		if (answer.End == nil) != (page.End == nil) {
			t.Fatalf("end is %v, was told as %v", answer.End, page.End)
		}
	})
	if _, err := client.Changes(t.Context(), ports.ChangesQuery{Key: "\xff"}); ports.CodeOf(err) != ports.Invalid {
		t.Errorf("a key that is no UTF-8: %v", err)
	}
}

func TestARefusedPositionKeepsItsCode(t *testing.T) {
	client, _ := connect(t, &script{changes: func(ports.ChangesQuery) (ports.ChangePage, error) {
		return ports.ChangePage{}, ports.Errorf(ports.Conflict, "tape: changes", "the position is of another history")
	}})
	if _, err := client.Changes(t.Context(), ports.ChangesQuery{Family: ports.Queue}); ports.CodeOf(err) != ports.Conflict {
		t.Errorf("got %v, want conflict", err)
	}
}

func TestABackendThatIsNoLocalStoreTellsNoChanges(t *testing.T) {
	client, _ := connect(t, follower{})
	if _, err := client.Changes(t.Context(), ports.ChangesQuery{Family: ports.Queue}); ports.CodeOf(err) != ports.Unimplemented {
		t.Errorf("got %v, want unimplemented", err)
	}
}

// A reader that took "nothing said" for a position would copy everything again.
func TestAPageThatDoesNotSayHowFarItGoesIsRefused(t *testing.T) {
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer()
	pb.RegisterBackendServer(server, &forgetful{})
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	conn, err := grpc.NewClient("passthrough:///test", append(wire.DialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))...)
	if err != nil {
		t.Fatal(err)
	}
	client := wire.NewClient(conn)
	t.Cleanup(func() {
		_ = client.Close()
		_ = conn.Close()
		server.Stop()
		serving.Wait()
	})
	if _, err := client.Changes(t.Context(), ports.ChangesQuery{Family: ports.Queue}); ports.CodeOf(err) != ports.Internal {
		t.Errorf("got %v, want internal", err)
	}
}

// forgetful is a plugin whose author left out what a page ends with.
type forgetful struct{ pb.UnimplementedBackendServer }

func (forgetful) Changes(context.Context, *pb.ChangesRequest) (*pb.ChangesResponse, error) {
	return &pb.ChangesResponse{}, nil
}
