package sqlite

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"

	"holdfast/ports"
)

// Early writes stand in a table of their own, as they came, until an item of their key is there. They are no records: no
// reader, export or survey sees them, and no change tells of them.

// waiters is what the writer remembers of all of them, so that a store without any does nothing for their sake.
type waiters struct {
	count  int64
	oldest int64 // none of them came before that time, in milliseconds
}

func waitersIn(l *link) (e waiters, err error) {
	err = l.query(`SELECT count(*), min("ReceivedMs") FROM "UVEarly"`, func(row []driver.Value) error {
		e.count, _ = row[0].(int64)
		e.oldest, _ = row[1].(int64)
		return nil
	})
	return e, err
}

// Early gives what waits for an item; see ports.Look.
func (f *fold) Early(key string) (waiting []ports.Entry, inAll int, err error) {
	known := &f.w.known.early
	if known.count == 0 {
		return nil, 0, nil
	}
	err = f.w.link.query(`SELECT "Entry" FROM "UVEarly" WHERE "WorkItemHash" = ? ORDER BY "IDUVEarly"`, func(row []driver.Value) error {
		text, _ := row[0].(string)
		var e ports.Entry
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			return ports.Errorf(ports.Internal, "sqlite", "UVEarly has an unreadable entry of key %q: %v", key, err)
		}
		waiting = append(waiting, e)
		return nil
	}, key)
	return waiting, int(known.count), err
}

// keepEarly keeps an entry until its item comes.
func (w *writer) keepEarly(e *ports.Entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = w.link.exec(`INSERT INTO "UVEarly" ("WorkItemHash", "ReceivedMs", "Entry") VALUES (?, ?, ?)`, e.Key, e.ReceivedMs, string(text))
	if err != nil {
		return err
	}
	known := &w.known.early
	if known.count == 0 || e.ReceivedMs < known.oldest {
		known.oldest = e.ReceivedMs
	}
	known.count++
	return nil
}

// dropEarly drops what has waited too long when an entry comes, and counts it.
func (w *writer) dropEarly(e *ports.Entry) (dropped int, err error) {
	known := &w.known.early
	before := ports.TooEarly(e)
	if known.count == 0 || known.oldest >= before || e.Action.Family() != ports.Queue {
		return 0, nil
	}
	n, err := w.link.affected(`DELETE FROM "UVEarly" WHERE "ReceivedMs" < ?`, before)
	if err != nil {
		return 0, err
	}
	*known, err = waitersIn(w.link)
	return int(n), err
}

// release decides what waited for the item that an entry left there, as part of that entry.
func (f *fold) release(e *ports.Entry, d *ports.Decision, rules ports.Rules) error {
	waiting, _, err := f.Early(e.Key)
	if err != nil || len(waiting) == 0 {
		return err
	}
	n, err := f.w.link.affected(`DELETE FROM "UVEarly" WHERE "WorkItemHash" = ?`, e.Key)
	if err != nil {
		return err
	}
	if n != int64(len(waiting)) {
		return fmt.Errorf("%d early writes of key %q were read and %d deleted", len(waiting), e.Key, n)
	}
	f.w.known.early.count -= n
	for _, each := range ports.Release(waiting, e) {
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
