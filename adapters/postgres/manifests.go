package postgres

import (
	"context"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// Manifest gives one manifest, whole; see ports.ManifestReader.
func (b *Backend) Manifest(ctx context.Context, key string) (ports.Row, error) {
	return b.one(ctx, manifests, key)
}

// Manifests lists manifests by OrderKey; see ports.ManifestReader.
func (b *Backend) Manifests(ctx context.Context, q ports.ManifestQuery) (ports.Page, error) {
	d, err := b.open(ctx)
	if err != nil {
		return ports.Page{}, err
	}
	list := manifestList(&q)
	return view(ctx, d, "postgres: list manifests", func(ctx context.Context, r *reading) (ports.Page, error) {
		l := *list // it moves on
		return l.fill(ctx, r, tables.NewPager(q.Limit), !q.Bodies, b.searchLimit)
	})
}

func manifestList(q *ports.ManifestQuery) *listing {
	l := &listing{layout: manifests, sort: "OrderKey", key: "Hash", desc: q.Desc, after: q.After, from: q.From, to: q.To}
	switch {
	case q.OperationHash != "":
		l.along("OperationHash", q.OperationHash)
		l.test("Status", q.Status...)
	case len(q.Status) > 0 && len(q.Status) <= maxBranches:
		l.along("Status", q.Status...)
	default:
		l.test("Status", q.Status...)
	}
	return l
}
