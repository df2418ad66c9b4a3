package core

import (
	"context"

	"holdfast/ports"
)

// How a repair reads a backend: all of it, key by key, in whatever order it has, or everything of one key.

// walkLimit and walkBytes are about the size of the pieces in which a walk hands records over.
const (
	walkLimit = ports.MaxBatchEntries
	walkBytes = ports.MaxBatchBytes
)

// walked takes a piece of a walk. The records of a key come one after the other, its item first, but one key may stand in
// several pieces. A walk that begins after resume tells everything behind this piece; nil is no such place.
type walked func(rows []ports.Row, resume *ports.Cursor) error

// walk hands over every record of a family. Where the backend only lists, events and attempts without an item are not seen.
// It fails with Unimplemented for a backend that can only be read by key.
func (s *side) walk(ctx context.Context, f ports.Family, after *ports.Cursor, each walked) error {
	switch {
	case s.exporter != nil:
		return s.pages(ctx, f, after, func(ctx context.Context, after *ports.Cursor) (ports.Page, error) {
			return s.exporter.Export(ctx, ports.ExportQuery{Family: f, After: after, Limit: s.piece})
		}, each)
	case f == ports.Manifest && s.manifests != nil:
		return s.pages(ctx, f, after, func(ctx context.Context, after *ports.Cursor) (ports.Page, error) {
			return s.manifests.Manifests(ctx, ports.ManifestQuery{After: after, Limit: s.piece, Bodies: true})
		}, each)
	case f == ports.Queue && s.looksUp(f):
		w := itemWalk{side: s, each: each, done: after}
		return w.run(ctx)
	}
	return s.cannot(f)
}

func (s *side) cannot(f ports.Family) error {
	return ports.Errorf(ports.Unimplemented, s.name, "%s can only be read by key in the family %s; nothing can list what it has", s.name, f)
}

// pages reads a list to its end.
func (s *side) pages(ctx context.Context, f ports.Family, after *ports.Cursor, read func(ctx context.Context, after *ports.Cursor) (ports.Page, error), each walked) error {
	for {
		var page ports.Page
		err := s.ask(ctx, func(ctx context.Context) (err error) {
			page, err = read(ctx, after)
			return err
		})
		if ports.CodeOf(err) == ports.Unimplemented {
			return s.cannot(f)
		}
		if err != nil {
			return err
		}
		if page.Next != nil && after != nil && *page.Next == *after {
			return ports.Errorf(ports.Internal, s.name, "a list of the backend does not move on; its plugin is at fault")
		}
		if err := each(page.Rows, page.Next); err != nil {
			return err
		}
		if page.Next == nil {
			return nil
		}
		after = page.Next
	}
}

// itemWalk goes through the list of items and fetches the rest of each key.
type itemWalk struct {
	side  *side
	each  walked
	done  *ports.Cursor // of the last item of which everything was handed over
	rows  []ports.Row
	bytes int
}

func (w *itemWalk) run(ctx context.Context) error {
	err := w.side.pages(ctx, ports.Queue, w.done, func(ctx context.Context, after *ports.Cursor) (ports.Page, error) {
		return w.side.items.Items(ctx, ports.ItemQuery{After: after, Limit: w.side.piece, Bodies: true})
	}, func(items []ports.Row, next *ports.Cursor) error {
		for i := range items {
			if err := w.key(ctx, &items[i]); err != nil {
				return err
			}
		}
		if next != nil {
			w.done = next
		}
		return nil
	})
	if err != nil {
		return err
	}
	return w.hand()
}

func (w *itemWalk) key(ctx context.Context, item *ports.Row) error {
	if err := w.add(*item); err != nil {
		return err
	}
	if err := w.side.rest(ctx, item.Key, w.add); err != nil {
		return err
	}
	w.done = &ports.Cursor{Sort: item.First.EnqueuedKey, Key: item.Key}
	return nil
}

func (w *itemWalk) add(row ports.Row) error {
	if len(w.rows) > 0 && (len(w.rows) >= w.side.piece || w.bytes+len(row.Body) > walkBytes) {
		if err := w.hand(); err != nil {
			return err
		}
	}
	w.rows = append(w.rows, row)
	w.bytes += len(row.Body)
	return nil
}

func (w *itemWalk) hand() error {
	rows := w.rows
	w.rows, w.bytes = nil, 0
	if len(rows) == 0 {
		return nil
	}
	return w.each(rows, w.done)
}

// lookUp hands over every record of a key, the item first; none is none.
func (s *side) lookUp(ctx context.Context, f ports.Family, key string, each func(ports.Row) error) error {
	if !s.looksUp(f) {
		return ports.Errorf(ports.Unimplemented, s.name, "%s cannot be read by key in the family %s", s.name, f)
	}
	var row ports.Row
	err := s.ask(ctx, func(ctx context.Context) (err error) {
		if f == ports.Manifest {
			row, err = s.manifests.Manifest(ctx, key)
		} else {
			row, err = s.items.Item(ctx, key)
		}
		return err
	})
	if err == nil {
		err = each(row)
	} else if ports.CodeOf(err) == ports.NotFound {
		err = nil
	}
	if err != nil || f == ports.Manifest {
		return err
	}
	return s.rest(ctx, key, each)
}

// rest hands over the events and attempts of a key.
func (s *side) rest(ctx context.Context, key string, each func(ports.Row) error) error {
	all := func(rows []ports.Row, _ *ports.Cursor) error {
		for i := range rows {
			if err := each(rows[i]); err != nil {
				return err
			}
		}
		return nil
	}
	err := s.pages(ctx, ports.Queue, nil, func(ctx context.Context, after *ports.Cursor) (ports.Page, error) {
		return s.events.Events(ctx, ports.EventQuery{Key: key, After: after, Limit: s.piece, Bodies: true})
	}, all)
	if err != nil {
		return err
	}
	return s.pages(ctx, ports.Queue, nil, func(ctx context.Context, after *ports.Cursor) (ports.Page, error) {
		return s.attempts.Attempts(ctx, ports.AttemptQuery{Key: key, After: after, Limit: s.piece})
	}, all)
}
