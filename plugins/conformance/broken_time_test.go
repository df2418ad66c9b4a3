package conformance

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/ports"
)

// Stores that do not do things in their time.
var timeDefects = []defect{
	{
		name: "is down", found: []string{"probe/answers"},
		of: func(right whole) *broken {
			return &broken{whole: right, probe: func(context.Context, ports.Family) error {
				return ports.Errorf(ports.Unavailable, "probe", "no connection")
			}}
		},
	},
	{
		name: "writes a record to see whether it can", found: []string{"probe/harmless"},
		of: func(right whole) *broken {
			return &broken{whole: right, probe: func(ctx context.Context, f ports.Family) error {
				row := ports.Row{Kind: ports.KindItem, Key: "probe", Body: []byte(`{"WorkItemHash":"probe"}`)}
				if f == ports.Manifest {
					row = ports.Row{Kind: ports.KindManifest, Key: "probe", Body: []byte(`{"Hash":"probe"}`)}
				}
				_, err := right.Put(ctx, ports.Batch{Family: f, Rows: []ports.Row{row}})
				return err
			}}
		},
	},
	{
		name: "takes the end of a context for a defect", found: []string{"deadlines/ended", "deadlines/short"},
		of: func(right whole) *broken {
			return &broken{whole: right, put: func(ctx context.Context, b ports.Batch) (ports.Applied, error) {
				applied, err := right.Put(ctx, b)
				if ctx.Err() != nil {
					return ports.Applied{}, ports.Errorf(ports.Internal, "put", "the transaction is gone")
				}
				return applied, err
			}}
		},
	},
	{
		name: "loses a Put beside another one", found: []string{"concurrency/own-writes"},
		of: func(right whole) *broken {
			var inside atomic.Int64
			return &broken{whole: right, put: func(ctx context.Context, b ports.Batch) (ports.Applied, error) {
				defer inside.Add(-1)
				if inside.Add(1) > 8 {
					return ports.Applied{Done: len(b.Rows)}, nil
				}
				<-time.After(time.Millisecond)
				return right.Put(ctx, b)
			}}
		},
	},
	{
		name: "lets reads wait for writes", found: []string{"concurrency/reads-beside-puts"},
		of: func(right whole) *broken {
			var mu sync.Mutex
			b := &broken{whole: right}
			b.put = func(ctx context.Context, batch ports.Batch) (ports.Applied, error) {
				mu.Lock()
				defer mu.Unlock()
				if len(batch.Rows) == ports.MaxBatchEntries {
					<-time.After(1500 * time.Millisecond)
				}
				return right.Put(ctx, batch)
			}
			b.item = func(ctx context.Context, key string) (ports.Row, error) {
				mu.Lock()
				defer mu.Unlock()
				if err := ctx.Err(); err != nil {
					return ports.Row{}, err
				}
				return right.Item(ctx, key)
			}
			return b
		},
	},
	{
		name: "moves the position and then puts the rows", found: []string{"durability/killed-in-a-put"},
		of: func(right whole) *broken {
			return &broken{whole: right, put: func(ctx context.Context, b ports.Batch) (ports.Applied, error) {
				if b.Position != nil {
					if _, err := right.Put(ctx, ports.Batch{Family: b.Family, Position: b.Position}); err != nil {
						return ports.Applied{}, err
					}
					<-time.After(20 * time.Millisecond)
				}
				return right.Put(ctx, b)
			}}
		},
	},
}
