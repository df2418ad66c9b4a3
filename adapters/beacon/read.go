package beacon

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"holdfast/ports"
)

// Reads by key. A record is answered only when the beacon gives back exactly what was put (imprint.go); everything else fails,
// and the router asks the next backend.

// Item reads a work item; see ports.ItemReader.
func (b *Backend) Item(ctx context.Context, key string) (ports.Row, error) {
	return b.one(ctx, ports.KindItem, key)
}

// Manifest reads a manifest; see ports.ManifestReader.
func (b *Backend) Manifest(ctx context.Context, key string) (ports.Row, error) {
	return b.one(ctx, ports.KindManifest, key)
}

func (b *Backend) one(ctx context.Context, kind ports.Kind, key string) (row ports.Row, err error) {
	return row, b.read(ctx, kind.Family(), func(at seat) error {
		_, text, err := at.record(ctx, ports.ClassRead, key)
		switch {
		case err != nil:
			return err
		case text == nil:
			return ports.Errorf(ports.NotFound, "beacon", "there is no %s with this key", kind)
		}
		row, err = restore(kind, key, text)
		return err
	})
}

// read asks a family's beacon, and asks afterwards whether it still was the same.
func (b *Backend) read(ctx context.Context, f ports.Family, ask func(at seat) error) error {
	h, err := b.half(f)
	if err != nil {
		return err
	}
	at, err := h.ready(ctx)
	if err != nil {
		return err
	}
	if err := h.shows(); err != nil {
		return err
	}
	err = ask(at)
	if err == nil || ports.CodeOf(err) == ports.NotFound {
		if moved := h.confirm(ctx, at); moved != nil {
			return moved
		}
	}
	return err
}

// Events reads the events of a work item, in the order of their OrderKey; see ports.EventReader. The beacon gives all of them at
// once. It fails with Unimplemented where one of them is not as it was put.
func (b *Backend) Events(ctx context.Context, q ports.EventQuery) (page ports.Page, err error) {
	var rows []ports.Row
	err = b.read(ctx, ports.Queue, func(at seat) error {
		texts, err := at.eventTexts(ctx, ports.ClassRead, q.Key)
		if ports.CodeOf(err) == ports.TooLarge {
			return ports.Errorf(ports.Unimplemented, "beacon", "the key has more events than a beacon shows")
		}
		seen := map[string]bool{}
		for _, text := range texts {
			row, err := restore(ports.KindEvent, q.Key, text)
			if err != nil {
				return err
			}
			if row.GUID == "" {
				return notKept(ports.KindEvent, "it has no EventGUID")
			}
			if !seen[row.GUID] {
				rows = append(rows, row)
			}
			seen[row.GUID] = true
		}
		return err
	})
	if err != nil {
		return ports.Page{}, err
	}
	return cut(rows, &q)
}

// cut gives the page of a list that a query asks for.
func cut(rows []ports.Row, q *ports.EventQuery) (ports.Page, error) {
	place := func(r *ports.Row) ports.Cursor { return ports.Cursor{Sort: r.First.OrderKey, Key: r.GUID} }
	order := func(a, b ports.Cursor) int {
		by := cmp.Or(strings.Compare(a.Sort, b.Sort), strings.Compare(a.Key, b.Key))
		if q.Desc {
			return -by
		}
		return by
	}
	slices.SortFunc(rows, func(a, b ports.Row) int { return order(place(&a), place(&b)) })
	if q.After != nil {
		rows = slices.DeleteFunc(rows, func(r ports.Row) bool { return order(place(&r), *q.After) <= 0 })
	}
	limit := q.Limit
	if limit <= 0 {
		limit = usualPage
	}
	var page ports.Page
	size := 0
	for i := range rows {
		if !q.Bodies {
			if err := lean(&rows[i]); err != nil {
				return ports.Page{}, err
			}
		}
		size += len(rows[i].Body) + len(rows[i].Key) + besideBody
		if i == limit || i > 0 && size > ports.MaxPageBytes {
			next := place(&rows[i-1])
			page.Next = &next
			break
		}
		page.Rows = append(page.Rows, rows[i])
	}
	return page, nil
}

const (
	usualPage  = 500
	besideBody = 200 // what of a row travels beside its body
)

// lean takes the payload off.
func lean(row *ports.Row) error {
	r, err := ports.ParseRecord(ports.Events, row.Body)
	if err != nil {
		return ports.Wrap(ports.Internal, "beacon", err)
	}
	r.Drop("Payload")
	row.Body = r.JSON()
	return nil
}

// errNoLists sends the router on: a beacon's lists are neither filtered nor paged as callers may rely on.
var errNoLists = ports.Errorf(ports.Unimplemented, "beacon", "gives no lists, only records by key")

// Items is not offered: a list of a beacon is cut without a word, and has no cursor.
func (b *Backend) Items(context.Context, ports.ItemQuery) (ports.Page, error) {
	return ports.Page{}, errNoLists
}

// Manifests is not offered, for the same reason.
func (b *Backend) Manifests(context.Context, ports.ManifestQuery) (ports.Page, error) {
	return ports.Page{}, errNoLists
}
