package conformance

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"holdfast/ports"
)

// Stores whose lists are not those that were asked for.
var listDefects = []defect{
	{
		name: "lists manifests by their names", found: []string{"lists/manifests"},
		of: func(right whole) *broken {
			return &broken{whole: right, manifests: func(ctx context.Context, q ports.ManifestQuery) (ports.Page, error) {
				page, err := right.Manifests(ctx, q)
				return resorted(page, func(a, b ports.Row) int { return strings.Compare(a.Key, b.Key) }), err
			}}
		},
	},
	{
		name: "takes To into the window", found: []string{"lists/manifest-filters"},
		of: func(right whole) *broken {
			return &broken{whole: right, manifests: func(ctx context.Context, q ports.ManifestQuery) (ports.Page, error) {
				if q.To != "" {
					q.To += "z"
				}
				return right.Manifests(ctx, q)
			}}
		},
	},
	{
		name: "lists every manifest whole", found: []string{"lists/manifest-bodies"},
		of: func(right whole) *broken {
			return &broken{whole: right, manifests: func(ctx context.Context, q ports.ManifestQuery) (ports.Page, error) {
				q.Bodies = true
				return right.Manifests(ctx, q)
			}}
		},
	},
	{
		name: "searches for a pattern", found: []string{"lists/item-search"},
		of: func(right whole) *broken {
			return &broken{whole: right, items: func(ctx context.Context, q ports.ItemQuery) (ports.Page, error) {
				q.Filter.ErrorText = strings.Trim(q.Filter.ErrorText, "%")
				return right.Items(ctx, q)
			}}
		},
	},
	{
		name: "answers lists from a cache", found: []string{"lists/moved"},
		of: func(right whole) *broken {
			var mu sync.Mutex
			known := map[string]ports.Page{}
			return &broken{whole: right, items: func(ctx context.Context, q ports.ItemQuery) (page ports.Page, err error) {
				mu.Lock()
				defer mu.Unlock()
				key := fmt.Sprintf("%+v", q)
				page, has := known[key]
				if !has {
					page, err = right.Items(ctx, q)
					known[key] = page
				}
				return page, err
			}}
		},
	},
	{
		name: "orders attempts as texts", found: []string{"readers/attempts"},
		of: func(right whole) *broken {
			return &broken{whole: right, attempts: func(ctx context.Context, q ports.AttemptQuery) (ports.Page, error) {
				page, err := right.Attempts(ctx, q)
				return resorted(page, func(a, b ports.Row) int {
					return strings.Compare(strconv.FormatInt(a.Number, 10), strconv.FormatInt(b.Number, 10))
				}), err
			}}
		},
	},
	{
		name: "gives events whole", found: []string{"readers/event-bodies"},
		of: func(right whole) *broken {
			return &broken{whole: right, events: func(ctx context.Context, q ports.EventQuery) (ports.Page, error) {
				q.Bodies = true
				return right.Events(ctx, q)
			}}
		},
	},
	{
		name: "begins a page with the last row of the one before", found: []string{"paging/manifests"},
		of: func(right whole) *broken {
			return &broken{whole: right, manifests: func(ctx context.Context, q ports.ManifestQuery) (ports.Page, error) {
				if q.After != nil && !q.Desc && q.Limit > 2 {
					q.After = &ports.Cursor{Sort: q.After.Sort, Key: q.After.Key[:len(q.After.Key)-1]}
				}
				return right.Manifests(ctx, q)
			}}
		},
	},
	{
		name: "pages through events by time alone", found: []string{"paging/events"},
		of: func(right whole) *broken {
			return &broken{whole: right, events: func(ctx context.Context, q ports.EventQuery) (ports.Page, error) {
				if q.After != nil && !q.Desc {
					q.After = &ports.Cursor{Sort: q.After.Sort, Key: "~"}
				}
				return right.Events(ctx, q)
			}}
		},
	},
	{
		name: "takes the number of an attempt for its place", found: []string{"paging/attempts"},
		of: func(right whole) *broken {
			return &broken{whole: right, attempts: func(ctx context.Context, q ports.AttemptQuery) (ports.Page, error) {
				if q.After == nil {
					return right.Attempts(ctx, q)
				}
				skip := int(q.After.Num) + 1 // as if they began at 0
				limit := q.Limit
				q.After, q.Limit = nil, skip+limit
				page, err := right.Attempts(ctx, q)
				page.Rows = slices.Clone(page.Rows[min(skip, len(page.Rows)):])
				return page, err
			}}
		},
	},
}
