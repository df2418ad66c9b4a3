package conformance

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode/utf16"

	"holdfast/ports"
)

// Stores that read something else than what is there.
var readDefects = []defect{
	{
		name: "loses the order of keys", found: []string{"lists/items"},
		of: func(right whole) *broken {
			return &broken{whole: right, items: func(ctx context.Context, q ports.ItemQuery) (ports.Page, error) {
				page, err := right.Items(ctx, q)
				slices.Reverse(page.Rows)
				if q.Desc {
					slices.Reverse(page.Rows)
				}
				return resorted(page, byTime), err
			}}
		},
	},
	{
		name: "orders keys as JavaScript does", found: []string{"lists/items"},
		of: func(right whole) *broken {
			return &broken{whole: right, items: func(ctx context.Context, q ports.ItemQuery) (ports.Page, error) {
				page, err := right.Items(ctx, q)
				sign := map[bool]int{true: -1, false: 1}[q.Desc]
				return resorted(page, func(a, b ports.Row) int {
					return sign * cmp.Or(byTime(a, b), slices.Compare(utf16.Encode([]rune(a.Key)), utf16.Encode([]rune(b.Key))))
				}), err
			}}
		},
	},
	{
		name: "skips rows of one time at the border of a page", found: []string{"paging/items"},
		of: func(right whole) *broken {
			return &broken{whole: right, items: func(ctx context.Context, q ports.ItemQuery) (ports.Page, error) {
				if q.After != nil && !q.Desc {
					q.After = &ports.Cursor{Sort: q.After.Sort, Key: "\U0010FFFF"}
				}
				return right.Items(ctx, q)
			}}
		},
	},
	{
		name: "pages by the number of rows", found: []string{"paging/changes", "paging/cursors"},
		of: pagesByNumber,
	},
	{
		name: "gives cursors that only it can read", found: []string{"paging/cursors", "paging/elsewhere"},
		of: func(right whole) *broken {
			seen := map[ports.Cursor]ports.Cursor{}
			return &broken{whole: right, manifests: func(ctx context.Context, q ports.ManifestQuery) (ports.Page, error) {
				if q.After != nil {
					if own, has := seen[*q.After]; has {
						q.After = &own
					}
				}
				page, err := right.Manifests(ctx, q)
				if page.Next != nil {
					private := ports.Cursor{Sort: "c", Key: page.Next.Key}
					seen[private], page.Next = *page.Next, &private
				}
				return page, err
			}}
		},
	},
	{
		name: "takes no account of case in keys", found: []string{"readers/item"},
		of: func(right whole) *broken {
			b := &broken{whole: right}
			b.put = func(ctx context.Context, batch ports.Batch) (ports.Applied, error) {
				return right.Put(ctx, bodies(batch, func(r *ports.Row) []byte {
					if r.Kind == ports.KindItem {
						r.Key = strings.ToLower(r.Key)
					}
					return r.Body
				}))
			}
			b.item = func(ctx context.Context, key string) (ports.Row, error) {
				row, err := right.Item(ctx, strings.ToLower(key))
				row.Key = key
				return row, err
			}
			return b
		},
	},
	{
		name: "takes no account of case in filters", found: []string{"lists/item-filters"},
		of: func(right whole) *broken {
			return &broken{whole: right, items: func(ctx context.Context, q ports.ItemQuery) (ports.Page, error) {
				if slices.Contains(q.Filter.Status, "Pending") {
					q.Filter.Status = append(slices.Clone(q.Filter.Status), "pending")
				}
				return right.Items(ctx, q)
			}}
		},
	},
	{
		name: "calls an unknown key its own defect", found: []string{"readers/item", "put/removed"},
		of: func(right whole) *broken {
			return &broken{whole: right, item: func(ctx context.Context, key string) (ports.Row, error) {
				row, err := right.Item(ctx, key)
				if err != nil {
					err = ports.Errorf(ports.Internal, "read", "cannot read properties of undefined")
				}
				return row, err
			}}
		},
	},
	{
		name: "refuses a list of an unknown key", found: []string{"readers/events"},
		of: func(right whole) *broken {
			return &broken{whole: right, events: func(ctx context.Context, q ports.EventQuery) (ports.Page, error) {
				page, err := right.Events(ctx, q)
				if err == nil && len(page.Rows) == 0 {
					err = ports.Errorf(ports.NotFound, "events", "there are none")
				}
				return page, err
			}}
		},
	},
	{
		name: "lists bodies that nobody asked for", found: []string{"lists/item-bodies"},
		of: func(right whole) *broken {
			return &broken{whole: right, items: func(ctx context.Context, q ports.ItemQuery) (ports.Page, error) {
				q.Bodies = true
				return right.Items(ctx, q)
			}}
		},
	},
	{
		name: "sorts numbers as texts", found: []string{"lists/items-by-column"},
		of: func(right whole) *broken {
			return &broken{whole: right, items: func(ctx context.Context, q ports.ItemQuery) (ports.Page, error) {
				page, err := right.Items(ctx, q)
				if q.OrderBy != "Priority" {
					return page, err
				}
				return resorted(page, func(a, b ports.Row) int {
					return bytes.Compare(value(members(a.Body), "Priority"), value(members(b.Body), "Priority"))
				}), err
			}}
		},
	},
	{
		name: "sorts by nothing when it does not know the column", found: []string{"lists/no-column"},
		of: func(right whole) *broken {
			return &broken{whole: right, items: func(ctx context.Context, q ports.ItemQuery) (ports.Page, error) {
				page, err := right.Items(ctx, q)
				if err != nil {
					q.OrderBy = ""
					return right.Items(ctx, q)
				}
				return page, err
			}}
		},
	},
	{
		name: "hangs on one call", found: []string{"readers/manifest"},
		of: func(right whole) *broken {
			closed := make(chan struct{})
			b := &broken{whole: right}
			b.manifest = func(context.Context, string) (ports.Row, error) {
				<-closed
				return ports.Row{}, ports.Errorf(ports.Unavailable, "read", "closed")
			}
			b.close = func() error {
				close(closed)
				return right.Close()
			}
			return b
		},
	},
}

// pagesByNumber begins a page behind as many rows as it gave already.
func pagesByNumber(right whole) *broken {
	given := map[ports.Cursor]int{}
	return &broken{whole: right, manifests: func(ctx context.Context, q ports.ManifestQuery) (ports.Page, error) {
		skip := 0
		if q.After != nil {
			skip = given[*q.After]
		}
		limit := q.Limit
		q.After, q.Limit = nil, skip+limit
		page, err := right.Manifests(ctx, q)
		page.Rows = page.Rows[min(skip, len(page.Rows)):]
		if page.Next != nil {
			given[*page.Next] = skip + len(page.Rows)
		}
		return page, err
	}}
}
