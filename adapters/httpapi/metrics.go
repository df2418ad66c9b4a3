package httpapi

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"holdfast/core"
)

// The metrics. All but the latencies are read from the host's status when somebody asks for them, so that they and the status
// page never disagree. Labels are bounded: no keys, no paths.

type metrics struct {
	serve   http.Handler
	latency *prometheus.HistogramVec
}

func newMetrics(host Host, version string, more []prometheus.Collector) *metrics {
	m := &metrics{latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "holdfast_http_request_seconds", Help: "How long requests took, streams included, by route and class of status.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .02, .05, .1, .25, .5, 1, 2.5, 10, 60},
	}, []string{"route", "class"})}
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.latency, statusCollector{host, version},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(more...)
	m.serve = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	return m
}

func (a *API) serveMetrics(w http.ResponseWriter, r *http.Request, _ caller) {
	a.metrics.serve.ServeHTTP(w, r)
}

// timers are the latencies of one route by class of status, looked up once.
type timers [6]prometheus.Observer

func (m *metrics) timers(route string) (t timers) {
	for class := range t {
		t[class] = m.latency.WithLabelValues(route, strconv.Itoa(class)+"xx")
	}
	return t
}

func (t *timers) observe(status int, took time.Duration) {
	if status == 0 {
		status = http.StatusOK // an empty body that was never begun
	}
	t[min(status/100, len(t)-1)].Observe(took.Seconds())
}

// statusCollector turns a core.Status into samples.
type statusCollector struct {
	host    Host
	version string
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("holdfast_"+name, help, labels, nil)
}

var (
	descBuild     = desc("build_info", "Always 1; the version is a label.", "version")
	descReady     = desc("ready", "1 while writes are accepted and reads answered.")
	descAccepted  = desc("writes_accepted_total", "Writes that the journal took.", "family")
	descDecided   = desc("writes_total", "Writes by what became of them.", "family", "outcome")
	descDeferred  = desc("writes_deferred_total", "Writes that were answered before they were decided.", "family")
	descForeign   = desc("writes_foreign_total", "Writes over records that another host of the same local store had changed last.", "family")
	descOvertaken = desc("writes_overtaken_total", "Deferred writes that were then decided otherwise than stored.", "family")
	descHead      = desc("journal_head", "Seq of the last durable write.", "family")
	descCommitted = desc("local_committed", "Seq up to which the local store has all.", "family")
	descBacklog   = desc("backlog_rows", "Durable writes that wait for the local store, those on their way included.", "family")
	descOldest    = desc("backlog_age_seconds", "Age of the oldest of them.", "family")
	descBytes     = desc("journal_bytes", "Size of the journal on disk.", "family")
	descLimit     = desc("journal_limit_bytes", "Size at which the journal is full.", "family")
	descReserve   = desc("journal_reserve_bytes", "Free space on disk that new writes leave alone.", "family")
	descFree      = desc("journal_free_bytes", "Free space on the journal's disk.", "family")
	descFull      = desc("journal_full", "1 while the journal takes no writes.", "family")
	descAside     = desc("set_aside", "Writes that are set aside.", "family")
	descLost      = desc("lost_rows", "Writes that no part of this host holds any more.", "family")
	descUp        = desc("backend_up", "1 while a backend takes writes and answers reads.", "backend", "kind")
	descState     = desc("backend_state", "1 for the state that a backend is in.", "backend", "kind", "state")
	descStarts    = desc("backend_starts_total", "Starts of a backend's process.", "backend", "kind")
	descAssigned  = desc("assignment_state", "1 for the state of what shall keep a family behind a databeacon.", "family", "state")
)

// states are all the states of a backend, so that an alert can watch for one that is not there now.
var states = []string{"unassigned", "waiting-for-beacon", "bootstrapping", "bootstrapped", "error"}

func (c statusCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range followerDescs {
		ch <- d
	}
	for _, d := range []*prometheus.Desc{descBuild, descReady, descAccepted, descDecided, descDeferred, descOvertaken, descForeign, descHead, descCommitted,
		descBacklog, descOldest, descBytes, descLimit, descReserve, descFree, descFull, descAside, descLost, descUp, descState, descStarts, descAssigned} {
		ch <- d
	}
}

// gauges and counters take one sample.
type (
	gauges   func(d *prometheus.Desc, v float64, labels ...string)
	counters func(d *prometheus.Desc, v uint64, labels ...string)
)

func (c statusCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.host.Status()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	gauge(descBuild, 1, strings.ToValidUTF8(c.version, "?"))
	gauge(descReady, truth(s.Ready))
	for i := range s.Families {
		f := &s.Families[i]
		family := strings.ToLower(string(f.Family))
		counter(descAccepted, f.Writes.Accepted, family)
		for _, o := range outcomes(&f.Writes) {
			counter(descDecided, o.n, family, o.name)
		}
		counter(descDeferred, f.Writes.Deferred, family)
		counter(descOvertaken, f.Writes.Overtaken, family)
		counter(descForeign, f.Writes.Foreign, family)
		gauge(descHead, float64(f.Head), family)
		gauge(descCommitted, float64(f.Committed), family)
		gauge(descBacklog, float64(f.Backlog), family)
		gauge(descOldest, float64(f.OldestMs)/1000, family)
		gauge(descBytes, float64(f.Journal.Bytes), family)
		gauge(descLimit, float64(f.Journal.Limit), family)
		gauge(descReserve, float64(f.Journal.Reserve), family)
		gauge(descFree, float64(f.Journal.Free), family)
		gauge(descFull, truth(f.Journal.Full), family)
		gauge(descAside, float64(f.SetAside), family)
		var lost uint64
		for _, span := range f.Lost {
			lost += span.To - span.From + 1
		}
		gauge(descLost, float64(lost), family)
	}
	for i := range s.Assignments {
		for _, state := range states {
			gauge(descAssigned, truth(s.Assignments[i].State == state), strings.ToLower(string(s.Assignments[i].Family)), state)
		}
	}
	for _, b := range s.Backends {
		gauge(descUp, truth(b.State == "bootstrapped"), b.Name, b.Kind)
		for _, state := range states {
			gauge(descState, truth(b.State == state), b.Name, b.Kind, state)
		}
		counter(descStarts, uint64(max(b.Starts, 0)), b.Name, b.Kind)
		for i := range b.Followers {
			followerSamples(b.Name, &b.Followers[i], gauge, counter)
		}
	}
}

type outcome struct {
	name string
	n    uint64
}

func outcomes(c *core.WriteCounts) []outcome {
	return []outcome{
		{"stored", c.Stored}, {"already_present", c.AlreadyPresent}, {"already_absent", c.AlreadyAbsent}, {"not_found", c.NotFound},
		{"expired", c.Expired}, {"refused", c.Refused}, {"late", c.Late}, {"early", c.Early}, {"ignored", c.Ignored}, {"set_aside", c.SetAside},
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
