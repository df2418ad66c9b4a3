package core

import (
	"context"
	"slices"
	"strconv"

	"holdfast/ports"
)

// How the store in memory is looked at: by Decide, and by readers.

func (d *disk) Item(key string) (*ports.Held, error) {
	return d.held[place{kind: ports.KindItem, key: key}], nil
}

func (d *disk) Event(guid string) (*ports.Held, error) {
	return d.held[place{kind: ports.KindEvent, key: guid}], nil
}

func (d *disk) Attempt(key string, number int64) (*ports.Held, error) {
	return d.held[place{kind: ports.KindAttempt, key: key, number: number}], nil
}

func (d *disk) Manifest(key string) (*ports.Held, error) {
	return d.held[place{kind: ports.KindManifest, key: key}], nil
}

func (d *disk) Gone(k ports.Kind, key string) (bool, error) {
	_, gone := d.gone[place{kind: k, key: key}]
	return gone, nil
}

// row is a record as backends exchange it.
func (d *disk) row(at place, held *ports.Held) ports.Row {
	row := ports.Row{Kind: at.kind, Key: at.key, Number: at.number, Body: held.Record.JSON(), First: held.First, Change: held.Change}
	if at.kind == ports.KindEvent {
		row.Key, row.GUID = held.Record.Text("WorkItemHash"), at.key
	}
	return row
}

// rows are the records of some kinds.
func (d *disk) rows(kinds ...ports.Kind) []ports.Row {
	var rows []ports.Row
	for at, held := range d.held {
		if slices.Contains(kinds, at.kind) {
			rows = append(rows, d.row(at, held))
		}
	}
	return rows
}

// shelf is how the stores in memory answer readers: from the rows that they have of some kinds.
type shelf struct {
	rows func(ctx context.Context, kinds ...ports.Kind) ([]ports.Row, error)
}

func (r shelf) one(ctx context.Context, k ports.Kind, key string) (ports.Row, error) {
	rows, err := r.rows(ctx, k)
	for i := range rows {
		if rows[i].Key == key {
			return rows[i], nil
		}
	}
	if err == nil {
		err = ports.Errorf(ports.NotFound, "memory", "%s %s is not there", k, strconv.Quote(key))
	}
	return ports.Row{}, err
}

func (r shelf) list(ctx context.Context, k ports.Kind, key string, desc bool, after *ports.Cursor, limit int) (ports.Page, error) {
	rows, err := r.rows(ctx, k)
	if err != nil {
		return ports.Page{}, err
	}
	if key != "" {
		rows = slices.DeleteFunc(rows, func(r ports.Row) bool { return r.Key != key })
	}
	return cut(rows, listCursor, desc, after, limit), nil
}

func (r shelf) Item(ctx context.Context, key string) (ports.Row, error) {
	return r.one(ctx, ports.KindItem, key)
}

func (r shelf) Items(ctx context.Context, q ports.ItemQuery) (ports.Page, error) {
	return r.list(ctx, ports.KindItem, "", q.Desc, q.After, q.Limit)
}

func (r shelf) Events(ctx context.Context, q ports.EventQuery) (ports.Page, error) {
	return r.list(ctx, ports.KindEvent, q.Key, q.Desc, q.After, q.Limit)
}

func (r shelf) Attempts(ctx context.Context, q ports.AttemptQuery) (ports.Page, error) {
	return r.list(ctx, ports.KindAttempt, q.Key, false, q.After, q.Limit)
}

func (r shelf) Manifest(ctx context.Context, key string) (ports.Row, error) {
	return r.one(ctx, ports.KindManifest, key)
}

func (r shelf) Manifests(ctx context.Context, q ports.ManifestQuery) (ports.Page, error) {
	return r.list(ctx, ports.KindManifest, "", q.Desc, q.After, q.Limit)
}

func (r shelf) Export(ctx context.Context, q ports.ExportQuery) (ports.Page, error) {
	rows, err := r.rows(ctx, kindsOf(q.Family)...)
	if err != nil {
		return ports.Page{}, err
	}
	return cut(rows, walkCursor, false, q.After, q.Limit), nil
}

// kindsOf are the kinds of a family.
func kindsOf(f ports.Family) []ports.Kind {
	return slices.DeleteFunc(slices.Clone(ports.Kinds), func(k ports.Kind) bool { return k.Family() != f })
}

// committed are the rows of the store in memory, from a process that lives.
func (m *memory) committed(ctx context.Context, kinds ...ports.Kind) ([]ports.Row, error) {
	if _, err := m.alive(ctx); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.disk.rows(kinds...), nil
}
