package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"holdfast/adapters/line"
	"holdfast/adapters/tables"
	"holdfast/ports"
)

// writer does everything that changes the file, in one goroutine, over one connection.
type writer struct {
	file  *file
	conf  settings
	queue *line.Queue
	done  chan struct{} // closed when the goroutine has ended

	link    *link  // nil: was given up after a fault; the next transaction dials again
	known   *known // nil: read at the beginning of the next transaction
	version int64  // PRAGMA data_version: another program's writes show in it
	cache   *cache
	fold    *fold
	rules   ports.Rules // of the last Open; no HostID: none came yet
	walNext int64       // length of the WAL at which cutting it is tried next
	graves  int64       // tombstones that are kept of a family
}

// known is what the writer remembers of the file beside records.
type known struct {
	marks  map[ports.Family]ports.Mark
	epochs map[ports.Family][]ports.Epoch
	odds   map[ports.Family]*tables.Odds
	gone   map[ports.Family]int64 // how many tombstones there are
	early  waiters
}

const cacheBytes = 32 << 20

func startWriter(f *file, l *link, s settings) *writer {
	w := &writer{
		file: f, link: l, conf: s, queue: line.New(), done: make(chan struct{}),
		cache: newCache(cacheBytes), walNext: walLimit, graves: tables.MaxGraves,
	}
	w.fold = newFold(w)
	go w.loop()
	return w
}

// stop ends the goroutine after the transaction in hand and gives the connection back. What is in line fails.
func (w *writer) stop(reason error) error {
	w.queue.Close(reason, true)
	<-w.done
	if w.link == nil {
		return nil
	}
	return w.link.close()
}

func (w *writer) loop() {
	defer close(w.done)
	for {
		group := w.queue.Take()
		if group == nil {
			return
		}
		if group[0].Batch != nil {
			w.commit(group)
		} else {
			w.queue.Finish(group[0], group[0].Run())
		}
		w.tidy()
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

// transact runs fn in a write transaction, and then what shall follow its commit (nil for nothing). After a failure nothing
// of it is left, in the file or in memory.
func (w *writer) transact(op string, fn func() error, committed func()) error {
	err := w.ready()
	if err != nil {
		return fault(op, w.file.path, err)
	}
	tx, err := w.link.begin()
	if err == nil {
		if err = w.refresh(); err == nil {
			err = fn()
		}
		if err != nil {
			_ = tx.Rollback() // after some faults the engine has ended it already, which is as good
		} else {
			err = tx.Commit()
		}
	}
	if err == nil {
		if committed != nil {
			committed()
		}
		return nil
	}
	w.forget()
	if broken(err) {
		w.giveUp()
	}
	return fault(op, w.file.path, err)
}

// try begins a write transaction, touches a page and takes it back.
func (w *writer) try(op string) error {
	err := w.ready()
	if err == nil {
		var tx driver.Tx
		if tx, err = w.link.begin(); err == nil {
			_, err = w.link.exec(`UPDATE "UVHoldfast" SET "Value" = "Value" WHERE "Key" = ?`, tables.KeyStoreID)
			err = errors.Join(err, tx.Rollback())
		}
	}
	if broken(err) {
		w.giveUp()
	}
	return fault(op, w.file.path, err)
}

// giveUp lets go of a connection that can no longer be trusted.
func (w *writer) giveUp() {
	w.forget()
	if w.link != nil {
		_ = w.link.close() // fails as well, or says nothing new
		w.link = nil
	}
}

// ready makes sure that there is a connection, and that it writes to the file that others find.
func (w *writer) ready() error {
	if err := w.file.here(); err != nil {
		return err
	}
	if w.link != nil {
		return nil
	}
	l, err := dial(dsn(w.conf.path, w.conf.busy, writes))
	if err != nil {
		return err
	}
	w.link = l
	w.forget()
	return nil
}

func (w *writer) forget() {
	w.known = nil
	w.cache.reset()
}

// refresh reads what the writer must know, and forgets what another program may have changed.
func (w *writer) refresh() error {
	version, _, err := w.link.number("PRAGMA data_version")
	if err != nil {
		return err
	}
	if version != w.version {
		w.version = version
		w.forget()
	}
	if w.known != nil {
		return nil
	}
	k := &known{
		marks: map[ports.Family]ports.Mark{}, epochs: map[ports.Family][]ports.Epoch{},
		odds: map[ports.Family]*tables.Odds{}, gone: map[ports.Family]int64{},
	}
	for _, f := range ports.Families {
		if err := w.recallFamily(k, f); err != nil {
			return err
		}
	}
	if k.early, err = waitersIn(w.link); err != nil {
		return err
	}
	w.known = k
	return nil
}

func (w *writer) recallFamily(k *known, f ports.Family) (err error) {
	if k.gone[f], _, err = w.link.number(fmt.Sprintf(`SELECT count(*) FROM "UVGone" WHERE %s`, gravesOf(f))); err != nil {
		return err
	}
	host := w.rules.HostID
	if host == "" {
		return nil
	}
	var mark ports.Mark
	var epochs []ports.Epoch
	if err = getJSON(w.link, tables.KeyMark(f, host), &mark); err != nil {
		return err
	}
	if err = getJSON(w.link, tables.KeyEpochs(f, host), &epochs); err != nil {
		return err
	}
	k.marks[f], k.epochs[f] = mark, epochs
	k.odds[f], err = readOdds(w.link, f, host)
	return err
}

// roomFor refuses a write that would use up the space in which prune and checkpoints work. A transaction stands in the WAL
// first and in the file later.
func (w *writer) roomFor(op string, bytes int64) error {
	if free, need := w.file.free(), roomKept+3*bytes; free < need {
		return &ports.Error{
			Code: ports.Full, Op: op, Limit: need, Size: free,
			Message: fmt.Sprintf("no room for %s: %d bytes are free, %d are needed; prune, or free some space", w.file.path, free, need),
		}
	}
	return nil
}

// tidy keeps the WAL short. The engine writes it back every 1,000 pages by itself, but begins it anew only when no reader
// is in it; when it has grown long it is cut, which makes readers and this goroutine wait for each other a little.
func (w *writer) tidy() {
	size := w.file.walSize()
	switch {
	case size >= w.walNext:
		if err := w.checkpoint("TRUNCATE", 500*time.Millisecond); err == nil && w.file.walSize() < walLimit {
			w.walNext = walLimit
		} else {
			w.walNext = size + walLimit/4
		}
	case size > 0 && w.file.free() < roomTight:
		// A WAL that waits to be written back is room that the file may not get later. A failure shows at the next commit.
		_ = w.checkpoint("PASSIVE", 0)
	}
}

// checkpoint writes the WAL back into the file. TRUNCATE also empties it, and waits for readers up to patience.
func (w *writer) checkpoint(mode string, patience time.Duration) error {
	if w.link == nil {
		return nil
	}
	if err := w.link.once(fmt.Sprintf("PRAGMA busy_timeout = %d", patience.Milliseconds())); err != nil {
		return err
	}
	busy, _, err := w.link.number("PRAGMA wal_checkpoint(" + mode + ")")
	if err == nil && busy != 0 && mode == "TRUNCATE" {
		err = ports.Errorf(ports.Unavailable, "sqlite: checkpoint", "readers are in the write-ahead log of %s", w.file.path)
	}
	return errors.Join(err, w.link.once(fmt.Sprintf("PRAGMA busy_timeout = %d", w.conf.busy.Milliseconds())))
}

// clock is the time text that the engine's date columns get.
func clock() string { return ports.FormatMs(time.Now().UnixMilli()) }
