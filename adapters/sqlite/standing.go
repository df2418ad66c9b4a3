package sqlite

import (
	"context"

	"holdfast/ports"
)

// maxEpochs is how many starts of a host are remembered.
const maxEpochs = 1000

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
		if standing.Nonce, err = f.key(ctx, keyNonce(hostID)); err != nil {
			return err
		}
		if err := f.readers.QueryRowContext(ctx, `SELECT count(*) FROM "UVEarly"`).Scan(&standing.Early); err != nil {
			return err
		}
		for _, family := range ports.Families {
			var mark ports.Mark
			found, err := f.keyJSON(ctx, keyMark(family, hostID), &mark)
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
	nonce, err := w.link.word(readKey, keyNonce(o.HostID))
	if err != nil {
		return err
	}
	if nonce != o.Nonce {
		return ports.Errorf(ports.Conflict, op, "the store's nonce of host %s is not the expected one; another copy of the data directory has used the store", o.HostID)
	}
	if err := setKey(w.link, keyNonce(o.HostID), o.Next); err != nil {
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
	if list := w.known.epochs[f]; ok && (len(list) == 0 || list[len(list)-1] != epoch) {
		list = append(list, epoch)
		list = list[max(0, len(list)-maxEpochs):]
		w.known.epochs[f] = list
		if err := setJSON(w.link, keyEpochs(f, o.HostID), list); err != nil {
			return err
		}
	}
	// The store is the truth from here on, and its own marks say how far it is.
	if _, err := w.link.exec(`DELETE FROM "UVHoldfast" WHERE "Key" = ?`, keyFollower(f)); err != nil {
		return err
	}
	seq, ok := o.Resume[f]
	if !ok {
		return nil
	}
	w.known.marks[f] = ports.Mark{Epoch: epoch.ID, Seq: seq}
	if err := setJSON(w.link, keyMark(f, o.HostID), w.known.marks[f]); err != nil {
		return err
	}
	// Decisions of Seqs that come again would be those of another history.
	prefix := oddsOf(f, o.HostID)
	w.known.odds[f] = &odds{}
	_, err := w.link.exec(`DELETE FROM "UVHoldfast" WHERE "Key" >= ? AND "Key" < ?`, prefix, after(prefix))
	return err
}
