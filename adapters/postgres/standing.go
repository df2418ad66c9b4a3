package postgres

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// Stand tells what the store is; see ports.LocalStore.
func (b *Backend) Stand(ctx context.Context, hostID string) (ports.Standing, error) {
	d, err := b.open(ctx)
	if err != nil {
		return ports.Standing{}, err
	}
	return view(ctx, d, "postgres: stand", func(ctx context.Context, r *reading) (s ports.Standing, err error) {
		s = ports.Standing{Empty: true, Marks: map[ports.Family]ports.Mark{}}
		for _, l := range layouts {
			_, found, err := r.number(ctx, `SELECT 1 FROM "`+l.Table.Name+`" LIMIT 1`)
			if err != nil {
				return s, err
			}
			s.Empty = s.Empty && !found
		}
		if s.StoreID, err = r.word(ctx, readKey, tables.KeyStoreID); err != nil {
			return s, err
		}
		if s.Nonce, err = r.word(ctx, readKey, tables.KeyNonce(hostID)); err != nil {
			return s, err
		}
		early, _, err := r.number(ctx, `SELECT count(*) FROM "UVEarly"`)
		if err != nil {
			return s, err
		}
		s.Early = int(early)
		for _, family := range ports.Families {
			text, err := r.word(ctx, readKey, tables.KeyMark(family, hostID))
			if err != nil {
				return s, err
			}
			if text == "" {
				continue
			}
			var mark ports.Mark
			if err := tables.Readable("postgres", tables.KeyMark(family, hostID), text, &mark); err != nil {
				return s, err
			}
			s.Marks[family] = mark
		}
		return s, nil
	})
}

const opOpen = "postgres: open for a host"

// Open makes the store ready for a host's commits; see ports.LocalStore.
func (b *Backend) Open(ctx context.Context, o ports.Opening) error {
	if o.HostID == "" || o.Next == "" {
		return ports.Errorf(ports.Invalid, opOpen, "HostID and the next nonce must be given")
	}
	w, err := b.writer(ctx)
	if err != nil {
		return err
	}
	return w.do(ctx, false, func() error {
		sent := false
		if err := w.transact(opOpen, 0, func(t *turn) error { return w.admit(t, &o, &sent) }); err != nil {
			return err
		}
		w.rules = ports.Rules{HostID: o.HostID, Retention: o.Retention}
		w.known = nil
		w.base.opener.Store(&o.HostID)
		return nil
	})
}

// admit is the transaction of Open. sent says that an earlier try may have been committed without our knowing.
func (w *writer) admit(t *turn, o *ports.Opening, sent *bool) error {
	b := &pgx.Batch{}
	t.base.queueStart(b, forGood.begin)
	// The row must be there to be locked: two copies of one data directory may come at the same moment.
	b.Queue(`INSERT INTO "UVHoldfast" ("Key", "Value") VALUES ($1, '') ON CONFLICT ("Key") DO NOTHING`, tables.KeyNonce(o.HostID))
	nonce := ""
	rowsOf(b.Queue(readKey+` FOR UPDATE`, tables.KeyNonce(o.HostID)), func(row []any) error {
		nonce, _ = row[0].(string)
		return nil
	})
	if err := t.send(b); err != nil {
		return err
	}
	if *sent && nonce == o.Next {
		_, err := t.conn.Exec(t.ctx, "ROLLBACK")
		return err
	}
	if nonce != o.Nonce {
		return ports.Errorf(ports.Conflict, opOpen, "the store's nonce of host %s is not the expected one; another copy of the data directory has used the store", o.HostID)
	}
	keys := []string{tables.KeyNonce(o.HostID), keyRetention(o.HostID)}
	values := []string{o.Next, strconv.FormatInt(int64(o.Retention/time.Second), 10)}
	for _, f := range ports.Families {
		more, err := admitFamily(t, f, o)
		if err != nil {
			return err
		}
		for key, value := range more {
			keys, values = append(keys, key), append(values, value)
		}
	}
	if err := adopt(t.ctx, t.conn); err != nil {
		return err
	}
	if _, err := t.conn.Exec(t.ctx, setKeys, keys, values); err != nil {
		return err
	}
	*sent = true
	_, err := t.conn.Exec(t.ctx, forGood.end)
	return err
}

// admitFamily gives the rows of UVHoldfast that the opening changes for a family, and deletes others.
func admitFamily(t *turn, f ports.Family, o *ports.Opening) (map[string]string, error) {
	change := map[string]string{}
	var list []ports.Epoch
	if err := t.keyJSON(t.ctx, tables.KeyEpochs(f, o.HostID), &list); err != nil {
		return nil, err
	}
	epoch, ok := o.Epochs[f]
	if list, anew := tables.Opened(list, epoch); ok && anew {
		text, err := jsonText(list)
		if err != nil {
			return nil, err
		}
		change[tables.KeyEpochs(f, o.HostID)] = text
	}
	// The store is the truth from here on, and its own marks say how far it is.
	if _, err := t.conn.Exec(t.ctx, `DELETE FROM "UVHoldfast" WHERE "Key" = $1`, tables.KeyFollower(f)); err != nil {
		return nil, err
	}
	seq, ok := o.Resume[f]
	if !ok {
		return change, nil
	}
	text, err := jsonText(ports.Mark{Epoch: epoch.ID, Seq: seq})
	if err != nil {
		return nil, err
	}
	change[tables.KeyMark(f, o.HostID)] = text
	// Decisions of Seqs that come again would be those of another history.
	prefix := tables.KeyOdds(f, o.HostID)
	_, err = t.conn.Exec(t.ctx, `DELETE FROM "UVHoldfast" WHERE "Key" >= $1 AND "Key" < $2`, prefix, tables.After(prefix))
	return change, err
}
