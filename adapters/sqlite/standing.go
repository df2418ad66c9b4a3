package sqlite

import (
	"context"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// Stand tells what the store is; see ports.LocalStore.
func (s *Store) Stand(ctx context.Context, hostID string) (ports.Standing, error) {
	f, err := s.open(ctx)
	if err != nil {
		return ports.Standing{}, err
	}
	standing := ports.Standing{StoreID: f.storeID, Empty: true, Marks: map[ports.Family]ports.Mark{}}
	read := func() error {
		for _, l := range layouts {
			found, err := f.exists(ctx, `SELECT 1 FROM "`+l.Table.Name+`" LIMIT 1`)
			if err != nil {
				return err
			}
			standing.Empty = standing.Empty && !found
		}
		if standing.Nonce, err = f.key(ctx, tables.KeyNonce(hostID)); err != nil {
			return err
		}
		if err := f.readers.QueryRowContext(ctx, `SELECT count(*) FROM "UVEarly"`).Scan(&standing.Early); err != nil {
			return err
		}
		for _, family := range ports.Families {
			var mark ports.Mark
			found, err := f.keyJSON(ctx, tables.KeyMark(family, hostID), &mark)
			if err != nil {
				return err
			}
			if found {
				standing.Marks[family] = mark
			}
		}
		return nil
	}
	if err := read(); err != nil {
		return ports.Standing{}, s.readFault(ctx, "sqlite: stand", err)
	}
	return standing, nil
}

// Open makes the store ready for a host's commits; see ports.LocalStore.
func (s *Store) Open(ctx context.Context, o ports.Opening) error {
	const op = "sqlite: open for a host"
	if o.HostID == "" || o.Next == "" {
		return ports.Errorf(ports.Invalid, op, "HostID and the next nonce must be given")
	}
	w, err := s.writer(ctx)
	if err != nil {
		return err
	}
	return w.do(ctx, false, func() error {
		before := w.rules
		w.rules = ports.Rules{HostID: o.HostID, Retention: o.Retention}
		w.forget()
		err := w.transact(op, func() error { return w.admit(op, &o) }, nil)
		if err != nil {
			w.rules = before
			w.forget()
			return err
		}
		w.file.opener.Store(&o.HostID)
		return nil
	})
}

func (w *writer) admit(op string, o *ports.Opening) error {
	nonce, err := w.link.word(readKey, tables.KeyNonce(o.HostID))
	if err != nil {
		return err
	}
	if nonce != o.Nonce {
		return ports.Errorf(ports.Conflict, op, "the store's nonce of host %s is not the expected one; another copy of the data directory has used the store", o.HostID)
	}
	if err := setKey(w.link, tables.KeyNonce(o.HostID), o.Next); err != nil {
		return err
	}
	for _, f := range ports.Families {
		if err := w.admitFamily(f, o); err != nil {
			return err
		}
	}
	return adopt(w.link)
}

func (w *writer) admitFamily(f ports.Family, o *ports.Opening) error {
	epoch, ok := o.Epochs[f]
	if list, anew := tables.Opened(w.known.epochs[f], epoch); ok && anew {
		w.known.epochs[f] = list
		if err := setJSON(w.link, tables.KeyEpochs(f, o.HostID), list); err != nil {
			return err
		}
	}
	// The store is the truth from here on, and its own marks say how far it is.
	if _, err := w.link.exec(`DELETE FROM "UVHoldfast" WHERE "Key" = ?`, tables.KeyFollower(f)); err != nil {
		return err
	}
	seq, ok := o.Resume[f]
	if !ok {
		return nil
	}
	w.known.marks[f] = ports.Mark{Epoch: epoch.ID, Seq: seq}
	if err := setJSON(w.link, tables.KeyMark(f, o.HostID), w.known.marks[f]); err != nil {
		return err
	}
	// Decisions of Seqs that come again would be those of another history.
	prefix := tables.KeyOdds(f, o.HostID)
	w.known.odds[f] = &tables.Odds{}
	_, err := w.link.exec(`DELETE FROM "UVHoldfast" WHERE "Key" >= ? AND "Key" < ?`, prefix, tables.After(prefix))
	return err
}
