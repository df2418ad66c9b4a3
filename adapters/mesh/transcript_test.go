package mesh_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"holdfast/adapters/mesh"
	"holdfast/adapters/mesh/stock"
	"holdfast/ports"
)

// The traffic of a real beacon with a real Ultravisor, played to our hub: its answers have the recorded members and types.
func TestOurHubAnswersAStockBeaconAsTheStockHubDoes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"qp-ws.ndjson", "qp-http.ndjson"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps, err := stock.Transcript(filepath.Join("..", "..", "testdata", "transcripts", name))
			if err != nil {
				t.Fatal(err)
			}
			hub, url := serveHub(t)
			found, err := stock.PlayBeacon(limited(t), steps, url, stock.Frames(), dispatcher(hub))
			if err != nil {
				t.Error(err)
			}
			for _, line := range found {
				t.Error(line)
			}
		})
	}
}

func serveHub(t *testing.T) (hub *mesh.Hub, url string) {
	t.Helper()
	hub, err := mesh.New(mesh.Config{Loopback: true, Timing: mesh.Timing{Linger: 10 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		_ = hub.Run(ctx)
		close(ended)
	}()
	server := httptest.NewServer(hub.Handler())
	t.Cleanup(func() {
		end()
		<-ended
		server.CloseClientConnections()
		server.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return hub, server.URL
}

func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(end)
	return ctx
}

// dispatcher has a hub give recorded works to the beacon that is played.
func dispatcher(hub ports.Mesh) stock.Dispatcher {
	return func(ctx context.Context, beacon string, work *stock.Item) (json.RawMessage, error) {
		ctx, end := context.WithTimeout(ctx, time.Duration(work.TimeoutMs)*time.Millisecond)
		defer end()
		answer, err := hub.Dispatch(ctx, ports.Work{
			Beacon: beacon, Capability: work.Capability, Action: work.Action, Settings: work.Settings, Class: ports.ClassLive,
		})
		if err == nil && answer.Failure != "" {
			err = errors.New(answer.Failure)
		}
		return answer.Outputs, err
	}
}
