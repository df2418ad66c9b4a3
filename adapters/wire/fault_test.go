package wire_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/ports"
)

func TestEveryErrorMeansTheSameOnBothSides(t *testing.T) {
	var mu sync.Mutex
	var fail error
	client, _ := connect(t, &script{probe: func(context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		return fail
	}})
	rapid.Check(t, func(t *rapid.T) {
		err := error(&ports.Error{
			Code: rapid.SampledFrom(ports.Codes).Draw(t, "code"), Op: rapid.String().Draw(t, "op"), Field: rapid.String().Draw(t, "field"),
			Message: rapid.String().Draw(t, "message"), Limit: rapid.Int64().Draw(t, "limit"), Size: rapid.Int64().Draw(t, "size"),
		})
		for range rapid.IntRange(0, 3).Draw(t, "depth") {
			if rapid.Bool().Draw(t, "ours") {
				err = ports.Wrap(ports.Internal, "outer", err)
			} else {
				err = fmt.Errorf("outer: %w", err)
			}
		}
		mu.Lock()
		fail = err
		mu.Unlock()
		got := ports.AsError(client.Probe(context.Background(), ports.Queue))
		want := ports.AsError(err)
		if got.Code != want.Code || got.Op != want.Op || got.Field != want.Field || got.Message != want.Message || got.Limit != want.Limit || got.Size != want.Size {
			t.Fatalf("got %#v, want %#v", got, want)
		}
	})
}

func TestErrorsThatNobodyMadeForTheWire(t *testing.T) {
	for _, c := range []struct {
		name string
		fail error
		code ports.Code
		is   error
	}{
		{"a plain error is internal", errors.New("disk on fire"), ports.Internal, nil},
		{"a deadline in the plugin is a deadline", fmt.Errorf("query: %w", context.DeadlineExceeded), ports.Deadline, context.DeadlineExceeded},
		{"a cancellation in the plugin is a cancellation", fmt.Errorf("query: %w", context.Canceled), ports.Canceled, context.Canceled},
		{"a text that is no UTF-8 is made one", ports.Errorf(ports.Invalid, "", "refused \xf1\x00 here"), ports.Invalid, nil},
		{"a text of a megabyte is cut", ports.Errorf(ports.Conflict, "", "%s", strings.Repeat("ü", 1<<19)), ports.Conflict, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, _ := connect(t, &script{probe: func(context.Context) error { return c.fail }})
			err := client.Probe(t.Context(), ports.Queue)
			if got := ports.CodeOf(err); got != c.code {
				t.Fatalf("code %q (%v), want %q", got, err, c.code)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v is not recognised as %v", err, c.is)
			}
			if len(err.Error()) > 5000 {
				t.Errorf("the text has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestTheCallersOwnDeadlineIsADeadline(t *testing.T) {
	client, _ := connect(t, &script{probe: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := client.Probe(ctx, ports.Queue)
	if ports.CodeOf(err) != ports.Deadline || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestABrokenConnectionIsBackendGone(t *testing.T) {
	entered := make(chan struct{})
	client, cut := connect(t, &script{probe: func(ctx context.Context) error { close(entered); <-ctx.Done(); return ctx.Err() }})
	go func() { <-entered; cut() }()
	if err := client.Probe(t.Context(), ports.Queue); ports.CodeOf(err) != ports.BackendGone {
		t.Errorf("during the call: %v", err)
	}
	if err := client.Probe(t.Context(), ports.Queue); ports.CodeOf(err) != ports.BackendGone {
		t.Errorf("after it: %v", err)
	}
}

// follower is a backend without any power.
type follower struct{ ports.Backend }

func TestAPowerThatThePluginLacksIsUnimplemented(t *testing.T) {
	client, _ := connect(t, follower{})
	_, err := client.Item(t.Context(), "wi-1")
	if ports.CodeOf(err) != ports.Unimplemented {
		t.Errorf("Item: %v", err)
	}
	pending, err := client.Commit(t.Context(), batch(1, 1))
	if err == nil {
		_, err = pending.Wait(t.Context())
	}
	if ports.CodeOf(err) != ports.Unimplemented {
		t.Errorf("Commit: %v", err)
	}
}

func TestAPanicFailsOneCall(t *testing.T) {
	client, _ := connect(t, &script{
		probe:    func(context.Context) error { panic("no such luck") },
		position: func() (ports.Position, error) { return ports.Position{StoreID: "s"}, nil },
	})
	err := client.Probe(t.Context(), ports.Queue)
	if ports.CodeOf(err) != ports.Internal || !strings.Contains(err.Error(), "no such luck") {
		t.Errorf("the call that panicked: %v", err)
	}
	if p, err := client.Position(t.Context(), ports.Queue); err != nil || p.StoreID != "s" {
		t.Errorf("the next call: %v, %v", p, err)
	}
}

func TestRecordsUpToTheLimitPassAndLargerOnesAreTooLarge(t *testing.T) {
	var body []byte
	client, _ := connect(t, &script{
		put:  func(b ports.Batch) (ports.Applied, error) { body = b.Rows[0].Body; return ports.Applied{Done: 1}, nil },
		item: func(string) (ports.Row, error) { return ports.Row{Kind: ports.KindItem, Key: "k", Body: body}, nil },
	})
	for _, size := range []int{3900 << 10, 4100 << 10, ports.MaxRecordBytes} {
		row := ports.Row{Kind: ports.KindItem, Key: "k", Body: make([]byte, size)}
		if applied, err := client.Put(t.Context(), ports.Batch{Family: ports.Queue, Rows: []ports.Row{row}}); err != nil || applied.Done != 1 {
			t.Fatalf("put of %d bytes: %v, %v", size, applied, err)
		}
		if got, err := client.Item(t.Context(), "k"); err != nil || len(got.Body) != size {
			t.Fatalf("item of %d bytes: %d, %v", size, len(got.Body), err)
		}
	}
	over := ports.Row{Kind: ports.KindItem, Key: "k", Body: make([]byte, ports.MaxMessageBytes)}
	if _, err := client.Put(t.Context(), ports.Batch{Family: ports.Queue, Rows: []ports.Row{over}}); ports.CodeOf(err) != ports.TooLarge {
		t.Errorf("put over the limit: %v", err)
	}
	body = over.Body
	if _, err := client.Item(t.Context(), "k"); ports.CodeOf(err) != ports.TooLarge {
		t.Errorf("item over the limit: %v", err)
	}
}
