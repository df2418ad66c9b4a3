package sqlite

import (
	"context"
	"slices"

	"holdfast/adapters/line"
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

func (w *writer) commitTogether(group []*line.Job) error {
	const op = "sqlite: commit"
	cost := int64(0)
	for _, j := range group {
		cost += j.Cost
	}
	if err := w.roomFor(op, cost); err != nil {
		return err
	}
	return w.transact(op, func() error {
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
			if err := setJSON(w.link, keyMark(f, w.rules.HostID), w.known.marks[f]); err != nil {
				return err
			}
			if err := w.known.odds[f].keep(w.link, f, w.rules.HostID, odd[f]); err != nil {
				return err
			}
		}
		return w.fold.flush()
	}, w.fold.remember)
}

// apply decides a batch's entries and moves the mark; took says whether it did. A batch that does not fit changes nothing.
func (w *writer) apply(p *line.Pending, odd map[ports.Family][]ports.Decision) (took bool, err error) {
	b := &p.Batch
	twin, refused := w.check(b)
	if refused != nil {
		p.Refused = refused
		return false, nil
	}
	if twin {
		decisions := w.known.odds[b.Family].recall(b)
		for _, d := range odd[b.Family] { // of the same transaction
			if i := slices.IndexFunc(decisions, func(own ports.Decision) bool { return own.Seq == d.Seq }); i >= 0 {
				decisions[i] = d
			}
		}
		p.Decisions = decisions
		return false, nil
	}
	p.Decisions = make([]ports.Decision, 0, len(b.Entries))
	for i := range b.Entries {
		d, err := w.fold.decide(&b.Entries[i], w.rules)
		if err != nil {
			return false, err
		}
		p.Decisions = append(p.Decisions, d)
		if told := lasting(d); !told.Plain() {
			odd[b.Family] = append(odd[b.Family], told)
		}
	}
	w.known.marks[b.Family] = ports.Mark{Epoch: b.Epoch, Seq: b.Through}
	return true, nil
}

// lasting is a decision as it can be written down: without what stays in this process, and what is only counted.
func lasting(d ports.Decision) ports.Decision {
	d.Foreign = false
	if d.Err != nil {
		e := *d.Err
		e.Cause = nil
		d.Err = &e
	}
	return d
}

// check says whether a batch is the next one, or a twin of one that was committed before, or neither.
func (w *writer) check(b *ports.CommitBatch) (twin bool, refused error) {
	const op = "sqlite: commit"
	if w.rules.HostID == "" {
		return false, ports.Errorf(ports.Unavailable, op, "no host has opened the store")
	}
	if !slices.Contains(ports.Families, b.Family) || b.Through < b.After {
		return false, ports.Errorf(ports.Invalid, op, "family %q from %d to %d is not a stretch of a journal", b.Family, b.After, b.Through)
	}
	last := b.After
	for i := range b.Entries {
		if seq := b.Entries[i].Seq; seq <= last || seq > b.Through {
			return false, ports.Errorf(ports.Invalid, op, "entry %d is out of order between %d and %d", seq, b.After, b.Through)
		}
		last = b.Entries[i].Seq
		if b.Entries[i].Action.Family() != b.Family {
			return false, ports.Errorf(ports.Invalid, op, "entry %d: %q is no write of family %s", last, b.Entries[i].Action, b.Family)
		}
	}
	// The newest epoch alone may commit: a copy of the host that opened the store later has taken it over, and what the
	// earlier one numbers goes its own way.
	if list := w.known.epochs[b.Family]; len(list) == 0 || list[len(list)-1].ID != b.Epoch {
		return false, ports.Errorf(ports.Conflict, op, "epoch %q is not the one that opened the store last", b.Epoch)
	}
	mark := w.known.marks[b.Family].Seq
	if b.Through <= mark {
		return true, nil
	}
	if b.After != mark {
		return false, ports.Errorf(ports.Conflict, op, "the store is at %d, the batch begins after %d", mark, b.After)
	}
	return false, nil
}
