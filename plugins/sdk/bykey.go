package sdk

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"holdfast/ports"
)

// ByKey reads the rows of one key, in any order: those of an item, its events and its attempts, and of a manifest. It makes
// every reader that reads by key, so a store that can do this one thing embeds it:
//
//	type Store struct {
//		sdk.ByKey // Item, Events, Attempts and Manifest
//	}
//
// Lists of items and manifests are unimplemented. A store that overwrites Items and Manifests offers them too.
type ByKey func(ctx context.Context, key string) ([]ports.Row, error)

var (
	_ ports.ItemReader     = ByKey(nil)
	_ ports.EventReader    = ByKey(nil)
	_ ports.AttemptReader  = ByKey(nil)
	_ ports.ManifestReader = ByKey(nil)
)

func (read ByKey) Item(ctx context.Context, key string) (ports.Row, error) {
	return read.one(ctx, ports.KindItem, key)
}

func (read ByKey) Manifest(ctx context.Context, key string) (ports.Row, error) {
	return read.one(ctx, ports.KindManifest, key)
}

func (ByKey) Items(context.Context, ports.ItemQuery) (ports.Page, error) {
	return ports.Page{}, ports.Errorf(ports.Unimplemented, "list work items", "this backend reads by key only")
}

func (ByKey) Manifests(context.Context, ports.ManifestQuery) (ports.Page, error) {
	return ports.Page{}, ports.Errorf(ports.Unimplemented, "list manifests", "this backend reads by key only")
}

func (read ByKey) Events(ctx context.Context, q ports.EventQuery) (ports.Page, error) {
	rows, err := read.of(ctx, ports.KindEvent, q.Key)
	if err != nil {
		return ports.Page{}, err
	}
	p := PageOf(rows, func(r *ports.Row) ports.Cursor { return ports.Cursor{Sort: r.First.OrderKey, Key: r.GUID} }, q.After, q.Desc, q.Limit)
	for i := range p.Rows {
		if q.Bodies {
			break
		}
		if p.Rows[i].Body, err = without(ports.Events, p.Rows[i].Body, "Payload"); err != nil {
			return ports.Page{}, err
		}
	}
	return p, nil
}

func (read ByKey) Attempts(ctx context.Context, q ports.AttemptQuery) (ports.Page, error) {
	rows, err := read.of(ctx, ports.KindAttempt, q.Key)
	return PageOf(rows, func(r *ports.Row) ports.Cursor {
		return ports.Cursor{Sort: r.Key, Key: r.Key, Kind: ports.KindAttempt, Num: r.Number}
	}, q.After, false, q.Limit), err
}

func (read ByKey) of(ctx context.Context, kind ports.Kind, key string) ([]ports.Row, error) {
	rows, err := read(ctx, key)
	return slices.DeleteFunc(slices.Clone(rows), func(r ports.Row) bool { return r.Kind != kind }), err
}

func (read ByKey) one(ctx context.Context, kind ports.Kind, key string) (ports.Row, error) {
	rows, err := read.of(ctx, kind, key)
	if err != nil {
		return ports.Row{}, err
	}
	if len(rows) == 0 {
		return ports.Row{}, ports.Errorf(ports.NotFound, "read", "there is no %s with this key", kind)
	}
	return rows[0], nil
}

// without gives a record's text with some members taken off.
func without(t *ports.Table, body []byte, members ...string) ([]byte, error) {
	r, err := ports.ParseRecord(t, body)
	if err != nil {
		return nil, ports.Wrap(ports.Internal, "read", err)
	}
	r.Drop(members...)
	return r.JSON(), nil
}

// Replaced gives a key's rows as they are once one of them was put: it takes the place of its record, or is added, or, gone, takes
// its record away. The rows that were given are left as they are, for whoever reads them.
func Replaced(rows []ports.Row, with ports.Row) []ports.Row {
	left := slices.DeleteFunc(slices.Clone(rows), func(r ports.Row) bool {
		return r.Kind == with.Kind && r.GUID == with.GUID && r.Number == with.Number
	})
	if with.Gone {
		return left
	}
	return append(left, with)
}

// PageOf makes a page of all rows that a query asks for, given in any order: it sorts them by their places, goes on behind after, and
// cuts at the limit and at what a page may hold.
func PageOf(rows []ports.Row, place func(*ports.Row) ports.Cursor, after *ports.Cursor, desc bool, limit int) ports.Page {
	order := func(a, b ports.Cursor) int {
		n := cmp.Or(strings.Compare(a.Sort, b.Sort), strings.Compare(a.Key, b.Key), cmp.Compare(a.Num, b.Num))
		if desc {
			return -n
		}
		return n
	}
	if limit < 1 {
		limit = ports.MaxBatchEntries
	}
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b ports.Row) int { return order(place(&a), place(&b)) })
	var page ports.Page
	size := 0
	for i := range rows {
		at := place(&rows[i])
		if after != nil && order(at, *after) <= 0 {
			continue
		}
		size += len(rows[i].Body)
		if n := len(page.Rows); n == limit || n > 0 && size > ports.MaxPageBytes {
			last := place(&page.Rows[n-1])
			page.Next = &last
			break
		}
		page.Rows = append(page.Rows, rows[i])
	}
	return page
}
