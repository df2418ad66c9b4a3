package conformance

import (
	"bytes"
	"context"
	"strings"

	"holdfast/ports"
)

// Stores for which something is too large.
var sizeDefects = []defect{
	{
		name: "has a limit of its own", found: []string{"limits/message", "limits/record"},
		of: func(right whole) *broken {
			return &broken{whole: right, put: limited(right, ports.OverLimit("Body", "bytes", 4<<20, 5<<20))}
		},
	},
	{
		name: "does not say how large is too large", found: []string{"limits/refused"},
		of: func(right whole) *broken {
			return &broken{
				whole: right, put: limited(right, ports.Errorf(ports.Internal, "put", "maximum call stack size exceeded")),
				describe: func(d ports.Description) ports.Description {
					d.OptOuts = []ports.OptOut{{Of: "limits/record", Reason: "holds records up to 4 MiB"}}
					return d
				},
			}
		},
	},
	{
		name: "moves the position past a record that is too large", found: []string{"limits/beyond"},
		of: func(right whole) *broken {
			return &broken{whole: right, put: func(ctx context.Context, b ports.Batch) (ports.Applied, error) {
				for i, r := range b.Rows {
					if len(r.Body) > ports.MaxRecordBytes {
						_, _ = right.Put(ctx, ports.Batch{Family: b.Family, Rows: b.Rows[:i], Position: b.Position})
						return ports.Applied{Done: i}, ports.OverLimit("Body", "bytes", ports.MaxRecordBytes, int64(len(r.Body)))
					}
				}
				return right.Put(ctx, b)
			}}
		},
	},
	{
		name: "quotes a record that is too large", found: []string{"limits/beyond"},
		of: func(right whole) *broken {
			return &broken{whole: right, put: func(ctx context.Context, b ports.Batch) (ports.Applied, error) {
				for i, r := range b.Rows {
					if len(r.Body) > ports.MaxRecordBytes {
						applied, _ := right.Put(ctx, ports.Batch{Family: b.Family, Rows: b.Rows[:i]})
						refusal := ports.OverLimit("Body", "bytes", ports.MaxRecordBytes, int64(len(r.Body)))
						refusal.Message += ": " + string(r.Body[:200])
						return applied, refusal
					}
				}
				return right.Put(ctx, b)
			}}
		},
	},
	{
		name: "holds records that are not deep", found: []string{"limits/depth"},
		of: func(right whole) *broken {
			return &broken{whole: right, put: func(ctx context.Context, b ports.Batch) (ports.Applied, error) {
				for i, r := range b.Rows {
					if strings.Contains(string(r.Body), strings.Repeat("[", 100)) {
						return ports.Applied{Done: i}, ports.Errorf(ports.Invalid, "put", "is nested too deeply")
					}
				}
				return right.Put(ctx, b)
			}}
		},
	},
	{
		name: "never cuts a page", found: []string{"paging/bytes"},
		of: func(right whole) *broken {
			return &broken{whole: right, items: func(ctx context.Context, q ports.ItemQuery) (all ports.Page, err error) {
				for {
					page, err := right.Items(ctx, q)
					all.Rows = append(all.Rows, page.Rows...)
					if q.After = page.Next; err != nil || q.After == nil || len(all.Rows) >= q.Limit {
						all.Next = page.Next
						return all, err
					}
				}
			}}
		},
	},
	{
		name: "lists another spelling than it keeps", found: []string{"bytes/listed"},
		of: func(right whole) *broken {
			return &broken{whole: right, items: func(ctx context.Context, q ports.ItemQuery) (ports.Page, error) {
				page, err := right.Items(ctx, q)
				for i := range page.Rows {
					page.Rows[i].Body = bytes.ReplaceAll(page.Rows[i].Body, []byte(`\/`), []byte(`/`))
				}
				return page, err
			}}
		},
	},
}

// limited refuses a record of more than 4 MiB.
func limited(right whole, refusal *ports.Error) func(ctx context.Context, b ports.Batch) (ports.Applied, error) {
	return func(ctx context.Context, b ports.Batch) (ports.Applied, error) {
		for i, r := range b.Rows {
			if len(r.Body) > 4<<20 {
				return ports.Applied{Done: i}, refusal
			}
		}
		return right.Put(ctx, b)
	}
}
