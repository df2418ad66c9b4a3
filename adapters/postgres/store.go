package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// Backend is a backend of kind postgres. Use New, then Configure. The database is reached when it is first needed; while that
// fails every call says why and tries again, so that an operator's remedy needs no restart.
type Backend struct {
	ctx  context.Context // ends with Close, and with it whatever waits for the server
	quit context.CancelFunc
	gate chan struct{} // a lock that a context can give up on; it guards what follows

	conf       settings
	configured bool
	closed     bool
	drained    bool
	pool       *pgxpool.Pool // from Configure to Close
	patience   *patience
	opening    *opening // under way, or failed a moment ago
	base       *database
	work       *writer

	pruning     chan struct{} // one prune at a time; it guards sweep
	sweep       tables.Sweep
	searchLimit time.Duration // of a list that must look at rows which it does not give
}

// opening is one attempt to open the database, for which any number of callers wait.
type opening struct {
	done  chan struct{} // closed at its end
	err   error
	ended time.Time
}

// openPause is how long a failed attempt stands for those that come after it.
const openPause = 100 * time.Millisecond

// New makes a backend that waits for Configure.
func New() *Backend {
	b := &Backend{gate: make(chan struct{}, 1), pruning: make(chan struct{}, 1), searchLimit: 500 * time.Millisecond}
	b.ctx, b.quit = context.WithCancel(context.Background())
	return b
}

// version is that of the plugin.
const version = "1.0.0"

// Describe says what the backend is. A statement that was sent may still take effect when the process is gone, as long as the server
// has not seen that; so a Put may be in doubt.
func (b *Backend) Describe(context.Context) (ports.Description, error) {
	return ports.Description{
		Kind: "postgres", Version: version,
		Summary:  "a PostgreSQL database, shared by as many hosts as there are",
		Families: ports.Families,
		Powers:   ports.PowersOf(b),
		Options:  options,
	}, nil
}

// Configure takes the options; see ports.Configurer. Nothing is connected yet.
func (b *Backend) Configure(_ context.Context, c ports.Configuration) error {
	conf, err := parseOptions(c)
	if err != nil {
		return err
	}
	pool, patience, err := newPool(conf)
	if err != nil { // its text may show the dsn
		return ports.InField(ports.Invalid, "dsn", "cannot be used for a pool of connections")
	}
	b.gate <- struct{}{}
	defer b.unlock()
	if b.pool != nil {
		pool.Close()
		return ports.Errorf(ports.Invalid, "postgres: configure", "the backend was configured before")
	}
	b.conf, b.pool, b.patience, b.configured = conf, pool, patience, true
	return nil
}

func (b *Backend) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case b.gate <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *Backend) unlock() { <-b.gate }

var (
	errClosed  = ports.Errorf(ports.Unavailable, "postgres", "the store is closed")
	errDrained = ports.Errorf(ports.Unavailable, "postgres", "the store was drained and takes no more work")
)

// open gives the open database.
func (b *Backend) open(ctx context.Context) (*database, error) {
	d, _, err := b.opened(ctx)
	return d, err
}

// writer gives the writer, unless the store takes no more work.
func (b *Backend) writer(ctx context.Context) (*writer, error) {
	_, w, err := b.opened(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.unlock()
	if b.drained {
		return nil, errDrained
	}
	return w, nil
}

func (b *Backend) opened(ctx context.Context) (*database, *writer, error) {
	for {
		if err := b.lock(ctx); err != nil {
			return nil, nil, err
		}
		d, w, o := b.base, b.work, b.opening
		switch {
		case b.closed:
			b.unlock()
			return nil, nil, errClosed
		case !b.configured:
			b.unlock()
			return nil, nil, ports.Errorf(ports.Unavailable, "postgres", "the store was not configured")
		case d != nil:
			b.unlock()
			return d, w, nil
		case o == nil || !o.ended.IsZero() && time.Since(o.ended) > openPause:
			o = &opening{done: make(chan struct{})}
			b.opening = o
			go b.begin(o)
		}
		b.unlock()
		select {
		case <-o.done:
			if o.err != nil {
				return nil, nil, o.err
			}
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// begin opens the database for all who wait.
func (b *Backend) begin(o *opening) {
	d, err := openDatabase(b.ctx, b.pool, b.patience, b.conf, b.forgetBase)
	b.gate <- struct{}{}
	defer b.unlock()
	defer close(o.done)
	o.err, o.ended = err, time.Now()
	if b.closed {
		o.err = errClosed
		return
	}
	if err == nil {
		b.base, b.work, b.opening = d, startWriter(d), nil
	}
}

// forgetBase lets the next call open the database anew: its tables are not those that were opened.
func (b *Backend) forgetBase(d *database) {
	b.gate <- struct{}{}
	if b.base != d {
		b.unlock()
		return
	}
	w := b.work
	b.base, b.work = nil, nil
	b.unlock()
	w.stop(ports.Errorf(ports.Unavailable, "postgres", "the tables were made anew; they are opened again"))
}

// Probe writes a row and takes it back; see ports.Backend. It waits for no lock: not for that of a commit, nor of another host's probe.
func (b *Backend) Probe(ctx context.Context, _ ports.Family) error {
	if _, err := b.writer(ctx); err != nil {
		return err
	}
	d, err := b.open(ctx)
	if err != nil {
		return err
	}
	_, err = inTransaction(ctx, d, "postgres: probe", tryOut, func(ctx context.Context, r *reading) (struct{}, error) {
		_, err := r.conn.Exec(ctx, `UPDATE "UVHoldfast" SET "Value" = "Value" WHERE "Key" = (
			SELECT "Key" FROM "UVHoldfast" WHERE "Key" = $1 FOR UPDATE SKIP LOCKED)`, tables.KeyStoreID)
		return struct{}{}, err
	})
	return err
}

// Drain finishes what is in line and takes no more work.
func (b *Backend) Drain(ctx context.Context) error {
	if err := b.lock(ctx); err != nil {
		return err
	}
	b.drained = true
	w := b.work
	b.unlock()
	if w == nil {
		return nil
	}
	err := w.do(ctx, false, func() error { return nil })
	w.queue.Close(errDrained, false)
	return err
}

// Close ends the writer and every connection. Batches in line fail as Unavailable; those that were not answered may have
// been committed.
func (b *Backend) Close() error {
	b.gate <- struct{}{}
	if b.closed {
		b.unlock()
		return nil
	}
	b.closed = true
	pool, w, o := b.pool, b.work, b.opening
	b.unlock()
	b.quit()
	if w != nil {
		w.stop(errClosed)
	}
	if pool != nil {
		pool.Close()
	}
	if o != nil {
		<-o.done
	}
	return nil
}
