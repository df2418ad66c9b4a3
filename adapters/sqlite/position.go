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
		if err := getJSON(r.link, keyFollower(family), &p); err != nil || p.Epoch != "" || p.Seqs != nil {
			return err
		}
		marks, err := r.marks(family)
		for _, host := range slices.Sorted(maps.Keys(marks)) {
			if p.Seqs == nil {
				p.Seqs = map[string]uint64{}
			}
			p.Epoch, p.Seqs[host] = marks[host].Epoch, marks[host].Seq
		}
		if err != nil || opener == nil {
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

// marks gives how far the store is with each host that wrote to it.
func (r *reading) marks(f ports.Family) (map[string]ports.Mark, error) {
	marks := map[string]ports.Mark{}
	prefix := marksOf(f)
	err := r.query(readKeys, func(row []driver.Value) error {
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
