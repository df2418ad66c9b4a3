package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"maps"
	"slices"

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
	if err := getJSON(l, keyFollower(f), &p); err != nil || p.Epoch != "" || p.Seqs != nil {
		return p, true, err
	}
	marks, err := marksIn(l, f)
	for _, host := range slices.Sorted(maps.Keys(marks)) {
		if p.Seqs == nil {
			p.Seqs = map[string]uint64{}
		}
		p.Epoch, p.Seqs[host] = marks[host].Epoch, marks[host].Seq
	}
	return p, false, err
}

// marksIn gives how far the store is with each host that wrote to it.
func marksIn(l *link, f ports.Family) (map[string]ports.Mark, error) {
	marks := map[string]ports.Mark{}
	prefix := marksOf(f)
	err := l.query(readKeys, func(row []driver.Value) error {
		key, _ := row[0].(string)
		text, _ := row[1].(string)
		var mark ports.Mark
		if err := json.Unmarshal([]byte(text), &mark); err != nil {
			return ports.Errorf(ports.Internal, "sqlite", "UVHoldfast has an unreadable %s: %v", key, err)
		}
		marks[key[len(prefix):]] = mark
		return nil
	}, prefix, after(prefix))
	return marks, err
}

// epochsOf gives a host's epochs, oldest first.
func (r *reading) epochsOf(f ports.Family, host string) ([]ports.Epoch, error) {
	text, err := r.word(readKey, keyEpochs(f, host))
	if err != nil || text == "" {
		return nil, err
	}
	if text != r.epochs[f].text {
		var list []ports.Epoch
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return nil, ports.Errorf(ports.Internal, "sqlite", "UVHoldfast has an unreadable %s: %v", keyEpochs(f, host), err)
		}
		r.epochs[f] = epochList{text, list}
	}
	return r.epochs[f].list, nil
}
