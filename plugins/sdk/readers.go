package sdk

import (
	"context"
	"slices"
	"strings"

	"holdfast/ports"
)

// Readers reads rows: those of one key in any order (an item, its events and its attempts; a manifest), or with an empty key all
// that there are. It makes every reader out of that, and the export, so a store that can do this one thing embeds it:
//
//	type Store struct {
//		sdk.Readers // made of the method rows, which New puts here
//	}
//
// What is read by key costs what the rows of that key cost. A list looks at everything, which is fine for some ten thousand
// records; a larger store overwrites Items, Manifests and Export with methods that use its own indexes.
type Readers func(ctx context.Context, key string) ([]ports.Row, error)

var (
	_ ports.ItemReader     = Readers(nil)
	_ ports.EventReader    = Readers(nil)
	_ ports.AttemptReader  = Readers(nil)
	_ ports.ManifestReader = Readers(nil)
	_ ports.Exporter       = Readers(nil)
)

func (read Readers) Item(ctx context.Context, key string) (ports.Row, error) {
	return read.one(ctx, ports.KindItem, key)
}

func (read Readers) Manifest(ctx context.Context, key string) (ports.Row, error) {
	return read.one(ctx, ports.KindManifest, key)
}

func (read Readers) one(ctx context.Context, kind ports.Kind, key string) (ports.Row, error) {
	rows, err := read.of(ctx, kind, key)
	switch {
	case key == "" || err == nil && len(rows) == 0:
		return ports.Row{}, ports.Errorf(ports.NotFound, "read", "there is no %s with this key", kind)
	case err != nil:
		return ports.Row{}, err
	}
	return rows[0], nil
}

// of gives the rows of one kind; what it gives is the caller's to change, but not the bodies.
func (read Readers) of(ctx context.Context, kind ports.Kind, key string) ([]ports.Row, error) {
	rows, err := read(ctx, key)
	return slices.DeleteFunc(slices.Clone(rows), func(r ports.Row) bool { return r.Kind != kind }), err
}

func (read Readers) Events(ctx context.Context, q ports.EventQuery) (ports.Page, error) {
	rows, err := read.of(ctx, ports.KindEvent, q.Key)
	if err != nil || q.Key == "" {
		return ports.Page{}, err
	}
	return pageOf(rows, q.After, q.Desc, q.Limit).lean(q.Bodies, "Payload")
}

func (read Readers) Attempts(ctx context.Context, q ports.AttemptQuery) (ports.Page, error) {
	rows, err := read.of(ctx, ports.KindAttempt, q.Key)
	if err != nil || q.Key == "" {
		return ports.Page{}, err
	}
	return pageOf(rows, q.After, false, q.Limit).page, nil
}

func (read Readers) Items(ctx context.Context, q ports.ItemQuery) (ports.Page, error) {
	rows, err := read.of(ctx, ports.KindItem, "")
	if err != nil {
		return ports.Page{}, err
	}
	f := &q.Filter
	wanted := map[string]string{
		"Capability": f.Capability, "Action": f.Action, "RunID": f.RunID, "RunHash": f.RunHash,
		"OperationHash": f.OperationHash, "AssignedBeaconID": f.AssignedBeaconID, "AffinityKey": f.AffinityKey,
	}
	rows, err = passing(rows, wanted, f.Status, func(row *ports.Row, r *ports.Record) bool {
		return within(row.First.EnqueuedKey, f.From, f.To) && strings.Contains(r.Text("LastError"), f.ErrorText)
	})
	if err != nil {
		return ports.Page{}, err
	}
	if q.OrderBy == "" {
		return pageOf(rows, q.After, q.Desc, q.Limit).lean(q.Bodies, "Settings", "Result")
	}
	if rows, err = byColumn(rows, q.OrderBy, q.Desc); err != nil {
		return ports.Page{}, err
	}
	p := cut(rows, q.Limit, placeOf)
	p.page.Next = nil // the values of a column change while one pages
	return p.lean(q.Bodies, "Settings", "Result")
}

func (read Readers) Manifests(ctx context.Context, q ports.ManifestQuery) (ports.Page, error) {
	rows, err := read.of(ctx, ports.KindManifest, "")
	if err != nil {
		return ports.Page{}, err
	}
	rows, err = passing(rows, map[string]string{"OperationHash": q.OperationHash}, q.Status, func(row *ports.Row, _ *ports.Record) bool {
		return within(row.First.OrderKey, q.From, q.To)
	})
	if err != nil {
		return ports.Page{}, err
	}
	return pageOf(rows, q.After, q.Desc, q.Limit).columns(q.Bodies)
}

// Export walks a family by keys: an item, its events as they came, its attempts by number.
func (read Readers) Export(ctx context.Context, q ports.ExportQuery) (ports.Page, error) {
	rows, err := read(ctx, "")
	if err != nil {
		return ports.Page{}, err
	}
	rows = slices.DeleteFunc(slices.Clone(rows), func(r ports.Row) bool { return r.Kind.Family() != q.Family })
	return walked(rows, q.After, q.Limit), nil
}
