package conformance

import (
	"context"
	"slices"

	"holdfast/ports"
)

// Stores that take a batch otherwise than it came.
var batchDefects = []defect{
	{
		name: "puts the rows of a batch in any order", found: []string{"put/in-order"},
		of: func(right whole) *broken {
			return &broken{whole: right, put: func(ctx context.Context, b ports.Batch) (ports.Applied, error) {
				b.Rows = slices.Clone(b.Rows)
				slices.Reverse(b.Rows)
				return right.Put(ctx, b)
			}}
		},
	},
	{
		name: "leaves out what is behind the first hundred rows", found: []string{"put/full-batch"},
		of: func(right whole) *broken {
			return &broken{whole: right, put: func(ctx context.Context, b ports.Batch) (ports.Applied, error) {
				n := len(b.Rows)
				b.Rows = b.Rows[:min(n, 100)]
				applied, err := right.Put(ctx, b)
				if err == nil {
					applied.Done = n
				}
				return applied, err
			}}
		},
	},
	{
		name: "refuses a batch without rows", found: []string{"put/empty", "position/moved-alone"},
		of: func(right whole) *broken {
			return &broken{whole: right, put: func(ctx context.Context, b ports.Batch) (ports.Applied, error) {
				if len(b.Rows) == 0 {
					return ports.Applied{}, ports.Errorf(ports.Invalid, "put", "there is nothing to put")
				}
				return right.Put(ctx, b)
			}}
		},
	},
	{
		name: "takes no batch that says where the store should be", found: []string{"position/after"},
		of: func(right whole) *broken {
			return &broken{whole: right, put: func(ctx context.Context, b ports.Batch) (ports.Applied, error) {
				if b.After != nil {
					return ports.Applied{}, ports.InField(ports.Conflict, ports.FieldPosition, "is not known")
				}
				return right.Put(ctx, b)
			}}
		},
	},
	{
		name: "takes a Seq of 0 for another position than none", found: []string{"position/after"},
		of: func(right whole) *broken {
			return &broken{whole: right, put: func(ctx context.Context, b ports.Batch) (ports.Applied, error) {
				if b.After != nil && len(b.After.Seqs) > len(positive(b.After.Seqs)) {
					return ports.Applied{}, ports.InField(ports.Conflict, ports.FieldPosition, "is another one")
				}
				return right.Put(ctx, b)
			}}
		},
	},
	{
		name: "is somewhere before it was told", found: []string{"position/new"},
		of: func(right whole) *broken {
			return &broken{whole: right, position: func(ctx context.Context, f ports.Family) (ports.Position, error) {
				p, err := right.Position(ctx, f)
				if len(p.Seqs) == 0 {
					p.Seqs = map[string]uint64{anyHost: 1}
				}
				return p, err
			}}
		},
	},
	{
		name: "stamps rows itself", found: []string{"order/stamps"},
		of: func(right whole) *broken {
			return &broken{whole: right, put: func(ctx context.Context, b ports.Batch) (ports.Applied, error) {
				return right.Put(ctx, bodies(b, func(r *ports.Row) []byte {
					r.First.Actor, r.First.Origin = "tape", ports.OriginImport
					return r.Body
				}))
			}}
		},
	},
	{
		name: "wants the item before its events", found: []string{"order/orphans"},
		of: func(right whole) *broken {
			return &broken{whole: right, put: func(ctx context.Context, b ports.Batch) (ports.Applied, error) {
				for i, r := range b.Rows {
					if _, err := right.Item(ctx, r.Key); several(r.Kind) && err != nil {
						return ports.Applied{Done: i}, ports.Errorf(ports.Invalid, "put", "violates a foreign key")
					}
				}
				return right.Put(ctx, b)
			}}
		},
	},
	{
		name: "is down for good after a bad record", found: []string{"errors/survived"},
		of: func(right whole) *broken {
			var down error
			return &broken{whole: right, put: func(ctx context.Context, b ports.Batch) (ports.Applied, error) {
				if down != nil {
					return ports.Applied{}, down
				}
				applied, err := right.Put(ctx, b)
				if err != nil {
					down = ports.Errorf(ports.Unavailable, "put", "the transaction was aborted")
				}
				return applied, err
			}}
		},
	},
}
