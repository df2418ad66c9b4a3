package sqlite

import (
	"context"
	"database/sql/driver"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// Position says how far the store is: as the last Put said, or for a local store as its marks say.
func (s *Store) Position(ctx context.Context, family ports.Family) (p ports.Position, err error) {
	f, err := s.open(ctx)
	if err != nil {
		return ports.Position{}, err
	}
	opener := f.opener.Load()
	err = f.snapshots.view(ctx, func(r *reading) error {
		var byPut bool
		if p, byPut, err = positionIn(r.link, family); err != nil || byPut || opener == nil {
			return err
		}
		epochs, err := r.epochsOf(family, *opener)
		if n := len(epochs); n > 0 {
			p.Epoch = epochs[n-1].ID
		}
		return err
	})
	if err != nil {
		return ports.Position{}, s.readFault(ctx, "sqlite: position", err)
	}
	p.StoreID = f.storeID
	return p, nil
}

// positionIn reads the position that the last Put left, or else what the marks say.
func positionIn(l *link, f ports.Family) (p ports.Position, byPut bool, err error) {
	if err := getJSON(l, tables.KeyFollower(f), &p); err != nil || p.Epoch != "" || p.Seqs != nil {
		return p, true, err
	}
	marks, err := marksIn(l, f)
	return marks.Position(), false, err
}

// marksIn gives how far the store is with each host that wrote to it.
func marksIn(l *link, f ports.Family) (tables.Marks, error) {
	marks := tables.Marks{}
	prefix := tables.KeyMarks(f)
	err := l.query(readKeys, func(row []driver.Value) error {
		key, _ := row[0].(string)
		text, _ := row[1].(string)
		return marks.Take("sqlite", f, key, text)
	}, prefix, tables.After(prefix))
	return marks, err
}

// epochsOf gives a host's epochs, oldest first.
func (r *reading) epochsOf(f ports.Family, host string) ([]ports.Epoch, error) {
	text, err := r.word(readKey, tables.KeyEpochs(f, host))
	if err != nil || text == "" {
		return nil, err
	}
	if text != r.epochs[f].text {
		var list []ports.Epoch
		if err := tables.Readable("sqlite", tables.KeyEpochs(f, host), text, &list); err != nil {
			return nil, err
		}
		r.epochs[f] = epochList{text, list}
	}
	return r.epochs[f].list, nil
}
