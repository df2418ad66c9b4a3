package sqlite

import (
	"context"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// Manifest gives one manifest, whole; see ports.ManifestReader.
func (s *Store) Manifest(ctx context.Context, key string) (ports.Row, error) {
	return s.one(ctx, manifests, key)
}

// Manifests lists manifests by OrderKey; see ports.ManifestReader.
func (s *Store) Manifests(ctx context.Context, q ports.ManifestQuery) (ports.Page, error) {
	const op = "sqlite: list manifests"
	f, err := s.open(ctx)
	if err != nil {
		return ports.Page{}, err
	}
	l := listOf(tables.ManifestList(&q))
	page, err := s.walk(ctx, f, newScanner(manifests, !q.Bodies, leadColumns), l, tables.NewPager(q.Limit))
	return page, s.readFault(ctx, op, err)
}
