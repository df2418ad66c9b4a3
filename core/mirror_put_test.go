package core

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"holdfast/ports"
)

// What becomes of a Put at a mirror.

// putFate is what becomes of a Put.
type putFate struct {
	kind  putKind
	err   error         // of a refused one
	key   string        // of a refused one: the rows before this key are taken
	after time.Duration // it waits that long first
	done  int           // of a wrong one: what it adds to Done
}

type putKind int

const (
	putTakes   putKind = iota // it is in effect
	putDies                   // the process dies before it takes effect
	putLoses                  // it takes effect, and the process dies before it answers
	putRefuses                // the rows before a key take effect; the answer says so, and why not the rest
	putHangs                  // it and every Put behind it is never answered, until the process is killed
	putSilent                 // it takes no effect and is never answered; others are
	putLate                   // it takes effect so much later, and is answered then if anybody still waits
	putLost                   // it takes effect so much later, and is never answered
	putTwice                  // it takes effect, is not answered, and takes effect again so much later
	putWrong                  // it takes effect, but for the rows that a negative done takes off; the answer is no error and a wrong count
)

// onPut gives Puts that hold a row of the key a fate.
func onPut(key string, f putFate) func(*ports.Batch) putFate {
	if f.key == "" {
		f.key = key
	}
	return func(b *ports.Batch) putFate {
		if slices.ContainsFunc(b.Rows, func(r ports.Row) bool { return r.Key == key }) {
			return f
		}
		return putFate{}
	}
}

// every gives all Puts with rows a fate.
func every(f putFate) func(*ports.Batch) putFate {
	return func(b *ports.Batch) putFate {
		if len(b.Rows) == 0 {
			return putFate{}
		}
		return f
	}
}

func (m *mirror) Put(ctx context.Context, b ports.Batch) (ports.Applied, error) {
	defer m.slot("put")()
	r, err := m.serve(ctx)
	if err != nil {
		return ports.Applied{}, err
	}
	b.Rows = slices.Clone(b.Rows)
	defer m.under(&b)()
	m.mu.Lock()
	what := putFate{}
	if m.fate != nil {
		what = m.fate(&b)
	}
	m.puts++
	m.mu.Unlock()
	switch what.kind {
	case putHangs:
		m.change(func(*mirror) { closeOnce(r.stuck) })
		return ports.Applied{}, m.never(ctx, r)
	case putSilent:
		return ports.Applied{}, m.never(ctx, r)
	case putLate:
		m.later(&b, what.after)
		err := m.waits(ctx, r, what.after+time.Millisecond) // behind the effect
		if err != nil {
			return ports.Applied{}, err
		}
		return ports.Applied{Done: len(b.Rows)}, nil
	case putTwice, putLost:
		if what.kind == putTwice {
			m.change(func(m *mirror) {
				if m.isAt(&b) {
					m.take(&b, len(b.Rows), false)
				}
			})
		}
		m.later(&b, what.after)
		return ports.Applied{}, m.never(ctx, r)
	}
	if err := m.waits(ctx, r, what.after); err != nil {
		return ports.Applied{}, err
	}
	select {
	case <-r.stuck:
		return ports.Applied{}, m.never(ctx, r)
	default:
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.run != r {
		return ports.Applied{}, ports.Errorf(ports.BackendGone, "mirror", "the process is gone")
	}
	return m.carryOut(&b, what)
}

func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

func (m *mirror) carryOut(b *ports.Batch, what putFate) (ports.Applied, error) {
	if !m.isAt(b) {
		return ports.Applied{}, ports.InField(ports.Conflict, ports.FieldPosition, "it is not the next batch")
	}
	n := len(b.Rows)
	switch what.kind {
	case putDies:
		m.die()
		return ports.Applied{}, ports.Errorf(ports.BackendGone, "mirror", "the process is gone")
	case putRefuses:
		if i := slices.IndexFunc(b.Rows, func(r ports.Row) bool { return r.Key == what.key || what.key == "" }); i >= 0 {
			n = i
		}
		m.take(b, n, false)
		return ports.Applied{Done: n}, what.err
	case putWrong:
		kept := max(0, min(n, n+what.done))
		m.take(b, kept, false)
		return ports.Applied{Done: n + what.done}, nil
	}
	m.take(b, n, false)
	if what.kind == putLoses {
		m.die()
		return ports.Applied{}, ports.Errorf(ports.BackendGone, "mirror", "the process is gone")
	}
	return ports.Applied{Done: n}, nil
}

// isAt says whether a batch is the next one for the store.
func (m *mirror) isAt(b *ports.Batch) bool {
	if b.After == nil || m.noPosition || m.unfenced {
		return true
	}
	at := m.disk.position(b.Family)
	return at.StoreID == b.After.StoreID && at.Covers(*b.After) && b.After.Covers(at)
}

// later lets a Put take effect after a while: in the store behind the process, as long as it is the same store.
func (m *mirror) later(b *ports.Batch, after time.Duration) {
	m.mu.Lock()
	life := m.lives
	m.mu.Unlock()
	time.AfterFunc(after, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.lives == life && (m.loose || m.isAt(b)) {
			m.take(b, len(b.Rows), true)
		}
	})
}

// take puts the first n rows of a batch in effect, and its position if they are all. A late one may bring older states.
func (m *mirror) take(b *ports.Batch, n int, isLate bool) {
	m.rows += n
	for i := range b.Rows[:n] {
		row := &b.Rows[i]
		before, known := m.disk.shown[placeOfRow(row)]
		older := known && before.Host == row.Change.Host && row.Change.Seq < before.Seq
		if older && !isLate && (m.reads == nil || m.reads(b.Family, row.Key)) {
			m.fault(fmt.Sprintf("%s %s went back from %d to %d", row.Kind, row.Key, before.Seq, row.Change.Seq))
		}
		m.disk.put(row)
	}
	if b.Position != nil && n == len(b.Rows) && !m.noPosition {
		if id := b.Position.StoreID; id != "" && id != m.disk.id {
			m.fault("was told the position of store " + id)
		}
		m.disk.setPosition(b.Family, *b.Position)
	}
	m.disk.log = append(m.disk.log, *b)
}

// under notes the keys of a Put, checks that the batch is in order, and gives what forgets the keys.
func (m *mirror) under(b *ports.Batch) func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	var keys []string
	item := false
	for i := range b.Rows {
		row := &b.Rows[i]
		if i == 0 || b.Rows[i-1].Key != row.Key {
			if slices.Contains(keys, row.Key) {
				m.fault("the rows of " + strconv.Quote(row.Key) + " are apart in a batch")
			}
			keys, item = append(keys, row.Key), true
		}
		if row.Kind == ports.KindItem && !item {
			m.fault("the item " + strconv.Quote(row.Key) + " is behind its events or attempts")
		}
		item = item && row.Kind == ports.KindItem
		if row.Kind.Family() != b.Family {
			m.fault("a row of another family")
		}
	}
	if n := len(b.Rows); n > ports.MaxBatchEntries {
		m.fault(strconv.Itoa(n) + " rows in a batch")
	}
	for _, key := range keys {
		if m.busy[b.Family][key]++; m.busy[b.Family][key] > 1 && (m.doubts == nil || !m.doubts(b.Family, key)) {
			m.fault("two Puts of " + strconv.Quote(key) + " at a time")
		}
	}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, key := range keys {
			m.busy[b.Family][key]--
		}
	}
}
