package postgres

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/ports"
)

const (
	connectTimeout = 3 * time.Second // of one host, where the dsn says nothing
	pingTimeout    = time.Second     // of a connection that was idle for a second
	cancelTimeout  = time.Second     // within which a server must have canceled; then the connection is given up
	graceTime      = time.Second     // after which a connection that was given up is cut
	idleTime       = time.Minute
)

var dialer = &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3}}

// ofPool marks the contexts in which the pool connects. The driver also connects to cancel a statement, in a context of its own and for
// up to 15 s, and the connection that is given up keeps its place in the pool for so long.
type ofPool struct{}

func dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if ctx.Value(ofPool{}) != nil {
		return dialer.DialContext(ctx, network, addr)
	}
	ctx, cancel := context.WithTimeout(ctx, cancelTimeout)
	defer cancel()
	conn, err := dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &brief{Conn: conn, until: time.Now().Add(cancelTimeout)}, conn.SetDeadline(time.Now().Add(cancelTimeout))
}

// brief is a connection with a deadline that nobody moves on.
type brief struct {
	net.Conn
	until time.Time
}

func (b *brief) SetDeadline(at time.Time) error {
	if at.IsZero() || at.After(b.until) {
		at = b.until
	}
	return b.Conn.SetDeadline(at)
}

// arrange sets what does not depend on the dsn. Without a pooler a session knows its limits from its first byte on; with one they are
// told at the beginning of each transaction, see begin.
func (s *settings) arrange() {
	c, cc := s.pool, s.pool.ConnConfig
	c.MaxConns, c.MinConns = int32(s.size), 0
	c.MaxConnIdleTime, c.HealthCheckPeriod = idleTime, idleTime/2
	c.PingTimeout = pingTimeout
	if cc.ConnectTimeout <= 0 {
		cc.ConnectTimeout = connectTimeout
	}
	cc.DialFunc = dial
	// A call whose time is over cancels its statement and keeps its connection. Closing it, as the driver does by itself, leaves
	// the server at work while the pool opens another one.
	cc.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: cancelTimeout}
	}
	if len(cc.Fallbacks) > 0 && cc.ValidateConnect == nil {
		cc.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	if cc.RuntimeParams["application_name"] == "" && !s.pooler {
		cc.RuntimeParams["application_name"] = "holdfast"
	}
	if s.pooler {
		cc.DefaultQueryExecMode = pgx.QueryExecModeExec
		cc.StatementCacheCapacity, cc.DescriptionCacheCapacity = 0, 0
		return
	}
	maps.Copy(cc.RuntimeParams, s.limits())
	if s.schema != "" { // a list of names here, and one text where it is SET
		cc.RuntimeParams["search_path"] = `"` + s.schema + `"`
	}
	cc.RuntimeParams["tcp_keepalives_idle"] = "30"
	cc.RuntimeParams["tcp_keepalives_interval"] = "10"
	cc.RuntimeParams["tcp_keepalives_count"] = "3"
}

// limits are what the server itself ends, should this process be gone, stopped or cut off.
func (s *settings) limits() map[string]string {
	ms := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
	all := map[string]string{
		"statement_timeout":                   ms(6 * s.timeout),
		"lock_timeout":                        ms(s.timeout),
		"idle_in_transaction_session_timeout": ms(2 * s.timeout),
	}
	if s.schema != "" {
		all["search_path"] = s.schema
	}
	return all
}

// newPool makes the pool; nothing is connected yet.
func newPool(s settings) (*pgxpool.Pool, *patience, error) {
	p := &patience{attempt: s.pool.ConnConfig.ConnectTimeout + time.Second}
	c := s.pool.Copy()
	c.BeforeConnect = func(context.Context, *pgx.ConnConfig) error { return p.before() }
	c.AfterConnect = func(context.Context, *pgx.Conn) error {
		p.connected()
		return nil
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), c)
	return pool, p, err
}

// patience spaces the attempts to connect while they fail: one at a time, further and further apart. What is refused for a reason that
// only a person can mend is tried least often.
type patience struct {
	attempt time.Duration // how long one may take

	mu       sync.Mutex
	failures int
	until    time.Time // before it nobody tries
	last     error     // why the last attempt failed; nil while all is well
}

const (
	firstPause  = 100 * time.Millisecond
	longPause   = 2 * time.Second
	personPause = 10 * time.Second
)

// before lets an attempt go on, or says why the last one failed.
func (p *patience) before() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		return nil
	}
	if time.Now().Before(p.until) {
		return p.last
	}
	p.until = time.Now().Add(p.attempt) // this is the one attempt
	return nil
}

func (p *patience) connected() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures, p.last = 0, nil
}

// failed takes in why no connection was made, as the caller was told.
func (p *patience) failed(err error) error {
	told := connectFault(err)
	var refused *pgconn.ConnectError
	if told == nil || !errors.As(err, &refused) {
		return told
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	pause := min(firstPause<<min(p.failures, 10), longPause)
	if ports.CodeOf(told) == ports.Unauthorized || needsPerson(err) {
		pause = personPause
	}
	p.failures++
	p.last, p.until = told, time.Now().Add(pause*3/4+rand.N(pause/2))
	return told
}
