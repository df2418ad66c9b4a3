package conformance

import (
	"context"
	"slices"
	"sync"

	"holdfast/ports"
)

// Local stores that are not the truth.
var localDefects = []defect{
	{
		name: "does not care when a hub sent a write", found: []string{"hub/overtaken", "hub/redelivered", "hub/manifest-overtaken", "hub/any-order", "hub/any-order-manifest", "hub/early"},
		of: func(right whole) *broken {
			return &broken{whole: right, commit: func(ctx context.Context, b ports.CommitBatch) (ports.Pending, error) {
				b.Entries = slices.Clone(b.Entries)
				for i := range b.Entries {
					b.Entries[i].Stamp = ports.Stamp{}
				}
				return right.Commit(ctx, b)
			}}
		},
	},
	{
		name: "takes the time alone for the order", found: []string{"hub/same-millisecond", "hub/clock-set-back"},
		of: func(right whole) *broken {
			return &broken{whole: right, commit: func(ctx context.Context, b ports.CommitBatch) (ports.Pending, error) {
				b.Entries = slices.Clone(b.Entries)
				for i := range b.Entries {
					if e := &b.Entries[i]; !e.Stamp.IsZero() {
						e.Stamp.Count = 1
					}
				}
				return right.Commit(ctx, b)
			}}
		},
	},
	{
		name: "lets an early write wait only a minute", found: []string{"hub/early-expires"},
		of: func(right whole) *broken {
			return &broken{whole: right, commit: func(ctx context.Context, b ports.CommitBatch) (ports.Pending, error) {
				b.Entries = slices.Clone(b.Entries)
				for i := range b.Entries {
					if ms := b.Entries[i].ReceivedMs; ms > firstMs+100_000 {
						b.Entries[i].ReceivedMs = ms + 60_000
					}
				}
				return right.Commit(ctx, b)
			}}
		},
	},
	{
		name: "applies a late twin again", found: []string{"commit/twin"},
		of: func(right whole) *broken {
			var mu sync.Mutex
			var through uint64
			return &broken{whole: right, commit: func(ctx context.Context, b ports.CommitBatch) (ports.Pending, error) {
				mu.Lock()
				defer mu.Unlock()
				pending, err := right.Commit(ctx, b)
				if err != nil || b.Through > through {
					through = max(through, b.Through)
					return pending, err
				}
				for _, e := range b.Entries {
					present, err := right.Item(ctx, e.Key)
					if e.Action.Family() != ports.Queue || e.Record == nil || err != nil {
						continue
					}
					present.Body = mergedWith(present.Body, e.Record)
					if _, err := right.Put(ctx, ports.Batch{Family: ports.Queue, Rows: []ports.Row{present}}); err != nil {
						return nil, err
					}
				}
				return pending, nil
			}}
		},
	},
	{
		name: "takes a batch behind a gap", found: []string{"commit/gap"},
		of: func(right whole) *broken {
			var mu sync.Mutex
			var through uint64
			return &broken{whole: right, commit: func(ctx context.Context, b ports.CommitBatch) (ports.Pending, error) {
				mu.Lock()
				defer mu.Unlock()
				if b.Family == ports.Queue && b.After > through {
					b.After = through
				}
				if b.Family == ports.Queue {
					through = max(through, b.Through)
				}
				return right.Commit(ctx, b)
			}}
		},
	},
	{
		name: "decides what comes again as if it were new", found: []string{"decide/again-item-earlier", "decide/again-event-expired", "decide/again-manifest-aged"},
		of: func(right whole) *broken {
			return &broken{whole: right, commit: func(ctx context.Context, b ports.CommitBatch) (ports.Pending, error) {
				live := make([]ports.Entry, len(b.Entries))
				for i, e := range b.Entries {
					e.Class = ports.Live
					live[i] = e
				}
				b.Entries = live
				return right.Commit(ctx, b)
			}}
		},
	},
	{
		name: "lets a change out", found: []string{"changes/present-state", "freshness/followed"},
		of: func(right whole) *broken {
			return &broken{whole: right, changes: func(ctx context.Context, q ports.ChangesQuery) (ports.ChangePage, error) {
				page, err := right.Changes(ctx, q)
				if n := len(page.Rows); n > 1 {
					page.Rows = page.Rows[:n-1]
				}
				return page, err
			}}
		},
	},
	{
		name: "ends a page of changes inside a Seq", found: []string{"changes/one-seq"},
		of: func(right whole) *broken {
			return &broken{whole: right, changes: func(ctx context.Context, q ports.ChangesQuery) (ports.ChangePage, error) {
				page, err := right.Changes(ctx, q)
				if q.Limit > 0 && len(page.Rows) > q.Limit {
					page.Rows = page.Rows[:q.Limit]
				}
				return page, err
			}}
		},
	},
	{
		name: "takes a position of any history", found: []string{"changes/another-history"},
		of: func(right whole) *broken {
			return &broken{whole: right, changes: func(ctx context.Context, q ports.ChangesQuery) (ports.ChangePage, error) {
				if p, err := right.Position(ctx, q.Family); err == nil {
					q.After.Epoch = p.Epoch
				}
				return right.Changes(ctx, q)
			}}
		},
	},
	{
		name: "opens for any nonce", found: []string{"epochs/nonce"},
		of: func(right whole) *broken {
			return &broken{whole: right, open: func(ctx context.Context, o ports.Opening) error {
				if s, err := right.Stand(ctx, o.HostID); err == nil {
					o.Nonce = s.Nonce
				}
				return right.Open(ctx, o)
			}}
		},
	},
}
