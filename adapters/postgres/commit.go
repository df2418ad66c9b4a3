package postgres

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"holdfast/adapters/line"
	"holdfast/adapters/tables"
	"holdfast/ports"
)

// Commit puts a batch in line; see ports.LocalStore.
func (b *Backend) Commit(ctx context.Context, batch ports.CommitBatch) (ports.Pending, error) {
	w, err := b.writer(ctx)
	if err != nil {
		return nil, err
	}
	p, err := w.queue.Submit(ctx, batch)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// commit commits batches as one transaction. Where that fails each is tried alone, so that only the guilty one fails;
// batches behind it then miss their predecessor, and Conflict tells them so.
func (w *writer) commit(group []*line.Job) {
	err := w.commitTogether(group)
	if err == nil || len(group) == 1 || !ports.CodeOf(err).Permanent() {
		for _, j := range group {
			w.finishBatch(j, err)
		}
		return
	}
	for _, j := range group {
		w.finishBatch(j, w.commitTogether([]*line.Job{j}))
	}
}

func (w *writer) finishBatch(j *line.Job, err error) {
	if err == nil {
		err = j.Batch.Refused
	}
	w.queue.Finish(j, err)
}

// errAlone says that a transaction must begin anew, with others shut out.
var errAlone = errors.New("early writes are kept with other transactions shut out")

const opCommit = "postgres: commit"

func (w *writer) commitTogether(group []*line.Job) error {
	cost := int64(0)
	for _, j := range group {
		cost += j.Cost
	}
	defer func() { w.alone = false }()
	return w.transact(opCommit, cost, func(t *turn) error {
		err := w.commitOnce(t, group)
		if errors.Is(err, errAlone) {
			if _, err := t.conn.Exec(t.ctx, "ROLLBACK"); err != nil {
				return err
			}
			w.alone = true
			err = w.commitOnce(t, group)
		}
		return err
	})
}

func (w *writer) commitOnce(t *turn, group []*line.Job) error {
	if w.rules.HostID == "" {
		for _, j := range group {
			j.Batch.Refused = ports.Errorf(ports.Unavailable, opCommit, "no host has opened the store")
		}
		return nil
	}
	w.fold.begin(t)
	for _, j := range group {
		for i := range j.Batch.Batch.Entries {
			w.fold.want(&j.Batch.Batch.Entries[i])
		}
	}
	marks, err := w.fence(t)
	if err != nil {
		return err
	}
	odd := map[ports.Family][]ports.Decision{}
	moved := map[ports.Family]bool{}
	for _, j := range group {
		p := j.Batch
		p.Decisions, p.Refused = nil, nil
		took, err := w.apply(p, marks, odd)
		if err != nil {
			return err
		}
		moved[p.Batch.Family] = moved[p.Batch.Family] || took
	}
	var keys, values []string
	next := map[ports.Family]int{}
	for f := range moved {
		if !moved[f] {
			continue
		}
		text, err := json.Marshal(marks[f])
		if err != nil {
			return err
		}
		keys, values = append(keys, tables.KeyMark(f, w.rules.HostID)), append(values, string(text))
		if len(odd[f]) == 0 {
			continue
		}
		if text, err = json.Marshal(odd[f]); err != nil {
			return err
		}
		next[f] = w.known.odds[f].Next()
		keys, values = append(keys, tables.KeyOdd(f, w.rules.HostID, next[f])), append(values, string(text))
	}
	b := &pgx.Batch{}
	if err := w.fold.flush(b); err != nil {
		return err
	}
	if len(keys) > 0 {
		b.Queue(setKeys, keys, values)
	}
	if err := w.fold.finish(t, b); err != nil {
		return err
	}
	for f := range next {
		w.known.odds[f].Keep(odd[f])
	}
	return nil
}

// fence begins the transaction, locks the host's nonce and reads the rows that were asked for, in one round trip. Then it gives the
// host's marks; what the writer remembers of the host is read anew when another process has opened the store since.
func (w *writer) fence(t *turn) (map[ports.Family]ports.Mark, error) {
	b := &pgx.Batch{}
	host := w.rules.HostID
	w.queueBegin(b)
	words := map[string]string{}
	take := func(row []any) error {
		key, _ := row[0].(string)
		words[key], _ = row[1].(string)
		return nil
	}
	rowsOf(b.Queue(`SELECT "Key", "Value" FROM "UVHoldfast" WHERE "Key" = $1 FOR UPDATE`, tables.KeyNonce(host)), take)
	rowsOf(b.Queue(`SELECT "Key", "Value" FROM "UVHoldfast" WHERE "Key" = ANY($1::text[])`,
		[]string{tables.KeyStoreID, tables.KeyMark(ports.Queue, host), tables.KeyMark(ports.Manifest, host)}), take)
	w.fold.queueLoads(b)
	if err := t.send(b); err != nil {
		return nil, err
	}
	if words[tables.KeyStoreID] != t.base.storeID {
		go w.base.gone(w.base)
		return nil, ports.Errorf(ports.Unavailable, opCommit, "the tables are those of another store now; they are opened again")
	}
	if err := w.fold.loaded(); err != nil {
		return nil, err
	}
	nonce := words[tables.KeyNonce(host)]
	if w.known == nil || w.known.nonce != nonce {
		k, err := w.recall(t, nonce)
		if err != nil {
			return nil, err
		}
		w.known = k
	}
	marks := map[ports.Family]ports.Mark{}
	for _, f := range ports.Families {
		var m ports.Mark
		if err := tables.Readable("postgres", tables.KeyMark(f, host), words[tables.KeyMark(f, host)], &m); err != nil {
			return nil, err
		}
		marks[f] = m
	}
	return marks, nil
}

// recall reads what the writer remembers of its host.
func (w *writer) recall(t *turn, nonce string) (*ownHost, error) {
	k := &ownHost{nonce: nonce, epochs: map[ports.Family][]ports.Epoch{}, odds: map[ports.Family]*tables.Odds{}}
	for _, f := range ports.Families {
		var epochs []ports.Epoch
		if err := t.keyJSON(t.ctx, tables.KeyEpochs(f, w.rules.HostID), &epochs); err != nil {
			return nil, err
		}
		k.epochs[f] = epochs
		var err error
		if k.odds[f], err = readOdds(t, f, w.rules.HostID); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// apply decides a batch's entries and moves the mark; took says whether it did. A batch that does not fit changes nothing.
func (w *writer) apply(p *line.Pending, marks map[ports.Family]ports.Mark, odd map[ports.Family][]ports.Decision) (took bool, err error) {
	b := &p.Batch
	twin, refused := tables.Fits(opCommit, b, w.known.epochs[b.Family], marks[b.Family].Seq)
	if refused != nil {
		p.Refused = refused
		return false, nil
	}
	if twin {
		p.Decisions = w.known.odds[b.Family].Recall(b, odd[b.Family])
		return false, nil
	}
	p.Decisions = make([]ports.Decision, 0, len(b.Entries))
	for i := range b.Entries {
		d, err := w.fold.decide(&b.Entries[i], w.rules)
		if err != nil {
			return false, err
		}
		p.Decisions = append(p.Decisions, d)
		if told := tables.Lasting(d); !told.Plain() {
			odd[b.Family] = append(odd[b.Family], told)
		}
	}
	marks[b.Family] = ports.Mark{Epoch: b.Epoch, Seq: b.Through}
	return true, nil
}
