package core

import (
	"context"

	"holdfast/ports"
)

// How a repair goes through a backend key by key.

// canWalk asks whether the side can list a family at all.
func (s *side) canWalk(ctx context.Context, f ports.Family) (bool, error) {
	err := s.ask(ctx, func(ctx context.Context) (err error) {
		switch {
		case s.exporter != nil:
			_, err = s.exporter.Export(ctx, ports.ExportQuery{Family: f, Limit: 1})
		case f == ports.Manifest && s.manifests != nil:
			_, err = s.manifests.Manifests(ctx, ports.ManifestQuery{Limit: 1})
		case f == ports.Queue && s.looksUp(f):
			_, err = s.items.Items(ctx, ports.ItemQuery{Limit: 1})
		default:
			err = s.cannot(f)
		}
		return err
	})
	if ports.CodeOf(err) == ports.Unimplemented {
		return false, nil
	}
	return err == nil, err
}

// sheet gives everything of one key.
func (s *side) sheet(ctx context.Context, f ports.Family, key string) (sheet, error) {
	all := sheet{}
	err := s.lookUp(ctx, f, key, func(row ports.Row) error {
		all.add(&row)
		return nil
	})
	return all, err
}

// keySheet is everything of one key that a walk saw.
type keySheet struct {
	key  string
	rows sheet
}

// keys walks a family and hands out each key with what was seen of it, to a few goroutines.
func (s *side) keys(ctx context.Context, f ports.Family, lanes int, do func(ctx context.Context, key string, rows sheet) error) error {
	give := func(hand func(keySheet) error) error {
		now := keySheet{rows: sheet{}}
		err := s.walk(ctx, f, nil, func(rows []ports.Row, _ *ports.Cursor) error {
			for i := range rows {
				if rows[i].Key != now.key && len(now.rows) > 0 {
					if err := hand(now); err != nil {
						return err
					}
					now.rows = sheet{}
				}
				now.key = rows[i].Key
				now.rows.add(&rows[i])
			}
			return nil
		})
		if err == nil && len(now.rows) > 0 {
			err = hand(now)
		}
		return err
	}
	return inLanes(ctx, lanes, give, func(ctx context.Context, k keySheet) error { return do(ctx, k.key, k.rows) })
}
