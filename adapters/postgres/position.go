package postgres

import (
	"context"
	"encoding/json"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// Position says how far the store is: as the last Put said, or for a local store as its marks say.
func (b *Backend) Position(ctx context.Context, family ports.Family) (ports.Position, error) {
	d, err := b.open(ctx)
	if err != nil {
		return ports.Position{}, err
	}
	opener := d.opener.Load()
	return view(ctx, d, "postgres: position", func(ctx context.Context, r *reading) (p ports.Position, err error) {
		var byPut bool
		if p, byPut, err = r.position(ctx, family); err != nil {
			return p, err
		}
		if p.StoreID, err = r.word(ctx, readKey, tables.KeyStoreID); err != nil || byPut || opener == nil {
			return p, err
		}
		var epochs []ports.Epoch
		err = r.keyJSON(ctx, tables.KeyEpochs(family, *opener), &epochs)
		if n := len(epochs); n > 0 {
			p.Epoch = epochs[n-1].ID
		}
		return p, err
	})
}

// position reads the position that the last Put left, or else what the marks say.
func (r *reading) position(ctx context.Context, f ports.Family) (p ports.Position, byPut bool, err error) {
	if err := r.keyJSON(ctx, tables.KeyFollower(f), &p); err != nil || p.Epoch != "" || p.Seqs != nil {
		return p, true, err
	}
	marks, err := r.marks(ctx, f)
	return marks.Position(), false, err
}

// marks gives how far the store is with each host that wrote to it.
func (r *reading) marks(ctx context.Context, f ports.Family) (tables.Marks, error) {
	marks := tables.Marks{}
	prefix := tables.KeyMarks(f)
	err := r.query(ctx, readKeys, func(row []any) error {
		key, _ := row[0].(string)
		text, _ := row[1].(string)
		return marks.Take("postgres", f, key, text)
	}, prefix, tables.After(prefix))
	return marks, err
}

func jsonText(value any) (string, error) {
	text, err := json.Marshal(value)
	return string(text), err
}
