package core

import (
	"bytes"
	"context"
	"time"

	"holdfast/ports"
)

// Reads. The head of the family is taken once, when a read comes in; the answer reflects everything up to it, or says that
// it may not.
const (
	freshWait = 250 * time.Millisecond  // for the local store's position
	readLimit = 1500 * time.Millisecond // for the last backend of the route to answer
)

// read waits for a fresh enough local store and asks it.
func (h *Host) read(ctx context.Context, f *family, key string, into Answer, ask func(ctx context.Context, store ports.LocalStore, a *Answer) error) Answer {
	need := f.need(key)
	fresh := h.awaitPosition(ctx, f, need)
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	a := into
	err := ask(ctx, h.link.Store, &a)
	switch code := ports.CodeOf(err); {
	case code == ports.NotFound:
		a.Situation = NotFound
	case code.Permanent():
		a.Situation, a.Err = Refused, ports.AsError(err)
		return a
	case err != nil:
		e := *ports.AsError(err)
		e.Code = ports.Unavailable // whatever it was, a caller can only ask again
		a.Situation, a.Err = Unavailable, &e
		return a
	}
	a.Backend, a.Stale = h.link.name, !fresh
	if key != "" {
		a.Incomplete = f.committer.asides.holds(key)
	} else {
		a.Incomplete = f.committer.asides.any()
	}
	return a
}

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
	return h.read(ctx, h.families[ports.Queue], key, Answer{Payload: "WorkItem"}, func(ctx context.Context, s ports.LocalStore, a *Answer) error {
		row, err := s.Item(ctx, key)
		a.Value = shown(row)
		return err
	})
}

// Items lists work items.
func (h *Host) Items(ctx context.Context, q ports.ItemQuery) Answer {
	return h.list(ctx, ports.Queue, "", "WorkItems", func(ctx context.Context, s ports.LocalStore) (ports.Page, error) { return s.Items(ctx, q) })
}

// Events lists the events of a work item.
func (h *Host) Events(ctx context.Context, q ports.EventQuery) Answer {
	return h.list(ctx, ports.Queue, q.Key, "Events", func(ctx context.Context, s ports.LocalStore) (ports.Page, error) { return s.Events(ctx, q) })
}

// Attempts lists the attempts of a work item.
func (h *Host) Attempts(ctx context.Context, q ports.AttemptQuery) Answer {
	return h.list(ctx, ports.Queue, q.Key, "Attempts", func(ctx context.Context, s ports.LocalStore) (ports.Page, error) { return s.Attempts(ctx, q) })
}

// Manifest reads a manifest.
func (h *Host) Manifest(ctx context.Context, key string) Answer {
	return h.read(ctx, h.families[ports.Manifest], key, Answer{Payload: "Manifest"}, func(ctx context.Context, s ports.LocalStore, a *Answer) error {
		row, err := s.Manifest(ctx, key)
		a.Value = shown(row)
		return err
	})
}

// Manifests lists manifests.
func (h *Host) Manifests(ctx context.Context, q ports.ManifestQuery) Answer {
	return h.list(ctx, ports.Manifest, "", "Manifests", func(ctx context.Context, s ports.LocalStore) (ports.Page, error) { return s.Manifests(ctx, q) })
}

func (h *Host) list(ctx context.Context, name ports.Family, key, payload string, ask func(context.Context, ports.LocalStore) (ports.Page, error)) Answer {
	return h.read(ctx, h.families[name], key, Answer{Payload: payload, List: true}, func(ctx context.Context, s ports.LocalStore, a *Answer) error {
		page, err := ask(ctx, s)
		if err != nil {
			return err
		}
		size := 2
		for i := range page.Rows {
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
