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
	list := listOf(tables.ManifestList(&q))
	return view(ctx, d, "postgres: list manifests", func(ctx context.Context, r *reading) (ports.Page, error) {
		l := *list // it moves on
		return l.fill(ctx, r, tables.NewPager(q.Limit), !q.Bodies, b.searchLimit)
	})
}
