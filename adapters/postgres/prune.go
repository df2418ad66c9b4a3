package postgres

import (
	"context"
	"slices"
	"strconv"
	"time"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// Each host's retention is its own: a record belongs to the host that changed it last. Open leaves a host's retention in UVHoldfast,
// so that any host can remove what another one's retention lets go, also that of a host which is gone for good. A record of a host
// whose retention is not known, or is for ever, stays.

const (
	opPrune    = "postgres: prune"
	pruneLimit = 500
	pruneTime  = 2 * time.Second // of looking, in one call
	pruneKeys  = 100             // records in one transaction
	pruneRows  = 1000            // of their events in one transaction
)

// ages says before which time a record must have ended, by the host that changed it last.
type ages struct {
	all    bool // no host has opened the store: it is a follower, or a person prunes
	own    string
	before string
	others map[string]string
}

func (a *ages) of(host string) (before string, ok bool) {
	if a.all || host == "" || host == a.own {
		return a.before, true
	}
	before, ok = a.others[host]
	return before, ok
}

func agesOf(ctx context.Context, d *database, before time.Time) (ages, error) {
	a := ages{all: true, before: ports.KeyOfTime(before), others: map[string]string{}}
	opener := d.opener.Load()
	if opener == nil {
		return a, nil
	}
	a.all, a.own = false, *opener
	now := time.Now()
	return view(ctx, d, opPrune, func(ctx context.Context, r *reading) (ages, error) {
		prefix := keyRetention("")
		err := r.query(ctx, readKeys, func(row []any) error {
			key, _ := row[0].(string)
			text, _ := row[1].(string)
			if seconds, err := strconv.ParseInt(text, 10, 64); err == nil && seconds > 0 {
				a.others[key[len(prefix):]] = ports.KeyOfTime(now.Add(-time.Duration(seconds) * time.Second))
			}
			return nil
		}, prefix, tables.After(prefix))
		return a, err
	})
}

// Prune removes what ended before a time, in short transactions beside those of the writer; see ports.Pruner. A record that another
// transaction holds is left for the next pass.
func (b *Backend) Prune(ctx context.Context, q ports.PruneQuery) (ports.Pruned, error) {
	select {
	case b.pruning <- struct{}{}:
		defer func() { <-b.pruning }()
	case <-ctx.Done():
		return ports.Pruned{}, ctx.Err()
	}
	if _, err := b.writer(ctx); err != nil { // it takes no more work
		return ports.Pruned{}, err
	}
	d, err := b.open(ctx)
	if err != nil {
		return ports.Pruned{}, err
	}
	a, err := agesOf(ctx, d, q.Before)
	if err != nil {
		return ports.Pruned{}, err
	}
	limit := q.Limit
	if limit <= 0 {
		limit = pruneLimit
	}
	b.sweep.Begin(q.Before)
	p := pruning{base: d, ages: a}
	found, end, err := b.sweep.Find(limit, time.Now().Add(pruneTime), func(st *tables.Stage, after ports.Cursor, limit int) (tables.Swept, error) {
		return view(ctx, d, opPrune, func(ctx context.Context, r *reading) (tables.Swept, error) { return a.look(ctx, r, st, after, limit) })
	})
	for _, l := range []*layout{items, manifests} {
		var keys []string
		for _, v := range found {
			if v.Kind == l.Table.Kind {
				keys = append(keys, v.Key)
			}
		}
		slices.Sort(keys)
		for some := range slices.Chunk(keys, pruneKeys) {
			if err == nil {
				err = p.remove(ctx, l, some)
			}
		}
	}
	if err != nil || end {
		b.sweep = tables.Sweep{} // what was found and not removed must be found again
	}
	p.pruned.More = err == nil && !end
	return p.pruned, err
}

type pruning struct {
	base   *database
	ages   ages
	pruned ports.Pruned
}

// remove takes some records out, with what belongs to them; where that is much, in several transactions. After each it rests for as
// long as that took, so that those who write have the server for themselves half of the time.
func (p *pruning) remove(ctx context.Context, l *layout, keys []string) error {
	for tries := 1; ; tries++ {
		began := time.Now()
		counts, err := inTransaction(ctx, p.base, opPrune, forGood, func(ctx context.Context, r *reading) (ports.Pruned, error) {
			return p.some(ctx, r, l, keys)
		})
		if err != nil && (tries == maxTries || ports.CodeOf(err) != ports.Unavailable) {
			return err
		}
		if err == nil {
			tries = 0
		}
		p.pruned.Items += counts.Items
		p.pruned.Events += counts.Events
		p.pruned.Attempts += counts.Attempts
		p.pruned.Manifests += counts.Manifests
		if !rested(ctx, time.Since(began)) {
			return ctx.Err()
		}
		if err == nil && !counts.More {
			return nil
		}
	}
}

// rested waits, and says whether there is time left.
func rested(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// some is one transaction. It looks at the records again: one may have been written since it was found, and one that is being written
// is not waited for. Their rows are locked before anything that belongs to them, as the writer does it.
func (p *pruning) some(ctx context.Context, r *reading, l *layout, keys []string) (counts ports.Pruned, err error) {
	times, terminal := tables.EndOf(l.Table.Kind)
	var old []string
	key := `"` + l.Table.Key + `"`
	err = r.query(ctx, `SELECT `+key+`, "Status", "ChangeHost", `+tables.Quoted(times)+` FROM "`+l.Table.Name+`" WHERE `+key+` = ANY($1::text[])
		ORDER BY `+key+` FOR UPDATE SKIP LOCKED`, func(row []any) error {
		name, _ := row[0].(string)
		status, _ := row[1].(string)
		host, _ := row[2].(string)
		if before, ok := p.ages.of(host); ok && slices.Contains(terminal, status) && tables.Ended(before, row[3:]) {
			old = append(old, name)
		}
		return nil
	}, keys)
	if err != nil || len(old) == 0 {
		return counts, err
	}
	drop := func(text string) (int64, error) {
		tag, err := r.conn.Exec(ctx, text, old)
		return tag.RowsAffected(), err
	}
	if l == manifests {
		counts.Manifests, err = drop(`DELETE FROM "UVManifest" WHERE "Hash" = ANY($1::text[])`)
		return counts, err
	}
	counts.Events, err = drop(`DELETE FROM "UVQueueWorkItemEvent" WHERE "IDUVQueueWorkItemEvent" IN (
		SELECT "IDUVQueueWorkItemEvent" FROM "UVQueueWorkItemEvent" WHERE "WorkItemHash" = ANY($1::text[]) LIMIT ` + strconv.Itoa(pruneRows) + `)`)
	if err != nil || counts.Events == pruneRows {
		counts.More = err == nil
		return counts, err
	}
	if counts.Attempts, err = drop(`DELETE FROM "UVQueueWorkItemAttempt" WHERE "WorkItemHash" = ANY($1::text[])`); err != nil {
		return counts, err
	}
	counts.Items, err = drop(`DELETE FROM "UVQueueWorkItem" WHERE "WorkItemHash" = ANY($1::text[])`)
	return counts, err
}
