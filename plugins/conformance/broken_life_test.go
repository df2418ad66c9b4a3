package conformance

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/ports"
)

// Stores whose life is not what it should be.
var lifeDefects = []defect{
	{
		name: "takes work after Drain", found: []string{"drain/refuses", "drain/finishes"},
		of: func(right whole) *broken {
			return &broken{whole: right, drain: func(context.Context) error { return nil }}
		},
	},
	{
		name: "says another thing each time", found: []string{"describe/names"},
		of: func(right whole) *broken {
			var times atomic.Int64
			return &broken{whole: right, describe: func(d ports.Description) ports.Description {
				d.Slots = int(times.Add(1))
				return d
			}}
		},
	},
	{
		name: "has the id of every other store", found: []string{"position/store-id"},
		of: func(right whole) *broken {
			return &broken{whole: right, position: func(ctx context.Context, f ports.Family) (ports.Position, error) {
				p, err := right.Position(ctx, f)
				p.StoreID = "my-store"
				return p, err
			}}
		},
	},
	{
		name: "finds another id at each start", found: []string{"durability/position"},
		of: func(right whole) *broken {
			at := new(int)
			return &broken{whole: right, position: func(ctx context.Context, f ports.Family) (ports.Position, error) {
				p, err := right.Position(ctx, f)
				p.StoreID += nameOfStart(at)
				return p, err
			}}
		},
	},
	{
		name: "mixes two states of a record", found: []string{"concurrency/one-key"},
		of: mixesStates,
	},
	{
		name: "declares what it does not have", found: []string{"errors/not-offered"},
		of: func(right whole) *broken {
			return &broken{whole: right, events: func(context.Context, ports.EventQuery) (ports.Page, error) {
				return ports.Page{}, ports.Errorf(ports.Unimplemented, "events", "not yet")
			}}
		},
	},
}

// nameOfStart tells one start from another.
func nameOfStart(at *int) string {
	starts.Lock()
	defer starts.Unlock()
	if *at == 0 {
		starts.n++
		*at = starts.n
	}
	return "-" + string(rune('a'+*at%26))
}

var starts struct {
	sync.Mutex
	n int
}

// mixesStates writes the members of a record one after the other, and somebody reads between.
func mixesStates(right whole) *broken {
	reads := make(chan struct{})
	b := &broken{whole: right}
	b.item = func(ctx context.Context, key string) (ports.Row, error) {
		row, err := right.Item(ctx, key)
		select {
		case reads <- struct{}{}:
		default:
		}
		return row, err
	}
	b.put = func(ctx context.Context, batch ports.Batch) (ports.Applied, error) {
		for _, r := range batch.Rows {
			present, err := right.Item(ctx, r.Key)
			if r.Kind != ports.KindItem || err != nil {
				continue
			}
			present.Body = mergedWith(present.Body, rebuilt(members(r.Body), func(m ports.Member) bool { return m.Name == "Status" }))
			if _, err := right.Put(ctx, ports.Batch{Family: batch.Family, Rows: []ports.Row{present}}); err != nil {
				return ports.Applied{}, err
			}
			for range 2 { // the first may have begun before
				select {
				case <-reads:
				case <-time.After(20 * time.Millisecond):
				}
			}
		}
		return right.Put(ctx, batch)
	}
	return b
}
