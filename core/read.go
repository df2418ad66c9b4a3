package core

import (
	"bytes"
	"context"

	"holdfast/ports"
)

// Reads: what is asked of whichever backend answers.

// awaitPosition waits until the local store has everything up to a Seq, and says whether it does.
func (h *Host) awaitPosition(ctx context.Context, f *family, need uint64) bool {
	ctx, cancel := context.WithTimeout(ctx, freshWait)
	defer cancel()
	for {
		moved, down := f.moved.wait(), h.link.down()
		select {
		case <-down: // nobody knows which store answers, or how far it is
			return false
		default:
		}
		if f.committed.Load() >= need {
			return true
		}
		select {
		case <-moved:
		case <-down:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// Item reads a work item.
func (h *Host) Item(ctx context.Context, key string) Answer {
	return read(ctx, h, ports.Queue, key, Answer{Payload: "WorkItem"}, func(ctx context.Context, r ports.ItemReader, a *Answer) error {
		row, err := r.Item(ctx, key)
		return one(a, row, ports.KindItem, key, err)
	})
}

// Items lists work items.
func (h *Host) Items(ctx context.Context, q ports.ItemQuery) Answer {
	return list(ctx, h, ports.Queue, "", ports.KindItem, "WorkItems", func(ctx context.Context, r ports.ItemReader) (ports.Page, error) { return r.Items(ctx, q) })
}

// Events lists the events of a work item.
func (h *Host) Events(ctx context.Context, q ports.EventQuery) Answer {
	return list(ctx, h, ports.Queue, q.Key, ports.KindEvent, "Events", func(ctx context.Context, r ports.EventReader) (ports.Page, error) { return r.Events(ctx, q) })
}

// Attempts lists the attempts of a work item.
func (h *Host) Attempts(ctx context.Context, q ports.AttemptQuery) Answer {
	return list(ctx, h, ports.Queue, q.Key, ports.KindAttempt, "Attempts", func(ctx context.Context, r ports.AttemptReader) (ports.Page, error) { return r.Attempts(ctx, q) })
}

// Manifest reads a manifest.
func (h *Host) Manifest(ctx context.Context, key string) Answer {
	return read(ctx, h, ports.Manifest, key, Answer{Payload: "Manifest"}, func(ctx context.Context, r ports.ManifestReader, a *Answer) error {
		row, err := r.Manifest(ctx, key)
		return one(a, row, ports.KindManifest, key, err)
	})
}

// Manifests lists manifests.
func (h *Host) Manifests(ctx context.Context, q ports.ManifestQuery) Answer {
	return list(ctx, h, ports.Manifest, "", ports.KindManifest, "Manifests", func(ctx context.Context, r ports.ManifestReader) (ports.Page, error) { return r.Manifests(ctx, q) })
}

// one is the answer with one record.
func one(a *Answer, row ports.Row, kind ports.Kind, key string, err error) error {
	if err == nil {
		err = sound(&row, kind, key)
	}
	if err == nil {
		a.Value = shown(row)
	}
	return err
}

func list[R any](ctx context.Context, h *Host, name ports.Family, key string, kind ports.Kind, payload string, ask func(context.Context, R) (ports.Page, error)) Answer {
	return read(ctx, h, name, key, Answer{Payload: payload, List: true}, func(ctx context.Context, r R, a *Answer) error {
		page, err := ask(ctx, r)
		if err != nil {
			return err
		}
		size := 2
		for i := range page.Rows {
			if err := sound(&page.Rows[i], kind, key); err != nil {
				return err
			}
			size += len(page.Rows[i].Body) + 80
		}
		value := append(make([]byte, 0, size), '[')
		for i, row := range page.Rows {
			if i > 0 {
				value = append(value, ',')
			}
			value = append(value, shown(row)...)
		}
		value = append(value, ']')
		a.Value = value
		if a.More = page.Next != nil || page.Partial; page.Next != nil {
			a.Cursor = page.Next.Token()
		}
		return nil
	})
}

// shown is a row as callers see it: the members that were given, and the OrderKey of what is ordered by it.
func shown(row ports.Row) []byte {
	if row.Body == nil || row.First.OrderKey == "" || row.Kind == ports.KindItem || row.Kind == ports.KindAttempt {
		return row.Body
	}
	if bytes.Contains(row.Body, []byte(`"OrderKey"`)) {
		if r, err := ports.ParseRecord(ports.TableOf(row.Kind), row.Body); err != nil || r.Get("OrderKey") != nil {
			return row.Body // a caller's own member of that name
		}
	}
	body := make([]byte, 0, len(row.Body)+80)
	body = append(body, row.Body[:len(row.Body)-1]...)
	if len(body) > 1 {
		body = append(body, ',')
	}
	body = append(body, `"OrderKey":`...)
	body = ports.AppendQuoted(body, row.First.OrderKey)
	return append(body, '}')
}
