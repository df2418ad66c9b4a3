package postgres

import (
	"encoding/json"
	"slices"

	"github.com/jackc/pgx/v5"

	"holdfast/ports"
)

// Early writes stand in a table of their own, as they came, until an item of their key is there. They are no records: no
// reader, export or survey sees them, and no change tells of them.
//
// One host may keep an early write while another stores its item, and then nobody would ever bring them together. So every
// transaction that may write items takes part in a barrier, and one that keeps an early write has it for itself: it is begun
// again, behind the others, and sees the item.

// early is what a transaction knows of early writes.
type early struct {
	counted bool
	count   int64 // of all
	oldest  int64 // none of them came before that time, in milliseconds
	waiting map[string][]waiting
	asked   []string // keys that were not read yet
	gone    []int64  // to be deleted
}

type waiting struct {
	id    int64 // 0: kept by this transaction
	entry ports.Entry
}

// queueBarrier adds the lock that early writes and items share.
func (f *fold) queueBarrier(b *pgx.Batch) {
	switch {
	case f.w.alone:
		b.Queue(`SELECT pg_advisory_xact_lock($1)`, f.w.base.barrier)
	case f.queue:
		b.Queue(`SELECT pg_advisory_xact_lock_shared($1)`, f.w.base.barrier)
	}
}

func (f *fold) wantEarly(key string) {
	if _, known := f.early.waiting[key]; !known {
		f.early.waiting[key] = nil
		f.early.asked = append(f.early.asked, key)
	}
}

func (f *fold) queueEarly(b *pgx.Batch) {
	e := &f.early
	if f.queue && !e.counted {
		e.counted = true
		rowsOf(b.Queue(`SELECT count(*), coalesce(min("ReceivedMs"), 0) FROM "UVEarly"`), func(row []any) error {
			e.count, _ = row[0].(int64)
			e.oldest, _ = row[1].(int64)
			return nil
		})
	}
	if len(e.asked) == 0 {
		return
	}
	rowsOf(b.Queue(`SELECT "IDUVEarly", "WorkItemHash", "Entry" FROM "UVEarly" WHERE "WorkItemHash" = ANY($1::text[]) ORDER BY "IDUVEarly"`, e.asked), func(row []any) error {
		id, _ := row[0].(int64)
		key, _ := row[1].(string)
		text, _ := row[2].(string)
		w := waiting{id: id}
		if err := json.Unmarshal([]byte(text), &w.entry); err != nil {
			return ports.Errorf(ports.Internal, opCommit, "UVEarly has an unreadable entry in row %d: %v", id, err)
		}
		e.waiting[key] = append(e.waiting[key], w)
		return nil
	})
	e.asked = nil
}

// Early gives what waits for an item; see ports.Look.
func (f *fold) Early(key string) (entries []ports.Entry, inAll int, err error) {
	for _, w := range f.early.waiting[key] {
		entries = append(entries, w.entry)
	}
	return entries, int(f.early.count), nil
}

// keepEarly keeps an entry until its item comes.
func (f *fold) keepEarly(entry *ports.Entry) error {
	if !f.w.alone {
		return errAlone
	}
	e := &f.early
	e.waiting[entry.Key] = append(e.waiting[entry.Key], waiting{entry: *entry})
	if e.count == 0 || entry.ReceivedMs < e.oldest {
		e.oldest = entry.ReceivedMs
	}
	e.count++
	return nil
}

// dropEarly drops what has waited too long when an entry comes, and counts it.
func (f *fold) dropEarly(entry *ports.Entry) (dropped int, err error) {
	e := &f.early
	before := ports.TooEarly(entry)
	if e.count == 0 || e.oldest >= before || entry.Action.Family() != ports.Queue {
		return 0, nil
	}
	// Those of this transaction are not in the table yet; what it released already is.
	b := &pgx.Batch{}
	removed := 0
	rowsOf(b.Queue(`DELETE FROM "UVEarly" WHERE "ReceivedMs" < $1 AND "IDUVEarly" <> ALL($2::bigint[]) RETURNING "IDUVEarly"`, before, slices.Clip(append([]int64{}, e.gone...))),
		func([]any) error {
			removed++
			return nil
		})
	oldest := int64(0)
	rowsOf(b.Queue(`SELECT coalesce(min("ReceivedMs"), 0) FROM "UVEarly"`), func(row []any) error {
		oldest, _ = row[0].(int64)
		return nil
	})
	if err := f.t.send(b); err != nil {
		return 0, err
	}
	for key, list := range e.waiting {
		e.waiting[key] = slices.DeleteFunc(list, func(w waiting) bool {
			old := w.entry.ReceivedMs < before
			if old && w.id == 0 {
				removed++
			}
			if !old && w.id == 0 && (oldest == 0 || w.entry.ReceivedMs < oldest) {
				oldest = w.entry.ReceivedMs
			}
			return old
		})
	}
	e.count -= int64(removed)
	e.oldest = oldest
	return removed, nil
}

// release decides what waited for the item that an entry left there, as part of that entry.
func (f *fold) release(entry *ports.Entry, d *ports.Decision, rules ports.Rules) error {
	e := &f.early
	list := e.waiting[entry.Key]
	if len(list) == 0 {
		return nil
	}
	var entries []ports.Entry
	for _, w := range list {
		entries = append(entries, w.entry)
		if w.id != 0 {
			e.gone = append(e.gone, w.id)
		}
	}
	e.waiting[entry.Key] = nil
	e.count -= int64(len(list))
	for _, each := range ports.Release(entries, entry) {
		one, _, err := f.decideOne(&each, rules)
		if err != nil {
			return err
		}
		if one.Outcome == ports.Refused {
			d.Dropped++
		} else {
			d.Applied++
		}
	}
	return nil
}

// flushEarly adds what becomes of early writes.
func (f *fold) flushEarly(b *pgx.Batch) error {
	e := &f.early
	if len(e.gone) > 0 {
		b.Queue(`DELETE FROM "UVEarly" WHERE "IDUVEarly" = ANY($1::bigint[])`, e.gone)
	}
	var kept []*ports.Entry
	for _, list := range e.waiting {
		for i := range list {
			if list[i].id == 0 {
				kept = append(kept, &list[i].entry)
			}
		}
	}
	if len(kept) == 0 {
		return nil
	}
	slices.SortFunc(kept, func(a, b *ports.Entry) int { return int(int64(a.Seq) - int64(b.Seq)) })
	var keys, texts []string
	var times []int64
	for _, entry := range kept {
		text, err := json.Marshal(entry)
		if err != nil {
			return err
		}
		keys, times, texts = append(keys, entry.Key), append(times, entry.ReceivedMs), append(texts, string(text))
	}
	b.Queue(`INSERT INTO "UVEarly" ("WorkItemHash", "ReceivedMs", "Entry") SELECT k, m, e FROM unnest($1::text[], $2::bigint[], $3::text[]) AS v(k, m, e)`, keys, times, texts)
	return nil
}
