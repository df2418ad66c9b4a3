package core

import (
	"context"

	"holdfast/ports"
)

// Copy brings everything that one backend has to another that is not the local store. It walks the source, leaves out what
// the target has in the same or a newer state, and puts the rest. After each piece it remembers how far it is, so that a copy
// that was interrupted goes on there. While it runs the target does not follow; afterwards it follows from where the source
// was at the beginning, if that is less.
func (h *Host) Copy(ctx context.Context, from, to string, tell func(Progress)) (Copied, error) {
	const op = "copy"
	switch {
	case h.isLocal(to):
		return Copied{}, ports.Errorf(ports.Invalid, op, "the local store takes records through the journal only; use `holdfast adopt %s`", from)
	case from == to:
		return Copied{}, ports.Errorf(ports.Invalid, op, "%s cannot be copied to itself; name two backends", from)
	}
	source, err := h.side(ctx, op, from)
	if err != nil {
		return Copied{}, err
	}
	target, err := h.side(ctx, op, to)
	if err != nil {
		return Copied{}, err
	}
	families, err := common(op, source, target)
	if err != nil {
		return Copied{}, err
	}
	end, err := h.repairs.begin(op, target.name)
	if err != nil {
		return Copied{}, err
	}
	defer end()
	release, err := h.holdAll(ctx, target.name, families)
	if err != nil {
		return Copied{}, ports.Wrap(ports.Unavailable, op, err)
	}
	defer release()
	c := &copying{Host: h, source: source, target: target, teller: newTeller(tell), out: Copied{From: source.name, To: target.name}}
	for _, f := range families {
		if err := c.family(ctx, f); err != nil {
			return c.out, interrupted(ctx, op, "run it again, and it goes on where it was", err)
		}
	}
	for _, f := range families {
		if err := h.state.SetCopyMark(source.name, target.name, f, nil); err != nil {
			return c.out, ports.Wrap(ports.Internal, op, err)
		}
	}
	c.teller.end()
	return c.out, nil
}

// copying is one copy.
type copying struct {
	*Host
	source, target *side
	teller         *teller
	out            Copied

	f       ports.Family    // that is copied
	at      *ports.Position // of the target's store, for as long as nobody else writes to it
	bare    bool            // the target had nothing, so nothing of it can be newer
	last    keySheet        // what the target has of the key that the last piece ended in
	refused string          // the last key that the target refused
}

func (c *copying) family(ctx context.Context, f ports.Family) error {
	c.f, c.last, c.refused = f, keySheet{}, ""
	c.teller.enter(f)
	mark, err := c.mark(ctx)
	if err != nil {
		return err
	}
	if err := c.lowerFollower(c.target.name, f, mark.Begun); err != nil {
		return err
	}
	if c.at, err = c.target.position(ctx, f); err != nil {
		return err
	}
	if c.bare, err = c.target.bare(ctx, f); err != nil {
		return err
	}
	return c.source.walk(ctx, f, mark.After, func(rows []ports.Row, resume *ports.Cursor) error {
		put, err := c.piece(ctx, rows)
		mark.Copied += put
		if err != nil || resume == nil {
			return err // the last mark stays, until the whole copy has ended
		}
		mark.After = resume
		return c.state.SetCopyMark(c.source.name, c.target.name, f, mark)
	})
}

// mark gives where the copy begins: where one before it was interrupted, or the beginning, which is remembered.
func (c *copying) mark(ctx context.Context) (*ports.CopyMark, error) {
	mark, err := c.state.CopyMark(c.source.name, c.target.name, c.f)
	if err != nil {
		return nil, err
	}
	if mark != nil {
		c.out.Resumed = true
		return mark, nil
	}
	mark = &ports.CopyMark{}
	err = c.source.ask(ctx, func(ctx context.Context) (err error) {
		mark.Begun, err = c.source.store.Position(ctx, c.f)
		return err
	})
	if err == nil && len(mark.Begun.Seqs) == 0 && !c.source.local {
		var known ports.FollowerMark
		known, _, err = c.state.Follower(c.source.name, c.f)
		mark.Begun = known.Position
	}
	if err == nil {
		err = c.state.SetCopyMark(c.source.name, c.target.name, c.f, mark)
	}
	return mark, err
}

// bare says whether a side is known to hold nothing of a family.
func (s *side) bare(ctx context.Context, f ports.Family) (bool, error) {
	if s.surveyor == nil {
		return false, nil
	}
	var survey ports.Survey
	err := s.ask(ctx, func(ctx context.Context) (err error) {
		survey, err = s.surveyor.Survey(ctx)
		return err
	})
	if err != nil || survey.Partial {
		return false, err
	}
	for kind, n := range survey.Counts {
		if kind.Family() == f && n > 0 {
			return false, nil
		}
	}
	return true, nil
}

// piece puts the rows of one piece of the walk that the target has not, or not so, and says how many those were.
func (c *copying) piece(ctx context.Context, rows []ports.Row) (int64, error) {
	c.out.Looked += int64(len(rows))
	c.teller.add(int64(len(rows)), 0)
	before := c.out.Put
	due, err := c.due(ctx, rows)
	for err == nil && len(due) > 0 {
		n := batchOf(due)
		err = c.put(ctx, due[:n])
		due = due[n:]
	}
	return c.out.Put - before, err
}

// batchOf is how many rows make up the next batch.
func batchOf(rows []ports.Row) int {
	bytes := 0
	for i := range rows {
		bytes += len(rows[i].Body)
		if i == ports.MaxBatchEntries || i > 0 && bytes > ports.MaxBatchBytes {
			return i
		}
	}
	return len(rows)
}

// due leaves out what the target has in the same or a newer state.
func (c *copying) due(ctx context.Context, rows []ports.Row) ([]ports.Row, error) {
	if c.bare || !c.target.looksUp(c.f) {
		return rows, nil
	}
	has, err := c.has(ctx, rows)
	if err != nil {
		return nil, err
	}
	due := make([]ports.Row, 0, len(rows))
	for i := range rows {
		row := &rows[i]
		there, ok := has[row.Key][idOf(row)]
		if !ok || there.change.Host != row.Change.Host || there.change.Seq < row.Change.Seq ||
			there.change.Seq == row.Change.Seq && there.imprint != imprintOf(row) {
			due = append(due, *row)
		}
	}
	return due, nil
}

// has looks up in the target what it has of the keys of some rows.
func (c *copying) has(ctx context.Context, rows []ports.Row) (map[string]sheet, error) {
	has := map[string]sheet{}
	var keys []string
	for i := range rows {
		key := rows[i].Key
		if _, known := has[key]; known {
			continue
		}
		has[key] = nil
		if key == c.last.key && c.last.rows != nil {
			has[key] = c.last.rows
			continue
		}
		keys = append(keys, key)
	}
	sheets := make([]sheet, len(keys))
	err := inLanes(ctx, c.target.lanes, func(hand func(int) error) error {
		for i := range keys {
			if err := hand(i); err != nil {
				return err
			}
		}
		return nil
	}, func(ctx context.Context, i int) (err error) {
		sheets[i], err = c.target.sheet(ctx, c.f, keys[i])
		return err
	})
	for i, key := range keys {
		has[key] = sheets[i]
	}
	if n := len(rows); n > 0 {
		c.last = keySheet{rows[n-1].Key, has[rows[n-1].Key]}
	}
	return has, err
}
