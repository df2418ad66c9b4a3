package httpapi

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"holdfast/ports"
)

// How long a peer is waited for.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute  // of a connection between requests
	writeTimeout  = 30 * time.Second // for a peer to take one write of a stream, or a whole answer of some size
)

const (
	maxHeaderBytes = 64 << 10
	maxInWork      = 256 << 20
)

// Config is everything an API is made of.
type Config struct {
	Host      Host
	Version   string
	Tokens    []Token
	Loopback  bool       // only this machine can reach the listener; without tokens it must be so
	MaxInWork int64      // bytes of large records in work at a time; 0 means 256 MiB
	Hub       func() any // tells of the hub that beacons connect to, for the status; nil: there is none
	Joined    Joined
	Metrics   []prometheus.Collector // more of them, beside those of the host
	Logger    hclog.Logger
}

// Joined tells how the membership of somebody else's hub stands, for the status, and what a person should know of it, "" for
// nothing. nil: no hub is joined.
type Joined func() (status any, notice string)

// API is the HTTP handler.
type API struct {
	host    Host
	hub     func() any
	joined  Joined
	version string
	keys    keyring
	guard   guard
	budget  *semaphore.Weighted // bytes of large records
	log     hclog.Logger
	mux     *http.ServeMux
	metrics *metrics

	pruneTime time.Duration
	tellEvery time.Duration       // of works that last
	works     *semaphore.Weighted // that last

	draining context.Context
	drain    context.CancelFunc
}

// route is one row of the table of routes.
type route struct {
	method, path string
	role         Role
	serve        func(a *API, w http.ResponseWriter, r *http.Request, who caller)
	always       bool // also while draining
}

var routes = []route{
	{"POST", "/v1/actions", RoleRead, (*API).actions, false}, // a write asks for more, call by call
	{"GET", "/v1/work-items", RoleRead, (*API).items, false},
	{"GET", "/v1/work-items/{hash}", RoleRead, (*API).item, false},
	{"GET", "/v1/work-items/{hash}/events", RoleRead, (*API).events, false},
	{"GET", "/v1/work-items/{hash}/attempts", RoleRead, (*API).attempts, false},
	{"GET", "/v1/manifests", RoleRead, (*API).manifests, false},
	{"GET", "/v1/manifests/{hash}", RoleRead, (*API).manifest, false},
	{"GET", "/v1/export", RoleRead, (*API).export, false},
	{"GET", "/v1/status", RoleRead, (*API).status, true},
	{"GET", "/v1/writes/{family}/{seq}", RoleRead, (*API).write, false},
	{"GET", "/v1/unsettled", RoleRead, (*API).unsettled, false},
	{"POST", "/v1/unsettled/{family}/retry", RoleAdmin, (*API).retry, false},
	{"POST", "/v1/unsettled/{family}/discard", RoleAdmin, (*API).discard, false},
	{"GET", "/v1/backends", RoleRead, (*API).backends, true},
	{"POST", "/v1/backends/{name}/resync", RoleAdmin, (*API).resync, false},
	{"POST", "/v1/backends/{name}/adopt", RoleAdmin, (*API).adopt, false},
	{"POST", "/v1/verify", RoleRead, (*API).verify, false},
	{"POST", "/v1/copy", RoleAdmin, (*API).copy, false},
	{"POST", "/v1/assignment", RoleAdmin, (*API).assign, false},
	{"POST", "/v1/local/accept", RoleAdmin, (*API).acceptLocal, false},
	{"POST", "/v1/prune", RoleAdmin, (*API).prune, false},
	{"GET", "/metrics", RoleRead, (*API).serveMetrics, true},
	{"GET", "/livez", RoleNone, (*API).live, true},
	{"GET", "/readyz", RoleNone, (*API).ready, true},
	{"GET", "/{$}", RoleNone, (*API).page, true},
}

// New makes an API. It refuses to be open to other machines.
func New(c Config) (*API, error) {
	keys, err := newKeyring(c.Tokens)
	if err != nil {
		return nil, err
	}
	if len(keys) == 0 && !c.Loopback {
		return nil, ports.Errorf(ports.Invalid, "http", "other machines can reach the listener; configure a token or listen on a loopback address")
	}
	if c.MaxInWork == 0 {
		c.MaxInWork = maxInWork
	}
	a := &API{
		host: c.Host, hub: c.Hub, joined: c.Joined, version: c.Version, keys: keys, guard: newGuard(len(keys) == 0), log: c.Logger, mux: http.NewServeMux(),
		budget: semaphore.NewWeighted(max(c.MaxInWork, ports.MaxLineBytes)), pruneTime: pruneTime,
		tellEvery: tellEvery, works: semaphore.NewWeighted(maxLasting),
	}
	a.draining, a.drain = context.WithCancel(context.Background())
	a.metrics = newMetrics(c.Host, c.Version, c.Metrics)
	for _, row := range routes {
		a.mux.Handle(row.method+" "+row.path, a.handler(row, a.metrics.timers(row.method+" "+row.path)))
	}
	a.mux.HandleFunc("/", a.missing)
	return a, nil
}

func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.mux.ServeHTTP(w, takeKey(r)) }

// Server makes a server for the API, with the time limits that it counts on.
func (a *API) Server() *http.Server {
	return &http.Server{
		Handler:           a,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          a.log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}
}

// Drain makes the API not ready and lets it refuse new calls. Open streams end behind the lines that they have read, each of
// which is still answered.
func (a *API) Drain() { a.drain() }

// handler is what every route has in common: access, limits of time, the metrics and the access log.
func (a *API) handler(row route, timers timers) http.Handler {
	return http.HandlerFunc(func(plain http.ResponseWriter, r *http.Request) {
		began := time.Now()
		w := &recorder{ResponseWriter: plain}
		_ = http.NewResponseController(plain).SetWriteDeadline(began.Add(2 * writeTimeout)) // a test's recorder has none
		who, err := a.admit(row, r)
		if err != nil {
			refuse(w, err)
		} else {
			row.serve(a, w, r, who)
		}
		took := time.Since(began)
		timers.observe(w.status, took)
		if a.log.IsDebug() {
			asked, _, _ := strings.Cut(r.RequestURI, "?")
			a.log.Debug("request", "method", r.Method, "path", asked, "status", w.status, "bytes", w.bytes, "took", took, "actor", who.name)
		}
	})
}

// admit says who asks, or why nothing is served.
func (a *API) admit(row route, r *http.Request) (caller, error) {
	if err := a.guard.check(r); err != nil {
		return caller{}, err
	}
	who, err := a.keys.identify(r)
	switch {
	case row.role == RoleNone:
		return who, nil
	case err != nil:
		return caller{}, err
	case who.role < row.role:
		return who, forbidden(who, row.role)
	case !row.always && a.draining.Err() != nil:
		return who, &refusal{http.StatusServiceUnavailable, ports.Errorf(ports.Unavailable, "", stopping+"; send it again in a moment")}
	}
	return who, nil
}

// missing answers what is no route: 405 where the path is one with another method.
func (a *API) missing(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		other := *r
		other.Method = method
		if _, pattern := a.mux.Handler(&other); pattern != "/" && pattern != "" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		refuse(w, &refusal{http.StatusNotFound, ports.Errorf(ports.NotFound, "", "no such path; see docs/protocol.md, or / for the status page")})
		return
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	refuse(w, &refusal{http.StatusMethodNotAllowed, ports.Errorf(ports.Invalid, "", "%s is not for this path; it takes %s", printable(r.Method), strings.Join(allowed, " and "))})
}
