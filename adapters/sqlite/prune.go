package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"time"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

const (
	pruneLimit   = 500
	pruneTime    = 2 * time.Second // of looking, in one call
	pruneRows    = 500             // in one transaction: commits must not wait long
	pruneFew     = 50              // the same where the disk is nearly full: the WAL must not grow
	vacuumPages  = 500
	vacuumFew    = 50
	vacuumRounds = 40 // in one call
)

// Prune removes what ended before a time, in short transactions between which commits go on, and then gives the pages
// back to the disk; see ports.Pruner. It works on a full disk as long as about a megabyte is left.
func (s *Store) Prune(ctx context.Context, q ports.PruneQuery) (ports.Pruned, error) {
	const op = "sqlite: prune"
	select {
	case s.pruning <- struct{}{}:
		defer func() { <-s.pruning }()
	case <-ctx.Done():
		return ports.Pruned{}, ctx.Err()
	}
	f, err := s.open(ctx)
	if err != nil {
		return ports.Pruned{}, err
	}
	w, err := s.writer(ctx)
	if err != nil {
		return ports.Pruned{}, err
	}
	limit := q.Limit
	if limit <= 0 {
		limit = pruneLimit
	}
	s.sweep.Begin(q.Before)
	p := pruning{w: w, before: ports.KeyOfTime(q.Before)}
	found, end, err := s.sweep.Find(limit, time.Now().Add(pruneTime), func(st *tables.Stage, after ports.Cursor, limit int) (tables.Swept, error) {
		return f.look(ctx, st, after, p.before, limit)
	})
	if err == nil {
		err = p.remove(ctx, found)
	}
	if err != nil {
		s.sweep = tables.Sweep{} // what was found and not removed must be found again
		return p.pruned, s.readFault(ctx, op, err)
	}
	if end {
		s.sweep = tables.Sweep{}
	}
	p.pruned.More = !end
	return p.pruned, s.readFault(ctx, op, p.vacuum(ctx))
}

type pruning struct {
	w      *writer
	before string
	pruned ports.Pruned
}

// remove takes the records out, some rows a transaction. A full disk makes the transactions smaller before it ends them.
func (p *pruning) remove(ctx context.Context, found []tables.Victim) error {
	few := false
	for len(found) > 0 {
		budget := pruneRows
		if few || p.w.file.free() < roomTight {
			budget = pruneFew
		}
		var done int
		var counts ports.Pruned
		err := p.w.do(ctx, false, func() error {
			return p.w.transact("sqlite: prune", func() (err error) {
				done, counts, err = p.some(found, budget)
				return err
			}, nil)
		})
		if ports.CodeOf(err) == ports.Full && budget > pruneFew {
			few = true
			continue
		}
		if err != nil {
			return err
		}
		found = found[done:]
		p.pruned.Items += counts.Items
		p.pruned.Events += counts.Events
		p.pruned.Attempts += counts.Attempts
		p.pruned.Manifests += counts.Manifests
	}
	return nil
}

// some removes records until about budget rows are gone; done counts those of which nothing is left.
func (p *pruning) some(found []tables.Victim, budget int) (done int, counts ports.Pruned, err error) {
	for _, v := range found {
		victim := place{layoutOf(v.Kind), v.Key, 0}
		if budget <= 0 {
			break
		}
		old, err := p.stillOld(victim)
		if err != nil {
			return 0, counts, err
		}
		if old && victim.layout == items {
			n, err := p.w.link.affected(`DELETE FROM "UVQueueWorkItemEvent" WHERE rowid IN (
				SELECT rowid FROM "UVQueueWorkItemEvent" WHERE "WorkItemHash" = ? LIMIT ?)`, victim.key, int64(budget))
			if err != nil {
				return 0, counts, err
			}
			counts.Events += n
			if budget -= int(n); budget <= 0 {
				break // there may be more of them
			}
			if n, err = p.dropAttempts(victim.key); err != nil {
				return 0, counts, err
			}
			counts.Attempts += n
			budget -= int(n)
		}
		if old {
			l := victim.layout
			if _, err := p.w.link.exec(`DELETE FROM "`+l.Table.Name+`" WHERE "`+l.Table.Key+`" = ?`, victim.key); err != nil {
				return 0, counts, err
			}
			p.w.cache.drop(victim)
			budget--
			if l == items {
				counts.Items++
			} else {
				counts.Manifests++
			}
		}
		done++
	}
	return done, counts, nil
}

// stillOld looks again, inside the transaction: a record may have been written since it was found.
func (p *pruning) stillOld(victim place) (old bool, err error) {
	t := victim.layout.Table
	times, terminal := tables.EndOf(t.Kind)
	err = p.w.link.query(`SELECT "Status", `+tables.Quoted(times)+` FROM "`+t.Name+`" WHERE "`+t.Key+`" = ?`, func(row []driver.Value) error {
		status, _ := row[0].(string)
		old = slices.Contains(terminal, status) && tables.Ended(p.before, anys(row[1:]))
		return nil
	}, victim.key)
	return old, err
}

func (p *pruning) dropAttempts(key string) (int64, error) {
	err := p.w.link.query(`SELECT "AttemptNumber" FROM "UVQueueWorkItemAttempt" WHERE "WorkItemHash" = ?`, func(row []driver.Value) error {
		n, _ := row[0].(int64)
		p.w.cache.drop(place{attempts, key, n})
		return nil
	}, key)
	if err != nil {
		return 0, err
	}
	return p.w.link.affected(`DELETE FROM "UVQueueWorkItemAttempt" WHERE "WorkItemHash" = ?`, key)
}

// vacuum gives free pages back, some a transaction. The file gets shorter with the checkpoint that follows.
func (p *pruning) vacuum(ctx context.Context) error {
	const op = "sqlite: vacuum"
	few := false
	for round := range vacuumRounds {
		pages := vacuumPages
		if few || p.w.file.free() < roomTight {
			pages = vacuumFew
		}
		var before, after int64
		err := p.w.do(ctx, false, func() error {
			if round > 0 && round%8 == 0 {
				if err := p.w.checkpoint("PASSIVE", 0); err != nil {
					return fault(op, p.w.file.path, err)
				}
			}
			return p.w.transact(op, func() (err error) {
				if before, _, err = p.w.link.number("PRAGMA freelist_count"); err != nil || before == 0 {
					return err
				}
				if err = p.w.link.once(fmt.Sprintf("PRAGMA incremental_vacuum(%d)", pages)); err != nil {
					return err
				}
				after, _, err = p.w.link.number("PRAGMA freelist_count")
				return err
			}, nil)
		})
		if ports.CodeOf(err) == ports.Full {
			if pages > vacuumFew {
				few = true
				continue
			}
			break // the pages stay free inside the file, and are used again
		}
		if err != nil {
			return err
		}
		if after == 0 || after == before { // nothing left, or a file that cannot
			break
		}
	}
	return p.w.do(ctx, false, func() error {
		return fault(op, p.w.file.path, p.w.checkpoint("PASSIVE", 0))
	})
}
