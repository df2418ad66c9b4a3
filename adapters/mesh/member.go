package mesh

import (
	"context"
	"crypto/x509"
	"math/rand/v2"
	"net/url"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/semaphore"

	"holdfast/core"
	"holdfast/ports"
)

// A Member is holdfast at somebody else's hub: a beacon of a stock Ultravisor that offers QueuePersistence and ManifestStore, so
// that an unmodified Ultravisor keeps its history here.
//
//	member.go           one connection after the other, as long as the host runs
//	member_visit.go     one connection: register, beat, take what is pushed, say goodbye
//	member_frames.go    the frames of it
//	member_work.go      a pushed work becomes a call of the core, and its answer a report
//	member_check.go     is it still registered, and was it chosen
//	member_status.go    how it stands, and what helps
//	member_mesh.go      the hub's other beacons, for backends that live behind them
//	member_web.go       the hub's HTTP routes
//
// What may be counted on: every work that was pushed and read is begun in the order of its arrival and reported once; while too
// much is in hand the socket is not read, so that the hub keeps the rest; no wait lasts beyond what Timing says.

// MemberConfig is everything a Member is made of.
type MemberConfig struct {
	URL        string // of the hub, such as http://ultravisor:54321
	Name       string // of the beacon; the hub knows it by that alone, so it never changes
	HostID     string // the machine
	User       string // who logs in, "" for nobody
	Password   string
	JoinSecret string         // "" for none
	Roots      *x509.CertPool // of the authorities that the hub's certificate may be of; nil: those of the system
	Core       MemberCore
	Limits     MemberLimits
	Timing     MemberTiming
	Logger     hclog.Logger
}

// MemberCore is what a Member asks of the core: Over gives it.
type MemberCore interface {
	Begin(call core.Call) Promise
}

// MemberLimits bound what a Member holds.
type MemberLimits struct {
	Bytes int64 // of all works in hand together: 256 MiB
	Works int   // in hand: 512
	Reads int   // under way at a time, of those: 8
}

// MemberTiming is how long things may take.
type MemberTiming struct {
	Connect  time.Duration // of a login or the opening of a socket: 6 s, since the hub may ask somebody for 5 s
	Register time.Duration // until the hub says yes or no: 10 s, likewise
	Answer   time.Duration // of the core to one work: 2 s of the 5 s that the hub waits
	Send     time.Duration // of a small frame or report to the hub: 2 s
	Ask      time.Duration // of a look at the hub's routes: 5 s
	Beat     time.Duration // between heartbeats: 25 s
	Quiet    time.Duration // a silent hub is asked for a sign of life, and has half as long to answer: 20 s
	Check    time.Duration // between looks at the registration: 1 min
	Soon     time.Duration // from a registration to the first look behind it, 2 s, and to another one, five times as long
	Look     time.Duration // between looks at who else is there, while somebody wants to know: 2 s
	Goodbye  time.Duration // of each step of a stop: 1 s
	Retry    time.Duration // after a lost connection, doubled each time: 250 ms
	RetryMax time.Duration // 30 s
}

var (
	usualMemberLimits = MemberLimits{Bytes: 256 << 20, Works: 512, Reads: 8}
	usualMemberTiming = MemberTiming{
		Connect: 6 * time.Second, Register: 10 * time.Second, Answer: 2 * time.Second, Send: 2 * time.Second, Ask: 5 * time.Second,
		Beat: 25 * time.Second, Quiet: 20 * time.Second, Check: time.Minute, Soon: 2 * time.Second, Look: 2 * time.Second, Goodbye: time.Second, Retry: 250 * time.Millisecond,
		RetryMax: 30 * time.Second,
	}
)

func (l MemberLimits) withUsual() MemberLimits {
	u := usualMemberLimits
	or(&l.Bytes, u.Bytes)
	or(&l.Works, u.Works)
	or(&l.Reads, u.Reads)
	return l
}

func (t MemberTiming) withUsual() MemberTiming {
	u := usualMemberTiming
	or(&t.Connect, u.Connect)
	or(&t.Register, u.Register)
	or(&t.Answer, u.Answer)
	or(&t.Send, u.Send)
	or(&t.Ask, u.Ask)
	or(&t.Beat, u.Beat)
	or(&t.Quiet, u.Quiet)
	or(&t.Check, u.Check)
	or(&t.Soon, u.Soon)
	or(&t.Look, u.Look)
	or(&t.Goodbye, u.Goodbye)
	or(&t.Retry, u.Retry)
	or(&t.RetryMax, u.RetryMax)
	return t
}

// Member is one membership of one hub.
type Member struct {
	name   string
	hostID string
	hub    string // host:port: what the hub is called here, whatever it calls itself
	secret string
	core   MemberCore
	web    *web
	limits MemberLimits
	timing MemberTiming
	log    hclog.Logger
	lanes  *lanes

	bytes   *semaphore.Weighted // of works in hand
	slots   chan struct{}       // one for each work in hand
	reading chan struct{}       // one for each read under way

	outlook outlook

	mu     sync.Mutex
	visit  *visit        // the one that is open, registered or not yet
	view   MemberStatus  // its InHand counts the goroutines that answer works
	idle   chan struct{} // closed when there is none, nil when nobody waits for that
	broken bool          // a flush may have ended early: registering again lets the hub go on with it
	ours   memory        // hashes of works that are about persistence itself
}

// NewMember makes a Member. Nothing is connected before Run.
func NewMember(c MemberConfig) (*Member, error) {
	base, err := url.Parse(c.URL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, ports.Errorf(ports.Invalid, "mesh", "the hub's address is not like http://ultravisor:54321")
	}
	m := &Member{
		name: c.Name, hostID: c.HostID, hub: base.Host, secret: c.JoinSecret, core: c.Core, limits: c.Limits.withUsual(), timing: c.Timing.withUsual(),
		log: c.Logger, lanes: newLanes(), ours: newMemory(maxEnded),
	}
	if m.log == nil {
		m.log = hclog.NewNullLogger()
	}
	m.web = newWeb(base.Scheme+"://"+base.Host, c.User, c.Password, c.Roots, m.timing)
	m.bytes = semaphore.NewWeighted(m.limits.Bytes)
	m.slots = make(chan struct{}, m.limits.Works)
	m.reading = make(chan struct{}, m.limits.Reads)
	m.view = MemberStatus{Hub: m.hub, Name: m.name, State: MemberConnecting, Since: time.Now()}
	return m, nil
}

// Run keeps the membership until ctx ends. When it returns, the hub was told goodbye as far as it listened, and every work in
// hand was answered or given up.
func (m *Member) Run(ctx context.Context) error {
	defer m.web.close()
	defer func() { <-m.atRest() }() // bounded by what an answer and its report may take
	failures := 0
	for ctx.Err() == nil {
		began := time.Now()
		joined, err := m.attend(ctx)
		if ctx.Err() != nil {
			break
		}
		if joined && time.Since(began) > m.timing.RetryMax {
			failures = 0
		}
		m.lostBecause(err)
		pause := m.pause(failures)
		failures++
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	m.turn(MemberStopped, "", "")
	return nil
}

// pause is how long to wait after so many failures in a row. Half of it is chance, so that the beacons of a hub that was
// started again do not come back in step.
func (m *Member) pause(failures int) time.Duration {
	wait := m.timing.RetryMax
	if failures < 16 {
		wait = min(wait, m.timing.Retry<<failures)
	}
	return wait/2 + rand.N(wait/2+1)
}

// current is the open session, nil when there is none.
func (m *Member) current() *visit {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.visit
}

func (m *Member) setVisit(s *visit) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.visit = s
}

// handle answers a work in a goroutine of its own.
func (m *Member) handle(answer func()) {
	m.count(func(v *MemberStatus) { v.InHand++ })
	go func() {
		defer func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.view.InHand--; m.view.InHand == 0 && m.idle != nil {
				close(m.idle)
				m.idle = nil
			}
		}()
		answer()
	}()
}

// atRest is closed once no work is in hand.
func (m *Member) atRest() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.view.InHand == 0 {
		rest := make(chan struct{})
		close(rest)
		return rest
	}
	if m.idle == nil {
		m.idle = make(chan struct{})
	}
	return m.idle
}

// hide takes secrets out of what a hub said.
func (m *Member) hide(text string) string {
	return printableLine(withoutSecrets(text, m.secret, m.web.password))
}
