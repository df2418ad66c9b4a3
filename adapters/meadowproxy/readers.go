package meadowproxy

import (
	"context"

	"holdfast/ports"
)

// The readers. A database answers only while the host knows which one it is, and an answer counts only while it still is the same.

// reading asks a family's database.
func reading[T any](ctx context.Context, b *Backend, f ports.Family, ask func(w *way) (T, error)) (answer T, err error) {
	var none T
	h, err := b.half(f)
	if err != nil {
		return none, err
	}
	at, err := h.ready(ctx)
	if err == nil {
		err = h.shows()
	}
	if err != nil {
		return none, err
	}
	answer, err = ask(at.way)
	if err == nil || ports.CodeOf(err) == ports.NotFound {
		if over := h.binder.now(ctx, f, at); over != nil {
			err = over
		} else if strange := h.shows(); strange != nil {
			err = strange
		}
	}
	if err != nil {
		return none, h.heed(at, err)
	}
	return answer, nil
}

// Item reads a work item; see ports.ItemReader.
func (b *Backend) Item(ctx context.Context, key string) (ports.Row, error) {
	return reading(ctx, b, ports.Queue, func(w *way) (ports.Row, error) { return w.item(ctx, key) })
}

// Items lists work items; see ports.ItemReader.
func (b *Backend) Items(ctx context.Context, q ports.ItemQuery) (ports.Page, error) {
	return reading(ctx, b, ports.Queue, func(w *way) (ports.Page, error) { return w.items(ctx, q) })
}

// Events reads the events of a work item; see ports.EventReader.
func (b *Backend) Events(ctx context.Context, q ports.EventQuery) (ports.Page, error) {
	return reading(ctx, b, ports.Queue, func(w *way) (ports.Page, error) { return w.events(ctx, q) })
}

// Attempts reads the attempts of a work item; see ports.AttemptReader.
func (b *Backend) Attempts(ctx context.Context, q ports.AttemptQuery) (ports.Page, error) {
	return reading(ctx, b, ports.Queue, func(w *way) (ports.Page, error) { return w.attempts(ctx, q) })
}

// Manifest reads a manifest; see ports.ManifestReader.
func (b *Backend) Manifest(ctx context.Context, key string) (ports.Row, error) {
	return reading(ctx, b, ports.Manifest, func(w *way) (ports.Row, error) { return w.manifest(ctx, key) })
}

// Manifests lists manifests; see ports.ManifestReader.
func (b *Backend) Manifests(ctx context.Context, q ports.ManifestQuery) (ports.Page, error) {
	return reading(ctx, b, ports.Manifest, func(w *way) (ports.Page, error) { return w.manifests(ctx, q) })
}
