package core

import (
	"cmp"
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
	return d.gone[place{kind: k, key: key}], nil
}

// rows are the records of a kind, those of a key where one is given, in the order of their stamps.
func (m *memory) rows(ctx context.Context, k ports.Kind, key string) ([]ports.Row, error) {
	if _, err := m.alive(ctx); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var rows []ports.Row
	for at, held := range m.disk.held {
		own := at.key
		if k == ports.KindEvent {
			own = held.Record.Text("WorkItemHash")
		}
		if at.kind == k && (key == "" || own == key) {
			rows = append(rows, ports.Row{Kind: k, Key: own, Number: at.number, Body: held.Record.JSON(), First: held.First, Change: held.Change})
		}
	}
	slices.SortFunc(rows, func(a, b ports.Row) int { return cmp.Compare(a.First.OrderKey, b.First.OrderKey) })
	return rows, nil
}

func (m *memory) one(ctx context.Context, k ports.Kind, key string) (ports.Row, error) {
	rows, err := m.rows(ctx, k, key)
	if err == nil && len(rows) == 0 {
		err = ports.Errorf(ports.NotFound, "memory", "%s %s is not there", k, strconv.Quote(key))
	}
	if err != nil {
		return ports.Row{}, err
	}
	return rows[0], nil
}

func (m *memory) page(ctx context.Context, k ports.Kind, key string) (ports.Page, error) {
	rows, err := m.rows(ctx, k, key)
	return ports.Page{Rows: rows}, err
}

func (m *memory) Item(ctx context.Context, key string) (ports.Row, error) {
	return m.one(ctx, ports.KindItem, key)
}

func (m *memory) Items(ctx context.Context, _ ports.ItemQuery) (ports.Page, error) {
	return m.page(ctx, ports.KindItem, "")
}

func (m *memory) Events(ctx context.Context, q ports.EventQuery) (ports.Page, error) {
	return m.page(ctx, ports.KindEvent, q.Key)
}

func (m *memory) Attempts(ctx context.Context, q ports.AttemptQuery) (ports.Page, error) {
	return m.page(ctx, ports.KindAttempt, q.Key)
}

func (m *memory) Manifest(ctx context.Context, key string) (ports.Row, error) {
	return m.one(ctx, ports.KindManifest, key)
}

func (m *memory) Manifests(ctx context.Context, _ ports.ManifestQuery) (ports.Page, error) {
	return m.page(ctx, ports.KindManifest, "")
}
