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
	l := &listing{layout: manifests, sort: "OrderKey", key: "Hash", desc: q.Desc, after: q.After, from: q.From, to: q.To}
	switch {
	case q.OperationHash != "":
		l.along("IX_UVManifest_OpHash", "OperationHash", q.OperationHash)
		l.testStatus(q.Status)
	case len(q.Status) > 0 && len(q.Status) <= maxBranches:
		l.along("IX_UVManifest_StatusOrder", "Status", q.Status...)
	default:
		l.along("IX_UVManifest_Order", "")
		l.testStatus(q.Status)
	}
	page, err := s.walk(ctx, f, newScanner(manifests, !q.Bodies, leadColumns), l, tables.NewPager(q.Limit))
	return page, s.readFault(ctx, op, err)
}
