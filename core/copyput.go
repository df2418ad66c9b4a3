package core

import (
	"cmp"
	"context"
	"slices"
	"time"

	"holdfast/ports"
)

// How a copy puts: what may pass is tried for as long as it takes, what is refused for good costs its key and nothing else.

// maxDeaths is how often a store that says that it could take a write may die, fall silent or go wrong with the same rows, and
// putPause the first pause in between.
const (
	maxDeaths = 3
	putPause  = 250 * time.Millisecond
)

// put makes rows durable in the target, but for the keys that it refuses.
func (c *copying) put(ctx context.Context, rows []ports.Row) error {
	rows = c.without(rows, c.refused)
	deaths, pause := 0, putPause
	for len(rows) > 0 {
		done, err := c.putOnce(ctx, rows)
		if anotherStore(err) {
			if err = c.moved(ctx, err); err != nil {
				return err
			}
			continue
		}
		if rows = rows[done:]; done > 0 {
			deaths, pause = 0, putPause
		}
		if unsaid := c.doubt(c.target.name, c.f, rows, err); unsaid != nil {
			return unsaid
		}
		switch code := ports.CodeOf(err); {
		case err == nil:
			continue
		case ctx.Err() != nil:
			return ctx.Err()
		case len(rows) == 0:
			return nil // the rows are in, whatever came behind them
		case code.Permanent():
			c.refuse(&rows[0], ports.RefusedKey, ports.AsError(err))
			rows = c.without(rows, rows[0].Key)
			continue
		case code == ports.BackendGone || code == ports.Deadline || code == ports.Internal:
			deaths++
		}
		if err := c.awaitTarget(ctx, pause, err); err != nil {
			return err
		}
		pause = min(pause*2, lastPause)
		if deaths == maxDeaths {
			return c.apart(ctx, rows, err)
		}
	}
	return nil
}

func (c *copying) putOnce(ctx context.Context, rows []ports.Row) (done int, err error) {
	var applied ports.Applied
	err = c.target.once(ctx, func(ctx context.Context) (err error) {
		applied, err = c.target.store.Put(ctx, ports.Batch{Family: c.f, Rows: rows, After: c.at})
		return err
	})
	done, err = taken(c.target.name, applied, len(rows), err)
	c.out.Put += int64(done)
	c.teller.add(0, int64(done))
	return done, err
}

// position is where a side's store is, for Puts that shall have no effect once it is elsewhere: those that are late, when the
// follower has gone on, and those to a store that was replaced. It is nil for a store that holds none.
func (s *side) position(ctx context.Context, f ports.Family) (*ports.Position, error) {
	var at ports.Position
	err := s.ask(ctx, func(ctx context.Context) (err error) {
		at, err = s.store.Position(ctx, f)
		return err
	})
	if err != nil || at.StoreID == "" {
		return nil, err
	}
	return &at, nil
}

// moved looks where the target is when a Put was refused because it is elsewhere. A late Put of the follower may have moved it on;
// another store, or an older copy of it, lacks what was copied.
func (c *copying) moved(ctx context.Context, why error) error {
	at, err := c.target.position(ctx, c.f)
	switch {
	case err != nil:
		return err
	case at == nil || c.at == nil || at.StoreID != c.at.StoreID || c.at.Covers(*at) || !at.Covers(*c.at):
		forgotten := c.state.SetCopyMark(c.source.name, c.target.name, c.f, nil)
		return cmp.Or(forgotten, error(ports.Errorf(ports.Conflict, c.target.name, "another store stands in its place, or an older copy of it; copy again from the beginning: %v", why)))
	}
	c.at = at
	return nil
}

// apart puts rows of which the store died, or fell silent, one key at a time, and gives up a key that does it alone.
func (c *copying) apart(ctx context.Context, rows []ports.Row, why error) error {
	if rows[len(rows)-1].Key == rows[0].Key {
		c.refuse(&rows[0], ports.PoisonKey, ports.AsError(why))
		return nil
	}
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].Key == rows[0].Key {
			n++
		}
		if err := c.put(ctx, rows[:n]); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// awaitTarget waits until the target says that it could take a write.
func (c *copying) awaitTarget(ctx context.Context, pause time.Duration, why error) error {
	c.log.Debug("a copy waits for its target", "from", c.source.name, "to", c.target.name, "reason", why)
	for ; ; pause = min(pause*2, lastPause) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
		err := c.target.once(ctx, func(ctx context.Context) error { return c.target.store.Probe(ctx, c.f) })
		if err == nil {
			return nil
		}
		if ports.CodeOf(err).Permanent() {
			return err
		}
	}
}

// refuse counts a key that the target does not take, and passes it over.
func (c *copying) refuse(row *ports.Row, kind ports.UnsettledKind, why *ports.Error) {
	c.refused = row.Key
	c.out.Unsettled++
	if len(c.out.Refusals) < maxDifferences {
		c.out.Refusals = append(c.out.Refusals, ports.Unsettled{
			Key: row.Key, Kind: kind, Code: why.Code, Reason: why.Error(), First: row.Change.Seq, Last: row.Change.Seq, AtMs: c.clock().UnixMilli(),
		})
	}
}

// without leaves out the rows of a key; "" is none.
func (c *copying) without(rows []ports.Row, key string) []ports.Row {
	if key == "" || !slices.ContainsFunc(rows, func(r ports.Row) bool { return r.Key == key }) {
		return rows
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r ports.Row) bool { return r.Key == key })
}
