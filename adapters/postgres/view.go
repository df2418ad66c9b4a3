package postgres

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/semaphore"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// database is an open database: its tables are there and of this version.
type database struct {
	pool     *pgxpool.Pool
	patience *patience
	conf     settings
	storeID  string
	readers  *semaphore.Weighted // all connections but the writer's
	gone     func(*database)     // its tables are not those that were opened: they are opened anew
	ctx      context.Context     // ends when the backend is closed

	opener  atomic.Pointer[string] // the host that opened the store last; nil: none did since this process began
	limits  []string               // what a pooler's transaction begins with
	barrier int64                  // the advisory lock between items and early writes, see early.go
}

// openDatabase connects and brings the tables to this version.
func openDatabase(ctx context.Context, pool *pgxpool.Pool, p *patience, s settings, gone func(*database)) (*database, error) {
	d := &database{pool: pool, patience: p, conf: s, readers: semaphore.NewWeighted(int64(s.size - 1)), gone: gone, ctx: ctx}
	if s.pooler {
		for name, value := range s.limits() {
			d.limits = append(d.limits, fmt.Sprintf("SET LOCAL %s = '%s'", name, strings.ReplaceAll(value, "'", "''")))
		}
		slices.Sort(d.limits)
	}
	const op = "postgres: open"
	ask := func(limit time.Duration, how func(context.Context, *pgx.Conn) (string, error)) (err error) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		d.storeID, err = inTransaction(ctx, d, op, forGood, func(ctx context.Context, r *reading) (string, error) { return how(ctx, r.conn) })
		return err
	}
	err := ask(s.timeout+time.Second, storeOf)
	for try := 0; err == nil && d.storeID == ""; try++ {
		if err = ask(migrateTime, func(ctx context.Context, conn *pgx.Conn) (string, error) { return migrate(ctx, conn, s.schema) }); raced(err) && try < maxTries {
			err = nil // another program made the same table at that moment
		}
	}
	if err != nil {
		if told := *ports.AsError(err); told.Code.Permanent() { // what is wrong with the tables is no fault of any record
			told.Code = ports.Unavailable
			return nil, &told
		}
		return nil, err
	}
	sum := fnv.New64a()
	sum.Write([]byte(d.storeID))
	d.barrier = int64(sum.Sum64())
	return d, nil
}

const (
	migrateTime = 10 * time.Minute // of tables that a databeacon made, which may be large
	maxTries    = 6                // of a transaction that another one was in the way of
)

// raced says that somebody else made the same table, type or index at the same moment.
func raced(err error) bool {
	told, ok := errors.AsType[*ports.Error](err)
	return ok && slices.ContainsFunc([]string{"23505", "42P07", "42710"}, func(state string) bool {
		return strings.Contains(told.Message, "SQLSTATE "+state)
	})
}

// reading is a connection in a transaction.
type reading struct {
	conn   *pgx.Conn
	values []any
}

// mode is how a transaction begins, and how it ends when all went well.
type mode struct{ begin, end string }

var (
	readOnly = mode{"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "COMMIT"}
	tryOut   = mode{"BEGIN ISOLATION LEVEL READ COMMITTED", "ROLLBACK"}
	forGood  = mode{"BEGIN ISOLATION LEVEL READ COMMITTED", "COMMIT"}
)

// view runs a function that sees one state of the database and gives what it gives. When ctx ends view returns at once, and the
// connection is used again as soon as the server has let go of the statement. look may run several times.
func view[T any](ctx context.Context, d *database, op string, look func(ctx context.Context, r *reading) (T, error)) (T, error) {
	return inTransaction(ctx, d, op, readOnly, look)
}

func inTransaction[T any](ctx context.Context, d *database, op string, m mode, look func(ctx context.Context, r *reading) (T, error)) (T, error) {
	var none T
	if err := d.readers.Acquire(ctx, 1); err != nil {
		return none, fault(op, err)
	}
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	outer := ctx
	go func() { // its end is bounded by ctx and cancelTimeout, and by the server's own limits
		defer d.readers.Release(1)
		ctx, cancel := d.bound(outer)
		defer cancel()
		var a answer
		for try := 1; ; try++ {
			a.err = d.with(ctx, func(conn *pgx.Conn) (err error) {
				r := &reading{conn: conn}
				if err := d.start(ctx, conn, m.begin); err != nil {
					return err
				}
				if a.value, err = look(ctx, r); err != nil {
					return err
				}
				_, err = conn.Exec(ctx, m.end)
				return err
			})
			// What only reads may be read again: sessions end, and tables get columns.
			if a.err == nil || m != readOnly || try == maxTries || !again(a.err) || !rested(ctx, time.Duration(try)*rand.N(20*time.Millisecond)) {
				break
			}
		}
		answers <- a
	}()
	select {
	case a := <-answers:
		if a.err != nil {
			switch {
			case ctx.Err() != nil:
				a.err = ctx.Err()
			case d.ctx.Err() != nil:
				a.err = errClosed
			}
			return none, fault(op, a.err)
		}
		return a.value, nil
	case <-ctx.Done():
		return none, fault(op, ctx.Err())
	}
}

// bound is a context that ends with the backend too, and in any case: silence is no answer, even to those who have time.
func (d *database) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	end, set := ctx.Deadline()
	if !set {
		end = time.Now().Add(10 * d.conf.timeout)
	}
	ctx, cancel := context.WithDeadline(ctx, end)
	stop := context.AfterFunc(d.ctx, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// with lends a connection. One on which a transaction is left open after a fault is cleaned, or given up.
func (d *database) with(ctx context.Context, use func(conn *pgx.Conn) error) error {
	held, err := d.pool.Acquire(context.WithValue(ctx, ofPool{}, true))
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return d.patience.failed(err)
	}
	defer held.Release()
	err = use(held.Conn())
	if err == nil {
		return nil
	}
	conn := held.Conn()
	switch {
	case conn.IsClosed(): // the others have most likely gone the same way
		d.pool.Reset()
		raw := conn.PgConn().Conn()
		time.AfterFunc(graceTime, func() { _ = raw.Close() })
	case stateOf(err) == "42P01":
		go d.gone(d)
	case stateOf(err) == "25006": // the server became read-only; another one may have taken over
		d.pool.Reset()
	}
	if !conn.IsClosed() && conn.PgConn().TxStatus() != 'I' {
		ctx, cancel := context.WithTimeout(context.Background(), cancelTimeout)
		defer cancel()
		_, _ = conn.Exec(ctx, "ROLLBACK") // the error that counts is the first; the pool sees what is left
	}
	return err
}

// start begins a transaction, with the limits that a pooler's session does not have.
func (d *database) start(ctx context.Context, conn *pgx.Conn, begin string) error {
	b := &pgx.Batch{}
	d.queueStart(b, begin)
	if begin == readOnly.begin {
		b.Queue(lockAll)
	}
	return conn.SendBatch(ctx, b).Close()
}

func (d *database) queueStart(b *pgx.Batch, begin string) {
	b.Queue(begin)
	for _, text := range d.limits {
		b.Queue(text)
	}
}

// lockAll has a snapshot begin when no table is being rewritten. One that began before an ALTER TABLE sees the rewritten table empty. None
// of the statements up to here takes a snapshot.
var lockAll = func() string {
	names := []string{"UVHoldfast", "UVGone", ports.EarlyWrites.Name}
	for _, t := range ports.Tables {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	return `LOCK TABLE ` + tables.Quoted(names) + ` IN ACCESS SHARE MODE`
}()

// query calls each with every row; the slice is used again for the next one.
func (r *reading) query(ctx context.Context, text string, each func(row []any) error, args ...any) error {
	rows, err := r.conn.Query(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		r.values = cells(rows, r.values)
		if err := each(r.values); err != nil {
			return err
		}
	}
	return rows.Err()
}

// word gives the first column of the first row as text, "" when there is no row.
func (r *reading) word(ctx context.Context, text string, args ...any) (word string, err error) {
	first := true
	err = r.query(ctx, text, func(row []any) error {
		if first {
			word, _ = row[0].(string)
			first = false
		}
		return nil
	}, args...)
	return word, err
}

// number gives the first column of the first row as a number; ok is false when there is no row, or NULL in it.
func (r *reading) number(ctx context.Context, text string, args ...any) (n int64, ok bool, err error) {
	first := true
	err = r.query(ctx, text, func(row []any) error {
		if first {
			n, ok = row[0].(int64)
			first = false
		}
		return nil
	}, args...)
	return n, ok, err
}

// keyJSON takes in a row of UVHoldfast; of a key that is not there it changes nothing.
func (r *reading) keyJSON(ctx context.Context, key string, into any) error {
	text, err := r.word(ctx, readKey, key)
	if err != nil {
		return err
	}
	return tables.Readable("postgres", key, text, into)
}
