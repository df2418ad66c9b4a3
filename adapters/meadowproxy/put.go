package meadowproxy

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"holdfast/ports"
)

// Put: the records of a batch in their last state, items before events before attempts, chunk by chunk: which of them are there is
// looked up for many at a time, then what is there is put and what is not is posted, in bulk.

const opPut = "meadowproxy: put"

// Limits of a chunk. Its bulk request keeps a slot of the beacon for as long as it takes.
const (
	chunkRows  = 100
	chunkBytes = 1 << 20
)

var errLater = ports.Errorf(ports.Unavailable, opPut, "the databeacon takes longer than it may; what is not in yet is put again")

// putting is one Put.
type putting struct {
	*way
	class ports.WorkClass
	rows  []ports.Row
	errs  []error // by row; errLater for one that was not begun
	begun context.Context
	quit  context.CancelFunc
}

// put makes rows durable, in order; see ports.Backend. The first done of them are. What had no answer makes the whole Put one
// without an answer.
func (w *way) put(ctx context.Context, rows []ports.Row, class ports.WorkClass) (done int, err error) {
	p := &putting{way: w, class: class, rows: rows, errs: make([]error, len(rows))}
	targets, size := p.targets()
	limit := w.patience() + ports.TimeFor(int64(size))
	p.begun, p.quit = context.WithTimeout(ctx, limit*3/4) // nothing is begun after that
	defer p.quit()
	for _, kind := range ports.Kinds {
		p.wave(ctx, p.unrefused(targets[kind]))
		if p.begun.Err() != nil {
			break
		}
	}
	return p.outcome(ctx)
}

// targets gives the records of the batch, each in its last state. A row that can never be kept ends what is begun of its key.
func (p *putting) targets() (targets map[ports.Kind][]*target, size int) {
	targets = map[ports.Kind][]*target{}
	known, refused := map[place]*target{}, map[string]bool{}
	for i := range p.rows {
		row := &p.rows[i]
		p.errs[i] = errLater
		if refused[row.Key] {
			continue
		}
		l := layouts[row.Kind]
		if l == nil || row.Key == "" || row.Kind == ports.KindEvent && row.GUID == "" {
			p.errs[i] = ports.InField(ports.Invalid, "Key", "a row of kind %q without its key", row.Kind)
			refused[row.Key] = true
			continue
		}
		var s *sent
		if !row.Gone {
			var err error
			if s, err = p.project(l, row); err != nil {
				p.errs[i] = err
				refused[row.Key] = true
				continue
			}
			size += len(s.members)
		}
		at := placeOf(row)
		t := known[at]
		if t == nil {
			name := row.Key
			if l.natural == "EventGUID" {
				name = row.GUID
			}
			t = &target{layout: l, place: at, forms: p.forms(l.table.Name, l.natural, name)}
			known[at] = t
			targets[row.Kind] = append(targets[row.Kind], t)
		}
		t.row, t.sent, t.rows = row, s, append(t.rows, i)
	}
	return targets, size
}

// unrefused leaves out the records that stand behind a refused row of their key: they wait until somebody has looked at it.
func (p *putting) unrefused(targets []*target) []*target {
	refused := map[string]int{}
	for i, err := range slices.Backward(p.errs) {
		if err != nil && !errors.Is(err, errLater) {
			refused[p.rows[i].Key] = i
		}
	}
	return slices.DeleteFunc(targets, func(t *target) bool {
		at, is := refused[t.row.Key]
		return is && t.rows[0] > at
	})
}

// placeOf is the record of a row.
func placeOf(row *ports.Row) place {
	at := place{kind: row.Kind, key: row.Key}
	switch row.Kind {
	case ports.KindEvent:
		at.key = row.GUID
	case ports.KindAttempt:
		at.number = row.Number
	}
	return at
}

// wave puts the records of one kind.
func (p *putting) wave(ctx context.Context, targets []*target) {
	lanes := p.slots
	if p.class == ports.ClassCatchUp {
		lanes-- // the last one is for others
	}
	all := errgroup.Group{}
	all.SetLimit(max(1, lanes))
	for len(targets) > 0 && p.begun.Err() == nil {
		n := chunkOf(targets)
		chunk := targets[:n]
		targets = targets[n:]
		all.Go(func() error {
			if p.begun.Err() == nil {
				p.chunk(ctx, chunk)
			}
			return nil
		})
	}
	_ = all.Wait() // what went wrong is in errs
}

// chunkOf is how many of the first targets go together.
func chunkOf(targets []*target) int {
	n, size := 0, 0
	for ; n < len(targets) && n < chunkRows; n++ {
		if s := targets[n].sent; s != nil {
			size += len(s.members)
		}
		if n > 0 && size > chunkBytes {
			break
		}
	}
	return n
}

// mostRounds bounds how often a record is tried: others may write it at the same moment.
const mostRounds = 8

// chunk puts some records of one kind.
func (p *putting) chunk(ctx context.Context, targets []*target) {
	for round := 0; ; round++ {
		var open, unseen []*target
		for _, t := range targets {
			if t.settled {
				continue
			}
			open = append(open, t)
			if !t.looked {
				unseen = append(unseen, t)
			}
		}
		if len(open) == 0 {
			break
		}
		err := p.lookup(ctx, p.class, unseen)
		if ports.CodeOf(err).Permanent() { // nothing about a question is a record's fault
			err = ports.Errorf(ports.Unavailable, opPut, "look-up: %v", err)
		}
		if err == nil && round == mostRounds {
			err = ports.Errorf(ports.Unavailable, opPut, "others write the same records at the same time")
		}
		if err != nil {
			for _, t := range open {
				t.settle(err)
			}
			break
		}
		p.write(ctx, open)
	}
	for _, t := range targets {
		for _, i := range t.rows {
			p.errs[i] = t.err
		}
		if t.err != nil && !ports.CodeOf(t.err).Permanent() {
			p.quit()
		}
	}
}

// outcome says how far the Put came. What nobody knows goes before what is known: else the host would take it for not sent.
func (p *putting) outcome(ctx context.Context) (int, error) {
	done := 0
	for done < len(p.errs) && p.errs[done] == nil {
		done++
	}
	if done == len(p.errs) {
		return done, nil
	}
	why := p.errs[done]
	for _, err := range p.errs {
		switch {
		case err == nil || errors.Is(err, errLater):
		case unknown(err):
			return done, err
		case errors.Is(why, errLater) && !ports.CodeOf(err).Permanent():
			why = err
		}
	}
	if err := ctx.Err(); err != nil && errors.Is(why, errLater) {
		return done, ports.Wrap(ports.CodeOf(err), opPut, err)
	}
	return done, why
}

// unknown says whether nobody knows what became of a write that ended so.
func unknown(err error) bool {
	switch ports.CodeOf(err) {
	case ports.Deadline, ports.Canceled, ports.Internal:
		return err != nil
	}
	return false
}
