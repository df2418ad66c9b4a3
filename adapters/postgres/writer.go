package postgres

import (
	"context"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/adapters/line"
	"holdfast/adapters/tables"
	"holdfast/ports"
)

// writer does everything that changes records, in one goroutine, over one connection at a time.
type writer struct {
	base  *database
	queue *line.Queue
	done  chan struct{} // closed when the goroutine has ended
	ctx   context.Context
	quit  context.CancelFunc

	rules  ports.Rules // of the last Open; no HostID: none came yet
	known  *ownHost    // nil: read at the beginning of the next transaction
	fold   *fold
	alone  bool  // the next transaction shuts those of other hosts out: it keeps early writes
	graves int64 // tombstones that are kept of a family
	buried map[ports.Family]int64
}

// ownHost is what the writer remembers of its host beside records. The nonce guards it: who opens the store for the same host changes it.
type ownHost struct {
	nonce  string
	epochs map[ports.Family][]ports.Epoch
	odds   map[ports.Family]*tables.Odds
}

func startWriter(d *database) *writer {
	w := &writer{base: d, queue: line.New(), done: make(chan struct{}), graves: tables.MaxGraves, buried: map[ports.Family]int64{}}
	w.ctx, w.quit = context.WithCancel(context.Background())
	w.fold = newFold(w)
	go w.loop()
	return w
}

// stop ends the goroutine; the transaction in hand is broken off. What is in line fails.
func (w *writer) stop(reason error) {
	w.queue.Close(reason, true)
	w.quit()
	<-w.done
}

func (w *writer) loop() {
	defer close(w.done)
	for {
		group := w.queue.Take()
		if group == nil {
			return
		}
		cost := int64(0)
		for _, j := range group {
			cost += j.Cost
		}
		if group[0].Batch != nil {
			w.commit(group)
		} else {
			w.queue.Finish(group[0], group[0].Run())
		}
		w.letGo(cost)
	}
}

// largeBytes is what a transaction has to bring to be cleaned up after at once. On its way to the server a record is in memory five
// times, and the next one would find them all still there.
const largeBytes = 16 << 20

func (w *writer) letGo(cost int64) {
	w.fold.begin(nil)
	if cost >= largeBytes {
		debug.FreeOSMemory()
	}
}

// do runs a function in the writer's goroutine and waits for it; urgent lets it go before what is in line. When ctx ends
// the function may still run.
func (w *writer) do(ctx context.Context, urgent bool, run func() error) error {
	j := &line.Job{Run: run}
	if err := w.queue.Add(ctx, j, urgent); err != nil {
		return err
	}
	return j.Await(ctx)
}

// turn is one transaction of the writer.
type turn struct {
	reading
	ctx  context.Context
	base *database
}

// transact runs fn as a transaction: fn begins it with its first statements and ends it with its last, see turn.begin. What another
// transaction was in the way of is run again, and so is what a lost connection left open: fn finds what was done already.
func (w *writer) transact(op string, bytes int64, fn func(t *turn) error) error {
	limit := w.base.conf.timeout + ports.TimeFor(bytes)
	ctx, cancel := context.WithTimeout(w.ctx, limit)
	defer cancel()
	for try := 1; ; try++ {
		err := w.base.with(ctx, func(conn *pgx.Conn) error {
			return fn(&turn{reading: reading{conn: conn}, ctx: ctx, base: w.base})
		})
		if err == nil {
			return nil
		}
		w.known = nil
		switch {
		case w.ctx.Err() != nil:
			return errClosed
		case try == maxTries || !again(err) || ctx.Err() != nil:
			return w.told(op, err)
		}
		select {
		case <-time.After(time.Duration(try) * rand.N(20*time.Millisecond)):
		case <-ctx.Done():
			return w.told(op, err)
		}
	}
}

// byKey has the server find rows by the indexes of their keys. What it knows of a table's size is a minute old, and its plans may be
// older: those that were made while the tables were empty read all of a table for every transaction, and it grows the while.
const byKey = `SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)`

// queueBegin begins a transaction that changes records.
func (w *writer) queueBegin(b *pgx.Batch) {
	w.base.queueStart(b, forGood.begin)
	b.Queue(byKey)
	w.fold.queueBarrier(b)
}

// told gives an error its code. Our own limit is the server's silence, and no caller's; so is a statement that the server canceled,
// be it because we asked. Deadline would say that the plugin hangs.
func (w *writer) told(op string, err error) error {
	why := ports.AsError(fault(op, err))
	switch {
	case why.Code != ports.Deadline && why.Code != ports.Canceled:
		return why
	case stateOf(err) != "":
		return ports.Errorf(ports.Unavailable, op, "%s", why.Message)
	}
	return ports.Errorf(ports.Unavailable, op, "the server did not answer within the option timeout; what was sent may still take effect")
}

// send sends statements in one round trip. each gets the results of those that were queued with one, in order.
func (t *turn) send(b *pgx.Batch) error {
	return t.conn.SendBatch(t.ctx, b).Close()
}

// rowsOf hands every row of a queued statement to each.
func rowsOf(q *pgx.QueuedQuery, each func(row []any) error) {
	q.Query(func(rows pgx.Rows) error {
		var values []any
		for rows.Next() {
			values = cells(rows, values)
			if err := each(values); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}
