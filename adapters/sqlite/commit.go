package sqlite

import (
	"context"

	"holdfast/adapters/line"
	"holdfast/adapters/tables"
	"holdfast/ports"
)

// Commit puts a batch in line; see ports.LocalStore.
func (s *Store) Commit(ctx context.Context, b ports.CommitBatch) (ports.Pending, error) {
	w, err := s.writer(ctx)
	if err != nil {
		return nil, err
	}
	p, err := w.queue.Submit(ctx, b)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// commit commits batches as one transaction. Where that fails each is tried alone, so that only the guilty one fails;
// batches behind it then miss their predecessor, and Conflict tells them so.
func (w *writer) commit(group []*line.Job) {
	err := w.commitTogether(group)
	if err == nil || len(group) == 1 || ports.CodeOf(err) == ports.Unavailable {
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

const opCommit = "sqlite: commit"

func (w *writer) commitTogether(group []*line.Job) error {
	cost := int64(0)
	for _, j := range group {
		cost += j.Cost
	}
	if err := w.roomFor(opCommit, cost); err != nil {
		return err
	}
	return w.transact(opCommit, func() error {
		w.fold.begin(clock())
		odd := map[ports.Family][]ports.Decision{}
		moved := map[ports.Family]bool{}
		for _, j := range group {
			p := j.Batch
			p.Decisions, p.Refused = nil, nil
			took, err := w.apply(p, odd)
			if err != nil {
				return err
			}
			moved[p.Batch.Family] = moved[p.Batch.Family] || took
		}
		for f := range moved {
			if !moved[f] {
				continue
			}
			if err := setJSON(w.link, tables.KeyMark(f, w.rules.HostID), w.known.marks[f]); err != nil {
				return err
			}
			if err := w.keepOdds(f, odd[f]); err != nil {
				return err
			}
		}
		return w.fold.flush()
	}, w.fold.remember)
}

// apply decides a batch's entries and moves the mark; took says whether it did. A batch that does not fit changes nothing.
func (w *writer) apply(p *line.Pending, odd map[ports.Family][]ports.Decision) (took bool, err error) {
	b := &p.Batch
	if w.rules.HostID == "" {
		p.Refused = ports.Errorf(ports.Unavailable, opCommit, "no host has opened the store")
		return false, nil
	}
	twin, refused := tables.Fits(opCommit, b, w.known.epochs[b.Family], w.known.marks[b.Family].Seq)
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
	w.known.marks[b.Family] = ports.Mark{Epoch: b.Epoch, Seq: b.Through}
	return true, nil
}

// keepOdds adds a transaction's odd decisions to the ring, in memory and in the file.
func (w *writer) keepOdds(f ports.Family, list []ports.Decision) error {
	if len(list) == 0 {
		return nil
	}
	odds := w.known.odds[f]
	if err := setJSON(w.link, tables.KeyOdd(f, w.rules.HostID, odds.Next()), list); err != nil {
		return err
	}
	odds.Keep(list)
	return nil
}
